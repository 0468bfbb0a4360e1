//! The row of `oarlock.QuantizedConv`.

use std::sync::Arc;

use oarlock_sdk::{Call, Dtype, DtypeSet, Kernel, KernelFlags, Operand, OperandFlags, Result, dtype_set};

use super::layer::Layer;
use super::packed::Order;
use crate::device::Cpu;
use crate::kernels::channels_last::geometry::Geometry;
use crate::kernels::conv::window::Settings;
use crate::kernels::matmul::quantised::BYTES;

pub(super) fn kernel() -> Kernel<Cpu> {
    let [image, weights] = [Operand::new(BYTES).group(1), Operand::new(dtype_set(&[Dtype::I8]))];
    row("QuantizedConv", "X", image.rank(3, 4), weights.rank(3, 4), layer)
}

/// The row of an op that is computed by layers, of images or rows with a name.
pub(super) fn row(
    op: &str,
    name: &'static str,
    image: Operand,
    weights: Operand,
    layer: fn(&Cpu, &Call<'_>) -> Result<Layer>,
) -> Kernel<Cpu> {
    let weights = weights.flags(OperandFlags::UNALIGNED);
    Kernel::prepared(op, move |cpu: &Cpu, call| {
        let layer = layer(cpu, call)?;
        call.describe(&format!("{}, {}", layer.description(), cpu.isa()));
        let ready = layer.ready(cpu, call)?;
        Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| ready.run(cpu, call)))
    })
    .domain("oarlock")
    .supports(move |cpu, call| layer(cpu, call).map(drop))
    .workspace(move |cpu, call| Ok(layer(cpu, call)?.scratch_size() as u64))
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([image.named(name), weights.named("W")].into_iter().chain(finish(image)))
    .outputs([image.named("Y")])
}

/// The operands that follow the weights: factors, bias and what is added.
fn finish(residual: Operand) -> [Operand; 3] {
    [
        Operand::new(DtypeSet::F32).named("scale").rank(0, 1).flags(OperandFlags::UNALIGNED),
        Operand::new(DtypeSet::I32)
            .named("B")
            .rank(1, 1)
            .flags(OperandFlags::OPTIONAL.union(OperandFlags::UNALIGNED)),
        residual.named("Z").flags(OperandFlags::OPTIONAL),
    ]
}

fn layer(cpu: &Cpu, call: &Call<'_>) -> Result<Layer> {
    let (x, w, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let groups = call.int("group")?.unwrap_or(1);
    let geometry = Geometry::of_convolution(&Settings::new(call)?, groups, x.dims(), w.dims(), y.dims())?;
    Layer::new(cpu, call, geometry, Order::OutputsFirst)
}
