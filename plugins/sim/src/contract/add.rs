//! One kernel, so that the way of a kernel through a device that does nothing early can be tested: `Add` of equal shapes.

use std::ops::Add;

use oarlock_sdk::{
    Call, DtypeSet, Element as Dtyped, Error, Kernel, KernelFlags, Operand, Result, Tensor, dispatch,
    dtype_set,
};

use super::Sim;
use crate::element::Element;
use crate::memory::Place;

/// What scripts call a run of the kernel.
pub(super) const CALL: &str = "run";

const NUMBERS: DtypeSet = dtype_set(&[f32::DTYPE, f64::DTYPE, i32::DTYPE, i64::DTYPE]);

pub(super) fn kernel() -> Kernel<Sim> {
    let number = Operand::new(NUMBERS).group(1);
    Kernel::new(
        "Add",
        |sim: &Sim, call| dispatch!(call.output(0)?.dtype(), floating + i32 + i64, T => add::<T>(sim, call)),
    )
    .since(7)
    .flags(KernelFlags::DETERMINISTIC.union(KernelFlags::ASYNCHRONOUS))
    .inputs([number.named("A"), number.named("B")])
    .outputs([number.named("C")])
    .supports(|_, call| equal_shapes(call).map(|_| ()))
}

fn equal_shapes(call: &Call<'_>) -> Result<usize> {
    let (a, b, c) = (call.input(0)?, call.input(1)?, call.output(0)?);
    if a.dims() != c.dims() || b.dims() != c.dims() {
        let found = format!("{:?}, {:?} and {:?}", a.dims(), b.dims(), c.dims());
        return Err(Error::unimplemented(format!("expected operands of one shape, found {found}")));
    }
    c.element_count()
}

fn add<T: Element + Dtyped + Add<Output = T>>(sim: &Sim, call: &Call<'_>) -> Result<()> {
    let count = equal_shapes(call)?;
    let place = |tensor: Tensor<'_>| {
        let (block, offset) = tensor.place();
        Place::new(block.0, offset)
    };
    let (a, b, c) = (place(call.input(0)?), place(call.input(1)?), place(call.output(0)?));
    let device = call.device();
    sim.submit(device, call.stream(), |engine, stream| {
        engine.enqueue(CALL, device, stream, move |device| {
            let (left, right) = (device.read::<T>(a, count)?, device.read::<T>(b, count)?);
            let sums: Vec<T> = left.into_iter().zip(right).map(|(left, right)| left + right).collect();
            device.charge(3 * size_of::<T>() as u64 * count as u64);
            device.write(c, &sums)
        })
    })
}
