//! The epilogue of products: scaling, addends and an activation.

use oarlock_cpu_base::fused_activation::FusedActivation;
use oarlock_cpu_base::isa::{Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_gemm::OutputBlock;

/// A third operand, broadcast along dimensions of size 1.
pub(super) struct MatmulAddend<'a> {
    elements: &'a [f32],
    row: usize,
    column: usize,
}

impl<'a> MatmulAddend<'a> {
    /// An operand, with the strides of its rows and columns.
    pub(super) fn new(elements: &'a [f32], [row, column]: [usize; 2]) -> Self {
        Self { elements, row, column }
    }
}

pub(super) struct MatmulEpilogue<'a> {
    pub(super) isa: Isa,
    /// The rows of each product, which may span several output matrices.
    pub(super) rows_of_product: usize,
    /// The rows and columns of each output matrix.
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) alpha: f32,
    pub(super) addend: Option<MatmulAddend<'a>>,
    /// Added element by element. It has the shape of the output.
    pub(super) residual: Option<&'a [f32]>,
    pub(super) activation: FusedActivation,
}

impl MatmulEpilogue<'_> {
    /// True if sums are stored unchanged.
    pub(super) fn is_empty(&self) -> bool {
        self.alpha == 1.0 && self.addend.is_none() && self.residual.is_none() && self.activation.is_none()
    }

    /// Applies the epilogue to a part of the output.
    pub(super) fn finish_block(&self, mut part: OutputBlock<'_, f32>) {
        let (item, columns) = (part.item, part.columns.clone());
        for (row, numbers) in part.rows_mut() {
            let addend = self.addend.as_ref().map(|addend| {
                // Several output matrices may form one tall product; each of them starts again at the first row of the addend.
                let row = &addend.elements[row % self.rows * addend.row..];
                if addend.column == 0 { &row[..1] } else { &row[columns.clone()] }
            });
            let start = (item * self.rows_of_product + row) * self.columns;
            let residual = self.residual.map(|residual| &residual[start..][columns.clone()]);
            self.isa.vectorize(EpilogueRow { epilogue: self, numbers, addend, residual });
        }
    }
}

/// Some results of one row, with their addends.
struct EpilogueRow<'a> {
    epilogue: &'a MatmulEpilogue<'a>,
    numbers: &'a mut [f32],
    /// One addend for all results, or one for each.
    addend: Option<&'a [f32]>,
    residual: Option<&'a [f32]>,
}

impl SimdTask for EpilogueRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { epilogue, numbers, addend, residual } = self;
        let alpha = epilogue.alpha;
        match (addend, residual) {
            // The common cases first; `multiply_add` with an alpha of 1 is a plain addition.
            (None, None) if alpha == 1.0 => {}
            (None, None) => numbers.iter_mut().for_each(|number| *number *= alpha),
            (Some(addend), None) if addend.len() == numbers.len() => {
                for (number, addend) in numbers.iter_mut().zip(addend) {
                    *number = number.multiply_add::<T>(alpha, *addend);
                }
            }
            (None, Some(residual)) => {
                for (number, residual) in numbers.iter_mut().zip(residual) {
                    *number = number.multiply_add::<T>(alpha, *residual);
                }
            }
            // Each combination has a single pass: a second one would load and store the numbers again.
            (Some(addend), Some(residual)) if addend.len() == numbers.len() => {
                for ((number, addend), residual) in numbers.iter_mut().zip(addend).zip(residual) {
                    *number = number.multiply_add::<T>(alpha, *addend) + *residual;
                }
            }
            (Some(addend), residual) => {
                let addend = addend[0];
                numbers.iter_mut().for_each(|number| *number = number.multiply_add::<T>(alpha, addend));
                for (number, residual) in numbers.iter_mut().zip(residual.into_iter().flatten()) {
                    *number += *residual;
                }
            }
        }
        // A separate pass: the row is in L1, and activations have loops of their own.
        epilogue.activation.apply_on_target::<T>(numbers);
    }
}
