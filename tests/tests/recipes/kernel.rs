//! The plugin on the page "Add a kernel", which includes it from here: it is loaded, and its kernel runs.

#![expect(unsafe_code, reason = "kernels for the CPU read and write the memory of the host")]

use oarlock_core::flags::Flags;
use oarlock_core::{Op, OpInvocation, Runtime, Tensor};
use oarlock_host::BuiltInPlugin;
use oarlock_tests::bare_host::{CPU_PLUGIN, host_options};

// ANCHOR: plugin
use oarlock_sdk::{Dtype, HostServices, Kernel, KernelCall, OperandSpec, Plugin, Result, dtype_set};

const F32_OPERAND: OperandSpec = OperandSpec::new(dtype_set(&[Dtype::F32])).with_dtype_group(1);

/// `HardSwish`, element by element.
fn hard_swish(call: &KernelCall<'_>) -> Result<()> {
    // SAFETY: the kernel is for the device `cpu`, whose memory is the host's. While it runs, nobody else accesses its operands,
    // and they do not overlap.
    let (x, y) = unsafe { (call.input(0)?.elements::<f32>()?, call.output(0)?.elements_mut::<f32>()?) };
    for (y, x) in y.iter_mut().zip(x) {
        *y = x * (x / 6.0 + 0.5).clamp(0.0, 1.0);
    }
    Ok(())
}

fn plugin(_host: &HostServices) -> Result<Plugin> {
    let kernel = Kernel::new("HardSwish", |_, call| hard_swish(call))
        .since_version(14)
        .with_device_type("cpu")
        .with_score(200)
        .with_inputs([F32_OPERAND.with_name("X")])
        .with_outputs([F32_OPERAND.with_name("Y")]);
    Ok(Plugin::for_kernels("my-kernels", "1.0.0").with_kernels([kernel]))
}
// ANCHOR_END: plugin

#[test]
fn the_kernel_of_the_page_takes_the_place_of_the_built_in_one() {
    let own = BuiltInPlugin { name: "my-kernels", query: oarlock_sdk::query!(plugin) };
    let options = host_options("tests 1.0", "", &[CPU_PLUGIN, own]);
    let flags = Flags::from_environment(|_| None).expect("the defaults of the flags");
    let runtime = Runtime::start(options, flags).expect("a runtime");
    let cpu = runtime.device("cpu").expect("the CPU");
    let x = [-4.0f32, -1.5, 0.0, 1.5, 4.0];
    let x = Tensor::from_slice(&cpu, &[5], &x).expect("a tensor");
    let op = Op::latest(&runtime, "HardSwish").expect("an op of ONNX");
    let y = op.run(&runtime, &[&x]).expect("a result");
    assert_eq!(y.to_vec::<f32>().expect("floats"), [0.0, -0.375, 0.0, 1.125, 4.0]);
    let call = OpInvocation { inputs: &[Some(&x)], outputs: 1, device: None, stream: None };
    let explanation = op.explain_call(&runtime, &call).expect("an explanation");
    assert_eq!(explanation.chosen_entry().expect("a kernel").plugin_name(), "my-kernels");
}
