//! `Gemm`: alpha times the product of two matrices, each optionally transposed, plus beta times a third.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_gemm::{
    GemmEpilogue, GemmOperand, GemmShape, OperandForm, PackedOperand, ScratchBuffer, StoredElement,
    StridedMatrix, compute_stored_gemm, gemm_scratch_size,
};
use oarlock_products::{GemmProblem, GemmSize};
use oarlock_sdk::{Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, TensorView, dispatch};

use super::matmul_shape::gemm_shape;
use super::{MATMUL_DTYPES, matrix_form, operand_size_error};

pub(super) fn gemm_kernel() -> Kernel<Cpu> {
    let number = OperandSpec::new(MATMUL_DTYPES).with_dtype_group(1);
    Kernel::new_prepared("Gemm", |cpu: &Cpu, call| {
        let dtype = call.output(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16 + i32 + i64 + u32 + u64, T => prepare_gemm::<T>(cpu, call))
    })
    .with_workspace(|cpu, call| {
        let dtype = call.output(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16 + i32 + i64 + u32 + u64, T => workspace_size::<T>(cpu, call))
    })
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([
        number.with_name("A").with_rank(2, 2),
        number.with_name("B").with_rank(2, 2),
        number.with_name("C").with_rank(0, 2).with_flags(OperandFlags::OPTIONAL),
    ])
    .with_outputs([number.with_name("Y").with_rank(2, 2)])
}

type PreparedGemm = dyn Fn(&Cpu, &KernelCall<'_>) -> Result<()> + Send + Sync;

fn right_matrix<'a, E>(
    settings: &GemmProblem,
    elements: &'a [E],
    sizes: &GemmShape,
) -> Result<StridedMatrix<'a, E>> {
    let (lane, step) = if settings.b_transposed { (sizes.depth, 1) } else { (1, sizes.columns) };
    StridedMatrix::new(elements, vec![0], (sizes.columns, lane), (sizes.depth, step))
        .ok_or_else(operand_size_error)
}

fn prepare_gemm<E: StoredElement>(cpu: &Cpu, call: &KernelCall<'_>) -> Result<Arc<PreparedGemm>> {
    let settings = GemmProblem::new(call)?;
    let b = call.input(1)?;
    let sizes = gemm_shape(settings.gemm_size(call.input(0)?.dims(), b.dims())?, 1);
    let packed = if is_worth_packing(&sizes, &b) {
        // SAFETY: device memory is host memory, and a constant is never written.
        let right = right_matrix::<E>(&settings, unsafe { b.elements() }?, &sizes)?;
        Some(PackedOperand::pack_right(cpu, &right, sizes.columns, sizes.depth))
    } else {
        None
    };
    super::describe_product(cpu, call, packed.is_some());
    Ok(Arc::new(move |cpu, call| run_gemm::<E>(cpu, call, settings, packed.as_ref())))
}

/// True if packing a constant right operand pays: for a few rows it is read once, in place.
fn is_worth_packing(sizes: &GemmShape, b: &TensorView<'_>) -> bool {
    b.is_constant() && sizes.repays_packing()
}

fn workspace_size<E: StoredElement>(cpu: &Cpu, call: &KernelCall<'_>) -> Result<u64> {
    let settings = GemmProblem::new(call)?;
    let b = call.input(1)?;
    let sizes = gemm_shape(settings.gemm_size(call.input(0)?.dims(), b.dims())?, 1);
    let right = if is_worth_packing(&sizes, &b) {
        OperandForm::Packed
    } else {
        matrix_form::<E>(1, !settings.b_transposed)
    };
    let left = matrix_form::<E>(1, settings.a_transposed);
    // Elements that need conversion are stored in another type than their sums, so the sums are buffered.
    let buffered = matches!(left, OperandForm::Anew { .. });
    Ok(gemm_scratch_size::<E::ComputeType>(cpu, sizes, (left, right), buffered))
}

fn run_gemm<E: StoredElement>(
    cpu: &Cpu,
    call: &KernelCall<'_>,
    settings: GemmProblem,
    packed: Option<&PackedOperand<E::ComputeType>>,
) -> Result<()> {
    let (a, b, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let extent = settings.gemm_size(a.dims(), b.dims())?;
    extent.check_output(y.dims())?;
    let sizes = gemm_shape(extent, 1);
    let addend = call.optional_input(2)?.map(|c| GemmAddend::<E>::new(&c, &extent)).transpose()?;
    // SAFETY: device memory is host memory, and the call guarantees its operands.
    let (a, b, y) = unsafe { (a.elements::<E>()?, b.elements::<E>()?, y.elements_mut::<E>()?) };
    let (lane, step) = if settings.a_transposed { (1, sizes.rows) } else { (sizes.depth, 1) };
    let left = StridedMatrix::new(a, vec![0], (sizes.rows, lane), (sizes.depth, step))
        .ok_or_else(operand_size_error)?;
    let right = right_matrix(&settings, b, &sizes)?;
    // B was packed for one shape; if a call has another, B is read unpacked.
    let fits =
        |packed: &&PackedOperand<_>| (packed.lane_count(), packed.depth()) == (sizes.columns, sizes.depth);
    let right = match packed.filter(fits) {
        Some(packed) => GemmOperand::Packed(packed),
        None => GemmOperand::Operand(&right),
    };
    let scale_and_add: &GemmEpilogue<'_, E::ComputeType> = &|mut part| {
        let columns = part.columns.clone();
        for (row, numbers) in part.rows_mut() {
            for (column, number) in columns.clone().zip(numbers) {
                // In the compute type, so that a narrow float is rounded only once.
                let scaled = E::scale_computed(*number, settings.alpha);
                *number = match &addend {
                    Some(addend) => {
                        scaled.plus(E::scale_computed(addend.element_at(row, column), settings.beta))
                    }
                    None => scaled,
                };
            }
        }
    };
    // Without an epilogue, the micro-kernel's sums are final.
    let epilogue = (settings.alpha != 1.0 || addend.is_some()).then_some(scale_and_add);
    compute_stored_gemm(
        cpu,
        sizes,
        (GemmOperand::Operand(&left), right),
        y,
        epilogue,
        &mut ScratchBuffer::from_call(call),
    );
    Ok(())
}

/// The third matrix, broadcast along dimensions of size 1.
struct GemmAddend<'a, E> {
    elements: &'a [E],
    row: usize,
    column: usize,
}

impl<'a, E: StoredElement> GemmAddend<'a, E> {
    fn new(c: &TensorView<'a>, extent: &GemmSize) -> Result<Self> {
        let [row, column] = extent.addend_strides(c.dims())?;
        // SAFETY: device memory is host memory, and the call guarantees its operands.
        Ok(Self { elements: unsafe { c.elements() }?, row, column })
    }

    fn element_at(&self, row: usize, column: usize) -> E::ComputeType {
        self.elements[row * self.row + column * self.column].convert()
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn operands_are_transposed_scaled_and_added() {
        let a = TestArray::from_values(&[3, 2], &[1f32, 2., 3., 4., 5., 6.]);
        let b = TestArray::from_values(&[2, 3], &[1f32, 0., 1., 0., 1., 1.]);
        let c = TestArray::from_values(&[2, 1], &[10f32, 20.]);
        let attributes = [
            ("transA", TestAttribute::Int(1)),
            ("transB", TestAttribute::Int(1)),
            ("alpha", TestAttribute::Float(2.0)),
            ("beta", TestAttribute::Float(0.5)),
        ];
        let inputs = [Some(&a), Some(&b), Some(&c)];
        let results =
            KERNELS.run_kernel("Gemm", 13, &attributes, &inputs, &[Some((Dtype::F32, &[2, 2]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [17., 21., 26., 30.]);
    }

    #[test]
    fn an_empty_depth_leaves_the_addend() {
        let (a, b) =
            (TestArray::from_values::<f32>(&[2, 0], &[]), TestArray::from_values::<f32>(&[0, 2], &[]));
        let c = TestArray::from_values(&[2], &[1f32, 2.]);
        let inputs = [Some(&a), Some(&b), Some(&c)];
        let results = KERNELS.run_kernel("Gemm", 13, &[], &inputs, &[Some((Dtype::F32, &[2, 2]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [1., 2., 1., 2.]);
    }

    #[test]
    fn an_addend_that_cannot_be_repeated_is_refused() {
        let (a, c) = (TestArray::from_values(&[2, 2], &[1f32; 4]), TestArray::from_values(&[3], &[1f32; 3]));
        let inputs = [Some(&a), Some(&a), Some(&c)];
        let message =
            KERNELS.run_kernel("Gemm", 13, &[], &inputs, &[Some((Dtype::F32, &[2, 2]))]).unwrap_err();
        assert!(message.contains("found shape [3]"), "{message}");
    }
}
