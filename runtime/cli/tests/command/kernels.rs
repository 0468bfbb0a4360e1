//! `oarlock kernels`.

use crate::user::TestUser;
use serde_json::Value;

/// Installs a device `Odd` with one kernel, which a line of C code modifies.
fn install_odd_kernel(user: &TestUser, change: &str) {
    let source = format!(
        "#include \"minimal_kernel.h\"\n\
        static oarlock_error describe(oarlock_plugin *plugin) {{\n\
            {change}; return minimal_describe_kernel(plugin, \"Odd\"); }}\n\
        OARLOCK_PLUGIN(describe);\n"
    );
    user.compile_plugin("libodd.so", &source);
}

#[test]
fn a_kernel_is_one_line() {
    let user = TestUser::new();
    user.compile_template("libcustom_cpu.so");
    let outcome = user.run_command(&["--plugin", "libcustom_cpu.so", "kernels", "--device", "CustomCPU"]);
    insta::assert_snapshot!("kernels", outcome.to_snapshot());
}

#[test]
fn a_kernel_has_every_field_for_programs() {
    let user = TestUser::new();
    user.compile_template("libcustom_cpu.so");
    let kernels = user
        .run_command(&["--plugin", "libcustom_cpu.so", "kernels", "--device", "CustomCPU", "--json"])
        .parse_json();
    insta::assert_snapshot!("kernels_json", serde_json::to_string_pretty(&kernels).unwrap());
}

#[test]
fn filters_leave_those_that_are_all_of_this() {
    let user = TestUser::new();
    user.compile_template("libcustom_cpu.so");
    let count = |filters: &[&str]| {
        let arguments =
            [&["--plugin", "libcustom_cpu.so", "kernels", "--json", "--op", "Add"], filters].concat();
        let outcome = user.run_command(&arguments);
        assert_eq!(outcome.status, 0, "{}", outcome.err);
        let kernels = outcome.parse_json();
        let kernels = kernels.as_array().unwrap();
        assert!(kernels.iter().all(|kernel| kernel["op"] == "Add"), "{kernels:?}");
        kernels.len()
    };
    let all = count(&[]);
    assert_eq!(count(&["--device", "cpu"]) + count(&["--device", "CustomCPU"]), all);
    assert_eq!(count(&["--plugin-name", "custom-cpu"]), 1);
    assert_eq!(count(&["--device", "CustomCPU", "--dtype", "float16"]), 1);
    assert_eq!(count(&["--device", "CustomCPU", "--dtype", "bool"]), 0);
    // For complex numbers, the op belongs to another domain.
    assert_eq!(count(&["--domain", "ai.onnx"]) + count(&["--domain", "oarlock"]), all);
    assert_eq!(count(&["--domain", "ai.onnx.ml"]), 0);
}

#[test]
fn a_kernel_that_makes_no_sense_is_listed_with_the_reason() {
    let user = TestUser::new();
    install_odd_kernel(&user, "minimal_kernel.op = oarlock_string(\"Identitty\")");
    let outcome = user.run_command(&["--plugin", "libodd.so", "kernels", "--plugin-name", "Odd"]);
    insta::assert_snapshot!("kernel_of_an_unknown_op", outcome.to_snapshot());
    let outcome = user.run_command(&["--plugin", "libodd.so", "kernels", "--plugin-name", "Odd", "--json"]);
    let problem = &outcome.parse_json()[0]["problem"];
    assert!(problem.as_str().is_some_and(|problem| problem.contains("`Identity`")), "{problem}");
    assert_eq!(outcome.status, 1);
}

#[test]
fn kernels_that_make_sense_do_not_suffer_from_one_that_does_not() {
    let user = TestUser::new();
    install_odd_kernel(&user, "minimal_kernel.version_min = 1000");
    let outcome = user.run_command(&["--plugin", "libodd.so", "kernels", "--json"]);
    let kernels = outcome.parse_json();
    let (wrong, right): (Vec<&Value>, Vec<&Value>) =
        kernels.as_array().unwrap().iter().partition(|kernel| !kernel["problem"].is_null());
    assert_eq!((wrong.len(), &wrong[0]["plugin"]), (1, &Value::from("Odd")));
    assert!(right.len() > 50 && right.iter().all(|kernel| kernel["plugin"] == "oarlock-cpu"));
}

#[test]
fn unknown_ops_are_errors_and_empty_filter_results_are_warnings() {
    let user = TestUser::new();
    let unknown = user.run_command(&["kernels", "--op", "Ad"]);
    assert_eq!((unknown.status, unknown.out.as_str()), (1, ""));
    assert!(unknown.err.contains("did you mean `Add`"), "{}", unknown.err);
    let empty = user.run_command(&["kernels", "--op", "Add", "--domain", "ai.onnx.ml"]);
    assert_eq!(
        (empty.status, empty.out.as_str(), empty.err.as_str()),
        (0, "", "warning: no kernel is like that\n")
    );
    assert_eq!(user.run_command(&["kernels", "--dtype", "f31"]).status, 2);
}

#[test]
fn a_device_type_or_a_domain_that_nobody_has_is_an_error_with_the_nearest_name() {
    let user = TestUser::new();
    install_odd_kernel(&user, "minimal_kernel.domain = oarlock_string(\"acme\")");
    let run = |filter: &[&str]| user.run_command(&[&["--plugin", "libodd.so", "kernels"], filter].concat());
    let cases = [
        (["--device", "cqu"], "(`Odd`, `cpu`), found `cqu`; did you mean `cpu`"),
        (["--device", "Ood"], "(`Odd`, `cpu`), found `Ood`; did you mean `Odd`"),
        (["--domain", "acne"], "found `acne`; did you mean `acme`"),
    ];
    for (filter, expected) in cases {
        let outcome = run(&filter);
        assert_eq!((outcome.status, outcome.out.as_str()), (1, ""), "{filter:?}");
        assert!(outcome.err.contains(expected), "{}", outcome.err);
    }
    assert!(run(&["--domain", "acme", "--json"]).out.contains("\"Odd\""));
}

#[test]
fn versions_that_no_op_has_are_told_without_an_end_that_nobody_gave() {
    let user = TestUser::new();
    install_odd_kernel(&user, "minimal_kernel.version_min = 99");
    let outcome = user.run_command(&["--plugin", "libodd.so", "kernels", "--plugin-name", "Odd"]);
    assert!(outcome.out.contains("expected a version of the op from 99 on, found "), "{}", outcome.out);
}
