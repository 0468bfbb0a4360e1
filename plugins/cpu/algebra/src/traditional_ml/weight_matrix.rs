//! Weights of features: a row of them for each result, multiplied with many rows of features.

use std::sync::OnceLock;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_gemm::{
    BatchedGemm, GemmElement, GemmEpilogue, GemmOperand, GemmShape, PackedOperand, ScratchBuffer,
    StridedMatrix,
};
use oarlock_sdk::{PluginError, Result};

pub(super) struct WeightMatrix<F> {
    /// Rows of weights, and perhaps more, which is ignored.
    elements: Vec<F>,
    results: usize,
    /// The weights of this many columns, packed when rows come that are worth it.
    packed: OnceLock<PackedOperand<F>>,
}

impl<F: GemmElement> WeightMatrix<F> {
    pub(super) fn new(elements: Vec<F>, results: usize) -> Self {
        Self { elements, results, packed: OnceLock::new() }
    }

    /// Writes the product of each row of features with each row of weights, and then runs the epilogue on it.
    pub(super) fn multiply(
        &self,
        cpu: &Cpu,
        features: &[F],
        (rows, columns): (usize, usize),
        products: &mut [F],
        epilogue: Option<&GemmEpilogue<'_, F>>,
    ) -> Result<()> {
        let matrix = |elements, lanes| {
            StridedMatrix::new(elements, vec![0], (lanes, columns), (columns, 1)).ok_or_else(|| {
                PluginError::out_of_range(
                    "expected as many features and weights as a product reads, found fewer",
                )
            })
        };
        let (left, right) = (matrix(features, rows)?, matrix(&self.elements, self.results)?);
        let sizes = GemmShape { items: 1, rows, columns: self.results, depth: columns };
        let packed = sizes
            .repays_packing()
            .then(|| {
                self.packed.get_or_init(|| PackedOperand::pack_right(cpu, &right, self.results, columns))
            })
            // Rows of weights are longer than those of features if a model has weights left over.
            .filter(|packed| packed.depth() == columns);
        let right = packed.map_or(GemmOperand::Operand(&right), GemmOperand::Packed);
        let left = GemmOperand::Operand(&left);
        BatchedGemm { sizes, left, right, output: Some(products), epilogue }
            .compute(cpu, &mut ScratchBuffer::without_workspace());
        Ok(())
    }
}
