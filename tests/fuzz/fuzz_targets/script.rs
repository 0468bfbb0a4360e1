//! A script of the simulated device.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oarlock_plugin_sim::Script;

fuzz_target!(|text: &str| {
    let _ = Script::parse(text);
});
