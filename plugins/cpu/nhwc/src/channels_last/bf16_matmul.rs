//! Products of rows with a constant matrix, with factors rounded to bf16. Such a product is a convolution with windows of one
//! pixel: rows are pixels, and the steps of a sum are channels.

use oarlock_cpu_base::fused_activation::FusedActivation;
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::ScratchBuffer;

use super::dense::{ConvPrecision, DenseConv};
use super::epilogue::{ConvEpilogue, ResidualSource};
use super::geometry::NhwcGeometry;
use super::weight_panels::WeightPanels;

/// A product that is planned for one shape.
pub struct Bf16Matmul {
    dense: DenseConv,
    columns: usize,
}

/// The constant matrix, packed.
pub struct Bf16Matrix(WeightPanels);

impl Bf16Matmul {
    pub fn new(team: &dyn ThreadTeam, rows: usize, columns: usize, depth: usize) -> Self {
        let geometry = NhwcGeometry::for_matmul(rows, depth, columns);
        Self { dense: DenseConv::new(team, &geometry, ConvPrecision::Bf16), columns }
    }

    pub fn scratch_size(&self) -> u64 {
        // Up to 64 bytes are lost to aligning the scratch memory to a cache line.
        (self.dense.scratch_size() * size_of::<f32>() + 64) as u64
    }

    /// Packs a matrix. The columns of a step are contiguous or, if it is transposed, the steps of a column.
    pub fn pack_matrix(&self, team: &dyn ThreadTeam, matrix: &[f32], is_transposed: bool) -> Bf16Matrix {
        Bf16Matrix(if is_transposed {
            self.dense.pack_weights(team, matrix)
        } else {
            WeightPanels::from_bf16_steps(team, self.columns, matrix)
        })
    }

    /// Computes the product, adds bias and residual, and applies an activation.
    pub fn compute(
        &self,
        team: &dyn ThreadTeam,
        (rows, matrix): (&[f32], &Bf16Matrix),
        (bias, residual): (Option<&[f32]>, Option<&[f32]>),
        activation: FusedActivation,
        y: &mut [f32],
        scratch: &mut ScratchBuffer<'_>,
    ) {
        let residual = residual.map_or(ResidualSource::None, ResidualSource::Apart);
        let epilogue = ConvEpilogue { bias, residual, activation };
        let scratch = scratch.allocate_elements(self.dense.scratch_size());
        self.dense.compute(team, (rows, &matrix.0), &epilogue, y, scratch);
    }
}
