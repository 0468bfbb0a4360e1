//! `MatMul`.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_sdk::{Call, Kernel, KernelFlags, Operand, Result, Tensor, dispatch, ensure};

use super::shape::Shape;
use super::{NUMBERS, form, too_small};
use crate::device::Cpu;
use crate::gemm::{self, FEW, Form, Matrix, Packed, Scratch, Side, Sizes, Stored, compute_stored};

pub(super) fn kernel() -> Kernel<Cpu> {
    let number = Operand::new(NUMBERS).group(1);
    Kernel::prepared("MatMul", |cpu: &Cpu, call| {
        let dtype = call.output(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16 + i32 + i64 + u32 + u64, T => prepare::<T>(cpu, call))
    })
    .workspace(|cpu, call| {
        let dtype = call.output(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16 + i32 + i64 + u32 + u64, T => workspace::<T>(cpu, call))
    })
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([number.named("A").rank(1, u32::MAX), number.named("B").rank(1, u32::MAX)])
    .outputs([number.named("Y")])
}

type Run = dyn Fn(&Cpu, &Call<'_>) -> Result<()> + Send + Sync;

fn prepare<E: Stored>(cpu: &Cpu, call: &Call<'_>) -> Result<Arc<Run>> {
    let b = call.input(1)?;
    let shape = Shape::new(call.input(0)?.dims(), b.dims())?;
    let packed = if packs(&shape.sizes, &b) {
        // SAFETY: the device's memory is the host's, and a constant is never written.
        let right = right::<E>(unsafe { b.elements() }?, &shape)?;
        Some(Packed::right(cpu, &right, shape.sizes.columns, shape.sizes.depth))
    } else {
        None
    };
    super::describe(cpu, call, packed.is_some());
    Ok(Arc::new(move |cpu, call| multiply::<E>(cpu, call, packed.as_ref())))
}

/// Whether a constant right operand is worth a packed copy: a single matrix that is not read in one pass.
fn packs(sizes: &Sizes, b: &Tensor<'_>) -> bool {
    b.is_constant() && b.dims().len() == 2 && sizes.rows > FEW && sizes.items == 1
}

fn workspace<E: Stored>(cpu: &Cpu, call: &Call<'_>) -> Result<u64> {
    let (a, b) = (call.input(0)?, call.input(1)?);
    let shape = Shape::new(a.dims(), b.dims())?;
    let right = if packs(&shape.sizes, &b) { Form::Packed } else { form::<E>(shape.right.len(), true) };
    let left = form::<E>(shape.left.len(), false);
    let buffered = matches!(left, Form::Anew { .. });
    Ok(gemm::scratch_size::<E::Computed>(cpu, shape.sizes, (left, right), buffered))
}

fn multiply<E: Stored>(cpu: &Cpu, call: &Call<'_>, packed: Option<&Packed<E::Computed>>) -> Result<()> {
    let (a, b, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let shape = Shape::new(a.dims(), b.dims())?;
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
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let (a, b, y) = unsafe { (a.elements::<E>()?, b.elements::<E>()?, y.elements_mut::<E>()?) };
    if y.is_empty() {
        return Ok(());
    }
    let lanes = (sizes.rows, sizes.depth);
    let left = Matrix::new(a, shape.left.clone(), lanes, (sizes.depth, 1)).ok_or_else(too_small)?;
    let right = right(b, &shape)?;
    let fits = |packed: &&Packed<_>| (packed.lanes(), packed.depth()) == (sizes.columns, sizes.depth);
    let right = match packed.filter(fits) {
        Some(packed) => Side::Packed(packed),
        None => Side::Operand(&right),
    };
    compute_stored(cpu, sizes, (Side::Operand(&left), right), y, None, &mut Scratch::of(call));
    Ok(())
}

fn right<'a, E>(elements: &'a [E], shape: &Shape) -> Result<Matrix<'a, E>> {
    let sizes = &shape.sizes;
    let (lanes, steps) = ((sizes.columns, 1), (sizes.depth, sizes.columns));
    Matrix::new(elements, shape.right.clone(), lanes, steps).ok_or_else(too_small)
}
