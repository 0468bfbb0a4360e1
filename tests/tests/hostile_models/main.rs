//! Malicious models: for any model and any input, a session ends with an error or with outputs, stays within its limits of
//! memory and steps, and leaves nothing behind.
//!
//! `OARLOCK_TEST_SEEDS`, as `BEGIN..END`, selects other seeds, and prints each one before it is tried, to find one that crashes
//! or hangs.

#![expect(unsafe_code, reason = "the memory of the process is limited")]

#[expect(dead_code, reason = "the rest is for the test of models that are right")]
#[path = "../backend/case.rs"]
mod case;
#[expect(dead_code, reason = "the rest is for the test of models that are right")]
#[path = "../operators/compare.rs"]
mod compare;
#[expect(dead_code, unused_imports, reason = "the rest is for the test of calls")]
#[path = "../front_door/door/mod.rs"]
mod door;
mod files;
mod graphs;
mod trial;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use oarlock_core::Runtime;
use oarlock_engine::import;

use door::ChoiceSource;
use trial::ModelTrial;

/// Memory limit of the process. An allocation beyond it fails, and code that cannot handle that aborts the process.
const MEMORY_LIMIT: u64 = 6 << 30;

/// One runtime, used by one test at a time, since each test checks what is left behind.
static SHARED_RUNTIME: LazyLock<Mutex<Arc<Runtime>>> = LazyLock::new(|| {
    // A sanitizer reserves more address space than that for itself.
    if std::env::var_os("ASAN_OPTIONS").is_some() || std::env::var_os("TSAN_OPTIONS").is_some() {
        return Mutex::new(Arc::new(trial::start_runtime(&[])));
    }
    let limit = libc::rlimit { rlim_cur: MEMORY_LIMIT, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the call only reads the limit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    Mutex::new(Arc::new(trial::start_runtime(&[])))
});

/// Tries the models of a range of seeds.
fn try_models(usual: Range<u64>, make: impl Fn(&mut ChoiceSource<'_>) -> Option<ModelTrial>) {
    let stated = std::env::var("OARLOCK_TEST_SEEDS").ok().map(|range| {
        let (begin, end) = range.split_once("..").expect("`BEGIN..END`");
        begin.parse().expect("a number")..end.parse().expect("a number")
    });
    let runtime = SHARED_RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut worked, mut ran) = (0, 0);
    let mut wrong = Vec::new();
    for seed in stated.clone().unwrap_or(usual) {
        if stated.is_some() {
            eprintln!("{seed}");
        }
        let bytes = seeded_bytes(seed);
        let Some(trial) = make(&mut ChoiceSource::new(&bytes)) else { continue };
        ran += 1;
        match trial.run_trial(&runtime) {
            Ok(has_worked) => worked += u64::from(has_worked),
            Err(complaint) => wrong.push(format!("{seed}: {complaint}")),
        }
    }
    println!("{worked} of {ran} models worked");
    assert!(wrong.is_empty(), "{} models went wrong:\n{}", wrong.len(), wrong.join("\n"));
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
    (0..2048).map(|_| next()).collect()
}

#[test]
fn kernels_of_the_cpu_use_the_instruction_set_that_is_forced() {
    let runtime = SHARED_RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(oarlock_tests::bare_host::check_forced_isa(&runtime), Ok(()));
}

#[test]
fn graphs_that_make_no_sense_end_with_an_error_or_with_outputs() {
    try_models(0..3000, |source| Some(ModelTrial::random_graph(source)));
}

#[test]
fn files_in_which_something_is_changed_end_with_an_error_or_with_outputs() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("operator-cases").join("models");
    if !file.with_extension("jsonl").is_file() {
        return eprintln!(
            "No file is changed: `{}` is missing; run `scripts/export-operator-cases`",
            file.display()
        );
    }
    let cases = case::ModelCase::read_cases(&file);
    try_models(0..3000, |source| {
        let case = &cases[source.choose_below(cases.len())];
        (case.model_bytes().len() <= 1 << 20).then(|| {
            let (bytes, case) = (files::change_bytes(&case.model_bytes(), source), case.clone());
            let model = import::onnx::decode_onnx(bytes.into(), None);
            ModelTrial::from_file(model, source, move |host| case.read_inputs(0, host, host))
        })
    });
}
