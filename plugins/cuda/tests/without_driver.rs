//! The plugin's message on a machine without an NVIDIA driver.

use std::io::Write;

use oarlock_plugin_cuda::QUERY;
use oarlock_portable::testing::PluginMachine;

#[test]
fn a_machine_without_a_driver_gets_a_sentence() {
    match PluginMachine::start_plugin(QUERY) {
        // Written directly, past the output capture of the test harness.
        Ok(_) => writeln!(std::io::stderr(), "SKIPPED: there is a CUDA device").unwrap(),
        Err(reason) => {
            assert!(reason.starts_with("expected ") && reason.contains("; "), "{reason}");
            assert!(!reason.contains("panicked"), "{reason}");
        }
    }
}
