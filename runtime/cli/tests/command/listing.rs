//! `oarlock devices` and `oarlock plugins`.

use crate::user::TestUser;
use serde_json::Value;

/// Replaces values that differ between machines with the names of their types.
fn redact_machine(value: &mut Value) {
    let variable = [
        "name",
        "memory",
        "compute_units",
        "compute_capability",
        "runtime_version",
        "driver_version",
        "support_level",
        "support_note",
    ];
    let devices = value.as_array_mut().expect("a list of devices");
    for (key, value) in devices.iter_mut().filter_map(Value::as_object_mut).flatten() {
        if variable.contains(&key.as_str()) && !value.is_null() {
            *value = Value::String(format!("[{key}]"));
        }
    }
}

#[test]
fn the_cpu_is_listed_with_every_field() {
    let outcome = TestUser::new().run_command(&["devices", "--json"]);
    let mut devices = outcome.parse_json();
    let memory = &devices[0]["memory"];
    assert!(memory["free"].as_u64() <= memory["total"].as_u64(), "{memory}");
    redact_machine(&mut devices);
    insta::assert_snapshot!("devices_json", serde_json::to_string_pretty(&devices).unwrap());
}

#[test]
fn a_device_is_one_line() {
    let outcome = TestUser::new().run_command(&["devices"]);
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""));
    let line = outcome.out.strip_suffix('\n').unwrap();
    assert!(!line.contains('\n') && line.starts_with("cpu:0  "), "{line}");
    let levels = ["hardware-verified", "driver-verified", "unspecified"];
    let is_end = |level: &&str| line.ends_with(&format!("  {level}  oarlock-cpu 0.1.0"));
    assert!(line.contains(" free of ") && levels.iter().any(is_end), "{line}");
}

#[test]
fn an_isolated_plugin_is_listed_with_its_process_and_computes() {
    let user = TestUser::new();
    user.compile_template("libcustom_cpu.so");
    let isolated = ["--plugin", "libcustom_cpu.so", "--isolate", "custom-cpu"];
    let run = |command: &[&str]| user.run_command(&[&isolated, command].concat());
    let listed = run(&["plugins"]);
    assert_eq!((listed.status, listed.err.as_str()), (0, ""), "{}", listed.out);
    assert!(listed.out.contains("\n    isolated     in process "), "{}", listed.out);
    let plugins = run(&["plugins", "--json"]).parse_json();
    let of = |name: &str| {
        let plugins = plugins["plugins"].as_array().expect("a list of plugins");
        plugins.iter().find(|plugin| plugin["name"] == name).expect("the plugin")["process"].clone()
    };
    assert!(of("custom-cpu").is_u64() && of("oarlock-cpu").is_null());
    let devices = run(&["devices"]);
    assert!(devices.out.contains(", isolated in process "), "{}", devices.out);
    let sum = run(&["op", "Add", "f32:[1,2]", "f32:10", "-d", "CustomCPU"]);
    assert_eq!(sum.status, 0, "{}", sum.err);
    assert!(sum.out.contains("11") && sum.out.contains("12"), "{}", sum.out);
    let part = user.run_command(&["plugins", "--isolate", "oarlock-cpu"]);
    assert!(part.err.contains("found one that is part of the program"), "{}", part.err);
}

#[test]
fn colors_are_for_terminals_or_when_asked_for() {
    let user = TestUser::new();
    assert!(!user.run_command(&["devices"]).out.contains('\u{1b}'));
    assert!(user.run_command(&["devices", "--color", "always"]).out.contains('\u{1b}'));
    assert!(user.run_command(&["--color=always", "--help"]).out.contains('\u{1b}'));
    assert!(!user.run_command(&["--help"]).out.contains('\u{1b}'));
}

#[test]
fn plugins_lists_what_is_built_in() {
    let shown = TestUser::new().run_command(&["plugins"]).to_snapshot();
    let is_count =
        |line: &&str| line.starts_with("    kernels ") && line.ends_with(|c: char| c.is_ascii_digit());
    let count = shown.lines().find(is_count).expect("the CPU has kernels");
    let support = shown.lines().find(|line| line.starts_with("    support ")).expect("a support level");
    let shown = shown
        .replace(count, "    kernels      [count]")
        .replace(support, "    support      [of this processor]");
    insta::assert_snapshot!("plugins", shown);
}

#[test]
fn how_far_the_cpu_is_tested_is_about_its_family_and_the_instructions_that_it_uses() {
    let user = TestUser::new();
    user.write_file("scalar.toml", b"[plugin.oarlock-cpu]\nisa = 'scalar'");
    let cpu = |arguments: &[&str]| {
        let devices = user.run_command(&[arguments, &["devices", "--json"]].concat()).parse_json();
        ["support_level", "support_note"].map(|field| devices[0][field].as_str().unwrap().to_owned())
    };
    let [level, note] = cpu(&["--config", "scalar.toml"]);
    assert_eq!(level, "driver-verified");
    assert!(note.contains("passed with `scalar` on an AMD EPYC (Zen 3), which has more"), "{note}");
    let [level, note] = cpu(&[]);
    assert_eq!(level == "hardware-verified", note.ends_with("this processor is of that family"), "{note}");
}

#[test]
fn a_plugin_that_was_named_and_is_not_used_is_an_error_and_does_no_harm() {
    let user = TestUser::new();
    user.write_file("libbad.so", b"no plugin");
    let plugins = user.run_command(&["--plugin", "libbad.so", "plugins"]);
    let (_, refused) = plugins.out.split_once("\nNot used\n").unwrap();
    insta::assert_snapshot!("refused_plugin", refused);
    let devices = user.run_command(&["--plugin", "libbad.so", "devices"]);
    assert_eq!((plugins.status, devices.status), (1, 1));
    assert!(devices.out.starts_with("cpu:0 "), "{}", devices.out);
    assert!(
        devices.err.starts_with("error: `[HOME]/libbad.so`: expected a shared object"),
        "{}",
        devices.err
    );
    assert_eq!(plugins.err, devices.err);
}

#[test]
fn a_plugin_that_was_found_and_is_not_used_is_a_note() {
    let user = TestUser::new();
    std::fs::create_dir(user.home.path().join("plugins")).unwrap();
    user.write_file("plugins/libbad.so", b"no plugin");
    let devices = user.run_command(&["--plugin", "plugins", "devices"]);
    assert_eq!(devices.status, 0);
    assert_eq!(devices.err, "note: 1 plugin is not used; `oarlock plugins` says why\n");
}

#[test]
fn a_plugin_that_was_named_and_is_not_there_is_an_error() {
    let outcome = TestUser::new().run_command(&["--plugin", "libnowhere.so", "plugins", "--json"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.starts_with("error: `[HOME]/libnowhere.so`: expected"), "{}", outcome.err);
    let report = outcome.parse_json();
    let last = report["plugins"].as_array().and_then(|plugins| plugins.last());
    assert_eq!(last.map(|plugin| &plugin["outcome"]), Some(&"refused".into()), "{report}");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_plugin_for_another_processor_is_wrong_unless_there_is_a_variant_for_this_one() {
    let user = TestUser::new();
    user.compile_template("libcustom_cpu.so");
    let result = user.run_command(&["plugin", "manifest", "libcustom_cpu.so"]).out;
    user.write_file("libcustom_cpu.oarlock.toml", format!("isa = \"avx2\"\n{result}").as_bytes());
    let run = |more: &[&str]| {
        let arguments = [&["--plugin", "libcustom_cpu.so"][..], more, &["devices"]].concat();
        user.oarlock_command(&arguments).env("OARLOCK_ISA_MASK", "sse3").output().unwrap().status.code()
    };
    assert_eq!(run(&[]), Some(1));
    user.compile_template("libplain.so");
    user.write_file("libplain.oarlock.toml", result.as_bytes());
    assert_eq!(run(&["--plugin", "libplain.so"]), Some(0));
}

#[test]
fn what_a_plugin_prints_does_not_get_into_the_output() {
    let user = TestUser::new();
    let source = "#include \"minimal.h\"\n\
        static oarlock_error start(void *context, uint32_t device) {\n\
            (void)context; (void)device; printf(\"started\"); fflush(stdout); return 0; }\n\
        static oarlock_error describe(oarlock_plugin *plugin) {\n\
            printf(\"asked\"); minimal_core.device_init = start; return minimal_describe(plugin, \"Loud\"); }\n\
        OARLOCK_PLUGIN(describe);\n";
    user.compile_plugin("libloud.so", source);
    for command in ["devices", "plugins", "doctor"] {
        let outcome = user.run_command(&["--plugin", "libloud.so", command, "--json"]);
        let shown = outcome.parse_json().to_string();
        assert!(shown.contains("Loud:0") && outcome.err.contains("started"), "{shown} {}", outcome.err);
    }
}

#[test]
fn a_file_whose_name_is_not_utf8_is_shown_all_the_same() {
    use std::os::unix::ffi::OsStrExt as _;
    let user = TestUser::new();
    let name = std::ffi::OsStr::from_bytes(b"bad\xff.so");
    std::fs::rename(user.write_file("bad.so", b"no plugin"), user.home.path().join(name)).unwrap();
    for more in [&[][..], &["--json"]] {
        for command in [&["devices"][..], &["plugins"], &["doctor"], &["plugin", "check"]] {
            let mut process = user.oarlock_command(&[command, more].concat());
            let is_check = command.len() > 1;
            let output = if is_check { process.arg(name) } else { process.arg("--plugin").arg(name) }
                .output()
                .unwrap();
            let (out, err) =
                (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
            assert_eq!(output.status.code(), Some(1), "{out} {err}");
            assert!(
                is_check || out.contains("bad\u{fffd}.so") || err.contains("bad\u{fffd}.so"),
                "{out} {err}"
            );
            if more == ["--json"] {
                serde_json::from_str::<Value>(&out).unwrap();
            }
        }
    }
}

#[test]
fn a_plugin_that_says_too_much_is_cut_short() {
    let user = TestUser::new();
    let source = "#include \"minimal.h\"\n\
        static oarlock_error start(void *context, uint32_t device) {\n\
            (void)context; (void)device;\n\
            for (int i = 0; i < 1000; i++) { oarlock_log(OARLOCK_LOG_LEVEL_WARNING, \"again\"); } return 0; }\n\
        static oarlock_error describe(oarlock_plugin *plugin) {\n\
            minimal_core.device_init = start; return minimal_describe(plugin, \"Loud\"); }\n\
        OARLOCK_PLUGIN(describe);\n";
    user.compile_plugin("libloud.so", source);
    let outcome = user.run_command(&["--plugin", "libloud.so", "devices"]);
    assert_eq!(outcome.err.matches("again").count(), 100, "{}", outcome.err);
    assert!(outcome.err.ends_with(": … and 900 more\n"), "{}", outcome.err);
}

#[test]
fn the_report_of_all_plugins_is_there_for_programs() {
    let user = TestUser::new();
    user.write_file("libbad.so", b"no plugin");
    let report = user.run_command(&["--plugin", "libbad.so", "plugins", "--json"]).parse_json();
    let plugins = report["plugins"].as_array().unwrap();
    let (last, built_in) = plugins.split_last().unwrap();
    assert!(built_in.iter().all(|plugin| plugin["outcome"] == "loaded"), "{report}");
    assert_eq!(last["outcome"], "refused");
    assert_eq!(last["reason"], "not-a-shared-object");
}

#[test]
fn the_trace_layer_writes_down_what_was_called() {
    let user = TestUser::new();
    let outcome = user.run_command(&["--layer", "trace", "devices"]);
    let file = user.home.path().join("oarlock-trace.json");
    let trace = std::fs::read_to_string(&file).unwrap();
    let calls: Value = serde_json::from_str(&trace).unwrap();
    let count = calls.as_array().unwrap().iter().filter(|call| call["ph"] == "X").count();
    let message = format!("note: `trace`: {count} calls in `[HOME]/oarlock-trace.json`\n");
    assert_eq!((outcome.status, outcome.err), (0, message));
    let names: Vec<&str> =
        calls.as_array().unwrap().iter().filter_map(|call| call["name"].as_str()).collect();
    assert!(names.contains(&"core.memory_stats"), "{names:?}");
}

#[test]
fn the_configuration_chooses_the_file_of_the_trace() {
    let user = TestUser::new();
    let trace = user.home.path().join("calls.json");
    let text = format!("[plugins]\nlayers = ['trace']\n[plugin.trace]\nfile = '{}'", trace.display());
    user.write_file("config.toml", text.as_bytes());
    assert_eq!(user.run_command(&["--config", "config.toml", "devices"]).status, 0);
    assert!(trace.exists());
}

#[test]
fn a_layer_that_cannot_write_is_told_and_the_command_goes_on() {
    let user = TestUser::new();
    for (file, status, word, found) in [
        (
            "/nonexistent/calls.json",
            1,
            "error: the layer `trace` is left out of",
            "No such file or directory",
        ),
        ("/dev/full", 0, "warning: `trace`: expected to write the trace to", "No space left on device"),
    ] {
        user.write_file("config.toml", format!("[plugin.trace]\nfile = '{file}'").as_bytes());
        let outcome = user.run_command(&["--config", "config.toml", "--layer", "trace", "devices"]);
        assert_eq!(outcome.status, status, "{}", outcome.err);
        assert!(outcome.out.starts_with("cpu:0"), "{}", outcome.out);
        assert!(outcome.err.starts_with(word) && outcome.err.contains(found), "{}", outcome.err);
        assert_eq!(outcome.err.matches(file).count(), 1, "{}", outcome.err);
    }
}
