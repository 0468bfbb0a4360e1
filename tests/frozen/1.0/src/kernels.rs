//! One kernel for the CPU, in a domain of its own: `Mix` computes 2a + b of two tensors of one shape.

use oarlock_sdk::{Call, Error, Host, Kernel, KernelFlags, Operand, Plugin, Result, abi, dtype_set};

fn infer(_: &(), call: &Call<'_>) -> Result<()> {
    let like = call.input(0)?;
    call.allocate_output(0, like.dtype(), like.dims())
}

fn mix(_: &(), call: &Call<'_>) -> Result<()> {
    // SAFETY: the operands are memory of the CPU.
    let (a, b, mixed) = unsafe {
        (call.input(0)?.elements::<f32>()?, call.input(1)?.elements::<f32>()?, call.output(0)?.elements_mut::<f32>()?)
    };
    if a.len() != mixed.len() || b.len() != mixed.len() {
        return Err(Error::invalid_argument("expected two inputs of one shape"));
    }
    for ((mixed, a), b) in mixed.iter_mut().zip(a).zip(b) {
        *mixed = 2.0 * a + b;
    }
    Ok(())
}

fn plugin(_host: &Host) -> Result<Plugin<()>> {
    let number = Operand::new(dtype_set(&[abi::Dtype::F32])).group(1);
    let kernel = Kernel::new("Mix", mix)
        .domain("test.frozen")
        .device_type("cpu")
        .flags(KernelFlags::DETERMINISTIC)
        .inputs([number, number])
        .outputs([number])
        .infer(infer);
    Ok(Plugin::without_device("frozen-kernels-rust", "1.0.0").vendor("Oarlock").kernels([kernel]))
}

oarlock_sdk::export!(plugin);
