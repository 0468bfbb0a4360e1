//! One kernel for the CPU, in a domain of its own: `Mix` computes 2a + b of two tensors of one shape.

use oarlock_sdk::{KernelCall, PluginError, HostServices, Kernel, KernelFlags, OperandSpec, Plugin, Result, abi, dtype_set};

fn infer(_: &(), call: &KernelCall<'_>) -> Result<()> {
    let like = call.input(0)?;
    call.allocate_output(0, like.dtype(), like.dims())
}

fn mix(_: &(), call: &KernelCall<'_>) -> Result<()> {
    // SAFETY: the operands are memory of the CPU.
    let (a, b, mixed) = unsafe {
        (call.input(0)?.elements::<f32>()?, call.input(1)?.elements::<f32>()?, call.output(0)?.elements_mut::<f32>()?)
    };
    if a.len() != mixed.len() || b.len() != mixed.len() {
        return Err(PluginError::invalid_argument("expected two inputs of one shape"));
    }
    for ((mixed, a), b) in mixed.iter_mut().zip(a).zip(b) {
        *mixed = 2.0 * a + b;
    }
    Ok(())
}

fn plugin(_host: &HostServices) -> Result<Plugin<()>> {
    let number = OperandSpec::new(dtype_set(&[abi::Dtype::F32])).with_dtype_group(1);
    let kernel = Kernel::new("Mix", mix)
        .with_domain("test.frozen")
        .with_device_type("cpu")
        .with_flags(KernelFlags::DETERMINISTIC)
        .with_inputs([number, number])
        .with_outputs([number])
        .with_shape_inference(infer);
    Ok(Plugin::for_kernels("frozen-kernels-rust", "1.0.0").with_vendor("Oarlock").with_kernels([kernel]))
}

oarlock_sdk::export!(plugin);
