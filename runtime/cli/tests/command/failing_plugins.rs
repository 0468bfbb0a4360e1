//! Plugins that crash, end the process or hang while they are loaded or shut down, with and without a manifest.

use std::fs;

use crate::models::model_builder::ModelBuilder;
use crate::user::{TestOutcome, TestUser};

/// The phases in which the host runs code of a plugin before the command does its work, and how `plugins` words them.
const START_PHASES: [(&str, &str); 4] = [
    ("LOAD", "it was loaded"),
    ("QUERY", "it was queried"),
    ("INITIALIZE", "its devices were initialized"),
    ("DESCRIBE", "its devices were asked for their properties"),
];
/// The same for what it runs afterwards.
const END_PHASES: [(&str, &str); 2] =
    [("FINALIZE", "its devices were shut down"), ("UNLOAD", "it was unloaded")];

/// What the plugin does in the phase, and what the message says of it.
const FAULTS: [(&str, &str); 3] = [
    ("*(volatile int *)0 = 1;", "a crash with SIGSEGV"),
    ("exit(0);", "that it ended the process with exit code 0"),
    ("for (;;) pause();", "no answer within 400 ms"),
];

/// A plugin with one device that runs `action` in one phase, once there is a file `armed` beside it. Before, it works: so it gets a
/// manifest, which a host trusts.
fn plugin_source(home: &str, phase: &str, action: &str) -> String {
    format!(
        "#define _GNU_SOURCE\n\
         #include <signal.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         #include \"minimal.h\"\n\
         #define FAIL_IN_{phase} 1\n\
         static void fail(void) {{ if (access(\"{home}/armed\", F_OK) == 0) {{ {action} }} }}\n\
         #ifdef FAIL_IN_LOAD\n\
         __attribute__((constructor)) static void loaded(void) {{ fail(); }}\n\
         #endif\n\
         #ifdef FAIL_IN_EXIT\n\
         __attribute__((destructor)) static void ended(void) {{ fail(); }}\n\
         #endif\n\
         static oarlock_error finalize(void *context) {{ (void)context; fail(); return 0; }}\n\
         static oarlock_error initialize(void *context) {{ (void)context; fail(); return 0; }}\n\
         static oarlock_error unload(void *context) {{ (void)context; fail(); return 0; }}\n\
         static oarlock_error device_info(void *context, uint32_t device, oarlock_device_info *info) {{\n\
             (void)context; (void)device; (void)info; fail(); return 0; }}\n\
         static oarlock_error describe(oarlock_plugin *plugin) {{\n\
             (void)finalize; (void)initialize; (void)unload; (void)device_info;\n\
         #ifdef FAIL_IN_QUERY\n    fail();\n#endif\n\
         #ifdef FAIL_IN_INITIALIZE\n    minimal_core.initialize = initialize;\n#endif\n\
         #ifdef FAIL_IN_FINALIZE\n    minimal_core.finalize = finalize;\n#endif\n\
         #ifdef FAIL_IN_DESCRIBE\n    minimal_core.device_info = device_info;\n#endif\n\
         #ifdef FAIL_IN_UNLOAD\n    plugin->unload = unload;\n#endif\n\
             return minimal_describe(plugin, \"Bad\"); }}\n\
         OARLOCK_PLUGIN(describe);\n"
    )
}

/// A user with two plugins with manifests: one that works, and `libbad.so`, which fails in the phase.
fn user_with_bad_plugin(phase: &str, action: &str) -> TestUser {
    let user = TestUser::new();
    let plugins = user.home.path().join(".local/share/oarlock/plugins");
    fs::create_dir_all(&plugins).expect("a directory");
    let home = user.home.path().display().to_string();
    user.compile_plugin("libbad.so", &plugin_source(&home, phase, action));
    user.compile_template("libgood.so");
    for name in ["libbad", "libgood"] {
        let written = user.run_command(&["plugin", "manifest", "--write", &format!("{name}.so")]);
        assert_eq!(written.status, 0, "{}", written.err);
        for ending in ["so", "oarlock.toml"] {
            let file = format!("{name}.{ending}");
            fs::rename(user.home.path().join(&file), plugins.join(&file)).expect("a file was made");
        }
    }
    user.write_file("config.toml", b"[plugins]\nstart_timeout_ms = 400\n");
    user.write_file("armed", b"");
    user
}

fn run_watched(user: &TestUser, arguments: &[&str]) -> TestOutcome {
    user.run_command(&[arguments, &["--config", "config.toml"]].concat())
}

const BAD_FILE: &str = "`[HOME]/.local/share/oarlock/plugins/libbad.so`";

#[test]
fn a_plugin_that_fails_at_the_start_is_named_and_the_command_goes_on_without_it() {
    for (phase, during) in START_PHASES {
        for (action, fault) in FAULTS {
            let user = user_with_bad_plugin(phase, action);
            let devices = run_watched(&user, &["devices"]);
            assert_eq!(devices.status, 0, "{phase} {action}: {}", devices.err);
            assert!(devices.out.contains("cpu:0") && devices.out.contains("CustomCPU:0"), "{}", devices.out);
            let warning =
                format!("warning: {BAD_FILE} is left out: expected a plugin that starts, found {fault}");
            assert!(devices.err.starts_with(&warning), "{phase} {action}: {}", devices.err);
            assert!(devices.err.lines().next().is_some_and(|line| line.ends_with(during)), "{}", devices.err);
        }
    }
}

#[test]
fn every_command_goes_on_without_a_plugin_that_fails_at_the_start() {
    let user = user_with_bad_plugin("INITIALIZE", "*(volatile int *)0 = 1;");
    let op = ["op", "Add", "f32:[1]", "f32:[2]", "-d", "cpu"];
    for command in [&op[..], &["kernels", "--op", "Add"], &["plugins"]] {
        let outcome = run_watched(&user, command);
        assert_eq!(outcome.status, 0, "{command:?}: {}", outcome.err);
        assert!(!outcome.out.is_empty() && outcome.err.contains(BAD_FILE), "{command:?}: {}", outcome.err);
    }
    let report = run_watched(&user, &["plugins", "--json"]).parse_json();
    let bad = report["plugins"].as_array().and_then(|all| all.iter().find(|row| row["outcome"] == "refused"));
    assert_eq!(bad.expect("a refused plugin")["reason"], "crashed-at-start");
    let doctor = run_watched(&user, &["doctor"]);
    assert_eq!(doctor.status, 1);
    assert_eq!(doctor.out.matches("Environment").count(), 1, "{}", doctor.out);
    assert!(
        doctor.out.contains("crashed-at-start") && doctor.out.contains("works  CustomCPU:0"),
        "{}",
        doctor.out
    );
    let check = run_watched(&user, &["plugin", "check", "--quick", ".local/share/oarlock/plugins/libbad.so"]);
    assert_eq!(check.status, 1, "{}", check.err);
    assert!(check.out.contains("The plugin cannot be used here"), "{}", check.out);
}

#[test]
fn a_plugin_that_fails_at_the_end_takes_neither_the_answer_nor_the_exit_code() {
    for (phase, during) in END_PHASES {
        for (action, fault) in FAULTS {
            let user = user_with_bad_plugin(phase, action);
            let devices = run_watched(&user, &["devices"]);
            assert_eq!(devices.status, 0, "{phase} {action}: {}", devices.err);
            assert!(devices.out.contains("Bad:0"), "{}", devices.out);
            let warning = format!("warning: {BAD_FILE}: expected a plugin that shuts down, found {fault}");
            assert!(devices.err.starts_with(&warning) && devices.err.contains(during), "{}", devices.err);
            let failed = run_watched(&user, &["op", "Add", "f32:[1]", "i32:[2]", "-d", "cpu"]);
            assert_eq!(failed.status, 1, "{}", failed.err);
        }
    }
}

#[test]
fn what_a_plugin_left_for_the_end_of_the_process_is_not_run_and_the_probe_says_so() {
    for (action, said) in [
        ("*(volatile int *)0 = 1;", "with SIGSEGV"),
        ("_exit(7);", "with exit code 7"),
        ("for (;;) pause();", "does not end within"),
    ] {
        let user = user_with_bad_plugin("EXIT", action);
        let devices = run_watched(&user, &["devices"]);
        assert_eq!((devices.status, devices.err.as_str()), (0, ""), "{action}");
        let check =
            run_watched(&user, &["plugin", "check", "--quick", ".local/share/oarlock/plugins/libbad.so"]);
        assert_eq!(check.status, 0, "{}", check.err);
        assert!(check.out.contains(said), "{action}: {}", check.out);
    }
}

/// A user whose plugin has a kernel for `Relu` that runs `action` in a slot, and a model with one such node.
fn user_with_bad_kernel(slot: &str, action: &str) -> TestUser {
    let user = TestUser::new();
    user.compile_plugin(
        "libfatal.so",
        &format!(
            "#include \"minimal_kernel.h\"\n\
             static oarlock_error act(void *context, void *state, const oarlock_call *call) {{\n\
                 (void)context; (void)state; (void)call; {action}; return 0; }}\n\
             static oarlock_error ready(void *context, const oarlock_call *call, void **state) {{\n\
                 *state = 0; return act(context, 0, call); }}\n\
             static oarlock_error release(void *context, void *state) {{ (void)context; (void)state; return 0; }}\n\
             static oarlock_error describe(oarlock_plugin *plugin) {{\n\
                 (void)ready; (void)release;\n\
                 static const oarlock_str op = OARLOCK_STR(\"Relu\");\n\
                 minimal_kernel.op = op; minimal_kernel.version_min = 6; minimal_kernel.{slot};\n\
                 return minimal_describe_kernel(plugin, \"Fatal\"); }}\n\
             OARLOCK_PLUGIN(describe);\n"
        ),
    );
    let model = ModelBuilder::new().with_input("x: f32[2]").with_output("y: f32[2]").with_node("y = Relu(x)");
    user.write_file("relu.onnx", &model.into_bytes());
    user
}

#[test]
fn a_kernel_that_ends_a_run_is_named_with_its_node_its_plugin_and_its_file() {
    for (action, fault) in [("abort()", "SIGABRT"), ("exit(0)", "exit status: 0")] {
        let user = user_with_bad_kernel("run = act", action);
        for command in ["run", "bench"] {
            let call = [command, "relu.onnx", "--plugin", "libfatal.so", "-d", "Fatal", "-i", "x=f32:[1,2]"];
            let outcome = user.run_command(&call);
            assert_eq!((outcome.status, outcome.out.as_str()), (1, ""), "{command}: {}", outcome.err);
            let message = "error: the process was ended while the node `Relu` (`Y`) ran on `Fatal:0` with a kernel of `Fatal` \
                           (`[HOME]/libfatal.so`): ";
            assert!(outcome.err.starts_with(message) && outcome.err.contains(fault), "{}", outcome.err);
            let report = user.run_command(&[&call[..], &["--json"]].concat()).parse_json();
            let text = report["error"]["message"].as_str().expect("a message");
            assert!(text.starts_with("the process was ended while the node `Relu`"), "{text}");
        }
    }
}

#[test]
fn a_kernel_that_ends_the_process_while_it_is_readied_is_named_with_its_node() {
    let user = user_with_bad_kernel("prepare = ready; minimal_kernel.release = release", "abort()");
    let shape = ["relu.onnx", "--plugin", "libfatal.so", "-d", "Fatal"];
    for command in ["explain", "run", "trace"] {
        let inputs = if command == "explain" { &[][..] } else { &["-i", "x=f32:[1,2]"] };
        let outcome = user.run_command(&[&[command], &shape[..], inputs].concat());
        assert_eq!((outcome.status, outcome.out.as_str()), (1, ""), "{command}: {}", outcome.err);
        let message = "error: the process was ended while the node `Relu` (`Y`) was readied: ";
        assert!(outcome.err.starts_with(message), "{command}: {}", outcome.err);
    }
}

#[test]
fn a_device_is_found_without_regard_to_case_and_a_longer_name_by_its_nearest() {
    let user = user_with_bad_kernel("run = act", "");
    let call =
        |device: &str| user.run_command(&["--plugin", "libfatal.so", "op", "Relu", "f32:[1]", "-d", device]);
    for device in ["fatal", "FATAL:0", "Fatal"] {
        assert_eq!(call(device).status, 0, "{device}: {}", call(device).err);
    }
    let other = call("Fatel");
    assert!(other.err.contains("found `Fatel`; did you mean `Fatal`"), "{}", other.err);
}

#[test]
fn an_op_of_another_domain_is_pointed_to() {
    let user = TestUser::new();
    let call = |arguments: &[&str]| user.run_command(&[&["op"], arguments].concat()).err;
    assert!(call(&["acme::Loop", "f32:1"]).contains("`oarlock op Loop --domain acme`"));
    let other = call(&["Add", "f32:1", "f32:1", "--domain", "ai.onnx.ml"]);
    assert!(other.contains("hint: `Add` is an op of the domain `ai.onnx`"), "{other}");
}

#[test]
fn plugins_are_chosen_by_name_or_file_for_one_call() {
    let user = user_with_bad_plugin("INITIALIZE", "abort();");
    let file = user.home.path().join(".local/share/oarlock/plugins/libbad.so").display().to_string();
    for choice in
        [["--without", "Bad"], ["--without", &file], ["--only", "custom-cpu"], ["--only", "libgood.so"]]
    {
        let devices = run_watched(&user, &[&["devices"], &choice[..]].concat());
        assert_eq!((devices.status, devices.err.as_str()), (0, ""), "{choice:?}");
        assert!(devices.out.contains("cpu:0") && devices.out.contains("CustomCPU:0"), "{}", devices.out);
    }
    let none = run_watched(&user, &["devices", "--only", "nobody"]);
    assert_eq!(none.status, 1);
    assert!(none.err.contains("expected a plugin called `nobody` that works"), "{}", none.err);
}

#[test]
fn the_plugin_without_which_nothing_fails_is_found() {
    let user = user_with_bad_plugin("INITIALIZE", "abort();");
    let doctor = run_watched(&user, &["doctor", "--bisect"]);
    assert_eq!((doctor.status, doctor.err.as_str()), (1, ""));
    let file = BAD_FILE;
    assert!(doctor.out.contains(&format!("{file} fails, and nothing fails without it")), "{}", doctor.out);
    let report = run_watched(&user, &["doctor", "--bisect", "--json"]).parse_json();
    assert_eq!((&report["finding"], report["culprits"].as_array().map(Vec::len)), (&"found".into(), Some(1)));
    let well = run_watched(&user, &["doctor", "--bisect", "--without", "Bad"]);
    assert_eq!(well.status, 0, "{}", well.out);
    assert!(well.out.starts_with("Nothing fails with 1 plugin"), "{}", well.out);
}

#[test]
fn a_variable_that_hides_all_devices_is_named() {
    let user = TestUser::new();
    let source = "#include \"minimal.h\"\n\
        static oarlock_error describe(oarlock_plugin *plugin) {\n\
            plugin->visible_devices_variable = (oarlock_str)OARLOCK_STR(\"ACME_VISIBLE_DEVICES\");\n\
            return minimal_describe(plugin, \"Acme\"); }\n\
        OARLOCK_PLUGIN(describe);\n";
    user.compile_plugin("libacme.so", source);
    let call = |arguments: &[&str]| {
        let mut command = user.oarlock_command(&[&["--plugin", "libacme.so"], arguments].concat());
        let output = command.env("ACME_VISIBLE_DEVICES", "abc").output().expect("the command starts");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let devices = call(&["devices"]);
    assert!(devices.contains("all of its devices are hidden: `ACME_VISIBLE_DEVICES`"), "{devices}");
    let op = call(&["op", "Relu", "f32:[1]", "-d", "acme"]);
    assert!(op.contains("whose devices are all hidden by the variable `ACME_VISIBLE_DEVICES`"), "{op}");
}

#[test]
fn a_device_that_cannot_be_described_is_named_with_the_cause() {
    let user = TestUser::new();
    let source = "#include \"minimal.h\"\n\
        static char text[2000];\n\
        static oarlock_error device_info(void *context, uint32_t device, oarlock_device_info *info) {\n\
            (void)context; (void)device; memset(text, 'x', sizeof text);\n\
            info->name.data = text; info->name.size = sizeof text; return 0; }\n\
        static oarlock_error describe(oarlock_plugin *plugin) {\n\
            minimal_core.device_info = device_info; return minimal_describe(plugin, \"Long\"); }\n\
        OARLOCK_PLUGIN(describe);\n";
    user.compile_plugin("liblong.so", source);
    let outcome = user.run_command(&["--plugin", "liblong.so", "op", "Relu", "f32:[1]", "-d", "long"]);
    assert_eq!(outcome.status, 1);
    let message = "error: expected a device that can be used, found `Long:0`, which is left out: ";
    assert!(outcome.err.contains(message), "{}", outcome.err);
}

/// A layer that runs `action` before each plugin is initialized.
fn layer_source(action: &str) -> String {
    format!(
        "#include <stdlib.h>\n#include \"oarlock/plugin.h\"\n\
         static oarlock_core_table own;\n\
         static oarlock_core_table *next;\n\
         static oarlock_error initialize(void *context) {{\n\
             {action}; return next->initialize ? next->initialize(context) : 0; }}\n\
         static oarlock_error wrap(void *context, oarlock_table_kind kind, oarlock_str plugin, void *next_context,\n\
             void *next_table, void **wrapped_context, void **wrapped_table) {{\n\
             (void)context; (void)plugin; *wrapped_context = next_context; *wrapped_table = next_table;\n\
             if (kind == OARLOCK_TABLE_KIND_CORE) {{\n\
                 next = next_table; own = *next; own.initialize = initialize; *wrapped_table = &own; }}\n\
             return 0; }}\n\
         static oarlock_error unwrap(void *context, oarlock_table_kind kind, void *wrapped_context, void *table) {{\n\
             (void)context; (void)kind; (void)wrapped_context; (void)table; return 0; }}\n\
         static oarlock_layer_table layer = {{OARLOCK_TABLE(oarlock_layer_table), .wrap = wrap, .unwrap = unwrap}};\n\
         static oarlock_error describe(oarlock_plugin *plugin) {{\n\
             plugin->name = oarlock_string(\"watcher\"); plugin->version = oarlock_string(\"1\");\n\
             plugin->vendor = oarlock_string(\"Acme\"); plugin->layer = &layer; return 0; }}\n\
         OARLOCK_PLUGIN(describe);\n"
    )
}

#[test]
fn a_layer_that_crashes_in_a_call_is_to_blame_and_not_the_plugin_below_it() {
    let user = TestUser::new();
    user.compile_template("libgood.so");
    user.compile_plugin("liblayer.so", &layer_source("abort()"));
    let call = ["devices", "--plugin", "libgood.so", "--plugin", "liblayer.so", "--layer", "watcher"];
    let devices = user.run_command(&call);
    assert_eq!(devices.status, 1, "{}", devices.err);
    assert!(devices.out.contains("cpu:0") && devices.out.contains("CustomCPU:0"), "{}", devices.out);
    let warning = "warning: `[HOME]/liblayer.so` is left out: expected a layer that passes calls on, found a crash with SIGABRT";
    assert!(devices.err.starts_with(warning), "{}", devices.err);
    assert!(devices.err.contains("expected a layer called `watcher`"), "{}", devices.err);
}

#[test]
fn a_plugin_that_crashes_without_its_layer_too_is_to_blame_and_the_layer_stays() {
    let user = user_with_bad_plugin("INITIALIZE", "abort();");
    user.compile_plugin("liblayer.so", &layer_source(""));
    let call = ["plugins", "--json", "--plugin", "liblayer.so", "--layer", "watcher"];
    let plugins = run_watched(&user, &call);
    assert!(plugins.err.contains(&format!("{BAD_FILE} is left out")), "{}", plugins.err);
    assert!(plugins.err.contains("; the layers around it are used again"), "{}", plugins.err);
    let report = plugins.parse_json();
    let rows = report["plugins"].as_array().expect("a list");
    let row =
        |file: &str| rows.iter().find(|row| row["file"].as_str().is_some_and(|path| path.ends_with(file)));
    assert_eq!(row("libbad.so").expect("a plugin")["reason"], "crashed-at-start");
    assert_eq!(row("liblayer.so").expect("a plugin")["outcome"], "loaded");
}
