//! The kernel `oarlock.QuantizedMatMul`: a convolution whose pixels are the rows of the left operand.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::quantized_operand::BYTE_DTYPES;
use oarlock_cpu_base::window::MAX_SIZE;
use oarlock_sdk::{Dtype, Kernel, KernelCall, OperandSpec, PluginError, Result, dtype_set};

use super::conv::quantized_layer_kernel;
use super::layer::QuantizedLayer;
use super::quantized_panels::WeightOrder;
use crate::channels_last::geometry::NhwcGeometry;

pub(super) fn quantized_matmul_kernel() -> Kernel<Cpu> {
    let [rows, weights] =
        [OperandSpec::new(BYTE_DTYPES).with_dtype_group(1), OperandSpec::new(dtype_set(&[Dtype::I8]))];
    quantized_layer_kernel(
        "QuantizedMatMul",
        "A",
        rows.with_rank(1, u32::MAX),
        weights.with_rank(2, 2),
        matmul_layer,
    )
}

fn matmul_layer(cpu: &Cpu, call: &KernelCall<'_>) -> Result<QuantizedLayer> {
    let (a, w, y) = (call.input(0)?.dims(), call.input(1)?.dims(), call.output(0)?.dims());
    let order = if call.int_attribute("transB")?.unwrap_or(0) == 0 {
        WeightOrder::OutputsLast
    } else {
        WeightOrder::OutputsFirst
    };
    QuantizedLayer::new(
        cpu,
        call,
        matmul_geometry(a, w, y, order).ok_or_else(|| matmul_shape_error(a, w, y))?,
        order,
    )
}

fn matmul_shape_error(a: &[i64], w: &[i64], y: &[i64]) -> PluginError {
    PluginError::invalid_argument(format!(
        "expected rows [..., K], weights [K, N], transposed with `transB`, and an output [..., N] of at most {MAX_SIZE} rows, found \
         {a:?}, {w:?} and {y:?}"
    ))
}

fn matmul_geometry(a: &[i64], w: &[i64], y: &[i64], order: WeightOrder) -> Option<NhwcGeometry> {
    let ([rows @ .., depth], [first, second], [y_rows @ .., outputs]) = (a, w, y) else { return None };
    let expected = if order == WeightOrder::OutputsLast { (depth, outputs) } else { (outputs, depth) };
    // Leading dimensions become rows, since the right matrix is the same for all of them.
    let count = rows.iter().try_fold(1, |count: i64, dim| count.checked_mul(*dim))?;
    let is_size = |size: i64| (0..=MAX_SIZE).contains(&size);
    if rows != y_rows || (first, second) != expected || ![count, *depth, *outputs].into_iter().all(is_size) {
        return None;
    }
    Some(NhwcGeometry::for_matmul(count as usize, *depth as usize, *outputs as usize))
}
