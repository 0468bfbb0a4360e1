//! The row of `oarlock.QuantizedMatMul`: a convolution whose pixels are the rows of the left operand.

use std::sync::Arc;

use oarlock_sdk::{Call, Dtype, Error, Kernel, KernelFlags, Operand, OperandFlags, Result, dtype_set};

use super::conv::finish;
use super::layer::Layer;
use super::packed::Order;
use crate::device::Cpu;
use crate::kernels::channels_last::geometry::Geometry;
use crate::kernels::conv::window::{Axis, MOST};
use crate::kernels::matmul::quantised::BYTES;

pub(super) fn kernel() -> Kernel<Cpu> {
    let rows = Operand::new(BYTES).group(1).rank(1, u32::MAX);
    let weights = Operand::new(dtype_set(&[Dtype::I8])).rank(2, 2).flags(OperandFlags::UNALIGNED);
    Kernel::prepared("QuantizedMatMul", |cpu: &Cpu, call| {
        let ready = layer(cpu, call)?.ready(cpu, call)?;
        Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| ready.run(cpu, call)))
    })
    .domain("oarlock")
    .supports(|cpu, call| layer(cpu, call).map(drop))
    .workspace(|cpu, call| Ok(layer(cpu, call)?.scratch_size() as u64))
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([rows.named("A"), weights.named("W")].into_iter().chain(finish(rows)))
    .outputs([rows.named("Y")])
}

fn layer(cpu: &Cpu, call: &Call<'_>) -> Result<Layer> {
    let (a, w, y) = (call.input(0)?.dims(), call.input(1)?.dims(), call.output(0)?.dims());
    let order = if call.int("transB")?.unwrap_or(0) == 0 { Order::OutputsLast } else { Order::OutputsFirst };
    Layer::new(cpu, call, geometry(a, w, y, order).ok_or_else(|| unfit(a, w, y))?, order)
}

fn unfit(a: &[i64], w: &[i64], y: &[i64]) -> Error {
    Error::invalid_argument(format!(
        "expected rows [..., K], weights [K, N], turned with `transB`, and an output [..., N] of at most {MOST} rows, found \
         {a:?}, {w:?} and {y:?}"
    ))
}

fn geometry(a: &[i64], w: &[i64], y: &[i64], order: Order) -> Option<Geometry> {
    let ([rows @ .., depth], [first, second], [y_rows @ .., outputs]) = (a, w, y) else { return None };
    let expected = if order == Order::OutputsLast { (depth, outputs) } else { (outputs, depth) };
    let count = rows.iter().try_fold(1, |count: i64, dim| count.checked_mul(*dim))?;
    let is_size = |size: i64| (0..=MOST).contains(&size);
    if rows != y_rows || (first, second) != expected || ![count, *depth, *outputs].into_iter().all(is_size) {
        return None;
    }
    let axis =
        |size: usize| Axis { input: size, output: size, kernel: 1, stride: 1, dilation: 1, pad: (0, 0) };
    Some(Geometry {
        images: 1,
        channels: *depth as usize,
        outputs: *outputs as usize,
        groups: 1,
        down: axis(1),
        along: axis(count as usize),
    })
}
