//! The row of `oarlock.QuantizedMatMul`: a convolution whose pixels are the rows of the left operand.

use oarlock_sdk::{Call, Dtype, Error, Kernel, Operand, Result, dtype_set};

use super::conv::row;
use super::layer::Layer;
use super::packed::Order;
use crate::device::Cpu;
use crate::kernels::channels_last::geometry::Geometry;
use crate::kernels::conv::window::MOST;
use crate::kernels::matmul::quantised::BYTES;

pub(super) fn kernel() -> Kernel<Cpu> {
    let [rows, weights] = [Operand::new(BYTES).group(1), Operand::new(dtype_set(&[Dtype::I8]))];
    row("QuantizedMatMul", "A", rows.rank(1, u32::MAX), weights.rank(2, 2), layer)
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
    Some(Geometry::of_rows(count as usize, *depth as usize, *outputs as usize))
}
