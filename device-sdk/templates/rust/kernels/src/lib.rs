//! A plugin that brings kernels for a device of another plugin: here for `cpu`, whose memory the host may read and write.
//!
//! `Relu` competes with the kernel that the device has; `ScaledAdd` is an op of our own, so it says what its output looks like.
//! The quoted rules, such as K-4, are those of the contract.

use oarlock_sdk::{
    Dtype, Element, HostServices, Kernel, KernelCall, KernelFlags, OperandSpec, Plugin, Result, TensorView,
    dispatch, dtype_set, ensure, family,
};

/// The elements of an input. The host calls a kernel only with operands that fit its record: here contiguous ones, aligned to an
/// element (K-5).
fn elements<'a, T: Element>(operand: &TensorView<'a>) -> Result<&'a [T]> {
    // SAFETY: the memory of `cpu` is that of the host, and nobody writes an input while a kernel runs.
    unsafe { operand.elements() }
}

/// The elements of an output that is not at the same place as an input.
fn elements_mut<'a, T: Element>(operand: &TensorView<'a>) -> Result<&'a mut [T]> {
    // SAFETY: the memory of `cpu` is that of the host, and nobody else uses an output while a kernel runs.
    unsafe { operand.elements_mut() }
}

/// Several threads may run a kernel at once (K-4), and it writes its output and nothing else (K-3).
fn run_relu(_: &(), call: &KernelCall<'_>) -> Result<()> {
    let (x, y) = (call.input(0)?, call.output(0)?);
    dispatch!(x.dtype(), floating, T => {
        for (to, from) in elements_mut::<T>(&y)?.iter_mut().zip(elements::<T>(&x)?) {
            *to = if *from < 0.0 { 0.0 } else { *from };
        }
        Ok(())
    })
}

/// Says what the output looks like. A dimension of -1 is not known yet.
fn infer_scaled_add(_: &(), call: &KernelCall<'_>) -> Result<()> {
    let (x, y) = (call.input(0)?, call.input(1)?);
    let fits = |(a, b): (&i64, &i64)| a == b || *a < 0 || *b < 0;
    let is_one_shape = x.dims().len() == y.dims().len() && x.dims().iter().zip(y.dims()).all(fits);
    ensure!(
        is_one_shape,
        invalid_argument,
        "expected inputs of one shape, found {:?} and {:?}",
        x.dims(),
        y.dims()
    );
    call.allocate_output(0, x.dtype(), x.dims())
}

/// sum = x + alpha * y. For an op of its own, a plugin states the defaults of attributes itself.
fn run_scaled_add(_: &(), call: &KernelCall<'_>) -> Result<()> {
    let (x, y, sum) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let alpha = call.float_attribute("alpha")?.unwrap_or(1.0) as f32;
    let inputs = elements::<f32>(&x)?.iter().zip(elements::<f32>(&y)?);
    for (to, (x, y)) in elements_mut::<f32>(&sum)?.iter_mut().zip(inputs) {
        *to = x + alpha * y;
    }
    Ok(())
}

/// A host may call this at any time and more than once (E-3).
fn plugin(_: &HostServices) -> Result<Plugin> {
    let (number, float) =
        (OperandSpec::new(family::FLOATING).with_dtype_group(1), OperandSpec::new(dtype_set(&[Dtype::F32])));
    let kernels = [
        Kernel::new("Relu", run_relu).since_version(6).with_inputs([number]).with_outputs([number]),
        Kernel::new("ScaledAdd", run_scaled_add)
            .with_domain("sample_npu")
            .with_inputs([float, float])
            .with_outputs([float])
            .with_shape_inference(infer_scaled_add),
    ];
    let for_cpu = |kernel: Kernel<()>| kernel.with_device_type("cpu").with_flags(KernelFlags::DETERMINISTIC);
    Ok(Plugin::for_kernels("sample-npu", env!("CARGO_PKG_VERSION"))
        .with_vendor("Sample Vendor")
        .with_package("oarlock-sample-npu")
        .with_kernels(kernels.map(for_cpu)))
}

oarlock_sdk::export!(plugin);
