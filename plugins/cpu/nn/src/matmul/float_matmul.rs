//! The kernel `MatMul` for floats and wide integers.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_gemm::{
    GemmOperand, GemmShape, OperandForm, PackedOperand, ScratchBuffer, StoredElement, StridedMatrix,
    compute_stored_gemm, gemm_scratch_size,
};
use oarlock_sdk::{Kernel, KernelCall, KernelFlags, OperandSpec, Result, TensorView, dispatch, ensure};

use super::matmul_shape::BatchedMatmulShape;
use super::{MATMUL_DTYPES, matrix_form, operand_size_error};

pub(super) fn matmul_kernel() -> Kernel<Cpu> {
    let number = OperandSpec::new(MATMUL_DTYPES).with_dtype_group(1);
    Kernel::new_prepared("MatMul", |cpu: &Cpu, call| {
        let dtype = call.output(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16 + i32 + i64 + u32 + u64, T => prepare_matmul::<T>(cpu, call))
    })
    .with_workspace(|cpu, call| {
        let dtype = call.output(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16 + i32 + i64 + u32 + u64, T => workspace_size::<T>(cpu, call))
    })
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([number.with_name("A").with_rank(1, u32::MAX), number.with_name("B").with_rank(1, u32::MAX)])
    .with_outputs([number.with_name("Y")])
}

type PreparedFloatMatmul = dyn Fn(&Cpu, &KernelCall<'_>) -> Result<()> + Send + Sync;

fn prepare_matmul<E: StoredElement>(cpu: &Cpu, call: &KernelCall<'_>) -> Result<Arc<PreparedFloatMatmul>> {
    let b = call.input(1)?;
    let shape = BatchedMatmulShape::new(call.input(0)?.dims(), b.dims())?;
    let packed = if is_worth_packing(&shape.sizes, &b) {
        // SAFETY: device memory is host memory, and a constant is never written.
        let right = right_matrix::<E>(unsafe { b.elements() }?, &shape)?;
        Some(PackedOperand::pack_right(cpu, &right, shape.sizes.columns, shape.sizes.depth))
    } else {
        None
    };
    super::describe_product(cpu, call, packed.is_some());
    Ok(Arc::new(move |cpu, call| run_matmul::<E>(cpu, call, packed.as_ref())))
}

/// True if packing a constant right operand pays: it is a single matrix, and there are enough rows that it is read more than once.
fn is_worth_packing(sizes: &GemmShape, b: &TensorView<'_>) -> bool {
    b.is_constant() && b.dims().len() == 2 && sizes.repays_packing() && sizes.items == 1
}

fn workspace_size<E: StoredElement>(cpu: &Cpu, call: &KernelCall<'_>) -> Result<u64> {
    let (a, b) = (call.input(0)?, call.input(1)?);
    let shape = BatchedMatmulShape::new(a.dims(), b.dims())?;
    let right = if is_worth_packing(&shape.sizes, &b) {
        OperandForm::Packed
    } else {
        matrix_form::<E>(shape.right.len(), true)
    };
    let left = matrix_form::<E>(shape.left.len(), false);
    let buffered = matches!(left, OperandForm::Anew { .. });
    Ok(gemm_scratch_size::<E::ComputeType>(cpu, shape.sizes, (left, right), buffered))
}

fn run_matmul<E: StoredElement>(
    cpu: &Cpu,
    call: &KernelCall<'_>,
    packed: Option<&PackedOperand<E::ComputeType>>,
) -> Result<()> {
    let (a, b, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let shape = BatchedMatmulShape::new(a.dims(), b.dims())?;
    ensure!(
        shape.output == y.dims(),
        invalid_argument,
        "expected an output of shape {:?} for inputs of {:?} and {:?}, found {:?}",
        shape.output,
        a.dims(),
        b.dims(),
        y.dims()
    );
    let sizes = shape.sizes;
    // SAFETY: device memory is host memory, and the call guarantees its operands.
    let (a, b, y) = unsafe { (a.elements::<E>()?, b.elements::<E>()?, y.elements_mut::<E>()?) };
    if y.is_empty() {
        return Ok(());
    }
    let lanes = (sizes.rows, sizes.depth);
    let left =
        StridedMatrix::new(a, shape.left.clone(), lanes, (sizes.depth, 1)).ok_or_else(operand_size_error)?;
    let right = right_matrix(b, &shape)?;
    // The shapes of a call may differ from those for which B was packed.
    let fits =
        |packed: &&PackedOperand<_>| (packed.lane_count(), packed.depth()) == (sizes.columns, sizes.depth);
    let right = match packed.filter(fits) {
        Some(packed) => GemmOperand::Packed(packed),
        None => GemmOperand::Operand(&right),
    };
    compute_stored_gemm(
        cpu,
        sizes,
        (GemmOperand::Operand(&left), right),
        y,
        None,
        &mut ScratchBuffer::from_call(call),
    );
    Ok(())
}

fn right_matrix<'a, E>(elements: &'a [E], shape: &BatchedMatmulShape) -> Result<StridedMatrix<'a, E>> {
    let sizes = &shape.sizes;
    let (lanes, steps) = ((sizes.columns, 1), (sizes.depth, sizes.columns));
    StridedMatrix::new(elements, shape.right.clone(), lanes, steps).ok_or_else(operand_size_error)
}
