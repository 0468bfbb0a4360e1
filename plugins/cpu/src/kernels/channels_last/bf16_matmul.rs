//! Products of rows with a matrix that is constant, rounded to bf16. Such a product is a convolution whose windows are one
//! pixel: rows are pixels, and the steps of a sum are channels.

use super::dense::{ConvFactors, DenseConv};
use super::epilogue::{ConvEpilogue, ResidualSource};
use super::geometry::NhwcGeometry;
use super::weight_panels::WeightPanels;
use crate::gemm::{ScratchBuffer, ThreadTeam};
use crate::kernels::activation::FusedActivation;

/// A product that is ready to be computed.
pub(in super::super) struct Bf16Matmul {
    dense: DenseConv,
    columns: usize,
}

/// The matrix of a product, packed.
pub(in super::super) struct Bf16Matrix(WeightPanels);

impl Bf16Matmul {
    /// Of so many rows and columns, whose sums have so many steps.
    pub(in super::super) fn new(team: &dyn ThreadTeam, rows: usize, columns: usize, depth: usize) -> Self {
        let geometry = NhwcGeometry::for_matmul(rows, depth, columns);
        Self { dense: DenseConv::new(team, &geometry, ConvFactors::Rounded), columns }
    }

    /// How many bytes of scratch memory it takes.
    pub(in super::super) fn scratch_size(&self) -> u64 {
        // Scratch memory begins at the next line.
        (self.dense.scratch_size() * size_of::<f32>() + 64) as u64
    }

    /// Packs a matrix, of which the columns of a step lie side by side or, turned, the steps of a column.
    pub(in super::super) fn pack_matrix(
        &self,
        team: &dyn ThreadTeam,
        matrix: &[f32],
        is_turned: bool,
    ) -> Bf16Matrix {
        Bf16Matrix(if is_turned {
            self.dense.pack_weights(team, matrix)
        } else {
            WeightPanels::from_bf16_steps(team, self.columns, matrix)
        })
    }

    /// Computes the product, adds a number to each column and a residual, and applies an activation.
    pub(in super::super) fn compute(
        &self,
        team: &dyn ThreadTeam,
        (rows, matrix): (&[f32], &Bf16Matrix),
        (bias, residual): (Option<&[f32]>, Option<&[f32]>),
        activation: FusedActivation,
        y: &mut [f32],
        scratch: &mut ScratchBuffer<'_>,
    ) {
        let residual = residual.map_or(ResidualSource::None, ResidualSource::Apart);
        let finish = ConvEpilogue { bias, residual, activation };
        let scratch = scratch.allocate_elements(self.dense.scratch_size());
        self.dense.compute(team, (rows, &matrix.0), &finish, y, scratch);
    }
}
