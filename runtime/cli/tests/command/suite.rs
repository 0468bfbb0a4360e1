//! `oarlock plugin check` with the conformance suite on plugins of kernels alone, on layers, and on plugins that spoil the process.

use std::fs;

use crate::user::{TestOutcome, TestUser};

/// A plugin of one kernel for the processor: `Neg`, which computes `formula` of each `x` and then does `action`.
fn neg_plugin(formula: &str, action: &str) -> String {
    format!(
        "#define _GNU_SOURCE\n\
         #include <locale.h>\n#include <signal.h>\n#include <sys/resource.h>\n#include <unistd.h>\n#include <sys/stat.h>\n\
         #include \"minimal_kernel.h\"\n\
         static oarlock_error negate(void *context, void *state, const oarlock_call *call) {{\n\
             const float *input = oarlock_data(call->inputs[0]); float *output = oarlock_data(call->outputs[0]);\n\
             uint64_t i, count = call->inputs[0]->size_in_bytes / 4; (void)context; (void)state;\n\
             for (i = 0; i < count; ++i) {{ float x = input[i]; output[i] = {formula}; }}\n\
             {action}\n\
             return 0; }}\n\
         static oarlock_error describe(oarlock_plugin *plugin) {{\n\
             minimal_kernel.op = oarlock_string(\"Neg\");\n\
             minimal_kernel.device_type = oarlock_string(\"cpu\");\n\
             minimal_kernel.run = negate;\n\
             plugin->name = oarlock_string(\"negation\");\n\
             plugin->version = oarlock_string(\"1.0.0\");\n\
             plugin->kernels = &minimal_kernels;\n\
             return 0; }}\n\
         OARLOCK_PLUGIN(describe);\n"
    )
}

fn check_plugin(user: &TestUser, source: &str, arguments: &[&str]) -> TestOutcome {
    user.compile_plugin("libneg.so", source);
    user.run_command(&[&["plugin", "check", "libneg.so"], arguments].concat())
}

#[test]
fn kernels_without_a_device_are_compared_with_a_reference() {
    let user = TestUser::new();
    let right = check_plugin(&user, &neg_plugin("-x", ""), &[]);
    assert_eq!(right.status, 0, "{}", right.out);
    assert!(right.out.contains("\npass  conformance    suite 1.1 of kernels: "), "{}", right.out);
    assert!(right.out.contains("numbers              1 right\n"), "{}", right.out);
    // Right but for one value, and right but for one shape.
    for formula in ["x == 1.5f ? 1.5f : -x", "count == 1031 && i == 1030 ? 0 : -x", "x != x ? 0 : -x"] {
        let wrong = check_plugin(&user, &neg_plugin(formula, ""), &[]);
        assert_eq!(wrong.status, 1, "{formula}: {}", wrong.out);
        assert!(wrong.out.contains("`Neg` of f32 on device 0: inputs ["), "{}", wrong.out);
    }
}

#[test]
fn a_kernel_that_ends_the_process_fails_whatever_the_exit_code_is() {
    let user = TestUser::new();
    for action in ["exit(0);", "_exit(0);", "exit(3);"] {
        let outcome = check_plugin(&user, &neg_plugin("-x", action), &[]);
        assert_eq!(outcome.status, 1, "{action}: {}", outcome.out);
        let row = outcome.out.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = "the plugin ended the process during \"every kernel computes what its op says: `Neg` of f32 on device 0\"";
        assert!(row.contains(expected) && row.contains("R-3"), "{action}: {}", outcome.out);
    }
}

#[test]
fn what_a_kernel_does_to_the_process_is_noticed() {
    let user = TestUser::new();
    let cases = [
        ("umask(0);", "the umask"),
        ("if (chdir(\"/\")) return 1;", "the working directory"),
        ("signal(SIGUSR1, SIG_IGN);", "the signals that are ignored"),
        ("alarm(1000);", "the real timer"),
        ("setenv(\"NEGATION\", \"1\", 1);", "the variable `NEGATION`"),
        ("setlocale(LC_ALL, \"C.UTF-8\");", "the locale"),
        ("close(0);", "standard input"),
        ("struct rlimit none = {64, 64}; setrlimit(RLIMIT_NOFILE, &none);", "the limit `Max open files"),
    ];
    for (action, fact) in cases {
        let outcome = check_plugin(&user, &neg_plugin("-x", action), &["--profile", "kernels"]);
        assert_eq!(outcome.status, 1, "{action}: {}", outcome.out);
        let text = outcome.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("R-3 the process is as it was") && text.contains(fact),
            "{action}: {}",
            outcome.out
        );
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_plugin_that_flushes_small_floats_is_noticed_and_does_not_change_what_others_compute() {
    let user = TestUser::new();
    let flush = "#include <xmmintrin.h>\n\
                 __attribute__((constructor)) static void flush(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }\n";
    let loading = check_plugin(&user, &format!("{}{flush}", neg_plugin("-x", "")), &[]);
    assert_eq!(loading.status, 1, "{}", loading.out);
    assert!(loading.out.contains("-ffast-math"), "{}", loading.out);
    let sum = ["op", "Add", "f32:1e-42", "f32:1e-42", "-d", "cpu", "--plugin", "libneg.so"];
    let sum = user.run_command(&sum);
    assert!(sum.out.contains("e-42"), "{}{}", sum.out, sum.err);
    let running =
        format!("#include <xmmintrin.h>\n{}", neg_plugin("-x", "_mm_setcsr(_mm_getcsr() | 0x8040);"));
    let running = check_plugin(&user, &running, &[]);
    assert!(
        running.status == 1 && running.out.contains("expected `run` to leave the mode"),
        "{}",
        running.out
    );
}

#[test]
fn a_manifest_may_expect_a_failure_and_a_pass_is_then_none() {
    let user = TestUser::new();
    let write_manifest = |more: &str| {
        let manifest = user.run_command(&["plugin", "manifest", "libneg.so"]).out;
        user.write_file("libneg.oarlock.toml", format!("{manifest}\n{more}").as_bytes());
    };
    let expected = "[[expected_failure]]\nop = \"Neg\"\ndtype = \"f32\"\nreason = \"rounds to halves\"\n";
    user.compile_plugin("libneg.so", &neg_plugin("-x + 0.25f", ""));
    write_manifest(expected);
    let wrong = user.run_command(&["plugin", "check", "libneg.so"]);
    assert!(wrong.status == 0 && wrong.out.contains("1 wrong as expected"), "{}", wrong.out);
    user.compile_plugin("libneg.so", &neg_plugin("-x", ""));
    write_manifest(expected);
    let right = user.run_command(&["plugin", "check", "libneg.so"]);
    assert!(right.status == 1 && right.out.contains("remove the exception"), "{}", right.out);
    write_manifest("[[unsupported]]\nop = \"Neg\"\nreason = \"needs firmware 7\"\n");
    let left_out = user.run_command(&["plugin", "check", "libneg.so"]);
    assert!(left_out.out.contains("1 refused"), "{}", left_out.out);
}

#[test]
fn a_run_is_recorded_with_the_hash_of_its_report_and_shown() {
    let user = TestUser::new();
    user.compile_plugin("libneg.so", &neg_plugin("-x", ""));
    let early = user.run_command(&["plugin", "check", "libneg.so", "--record"]);
    assert!(early.status != 0 && early.err.contains("expected a manifest"), "{}{}", early.out, early.err);
    user.run_command(&["plugin", "manifest", "libneg.so", "--write"]);
    let files = ["--report", "report.json", "--junit", "results.xml", "--html", "report.html"];
    let check = user.run_command(&[&["plugin", "check", "libneg.so", "--record"][..], &files].concat());
    assert_eq!(check.status, 0, "{}{}", check.out, check.err);
    let read = |name: &str| fs::read(user.home.path().join(name)).expect("a file that the command wrote");
    let digest = oarlock_host::Digest::hash_bytes(&read("report.json")).to_string();
    let manifest = String::from_utf8(read("libneg.oarlock.toml")).expect("UTF-8");
    assert!(manifest.contains(&digest) && manifest.contains("passed = [\"kernels\"]"), "{manifest}");
    let listed = user.run_command(&["plugins", "--plugin", "libneg.so"]).out;
    let start = digest.trim_start_matches("sha256:").get(..8).expect("a hash");
    assert!(listed.contains(&format!("report {start}…")), "{listed}");
    let junit = String::from_utf8(read("results.xml")).expect("UTF-8");
    assert!(junit.contains("failures=\"0\"") && junit.contains("name=\"Neg 1- f32\""), "{junit}");
    let page = String::from_utf8(read("report.html")).expect("UTF-8");
    assert!(page.contains("<th scope=\"row\">Neg</th><td class=\"passed\""), "{page}");
}

/// A layer whose `wrap` is this code.
fn layer_plugin(wrap: &str) -> String {
    format!(
        "#include \"minimal.h\"\n\
         static oarlock_error wrap(void *context, oarlock_table_kind kind, oarlock_str plugin, void *next_context, void *next_table,\n\
             void **wrapped_context, void **wrapped_table) {{\n\
             (void)context; (void)kind; (void)plugin; (void)next_context; (void)next_table; {wrap} return 0; }}\n\
         static oarlock_error unwrap(void *context, oarlock_table_kind kind, void *wrapped_context, void *wrapped_table) {{\n\
             (void)context; (void)kind; (void)wrapped_context; (void)wrapped_table; return 0; }}\n\
         static oarlock_layer_table layer = {{ OARLOCK_TABLE(oarlock_layer_table), .wrap = wrap, .unwrap = unwrap }};\n\
         static oarlock_error describe(oarlock_plugin *plugin) {{\n\
             plugin->name = oarlock_string(\"thin\");\n\
             plugin->version = oarlock_string(\"1.0.0\");\n\
             plugin->layer = &layer;\n\
             return 0; }}\n\
         OARLOCK_PLUGIN(describe);\n"
    )
}

#[test]
fn a_layer_is_checked_around_the_processor() {
    let user = TestUser::new();
    let passes_on = "*wrapped_context = next_context; *wrapped_table = next_table;";
    let thin = check_plugin(&user, &layer_plugin(passes_on), &["--profile", "layer"]);
    assert_eq!(thin.status, 0, "{}", thin.out);
    assert!(thin.out.contains("\npass  conformance    suite 1.1 of layer: "), "{}", thin.out);

    let null = check_plugin(
        &user,
        &layer_plugin("*wrapped_context = 0; *wrapped_table = 0;"),
        &["--profile", "layer"],
    );
    assert!(null.status == 1 && null.out.contains("a null pointer"), "{}", null.out);

    let fills = "static oarlock_core_table copy; *wrapped_context = next_context; *wrapped_table = next_table;\n\
                 if (kind == OARLOCK_TABLE_KIND_CORE) { memcpy(&copy, next_table, sizeof copy);\n\
                     copy.device_count = minimal_count; *wrapped_table = &copy; }";
    let fills = check_plugin(&user, &layer_plugin(fills), &["--profile", "layer"]);
    assert!(fills.status == 1 && fills.out.contains("`device_count`"), "{}", fills.out);
}
