//! `oarlock doctor`.

use std::process::Command;

use crate::user::{TestOutcome, TestUser};
use serde_json::{Value, json};

/// A plugin with two devices, `Npu:0` and `Npu:1`, and an `f32` kernel for `Add` that runs the C code `then` afterwards.
fn npu_plugin(then: &str) -> String {
    format!(
        "#define MINIMAL_DEVICES 2\n\
         #include <threads.h>\n\
         #include <time.h>\n\
         #include \"minimal_kernel.h\"\n\
         static oarlock_error add(void *context, void *state, const oarlock_call *call) {{\n\
             const float *a = oarlock_data(call->inputs[0]), *b = oarlock_data(call->inputs[1]);\n\
             float *sum = oarlock_data(call->outputs[0]);\n\
             (void)context; (void)state;\n\
             for (uint64_t i = 0; i < call->outputs[0]->size_in_bytes / sizeof *sum; ++i) {{ sum[i] = a[i] + b[i]; }}\n\
             {then}\n\
             return 0;\n\
         }}\n\
         static const oarlock_operand *const both[] = {{&minimal_operand, &minimal_operand}};\n\
         static oarlock_error describe(oarlock_plugin *plugin) {{\n\
             minimal_kernel.op = oarlock_string(\"Add\");\n\
             minimal_kernel.version_min = 7;\n\
             minimal_kernel.inputs = both;\n\
             minimal_kernel.inputs_count = 2;\n\
             minimal_kernel.run = add;\n\
             return minimal_describe_kernel(plugin, \"Npu\"); }}\n\
         OARLOCK_PLUGIN(describe);\n"
    )
}

/// Runs the doctor on that plugin; returns text and JSON.
fn run_doctor(then: &str) -> (TestOutcome, Value) {
    let user = TestUser::new();
    user.compile_plugin("libnpu.so", &npu_plugin(then));
    let run =
        |arguments: &[&str]| user.run_command(&[&["--plugin", "libnpu.so", "doctor"], arguments].concat());
    (run(&[]), run(&["--json"]).parse_json())
}

#[test]
fn a_machine_with_the_cpu_alone_is_well() {
    let outcome = TestUser::new().run_command(&["doctor"]);
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""), "{}", outcome.out);
    let verdict =
        "\n\nOarlock works well on 1 cpu device\nAll is well: Oarlock is installed, and 1 device works\n";
    assert!(outcome.out.ends_with(verdict), "{}", outcome.out);
}

#[test]
fn threads_follow_the_flag_and_the_processors_that_the_process_may_use() {
    let user = TestUser::new();
    let threads_of = |command: &mut Command| {
        let output = command.output().expect("the command starts");
        let report: Value = serde_json::from_slice(&output.stdout).expect("the output is JSON");
        report["environment"]["cpu_threads"].clone()
    };
    let arguments = ["doctor", "--json"];
    let set = threads_of(user.oarlock_command(&arguments).env("OARLOCK_THREADS", "3"));
    assert_eq!(set, json!({"count": 3, "is_set": true}));
    // A processor that this process may use.
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let processors = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list");
    let first = processors.trim().split([',', '-']).next().expect("a processor");
    let mut alone = Command::new("taskset");
    let command = user.oarlock_command(&arguments);
    alone.args(["-c", first]).arg(command.get_program()).args(command.get_args());
    alone.env_clear().env("HOME", user.home.path()).env("PATH", "/usr/bin:/bin");
    assert_eq!(threads_of(&mut alone), json!({"count": 1, "is_set": false}));
}

#[test]
fn every_device_is_tried_with_every_step_and_with_the_ops_it_has() {
    let user = TestUser::new();
    user.compile_template("libcustom_cpu.so");
    let report = user.run_command(&["--plugin", "libcustom_cpu.so", "doctor", "--json"]).parse_json();
    assert_eq!(report["well"], true);
    let devices = report["devices"].as_array().unwrap();
    let names: Vec<&str> = devices.iter().filter_map(|device| device["device"].as_str()).collect();
    assert_eq!(names, ["cpu:0", "CustomCPU:0"]);
    let ops = ["MatMul, Add, Relu, ReduceSum", "Add"];
    for (device, ops) in devices.iter().zip(ops) {
        let steps: Vec<&Value> =
            device["steps"].as_array().unwrap().iter().map(|step| &step["step"]).collect();
        let expected =
            ["description", "allocation", "copies", "fill", "stream and event", "computation", "giving back"];
        assert_eq!(steps, expected);
        let computed = format!("{ops} of f32 (right within 0.001 %) and i32 (exactly right)");
        assert_eq!(device["steps"][5]["found"], computed);
    }
}

#[test]
fn several_devices_of_a_type_are_tried_alone_and_at_the_same_time() {
    let (outcome, report) = run_doctor("");
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""), "{}", outcome.out);
    assert!(
        outcome.out.contains("\n  works  2 Npu devices at the same time  Npu:0, Npu:1\n"),
        "{}",
        outcome.out
    );
    let verdict = "Oarlock works well on 1 cpu device\nOarlock works well on 1 Npu device\n\
                   Oarlock works well on 2 Npu devices\nAll is well: Oarlock is installed, and 3 devices work\n";
    assert!(outcome.out.ends_with(verdict), "{}", outcome.out);
    let works_well = |device_type: &str, count: u32| json!({ "device_type": device_type, "count": count });
    assert_eq!(
        report["works_well_on"],
        json!([works_well("cpu", 1), works_well("Npu", 1), works_well("Npu", 2)])
    );
    let computed =
        |device| json!({ "device": device, "ok": true, "found": "Add of f32 (right within 0.001 %)" });
    let together = json!({
        "device_type": "Npu", "works": true, "devices": [computed("Npu:0"), computed("Npu:1")]
    });
    assert_eq!(report["together"], json!([together]));
}

#[test]
fn a_wrong_number_is_found_and_blamed_on_the_plugin_of_the_kernel() {
    let (outcome, report) = run_doctor("if (call->device == 1) { sum[30] += 1; }");
    assert_eq!(outcome.status, 1);
    let step = &report["devices"][2]["steps"][5];
    let found = step["found"].as_str().unwrap();
    assert!(found.starts_with("`Add` of f32: expected ") && found.contains(" at [1, 7], found "), "{found}");
    assert_eq!(step["remedy"], "do not rely on this device; update `Npu`, or tell its vendor");
    let line = format!("\n         computation: {found}\n         hint: do not rely on this device");
    assert!(outcome.out.contains(&line), "{}", outcome.out);
    let verdict = "\nOarlock works well on 1 Npu device\nSomething is wrong: 1 of 3 devices fails\n";
    assert!(outcome.out.ends_with(verdict), "{}", outcome.out);
}

#[test]
fn devices_that_disturb_each_other_are_found_at_the_same_time_only() {
    // After its first call alone, each device waits until the other one runs too.
    let (outcome, report) = run_doctor(
        "static int calls[2], present;\n\
         if (calls[call->device]++ > 0) {\n\
             __atomic_fetch_add(&present, 1, __ATOMIC_SEQ_CST);\n\
             for (int i = 0; i < 5000 && __atomic_load_n(&present, __ATOMIC_SEQ_CST) < 2; ++i) {\n\
                 thrd_sleep(&(struct timespec){.tv_nsec = 1000000}, NULL);\n\
             }\n\
             if (__atomic_load_n(&present, __ATOMIC_SEQ_CST) > 1) { sum[0] += 1; }\n\
         }",
    );
    assert_eq!(outcome.status, 1);
    assert!(report["devices"].as_array().unwrap().iter().all(|device| device["works"] == true), "{report}");
    assert_eq!(report["together"][0]["works"], false);
    assert!(
        outcome.out.contains("\n  fails  2 Npu devices at the same time  Npu:0, Npu:1\n"),
        "{}",
        outcome.out
    );
    let verdict =
        "\nOarlock works well on 1 Npu device\nSomething is wrong: 2 Npu devices fail at the same time\n";
    assert!(outcome.out.ends_with(verdict), "{}", outcome.out);
}

#[test]
fn what_a_plugin_says_to_do_is_the_hint() {
    let (outcome, _) = run_doctor(
        "return OARLOCK_FAIL(OARLOCK_CODE_UNAVAILABLE, \"expected the compiler, found none; install `npu-cc`\");",
    );
    assert_eq!(outcome.status, 1);
    let lines = "computation: `Add` on `Npu:0`: `Npu`: expected the compiler, found none\n         hint: install `npu-cc`\n";
    assert!(outcome.out.contains(lines), "{}", outcome.out);
    assert!(outcome.out.ends_with("device\nSomething is wrong: 2 of 3 devices fail\n"), "{}", outcome.out);
}

#[test]
fn a_device_without_kernels_is_tried_with_copies() {
    let user = TestUser::new();
    let source = "#include \"minimal.h\"\n\
        static oarlock_error describe(oarlock_plugin *plugin) { return minimal_describe(plugin, \"Store\"); }\n\
        OARLOCK_PLUGIN(describe);\n";
    user.compile_plugin("libstore.so", source);
    let outcome = user.run_command(&["--plugin", "libstore.so", "doctor"]);
    assert_eq!(outcome.status, 0, "{}", outcome.out);
    let line = "\n         computation: only copies, since the device has no kernel for `MatMul`, `Add`, `Relu` or `ReduceSum` \
                that takes f32, i32, i64, f64 or f16\n";
    assert!(outcome.out.contains(line), "{}", outcome.out);
}

#[test]
fn a_plugin_that_is_not_used_makes_it_unwell() {
    let user = TestUser::new();
    user.write_file("libbad.so", b"");
    let outcome = user.run_command(&["--plugin", "libbad.so", "doctor"]);
    assert_eq!(outcome.status, 1);
    let lines = "\nPlugins not used\n  empty\n    `[HOME]/libbad.so`: expected";
    assert!(outcome.out.contains(lines) && outcome.out.contains("\n    hint: "), "{}", outcome.out);
    assert!(outcome.out.ends_with("\nSomething is wrong: 1 plugin is not used\n"), "{}", outcome.out);
}

#[test]
fn a_plugin_that_was_disabled_is_nothing_wrong() {
    let user = TestUser::new();
    user.write_file("libbad.so", b"");
    user.write_file("config.toml", b"[plugins]\ndisable = ['libbad.so']");
    let outcome = user.run_command(&["--config", "config.toml", "--plugin", "libbad.so", "doctor"]);
    assert_eq!(outcome.status, 0, "{}", outcome.out);
    assert!(outcome.out.contains("\n  disabled\n"), "{}", outcome.out);
}

#[test]
fn a_machine_without_devices_is_not_well() {
    let user = TestUser::new();
    user.write_file("config.toml", b"[plugins]\ndisable = ['oarlock-cpu']");
    let outcome = user.run_command(&["--config", "config.toml", "doctor"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.out.contains("\nDevices\n  none\n"), "{}", outcome.out);
    assert!(outcome.out.ends_with("\n\nSomething is wrong: there are no devices\n"), "{}", outcome.out);
}

#[test]
fn variables_are_shown_and_unknown_ones_pointed_out() {
    let user = TestUser::new();
    let mut command = user.oarlock_command(&["doctor"]);
    command.env("OARLOCK_PLUGIN_PTAH", "/x").env("OARLOCK_THREADS", "1").env("FLAGS_check_nan_inf", "1");
    command.env("ACME_VISIBLE_DEVICES", "none").env("FLAGS_unheard", "1").env("FLAGS_use_ngraph", "1");
    let output = command.output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let unknown = [
        "OARLOCK_PLUGIN_PTAH, which means nothing to Oarlock; did you mean `OARLOCK_PLUGIN_PATH`?\n",
        "FLAGS_unheard, which means nothing to Oarlock\n",
        "FLAGS_use_ngraph, which means nothing to Oarlock; the CPU always uses its best instructions, without nGraph\n",
    ];
    for message in unknown {
        assert!(out.contains(message), "{message}: {out}");
    }
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "",
        "what the page says is not told beside it again"
    );
    assert!(out.contains("OARLOCK_THREADS=1\n") && out.contains("FLAGS_check_nan_inf=1\n"), "{out}");
    assert!(out.contains("ACME_VISIBLE_DEVICES=none\n"), "{out}");
}

#[test]
fn a_chosen_device_that_is_not_there_is_told_and_the_others_are_tried() {
    let output = TestUser::new().oarlock_command(&["doctor"]).env("OARLOCK_DEVICE", "npu").output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        out.contains(
            "\nNotes\n  the flag `device`: expected an available device (`cpu:0`), found `npu`, which is planned: there is no \
             plugin for it yet\n"
        ),
        "{out}"
    );
    assert!(out.contains("Oarlock works well on 1 cpu device\n"), "{out}");
}

#[test]
fn a_plugin_that_ends_the_process_is_named() {
    let user = TestUser::new();
    let source = "#include \"minimal.h\"\n\
        static oarlock_error end(void *context, uint32_t device, void *target, uint64_t size, oarlock_memory source,\n\
            uint64_t from) { (void)context; (void)device; (void)target; (void)size; (void)source; (void)from; abort(); }\n\
        static oarlock_error describe(oarlock_plugin *plugin) {\n\
            minimal_core.memory_copy_d2h = end; return minimal_describe(plugin, \"Fatal\"); }\n\
        OARLOCK_PLUGIN(describe);\n";
    user.compile_plugin("libfatal.so", source);
    let outcome = user.run_command(&["--plugin", "libfatal.so", "doctor"]);
    assert_eq!(outcome.status, 1, "{}", outcome.to_snapshot());
    assert!(outcome.out.contains("works  cpu:0"), "{}", outcome.out);
    let ended =
        "the process was ended while `Fatal:0` of `Fatal` (`[HOME]/libfatal.so`) was tried: signal: 6";
    assert!(outcome.err.contains(ended), "{}", outcome.err);
}
