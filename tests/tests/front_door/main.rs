//! The op interface on every device: calls with wrong ranks, dtypes, sizes, values, attributes, versions or numbers of operands
//! end with an error that names the op, or with correct outputs, and leave nothing behind.

mod door;
mod fallback;
mod refusals;
mod valid_edge_cases;

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;

use oarlock_core::ErrorKind;
use oarlock_host::BuiltInPlugin;
use oarlock_tests::bare_host::{CPU_PLUGIN, SIM_PLUGIN};

use door::{CallCase, ChoiceSource, FrontDoor};

const OPENCL_PLUGIN: BuiltInPlugin =
    BuiltInPlugin { name: "oarlock-opencl", query: oarlock_plugin_opencl::QUERY };

/// Starts a runtime if the device exists. Compiled programs are cached for the next run.
fn open_door(plugin: BuiltInPlugin, device: &str) -> Option<FrontDoor> {
    match FrontDoor::open_with_plugin(plugin, device, &[], Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR")))) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        opened => Some(opened.unwrap_or_else(|error| panic!("{error}"))),
    }
}

/// Runtimes for all available devices, the CPU first.
fn open_doors() -> Vec<FrontDoor> {
    [open_door(CPU_PLUGIN, "cpu"), open_door(OPENCL_PLUGIN, "opencl")].into_iter().flatten().collect()
}

/// Pseudo-random bytes.
fn seeded_bytes(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..256).map(|_| next()).collect()
}

/// Makes the calls of a range of seeds. `OARLOCK_TEST_SEEDS`, as `BEGIN..END`, selects other seeds, and prints each call before
/// it is made, to find one that hangs.
fn check_seeded_calls(plugin: BuiltInPlugin, device: &str, usual: Range<u64>) {
    let Some(door) = open_door(plugin, device) else {
        eprintln!("There is no `{device}` device, so nobody knocks at its door.");
        return;
    };
    let stated = std::env::var("OARLOCK_TEST_SEEDS").ok().map(|range| {
        let (begin, end) = range.split_once("..").expect("`BEGIN..END`");
        begin.parse().expect("a number")..end.parse().expect("a number")
    });
    let (mut worked, mut wrong) = (0, Vec::new());
    for seed in stated.clone().unwrap_or(usual) {
        let case = CallCase::from_choices(&mut ChoiceSource::new(&seeded_bytes(seed)));
        if stated.is_some() {
            eprintln!("{seed}: {case:?}");
        }
        match catch_unwind(AssertUnwindSafe(|| door.check_case(&case))) {
            Ok(Ok(outcome)) => worked += u64::from(outcome.is_ok()),
            Ok(Err(complaint)) => wrong.push(format!("{seed}: {complaint}\n    {case:?}")),
            Err(panic) => {
                eprintln!("{seed}: {case:?}");
                resume_unwind(panic);
            }
        }
    }
    println!("{worked} calls worked on {}", door.target_device());
    assert!(wrong.is_empty(), "{} calls went wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(door.close_runtime(), Ok(()));
}

#[test]
fn kernels_of_the_cpu_use_the_instruction_set_that_is_forced() {
    let door = open_door(CPU_PLUGIN, "cpu").expect("the CPU");
    assert_eq!(door.check_isa(), Ok(()));
}

#[test]
fn every_call_in_the_list_works_on_the_cpu() {
    let door = open_door(CPU_PLUGIN, "cpu").expect("the CPU");
    let wrong = |case: &CallCase| match door.check_case(case) {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("{error}\n    {case:?}")),
        Err(complaint) => Some(format!("{complaint}\n    {case:?}")),
    };
    let wrong: Vec<String> = CallCase::working_cases().iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_list_has_a_call_of_every_op_that_the_cpu_has_a_kernel_for() {
    let door = open_door(CPU_PLUGIN, "cpu").expect("the CPU");
    let calls: BTreeSet<_> =
        CallCase::working_cases().iter().map(|case| (case.domain.clone(), case.op.clone())).collect();
    let missing: Vec<_> = door.supported_ops().difference(&calls).cloned().collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn no_call_gets_more_than_an_error_out_of_the_cpu() {
    check_seeded_calls(CPU_PLUGIN, "cpu", 0..12_000);
}

#[test]
fn no_call_gets_more_than_an_error_out_of_the_simulated_device() {
    check_seeded_calls(SIM_PLUGIN, "sim", 0..2000);
}

#[test]
fn no_call_gets_more_than_an_error_out_of_opencl() {
    check_seeded_calls(OPENCL_PLUGIN, "opencl", 0..4000);
}
