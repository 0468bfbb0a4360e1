//! `oarlock doctor`.

use crate::user::User;
use serde_json::Value;

#[test]
fn a_machine_with_the_cpu_alone_is_well() {
    let outcome = User::new().run(&["doctor"]);
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""), "{}", outcome.out);
    assert!(outcome.out.contains("\nAll is well: 1 device works\n"), "{}", outcome.out);
}

#[test]
fn every_device_is_tried_with_every_step() {
    let user = User::new();
    user.template("libcustom_cpu.so");
    let report = user.run(&["--plugin", "libcustom_cpu.so", "doctor", "--json"]).json();
    assert_eq!(report["well"], true);
    let devices = report["devices"].as_array().unwrap();
    let names: Vec<&str> = devices.iter().filter_map(|device| device["device"].as_str()).collect();
    assert_eq!(names, ["cpu:0", "CustomCPU:0"]);
    for device in devices {
        let steps: Vec<&Value> =
            device["steps"].as_array().unwrap().iter().map(|step| &step["step"]).collect();
        let expected =
            ["description", "allocation", "copies", "fill", "stream and event", "addition", "giving back"];
        assert_eq!(steps, expected);
        assert_eq!(device["steps"][5]["found"], "1000 sums each of f32 and i32");
    }
}

#[test]
fn a_plugin_that_is_not_used_makes_it_unwell() {
    let user = User::new();
    user.file("libbad.so", b"");
    let outcome = user.run(&["--plugin", "libbad.so", "doctor"]);
    assert_eq!(outcome.status, 1);
    assert!(
        outcome.out.contains("\nPlugins not used\n  empty\n    `[HOME]/libbad.so`: expected"),
        "{}",
        outcome.out
    );
    assert!(outcome.out.ends_with("\nSomething is wrong: 1 plugin is not used\n"), "{}", outcome.out);
}

#[test]
fn a_plugin_that_was_disabled_is_nothing_wrong() {
    let user = User::new();
    user.file("libbad.so", b"");
    user.file("config.toml", b"[plugins]\ndisable = ['libbad.so']");
    let outcome = user.run(&["--config", "config.toml", "--plugin", "libbad.so", "doctor"]);
    assert_eq!(outcome.status, 0, "{}", outcome.out);
    assert!(outcome.out.contains("\n  disabled\n"), "{}", outcome.out);
}

#[test]
fn a_machine_without_devices_is_not_well() {
    let user = User::new();
    user.file("config.toml", b"[plugins]\ndisable = ['oarlock-cpu']");
    let outcome = user.run(&["--config", "config.toml", "doctor"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.out.ends_with("\nSomething is wrong: there are no devices\n"), "{}", outcome.out);
}

#[test]
fn variables_are_shown_and_unknown_ones_pointed_out() {
    let user = User::new();
    let output = user.command(&["doctor"]).env("OARLOCK_PLUGIN_PTAH", "/x").output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.contains("OARLOCK_PLUGIN_PTAH, which means nothing to Oarlock"), "{out}");
}

#[test]
fn a_plugin_that_ends_the_process_is_named() {
    let user = User::new();
    let source = "#include \"minimal.h\"\n\
        static oarlock_error end(void *context, uint32_t device, void *target, uint64_t size, oarlock_memory source,\n\
            uint64_t from) { (void)context; (void)device; (void)target; (void)size; (void)source; (void)from; abort(); }\n\
        static oarlock_error describe(oarlock_plugin *plugin) {\n\
            minimal_core.memory_copy_d2h = end; return minimal_describe(plugin, \"Fatal\"); }\n\
        OARLOCK_PLUGIN(describe);\n";
    user.plugin("libfatal.so", source);
    let outcome = user.run(&["--plugin", "libfatal.so", "doctor"]);
    assert_eq!(outcome.status, 1, "{}", outcome.all());
    assert!(outcome.out.contains("works  cpu:0"), "{}", outcome.out);
    assert!(
        outcome.err.contains("ended by a plugin while `Fatal:0` was tried: signal: 6"),
        "{}",
        outcome.err
    );
}
