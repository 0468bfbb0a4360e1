//! What a call costs on its way from an op to its kernel: a table in Markdown. `scripts/bench` runs it.

#![expect(unsafe_code, reason = "what is asked of the system is counted")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;

use oarlock_core::flags::Flags;
use oarlock_core::{Attributes, Invocation, Op, Runtime, Tensor};
use oarlock_host::{BuiltIn, Config, Environment, HostOptions, Identity};
use oarlock_sdk::{Dtype, Host, Kernel, Operand, Plugin, Result, family};

/// Counts what is asked of the system.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        // SAFETY: the caller's word is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(address, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A plugin with an op of its own that does nothing, so that only the way to it is measured.
fn nothing(_: &Host) -> Result<Plugin<()>> {
    let operand = Operand::new(family::FLOATING);
    let kernel = Kernel::new("Nothing", |(): &(), _| Ok(()))
        .domain("bench")
        .device_type("cpu")
        .inputs([operand; 7])
        .outputs([operand])
        .infer(|(), call| call.allocate_output(0, Dtype::F32, &[1]));
    Ok(Plugin::without_device("bench-nothing", "1.0.0").kernels([kernel]))
}

const ROUNDS: usize = 200;
const CALLS: u32 = 2000;

/// The median and the 99th percentile of nanoseconds per call over rounds of many calls, and allocations per call.
fn measure(mut call: impl FnMut()) -> (f64, f64, f64) {
    let mut rounds: Vec<f64> = Vec::with_capacity(ROUNDS);
    (0..CALLS).for_each(|_| call());
    let before = ASKED.get();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        rounds.push(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    let asked = (ASKED.get() - before) as f64 / (ROUNDS as f64 * f64::from(CALLS));
    rounds.sort_by(f64::total_cmp);
    (rounds[ROUNDS / 2], rounds[ROUNDS * 99 / 100], asked)
}

fn main() {
    let environment = Environment::new(|_| None, false, Identity::of_process());
    let mut options = HostOptions::new("bench", Config::default(), environment);
    options.built_in = vec![
        BuiltIn { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY },
        BuiltIn { name: "bench-nothing", query: oarlock_sdk::query!(nothing) },
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
    let call = Invocation { inputs: &seven, outputs: 1, device: None, stream: None };
    let mut packed = empty.pack(&runtime, &call).expect("a packed call");
    let pair = [Some(&one), Some(&one)];
    let sum = Invocation { inputs: &pair, outputs: 1, device: None, stream: None };
    let mut packed_add = add.pack(&runtime, &sum).expect("a packed call");

    println!("| call | p50, ns | p99, ns | allocations |\n|---|---|---|---|");
    let row = |name: &str, (median, high, asked): (f64, f64, f64)| {
        println!("| {name} | {median:.1} | {high:.1} | {asked:.2} |");
    };
    row("packed, 8 operands, a kernel that does nothing", measure(|| packed.run().expect("a run")));
    row("packed, `Add` of 1 element", measure(|| packed_add.run().expect("a run")));
    row("8 operands, a kernel that does nothing", measure(|| drop(black_box(empty.invoke(&runtime, &call)))));
    row("`Add` of 1 element", measure(|| drop(black_box(add.run(&runtime, &[&one, &one])))));
    row("`Add` of 1024 elements", measure(|| drop(black_box(add.run(&runtime, &[&many, &many])))));
}
