//! Models that somebody made to do harm: whatever they are and are given, a session of them ends with an error or with
//! outputs, takes no more memory and no more steps than it may, and leaves nothing behind.
//!
//! `OARLOCK_TEST_SEEDS`, as `BEGIN..END`, takes other seeds, and has each told before it is tried, to find one that ends the
//! process or does not end.

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

use door::Source;
use trial::Trial;

/// The most memory of the process. Who asks for more is refused, and who does not reckon with that ends the process.
const MEMORY: u64 = 6 << 30;

/// One runtime, for one test at a time: each looks at what the other leaves behind.
static RUNTIME: LazyLock<Mutex<Arc<Runtime>>> = LazyLock::new(|| {
    // A sanitizer takes more addresses than that for its own books.
    if std::env::var_os("ASAN_OPTIONS").is_some() || std::env::var_os("TSAN_OPTIONS").is_some() {
        return Mutex::new(Arc::new(trial::start(&[])));
    }
    let limit = libc::rlimit { rlim_cur: MEMORY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the limit is read by the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    Mutex::new(Arc::new(trial::start(&[])))
});

/// Tries the models that some seeds make.
fn attempt(usual: Range<u64>, make: impl Fn(&mut Source<'_>) -> Option<Trial>) {
    let stated = std::env::var("OARLOCK_TEST_SEEDS").ok().map(|range| {
        let (begin, end) = range.split_once("..").expect("`BEGIN..END`");
        begin.parse().expect("a number")..end.parse().expect("a number")
    });
    let runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut worked, mut ran) = (0, 0);
    let mut wrong = Vec::new();
    for seed in stated.clone().unwrap_or(usual) {
        if stated.is_some() {
            eprintln!("{seed}");
        }
        let bytes = bytes(seed);
        let Some(trial) = make(&mut Source::new(&bytes)) else { continue };
        ran += 1;
        match trial.run(&runtime) {
            Ok(has_worked) => worked += u64::from(has_worked),
            Err(complaint) => wrong.push(format!("{seed}: {complaint}")),
        }
    }
    println!("{worked} of {ran} models worked");
    assert!(wrong.is_empty(), "{} models went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Bytes that are the same in every run.
fn bytes(seed: u64) -> Vec<u8> {
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
    let runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(oarlock_tests::bare_host::check_forced_isa(&runtime), Ok(()));
}

#[test]
fn graphs_that_make_no_sense_end_with_an_error_or_with_outputs() {
    attempt(0..3000, |source| Some(Trial::made_up(source)));
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
    let cases = case::Case::read_all(&file);
    attempt(0..3000, |source| {
        let case = &cases[source.below(cases.len())];
        (case.model().len() <= 1 << 20).then(|| {
            let (bytes, case) = (files::changed(&case.model(), source), case.clone());
            let model = import::onnx::decode(bytes.into(), None);
            Trial::of_file(model, source, move |host| case.inputs(0, host, host))
        })
    });
}
