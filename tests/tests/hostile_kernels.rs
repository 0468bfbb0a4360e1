//! Faulty kernels: invalid records are never used and the reason is reported; a kernel that misbehaves while it runs causes an
//! error that names op and plugin, and everything else keeps working.

#![expect(unsafe_code, reason = "one plugin breaks the contract behind the back of the SDK")]

use std::sync::atomic::{AtomicPtr, Ordering};

use oarlock_core::flags::Flags;
use oarlock_core::{Attributes, Device, Error, Op, OpInvocation, OpOutputs, Result, Runtime, Tensor};
use oarlock_host::BuiltInPlugin;
use oarlock_sdk::{Dtype, DtypeSet, HostServices, Kernel, KernelCall, KernelFlags, OperandSpec, Plugin, abi};
use oarlock_tests::bare_host::{CPU_PLUGIN, host_options};

const F32_OPERAND: OperandSpec = OperandSpec::new(DtypeSet::F32);

type KernelBody = fn(&(), &KernelCall<'_>) -> oarlock_sdk::Result<()>;

/// A valid CPU kernel that does nothing.
fn idle_kernel(op: &str) -> Kernel<()> {
    cpu_kernel(op, |_, _| Ok(()))
}

fn cpu_kernel(op: &str, run: KernelBody) -> Kernel<()> {
    Kernel::new(op, run)
        .with_device_type("cpu")
        .with_score(1000)
        .with_inputs([F32_OPERAND])
        .with_outputs([F32_OPERAND])
}

/// A kernel for an op of a private domain, which allocates its outputs through the host.
fn custom_kernel(op: &str, run: KernelBody) -> Kernel<()> {
    cpu_kernel(op, run).with_domain("test.hostile").with_flags(KernelFlags::ALLOCATES_OUTPUTS)
}

/// An op of that domain.
fn custom_op(runtime: &Runtime, name: &str) -> Op {
    Op::new(runtime, "test.hostile", name, 1, Attributes::new()).expect("an op of the plugin")
}

fn start_runtime(query: abi::PluginQuery) -> (Runtime, Device) {
    let options = host_options("tests", "", &[CPU_PLUGIN, BuiltInPlugin { name: "hostile", query }]);
    let runtime =
        Runtime::start(options, Flags::from_environment(|_| None).expect("defaults")).expect("a runtime");
    let cpu = runtime.device("cpu").expect("the CPU");
    (runtime, cpu)
}

fn invoke_op(op: &Op, runtime: &Runtime, x: &Tensor) -> Result<OpOutputs> {
    op.invoke(runtime, &OpInvocation { inputs: &[Some(x)], outputs: 1, device: None, stream: None })
}

/// The plugin's invalid records, as `op: reason`.
fn registration_problems(runtime: &Runtime) -> Vec<String> {
    let problems = runtime.registry().find_problems();
    problems.iter().map(|problem| format!("{}: {}", problem.entry.plugin_name(), problem.error)).collect()
}

fn senseless_plugin(_: &HostServices) -> oarlock_sdk::Result<Plugin> {
    Ok(Plugin::for_kernels("hostile", "1.0").with_kernels([
        idle_kernel("Idenity"),
        idle_kernel("Identity").with_domain("ai.onx"),
        idle_kernel("Identity").with_device_type("cpuu"),
        idle_kernel("Identity").since_version(4_000_000_000),
        idle_kernel("Identity")
            .since_version(1)
            .until_version(u32::MAX)
            .with_inputs([F32_OPERAND, F32_OPERAND]),
        idle_kernel("Identity").with_inputs([F32_OPERAND.with_name("inptu")]),
        idle_kernel("Identity").with_outputs([]),
        idle_kernel("NonZero").with_outputs([F32_OPERAND]),
        idle_kernel("Add"),
        // Valid duplicates.
        idle_kernel("Relu"),
        idle_kernel("Relu"),
    ]))
}

#[test]
fn a_row_that_makes_no_sense_is_told_with_what_was_expected_and_found_and_is_never_used() {
    let (runtime, cpu) = start_runtime(oarlock_sdk::query!(senseless_plugin));
    let found = registration_problems(&runtime);
    let expected = [
        ["hostile: `Idenity`", "found `Idenity`", "did you mean `Identity`"],
        ["hostile: `Identity`", "the domain `ai.onx`", "did you mean `ai.onnx`"],
        ["hostile: `Identity`", "(`cpu`), found a kernel for `cpuu`", "did you mean `cpu`"],
        ["hostile: `Identity`", "from 4000000000 on", "as the newest"],
        ["hostile: `Identity`", "at most 1 inputs, found 2", ""],
        ["hostile: `Identity`: input 0 (input)", "expected the name `input`, found `inptu`", ""],
        ["hostile: `Identity`", "at least 1 outputs, found 0", ""],
        ["hostile: `NonZero`: output 0 (Y)", "expected one of i64, found f32", ""],
        ["hostile: `Add`", "at least 2 inputs, found 1", ""],
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, words) in found.iter().zip(expected) {
        assert!(words.iter().all(|word| found.contains(word)), "expected {words:?} in: {found}");
    }
    let x = Tensor::from_slice(&cpu, &[1], &[2.5f32]).unwrap();
    let copy = Op::latest(&runtime, "Identity").unwrap().run(&runtime, &[&x]).unwrap();
    assert_eq!(copy.to_vec::<f32>().unwrap(), [2.5]);
}

#[test]
fn of_two_rows_that_are_the_same_the_first_runs() {
    let (runtime, cpu) = start_runtime(oarlock_sdk::query!(senseless_plugin));
    let x = Tensor::from_slice(&cpu, &[1], &[2.5f32]).unwrap();
    let call = OpInvocation { inputs: &[Some(&x)], outputs: 1, device: None, stream: None };
    let explanation =
        Op::latest(&runtime, "Relu").unwrap().explain_call(&runtime, &call).unwrap().to_string();
    assert!(explanation.contains("chosen: `hostile`"), "{explanation}");
    assert!(
        explanation.contains("behind: `hostile` 1+ for `cpu`, score 1000: another ranks higher"),
        "{explanation}"
    );
}

#[test]
fn an_op_that_only_a_senseless_row_has_cannot_be_called() {
    let (runtime, cpu) = start_runtime(oarlock_sdk::query!(senseless_plugin));
    assert!(Op::latest(&runtime, "Idenity").is_err());
    let op = Op::new(&runtime, "ai.onx", "Identity", 1, Attributes::new());
    let x = Tensor::from_slice(&cpu, &[1], &[2.5f32]).unwrap();
    let error = invoke_op(&op.expect("an op of a domain of its own"), &runtime, &x).expect_err("a refusal");
    assert!(error.to_string().contains("`hostile`") && error.to_string().contains("infer"), "{error}");
}

fn lying_plugin(_: &HostServices) -> oarlock_sdk::Result<Plugin> {
    Ok(Plugin::for_kernels("hostile", "1.0").with_kernels([
        custom_kernel("Fails", |_, _| Err(oarlock_sdk::PluginError::unavailable("the unit is asleep"))),
        custom_kernel("Panics", |_, _| panic!("a mistake of the kernel")),
        custom_kernel("PanicsLate", |_, call| {
            call.allocate_output(0, Dtype::F32, &[4])?;
            panic!("a mistake of the kernel")
        }),
        custom_kernel("Never", |_, _| Ok(())),
        custom_kernel("Negative", |_, call| call.allocate_output(0, Dtype::F32, &[-1])),
        custom_kernel("Overflows", |_, call| call.allocate_output(0, Dtype::F32, &[i64::MAX, 8])),
        custom_kernel("Greedy", |_, call| call.allocate_output(0, Dtype::F32, &[1 << 50])),
        custom_kernel("Beyond", |_, call| call.allocate_output(7, Dtype::F32, &[1])),
        custom_kernel("NoDtype", |_, call| call.allocate_output(0, Dtype(99), &[1])),
        custom_kernel("Twice", |_, call| {
            call.allocate_output(0, Dtype::F32, &[1])?;
            call.allocate_output(0, Dtype::F32, &[2])
        }),
        custom_kernel("Silent", |_, call| {
            _ = call.allocate_output(0, Dtype::F32, &[-1]);
            Ok(())
        }),
        custom_kernel("Guesses", |_, call| call.input(9).map(|_| ())),
        custom_kernel("Workspace", |_, _| Ok(())).with_workspace(|_, _| Ok(u64::MAX - 7)),
        custom_kernel("Infers", |_, _| Ok(()))
            .with_shape_inference(|_, call| call.allocate_output(0, Dtype::F32, &[-4])),
        custom_kernel("InfersBadly", |_, _| Ok(()))
            .with_shape_inference(|_, _| panic!("a mistake of the kernel")),
        custom_kernel("Refuses", |_, _| Ok(())).with_support_check(|_, _| panic!("a mistake of the kernel")),
        custom_kernel("Readies", |_, _| Ok(()))
            .with_workspace(|_, _| Err(oarlock_sdk::PluginError::fatal("broken"))),
        cpu_kernel("NonZero", |_, call| call.allocate_output(0, Dtype::F32, &[1, 1]))
            .with_outputs([OperandSpec::new(DtypeSet::I64)])
            .with_flags(KernelFlags::ALLOCATES_OUTPUTS),
    ]))
}

#[test]
fn a_kernel_that_fails_lies_or_panics_is_an_error_that_names_op_and_plugin_and_leaves_nothing_behind() {
    let (runtime, cpu) = start_runtime(oarlock_sdk::query!(lying_plugin));
    assert_eq!(registration_problems(&runtime), Vec::<String>::new());
    let x = Tensor::from_slice(&cpu, &[2], &[1f32, 2.0]).unwrap();
    let held = cpu.memory_pool().unwrap().statistics().allocated;
    for (name, words) in [
        ("Fails", "`hostile`: the unit is asleep"),
        ("Panics", "the plugin panicked"),
        ("PanicsLate", "a mistake of the kernel"),
        ("Never", "expected memory for output 0, found that the kernel asked for none"),
        ("Negative", "output 0: expected sizes of at least 0, found the shape [-1]"),
        ("Overflows", "output 0: expected a shape with fewer than 2^64 elements"),
        ("Greedy", "of memory for `Greedy`"),
        ("Beyond", "output 7: expected the index of one of 1 outputs, found 7"),
        ("NoDtype", "output 0: expected a dtype, found the number 99"),
        ("Twice", "expected output 0 as f32 of shape [1], which it has, found f32 of shape [2]"),
        ("Silent", "output 0"),
        ("Guesses", "`hostile`: expected"),
        ("Workspace", "`Workspace`"),
        ("Infers", "output 0: expected sizes of at least 0, found the shape [-4]"),
        ("InfersBadly", "the plugin panicked"),
        ("Refuses", "the plugin panicked"),
        ("Readies", "`hostile`: broken"),
    ] {
        let op = custom_op(&runtime, name);
        for _ in 0..2 {
            let error = invoke_op(&op, &runtime, &x).expect_err(name);
            let text = error.to_string();
            assert!(text.contains(words) && text.contains(&format!("`{name}`")), "{name}: {text}");
        }
        drop(op);
        assert_eq!(cpu.memory_pool().unwrap().statistics().allocated, held, "{name}");
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    }
}

#[test]
fn an_output_dtype_other_than_the_op_requires_is_refused() {
    let (runtime, cpu) = start_runtime(oarlock_sdk::query!(lying_plugin));
    let x = Tensor::from_slice(&cpu, &[1], &[1f32]).unwrap();
    let error = Op::latest(&runtime, "NonZero").unwrap().run(&runtime, &[&x]).expect_err("a refusal");
    let text = error.to_string();
    assert!(text.contains("`NonZero`") && text.contains("expected i64, found f32"), "{text}");
}

/// Keeps the garbled plugin's tables reachable, so that a leak checker knows they are intentional.
static GARBLED_KERNELS: AtomicPtr<abi::KernelTable> = AtomicPtr::new(std::ptr::null_mut());

/// Answers like a good plugin, then replaces the kernel's function by one that returns an error number that the host never
/// issued.
unsafe extern "C" fn query_garbled_plugin(host: *const abi::Host, plugin: *mut abi::Plugin) -> abi::Error {
    unsafe extern "C" fn run_garbled(
        _: *mut std::ffi::c_void,
        _: *mut std::ffi::c_void,
        _: *const abi::Call,
    ) -> abi::Error {
        abi::Error(0xDEAD_BEEF_0BAD_F00D)
    }
    fn good_plugin(_: &HostServices) -> oarlock_sdk::Result<Plugin> {
        Ok(Plugin::for_kernels("hostile", "1.0").with_kernels([idle_kernel("Relu")]))
    }
    // SAFETY: both structs belong to the host, which guarantees them.
    unsafe {
        let answer = oarlock_sdk::query!(good_plugin)(host, plugin);
        let table = &*(*plugin).kernels;
        let kernel = Box::leak(Box::new(abi::Kernel { run: Some(run_garbled), ..**table.kernels }));
        let list = Box::leak(Box::new(&raw const *kernel));
        let table = Box::leak(Box::new(abi::KernelTable { kernels: list, ..*table }));
        GARBLED_KERNELS.store(table, Ordering::Relaxed);
        (*plugin).kernels = table;
        answer
    }
}

#[test]
fn a_status_that_is_no_error_of_the_host_is_one_all_the_same() {
    let (runtime, cpu) = start_runtime(query_garbled_plugin);
    let x = Tensor::from_slice(&cpu, &[1], &[1f32]).unwrap();
    let error: Error = Op::latest(&runtime, "Relu").unwrap().run(&runtime, &[&x]).expect_err("an error");
    let text = error.to_string();
    assert!(text.contains("`Relu`") && text.contains("`cpu:0`"), "{text}");
    let fine = Op::latest(&runtime, "Neg").unwrap().run(&runtime, &[&x]).unwrap();
    assert_eq!(fine.to_vec::<f32>().unwrap(), [-1.0]);
}

#[test]
fn nothing_is_left_of_plugins_whose_kernels_went_wrong() {
    let (runtime, cpu) = start_runtime(oarlock_sdk::query!(lying_plugin));
    let plugins = runtime.host().plugins().to_vec();
    let x = Tensor::from_slice(&cpu, &[2], &[1f32, 2.0]).unwrap();
    for name in ["Fails", "Panics", "PanicsLate", "Never", "Twice", "Workspace", "Infers"] {
        assert!(invoke_op(&custom_op(&runtime, name), &runtime, &x).is_err());
    }
    drop((x, cpu, runtime));
    for plugin in plugins {
        assert_eq!(plugin.live_handles().to_string(), "no handles", "{}", plugin.info().name);
    }
}
