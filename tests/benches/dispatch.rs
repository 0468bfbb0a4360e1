//! Overhead of a call from an op to its kernel, as a Markdown table. `scripts/bench` runs it.

#![expect(unsafe_code, reason = "the allocator counts allocations")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;

use oarlock_core::flags::Flags;
use oarlock_core::{Attributes, Op, OpInvocation, Runtime, Tensor};
use oarlock_host::{BuiltInPlugin, HostConfig, HostEnvironment, HostOptions, ProcessIdentity};
use oarlock_sdk::{Dtype, HostServices, Kernel, OperandSpec, Plugin, Result, family};

/// Counts allocations.
struct CountingAllocator;

thread_local! {
    static ALLOCATION_COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is forwarded to the system allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATION_COUNT.set(ALLOCATION_COUNT.get() + 1);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.dealloc(address, layout) }
    }
}

#[global_allocator]
static GLOBAL_ALLOCATOR: CountingAllocator = CountingAllocator;

/// A plugin with an op that does nothing, so that only the overhead is measured.
fn no_op_plugin(_: &HostServices) -> Result<Plugin<()>> {
    let operand = OperandSpec::new(family::FLOATING);
    let kernel = Kernel::new("Nothing", |(): &(), _| Ok(()))
        .with_domain("bench")
        .with_device_type("cpu")
        .with_inputs([operand; 7])
        .with_outputs([operand])
        .with_shape_inference(|(), call| call.allocate_output(0, Dtype::F32, &[1]));
    Ok(Plugin::for_kernels("bench-nothing", "1.0.0").with_kernels([kernel]))
}

const ROUND_COUNT: usize = 200;
const CALLS_PER_ROUND: u32 = 2000;

/// Median and 99th percentile of nanoseconds per call over rounds of many calls, and allocations per call.
fn measure_calls(mut call: impl FnMut()) -> (f64, f64, f64) {
    let mut rounds: Vec<f64> = Vec::with_capacity(ROUND_COUNT);
    (0..CALLS_PER_ROUND).for_each(|_| call());
    let before = ALLOCATION_COUNT.get();
    for _ in 0..ROUND_COUNT {
        let start = Instant::now();
        (0..CALLS_PER_ROUND).for_each(|_| call());
        rounds.push(start.elapsed().as_nanos() as f64 / f64::from(CALLS_PER_ROUND));
    }
    let asked = (ALLOCATION_COUNT.get() - before) as f64 / (ROUND_COUNT as f64 * f64::from(CALLS_PER_ROUND));
    rounds.sort_by(f64::total_cmp);
    (rounds[ROUND_COUNT / 2], rounds[ROUND_COUNT * 99 / 100], asked)
}

fn main() {
    let environment = HostEnvironment::new(|_| None, false, ProcessIdentity::of_process());
    let mut options = HostOptions::new("bench", HostConfig::default(), environment);
    options.built_in = vec![
        BuiltInPlugin { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY },
        BuiltInPlugin { name: "bench-nothing", query: oarlock_sdk::query!(no_op_plugin) },
    ];
    let flags = Flags::from_environment(|_| None).expect("defaults");
    let runtime = Runtime::start(options, flags).expect("a runtime");
    let cpu = runtime.device("cpu").expect("the CPU");
    let tensor =
        |count: i64| Tensor::from_slice(&cpu, &[count], &vec![1.0f32; count as usize]).expect("a tensor");
    let (one, many) = (tensor(1), tensor(1024));

    let add = Op::latest(&runtime, "Add").expect("Add");
    let empty = Op::new(&runtime, "bench", "Nothing", 1, Attributes::new()).expect("an op");
    let seven = [Some(&one); 7];
    let call = OpInvocation { inputs: &seven, outputs: 1, device: None, stream: None };
    let mut reusable = empty.create_reusable_call(&runtime, &call).expect("a reusable call");
    let pair = [Some(&one), Some(&one)];
    let sum = OpInvocation { inputs: &pair, outputs: 1, device: None, stream: None };
    let mut reusable_add = add.create_reusable_call(&runtime, &sum).expect("a reusable call");

    println!("| call | p50, ns | p99, ns | allocations |\n|---|---|---|---|");
    let row = |name: &str, (median, high, asked): (f64, f64, f64)| {
        println!("| {name} | {median:.1} | {high:.1} | {asked:.2} |");
    };
    row("reusable, 8 operands, a kernel that does nothing", measure_calls(|| reusable.run().expect("a run")));
    row("reusable, `Add` of 1 element", measure_calls(|| reusable_add.run().expect("a run")));
    row(
        "8 operands, a kernel that does nothing",
        measure_calls(|| drop(black_box(empty.invoke(&runtime, &call)))),
    );
    row("`Add` of 1 element", measure_calls(|| drop(black_box(add.run(&runtime, &[&one, &one])))));
    row("`Add` of 1024 elements", measure_calls(|| drop(black_box(add.run(&runtime, &[&many, &many])))));
}
