//! Products of rows with a matrix that is constant, rounded to bf16. Such a product is a convolution whose windows are one
//! pixel: rows are pixels, and the steps of a sum are channels.

use super::dense::{Dense, Factors};
use super::finish::{Finish, Residual};
use super::geometry::Geometry;
use super::weights::Panels;
use crate::gemm::{Scratch, Team};
use crate::kernels::activation::Activation;

/// A product that is ready to be computed.
pub(in super::super) struct RoundedProduct {
    dense: Dense,
    columns: usize,
}

/// The matrix of a product, packed.
pub(in super::super) struct RoundedMatrix(Panels);

impl RoundedProduct {
    /// Of so many rows and columns, whose sums have so many steps.
    pub(in super::super) fn new(team: &dyn Team, rows: usize, columns: usize, depth: usize) -> Self {
        let geometry = Geometry::of_rows(rows, depth, columns);
        Self { dense: Dense::new(team, &geometry, Factors::Rounded), columns }
    }

    /// How many bytes of scratch memory it takes.
    pub(in super::super) fn scratch_size(&self) -> u64 {
        // Scratch memory begins at the next line.
        (self.dense.scratch_size() * size_of::<f32>() + 64) as u64
    }

    /// Packs a matrix, of which the columns of a step lie side by side or, turned, the steps of a column.
    pub(in super::super) fn pack(&self, team: &dyn Team, matrix: &[f32], is_turned: bool) -> RoundedMatrix {
        RoundedMatrix(if is_turned {
            self.dense.pack(team, matrix)
        } else {
            Panels::of_rounded_steps(team, self.columns, matrix)
        })
    }

    /// Computes the product, adds a number to each column and a residual, and applies an activation.
    pub(in super::super) fn compute(
        &self,
        team: &dyn Team,
        (rows, matrix): (&[f32], &RoundedMatrix),
        (bias, residual): (Option<&[f32]>, Option<&[f32]>),
        activation: Activation,
        y: &mut [f32],
        scratch: &mut Scratch<'_>,
    ) {
        let residual = residual.map_or(Residual::None, Residual::Apart);
        let finish = Finish { bias, residual, activation };
        let scratch = scratch.elements(self.dense.scratch_size());
        self.dense.compute(team, (rows, &matrix.0), &finish, y, scratch);
    }
}
