//! The kernel `oarlock.QuantizedConv`.

use std::sync::Arc;

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::quantized_operand::BYTE_DTYPES;
use oarlock_cpu_base::window::WindowAttributes;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, dtype_set,
};

use super::layer::QuantizedLayer;
use super::quantized_panels::WeightOrder;
use crate::channels_last::geometry::NhwcGeometry;

pub(super) fn quantized_conv_kernel() -> Kernel<Cpu> {
    let [image, weights] =
        [OperandSpec::new(BYTE_DTYPES).with_dtype_group(1), OperandSpec::new(dtype_set(&[Dtype::I8]))];
    quantized_layer_kernel("QuantizedConv", "X", image.with_rank(3, 4), weights.with_rank(3, 4), conv_layer)
}

/// The kernel of an op that is computed as a [`super::layer`]; `name` is the name of its first operand.
pub(super) fn quantized_layer_kernel(
    op: &str,
    name: &'static str,
    image: OperandSpec,
    weights: OperandSpec,
    layer: fn(&Cpu, &KernelCall<'_>) -> Result<QuantizedLayer>,
) -> Kernel<Cpu> {
    let weights = weights.with_flags(OperandFlags::UNALIGNED.union(OperandFlags::ON_DEMAND));
    Kernel::new_prepared(op, move |cpu: &Cpu, call| {
        let ready = layer(cpu, call)?.prepare_layer(cpu, call)?;
        call.describe_kernel(&format!("{}, {}", ready.description(), cpu.isa()));
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| ready.run(cpu, call)))
    })
    .with_domain(OARLOCK_DOMAIN)
    .with_support_check(move |cpu, call| layer(cpu, call).map(drop))
    .with_workspace(move |cpu, call| Ok(layer(cpu, call)?.scratch_size() as u64))
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([image.with_name(name), weights.with_name("W")].into_iter().chain(epilogue_operands(image)))
    .with_outputs([image.with_name("Y")])
}

/// The operands after the weights: factors, bias and residual.
fn epilogue_operands(residual: OperandSpec) -> [OperandSpec; 3] {
    [
        OperandSpec::new(DtypeSet::F32)
            .with_name("scale")
            .with_rank(0, 1)
            .with_flags(OperandFlags::UNALIGNED),
        OperandSpec::new(DtypeSet::I32)
            .with_name("B")
            .with_rank(1, 1)
            .with_flags(OperandFlags::OPTIONAL.union(OperandFlags::UNALIGNED)),
        residual.with_name("Z").with_flags(OperandFlags::OPTIONAL),
    ]
}

fn conv_layer(cpu: &Cpu, call: &KernelCall<'_>) -> Result<QuantizedLayer> {
    let (x, w, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let groups = call.int_attribute("group")?.unwrap_or(1);
    let geometry =
        NhwcGeometry::for_convolution(&WindowAttributes::new(call)?, groups, x.dims(), w.dims(), y.dims())?;
    QuantizedLayer::new(cpu, call, geometry, WeightOrder::OutputsFirst)
}
