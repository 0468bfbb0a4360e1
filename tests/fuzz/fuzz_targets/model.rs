//! Models that are planned and run: files of any bytes, and graphs that are put together well and make no sense.
#![no_main]

#[expect(dead_code, unused_imports, reason = "the rest is for the test of calls")]
#[path = "../../tests/front_door/door/mod.rs"]
mod door;
#[path = "../../tests/hostile_models/graphs.rs"]
mod graphs;
#[path = "../../tests/hostile_models/trial.rs"]
mod trial;

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use oarlock_core::Runtime;

use door::Source;
use trial::Trial;

/// Every request has a chunk of its own, so that a step out of it is one that AddressSanitizer sees.
const FLAGS: [(&str, &str); 3] =
    [("allocator_strategy", "best_fit"), ("device_memory_initial", "1"), ("device_memory_refill", "1")];

static RUNTIME: LazyLock<Arc<Runtime>> = LazyLock::new(|| Arc::new(trial::start(&FLAGS)));

fuzz_target!(|bytes: &[u8]| {
    let Some((how, rest)) = bytes.split_first() else { return };
    let mut source = Source::new(rest);
    let trial = match how % 4 {
        0 => Trial::of_file(rest.to_vec(), &mut source, |_| Ok(Vec::new())),
        _ => Trial::made_up(&mut source),
    };
    if let Err(complaint) = trial.run(&RUNTIME) {
        panic!("{complaint}");
    }
});
