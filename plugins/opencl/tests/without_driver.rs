//! The plugin's message on a machine without an OpenCL driver.

use std::process::Command;

use oarlock_plugin_opencl::QUERY;
use oarlock_portable::testing::PluginMachine;

const CHILD_VARIABLE: &str = "OARLOCK_OPENCL_TEST_WITHOUT_DRIVER";

#[test]
fn a_machine_without_a_driver_gets_a_sentence() {
    if std::env::var_os(CHILD_VARIABLE).is_some() {
        let reason = PluginMachine::start_plugin(QUERY).err();
        println!("REASON {}", reason.unwrap_or_default());
        return;
    }
    // Points the driver loader at an empty directory; without a loader, the message is about that.
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "a_machine_without_a_driver_gets_a_sentence", "--nocapture"]);
    let output = child.env(CHILD_VARIABLE, "1").env("OCL_ICD_VENDORS", "/nowhere").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let sentence = text.lines().find_map(|line| line.split("REASON ").nth(1)).unwrap_or_default();
    assert!(sentence.starts_with("expected ") && sentence.contains("found none; install"), "{text}");
}
