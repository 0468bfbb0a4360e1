//! `oarlock devices` and `oarlock plugins`.

use crate::user::User;
use serde_json::Value;

/// Replaces what differs from machine to machine with the name of its type.
fn without_the_machine(value: &mut Value) {
    let variable =
        ["name", "memory", "compute_units", "compute_capability", "runtime_version", "driver_version"];
    let devices = value.as_array_mut().expect("a list of devices");
    for (key, value) in devices.iter_mut().filter_map(Value::as_object_mut).flatten() {
        if variable.contains(&key.as_str()) && !value.is_null() {
            *value = Value::String(format!("[{key}]"));
        }
    }
}

#[test]
fn the_cpu_is_listed_with_every_field() {
    let outcome = User::new().run(&["devices", "--json"]);
    let mut devices = outcome.json();
    let memory = &devices[0]["memory"];
    assert!(memory["free"].as_u64() <= memory["total"].as_u64(), "{memory}");
    without_the_machine(&mut devices);
    insta::assert_snapshot!("devices_json", serde_json::to_string_pretty(&devices).unwrap());
}

#[test]
fn a_device_is_one_line() {
    let outcome = User::new().run(&["devices"]);
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""));
    let line = outcome.out.strip_suffix('\n').unwrap();
    assert!(!line.contains('\n') && line.starts_with("cpu:0  "), "{line}");
    assert!(line.contains(" free of ") && line.ends_with("  hardware-verified  oarlock-cpu 0.1.0"), "{line}");
}

#[test]
fn colours_are_for_terminals_or_when_asked_for() {
    let user = User::new();
    assert!(!user.run(&["devices"]).out.contains('\u{1b}'));
    assert!(user.run(&["devices", "--color", "always"]).out.contains('\u{1b}'));
    assert!(user.run(&["--color=always", "--help"]).out.contains('\u{1b}'));
    assert!(!user.run(&["--help"]).out.contains('\u{1b}'));
}

#[test]
fn plugins_lists_what_is_built_in() {
    insta::assert_snapshot!("plugins", User::new().run(&["plugins"]).all());
}

#[test]
fn a_plugin_that_is_not_used_is_explained_and_does_no_harm() {
    let user = User::new();
    user.file("libbad.so", b"no plugin");
    let plugins = user.run(&["--plugin", "libbad.so", "plugins"]);
    let (_, refused) = plugins.out.split_once("\nNot used\n").unwrap();
    insta::assert_snapshot!("refused_plugin", refused);
    let devices = user.run(&["--plugin", "libbad.so", "devices"]);
    assert_eq!((plugins.status, devices.status), (0, 0));
    assert!(devices.out.starts_with("cpu:0 "), "{}", devices.out);
    assert_eq!(devices.err, "note: 1 plugin is not used; `oarlock plugins` says why\n");
}

#[test]
fn the_report_of_all_plugins_is_there_for_programs() {
    let user = User::new();
    user.file("libbad.so", b"no plugin");
    let report = user.run(&["--plugin", "libbad.so", "plugins", "--json"]).json();
    let plugins = report["plugins"].as_array().unwrap();
    let outcomes: Vec<&str> = plugins.iter().filter_map(|plugin| plugin["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["loaded", "loaded", "refused"]);
    assert_eq!(plugins[2]["reason"], "not-a-shared-object");
}

#[test]
fn the_trace_layer_writes_down_what_was_called() {
    let user = User::new();
    let outcome = user.run(&["--layer", "trace", "devices"]);
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""));
    let trace = std::fs::read_to_string(user.home.path().join("oarlock-trace.json")).unwrap();
    let calls: Value = serde_json::from_str(&trace).unwrap();
    let names: Vec<&str> =
        calls.as_array().unwrap().iter().filter_map(|call| call["name"].as_str()).collect();
    assert!(names.contains(&"core.memory_stats"), "{names:?}");
}

#[test]
fn the_configuration_chooses_the_file_of_the_trace() {
    let user = User::new();
    let trace = user.home.path().join("calls.json");
    let text = format!("[plugins]\nlayers = ['trace']\n[plugin.trace]\nfile = '{}'", trace.display());
    user.file("config.toml", text.as_bytes());
    assert_eq!(user.run(&["--config", "config.toml", "devices"]).status, 0);
    assert!(trace.exists());
}
