//! A script of the simulated device.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oarlock_plugin_sim::FaultScript;

fuzz_target!(|text: &str| {
    let _ = FaultScript::parse_script(text);
});
