//! `oarlock op`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::user::TestUser;

/// A file in NumPy's `.npy` format.
fn npy_file(descr: &str, is_fortran: bool, shape: &str, elements: &[u8]) -> Vec<u8> {
    let order = if is_fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    header += &" ".repeat((10 + header.len() + 1).next_multiple_of(64) - 11 - header.len());
    header.push('\n');
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), elements].concat()
}

fn float_bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn an_op_runs_on_files_and_writes_one() {
    let user = TestUser::new();
    user.write_file(
        "a.npy",
        &npy_file("<f4", false, "(2, 3)", &float_bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
    );
    user.write_file("b.npy", &npy_file("<f4", false, "(3,)", &float_bytes(&[10.0, 20.0, 30.0])));
    let outcome = user.run_command(&["op", "Add", "a.npy", "b.npy", "-d", "cpu", "-o", "c.npy"]);
    assert_eq!(
        outcome.to_snapshot(),
        "status: 0\n----- out -----\noutput 0 (C): f32 [2, 3]\nwritten to `c.npy`\n----- err -----\n"
    );
    let expected = npy_file("<f4", false, "(2, 3)", &float_bytes(&[11.0, 22.0, 33.0, 14.0, 25.0, 36.0]));
    assert_eq!(fs::read(user.home.path().join("c.npy")).unwrap(), expected);
    let names = fs::read_dir(user.home.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.count(), 3, "a file was left behind");
}

#[test]
fn an_array_in_the_order_of_fortran_has_its_shape() {
    let user = TestUser::new();
    user.write_file("a.npy", &npy_file("<f4", true, "(2, 3)", &float_bytes(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0])));
    let outcome = user.run_command(&["op", "Add", "a.npy", "f32:0"]);
    assert_eq!(
        outcome.out, "output 0 (C): f32 [2, 3]\n[[1.0, 2.0, 3.0],\n [4.0, 5.0, 6.0]]\n",
        "{}",
        outcome.err
    );
}

#[test]
fn an_output_is_there_for_programs() {
    let outcome =
        TestUser::new().run_command(&["op", "Div", "f32:[1,0,-3]", "f32:[2,0,0]", "--explain", "--json"]);
    let report = outcome.parse_json();
    assert_eq!(report["device"], "cpu:0");
    assert_eq!(report["outputs"][0]["elements"], serde_json::json!([0.5, "nan", "-inf"]));
    let considered = report["explanation"].as_array().unwrap();
    let chosen: Vec<_> = considered.iter().filter(|row| row["chosen"] == true).collect();
    assert!(chosen.len() == 1 && considered.iter().all(|row| row["chosen"].is_boolean()), "{considered:?}");
    assert!(
        considered.iter().any(|row| row["refusal"].is_null() && row["plugin"] == "oarlock-cpu"),
        "{considered:?}"
    );
}

#[test]
fn attribute_arguments_parse_as_the_schema_declares() {
    let user = TestUser::new();
    let shown = |arguments: &[&str]| {
        let outcome = user.run_command(&[&["op"], arguments].concat());
        assert_eq!(outcome.status, 0, "{}", outcome.err);
        outcome.out.split_once('\n').unwrap().1.to_owned()
    };
    assert_eq!(
        shown(&["Concat", "i64:[[1],[2]]", "i64:[[3],[4]]", "--attr", "axis=-1"]),
        "[[1, 3],\n [2, 4]]\n"
    );
    assert_eq!(shown(&["Transpose", "i64:[[1,2]]", "--attr", "perm=1,0"]), "[[1],\n [2]]\n");
    assert_eq!(shown(&["LeakyRelu", "f32:-1", "--attr", "alpha=0.5"]), "-0.5\n");
    assert_eq!(shown(&["Cast", "f32:[1.5,-2]", "--attr", "to=i8"]), "[ 1, -2]\n");
    assert_eq!(shown(&["ConstantOfShape", "i64:[2]", "--attr", "value=i32:[7]"]), "[7, 7]\n");
}

#[test]
fn an_optional_input_is_left_out() {
    let outcome = TestUser::new().run_command(&["op", "Clip", "f32:[-1,3,9]", "-", "f32:5"]);
    assert_eq!(outcome.out, "output 0 (output): f32 [3]\n[-1.0,  3.0,  5.0]\n", "{}", outcome.err);
}

#[test]
fn of_several_outputs_some_are_printed_and_some_written() {
    let user = TestUser::new();
    let outcome = user.run_command(&[
        "op",
        "TopK",
        "f32:[1,3,2]",
        "i64:[2]",
        "--outputs",
        "2",
        "-o",
        "-",
        "-o",
        "at.npy",
    ]);
    let expected =
        "output 0 (Values): f32 [2]\n[3.0, 2.0]\n\noutput 1 (Indices): i64 [2]\nwritten to `at.npy`\n";
    assert_eq!(outcome.out, expected, "{}", outcome.err);
    let elements = [1i64, 2].map(i64::to_le_bytes).concat();
    assert_eq!(fs::read(user.home.path().join("at.npy")).unwrap(), npy_file("<i8", false, "(2,)", &elements));
}

#[test]
fn an_older_version_of_an_op_can_be_called() {
    let outcome =
        TestUser::new().run_command(&["op", "Squeeze", "i64:[[1]]", "--opset", "11", "--attr", "axes=0"]);
    assert_eq!(outcome.out, "output 0 (squeezed): i64 [1]\n[1]\n", "{}", outcome.err);
}

#[test]
fn a_call_is_explained_without_running_it() {
    let user = TestUser::new();
    let outcome = user.run_command(&["op", "Relu", "f32:1", "--explain", "--dry-run"]);
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""));
    assert!(
        outcome.out.starts_with("`Relu` (version 14) on `cpu:0` runs in `oarlock-cpu`\n"),
        "{}",
        outcome.out
    );
    assert!(!outcome.out.contains("output"), "{}", outcome.out);
}

#[test]
fn a_device_without_a_kernel_says_so_unless_the_cpu_may_do_it() {
    let user = TestUser::new();
    user.compile_template("libcustom_cpu.so");
    let run =
        |arguments: &[&str]| user.run_command(&[&["--plugin", "libcustom_cpu.so", "op"], arguments].concat());
    let own = run(&["Add", "f32:[1,2]", "f32:1", "-d", "CustomCPU"]);
    assert_eq!(own.out, "output 0 (C): f32 [2]\n[2.0, 3.0]\n", "{}", own.err);
    let call = ["Mul", "f32:[1,2]", "f32:2", "-d", "CustomCPU"];
    let refused = run(&call);
    assert_eq!((refused.status, refused.out.as_str()), (1, ""));
    assert!(refused.err.contains("expected a kernel for this device"), "{}", refused.err);
    let explained = run(&[&call[..], &["--explain", "--dry-run"]].concat());
    assert_eq!(explained.status, 1);
    assert!(explained.out.contains("runs in no kernel"), "{}", explained.out);
    let done = run(&[&call[..], &["--set", "kernel_fallback=cpu"]].concat());
    assert_eq!(done.out, "output 0 (C): f32 [2]\n[2.0, 4.0]\n", "{}", done.err);
}

#[test]
fn what_is_wrong_with_a_call_is_an_error_that_says_it() {
    let user = TestUser::new();
    user.write_file("text.npy", b"no array");
    user.write_file("object.npy", &npy_file("|O", false, "(1,)", &[0; 8]));
    user.write_file("cut.npy", &npy_file("<f8", false, "(2,)", &[0; 15]));
    user.write_file("huge.npy", &npy_file("<f8", false, "(4611686018427387904, 4)", &[0; 8]));
    user.write_file("truth.npy", &npy_file("|b1", false, "(3,)", &[1, 0, 7]));
    let cases: [&[&str]; 26] = [
        &["Ad", "f32:1", "f32:1"],
        &["Add", "f32:1"],
        &["Add", "f32:1", "i32:1"],
        &["Add", "f32:[1,2]", "f32:[1,2,3]"],
        &["Add", "nowhere.npy", "f32:1"],
        &["Add", "text.npy", "f32:1"],
        &["Add", "object.npy", "f32:1"],
        &["Add", "cut.npy", "f32:1"],
        &["Add", "huge.npy", "f32:1"],
        &["Not", "truth.npy"],
        &["Add", "f32:[1,[2]]", "f32:1"],
        &["Add", "f32:1", "f32:1", "-d", "tpu"],
        &["Add", "f32:1", "f32:1", "-d", "npu:1"],
        &["Add", "f32:1", "f32:1", "-d", "hip"],
        &["Add", "f32:1", "f32:1", "-d", "cuda"],
        &["Add", "f32:1", "f32:1", "-d", "gpu"],
        &["Add", "f32:1", "f32:1", "--opset", "1000"],
        &["Add", "f32:1", "f32:1", "--domain", "nowhere"],
        &["Add", "f32:1", "f32:1", "--outputs", "2"],
        &["Add", "f32:1", "f32:1", "--outputs", "1", "-o", "a.npy", "-o", "b.npy"],
        &["Softmax", "f32:1", "--attr", "axis=x"],
        &["Softmax", "f32:[1]", "--attr", "axes=0"],
        &["Cast", "f32:1", "--attr", "to=float33"],
        &["RandomNormalLike", "f32:1", "--attr", "dtype=f8e4m3fn"],
        &["Cast", "f32:1", "--attr", "to=bf16", "-o", "out.npy"],
        &["Add", "f32:1", "f32:1", "--set", "deterministic=perhaps"],
    ];
    let mut errors = String::new();
    for call in cases {
        let outcome = user.run_command(&[&["op"], call].concat());
        assert_eq!((outcome.status, outcome.out.as_str()), (1, ""), "{call:?}");
        errors += &format!("$ oarlock op {}\n{}\n", call.join(" "), outcome.err);
    }
    insta::assert_snapshot!("op_errors", errors);
    assert!(!user.home.path().join("out.npy").exists());
}

#[test]
fn out_of_memory_errors_include_a_table_of_holders() {
    let outcome = TestUser::new().run_command(&["op", "ConstantOfShape", "i64:[1000000000000000]"]);
    assert_eq!((outcome.status, outcome.out.as_str()), (1, ""));
    let lines: Vec<&str> = outcome.err.lines().collect();
    assert!(lines[0].starts_with("error: `ConstantOfShape` on `cpu:0`: expected "), "{lines:?}");
    assert!(lines[1].trim_end().ends_with("held by") && lines[2].ends_with("tensor"), "{lines:?}");
}

/// A plugin whose kernel for `Identity` runs `action`.
fn plugin_with_kernel(action: &str) -> String {
    format!(
        "#include \"minimal_kernel.h\"\n\
         static oarlock_error act(void *context, void *state, const oarlock_call *call) {{\n\
             (void)context; (void)state; (void)call; {action}; return 0; }}\n\
         static oarlock_error describe(oarlock_plugin *plugin) {{\n\
             minimal_kernel.run = act; return minimal_describe_kernel(plugin, \"Fatal\"); }}\n\
         OARLOCK_PLUGIN(describe);\n"
    )
}

#[test]
fn a_kernel_that_ends_the_process_is_named_however_it_does_it() {
    let ways = [
        ("abort()", "signal: 6 (SIGABRT)"),
        ("__builtin_trap()", "signal: "),
        ("*(volatile int *)8 = 1", "signal: 11 (SIGSEGV)"),
        ("exit(0)", "exit status: 0"),
        ("_Exit(3)", "exit status: 3"),
    ];
    for (action, status) in ways {
        let user = TestUser::new();
        user.compile_plugin("libfatal.so", &plugin_with_kernel(action));
        let outcome =
            user.run_command(&["--plugin", "libfatal.so", "op", "Identity", "f32:1", "-d", "Fatal"]);
        assert_eq!((outcome.status, outcome.out.as_str()), (1, ""), "{action}: {}", outcome.err);
        let ended = "error: the process was ended while the kernel for `Identity` of `Fatal` (`[HOME]/libfatal.so`) ran on \
                     `Fatal:0`: ";
        assert!(outcome.err.starts_with(&format!("{ended}{status}")), "{action}: {}", outcome.err);
    }
}

#[test]
fn the_standard_input_stays_that_of_the_user_where_there_are_plugins() {
    let user = TestUser::new();
    user.compile_template("libcustom_cpu.so");
    let file = user.write_file("a.npy", &npy_file("<f4", false, "(2,)", &float_bytes(&[1.0, 2.0])));
    let mut command =
        user.oarlock_command(&["--plugin", "libcustom_cpu.so", "op", "Add", "/dev/stdin", "f32:1"]);
    let output = command.stdin(fs::File::open(file).unwrap()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "output 0 (C): f32 [2]\n[2.0, 3.0]\n");
}

#[test]
fn incomplete_op_arguments_are_usage_errors() {
    let wrong: [&[&str]; 5] = [
        &[],
        &["Relu", "f32:1", "--dry-run"],
        &["Relu", "--attr", "axis"],
        &["Relu", "--attr", "=1"],
        &["Relu", "--outputs", "0"],
    ];
    for arguments in wrong {
        assert_eq!(TestUser::new().run_command(&[&["op"], arguments].concat()).status, 2, "{arguments:?}");
    }
}

#[test]
fn one_file_is_not_for_two_outputs_however_it_is_named() {
    let user = TestUser::new();
    std::os::unix::fs::symlink("same.npy", user.home.path().join("link.npy")).unwrap();
    let run = |files: [&str; 2]| {
        let call = ["op", "TopK", "f32:[1,3]", "i64:[1]", "-o", files[0], "-o", files[1]];
        user.run_command(&call)
    };
    for second in ["same.npy", "./same.npy"] {
        let outcome = run(["same.npy", second]);
        let expected = format!("error: `{second}`: expected a file for each output, found it twice");
        assert_eq!((outcome.status, outcome.out.as_str()), (1, ""));
        assert!(outcome.err.starts_with(&expected), "{}", outcome.err);
        assert!(!user.home.path().join("same.npy").exists());
    }
    user.write_file("same.npy", b"before");
    assert_eq!(run(["same.npy", "link.npy"]).status, 1);
    assert_eq!(fs::read(user.home.path().join("same.npy")).unwrap(), b"before");
    assert_eq!(run(["/dev/null", "/dev/null"]).status, 0);
}

#[test]
fn a_file_that_is_read_only_is_not_replaced() {
    let user = TestUser::new();
    let file = user.write_file("kept.npy", b"before");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let outcome = user.run_command(&["op", "Relu", "f32:1", "-o", "kept.npy"]);
    assert_eq!((outcome.status, outcome.out.as_str()), (1, ""));
    let expected = "error: `kept.npy`: expected a file that may be written, found one that is read-only";
    assert!(outcome.err.starts_with(expected), "{}", outcome.err);
    assert_eq!(fs::read(&file).unwrap(), b"before");
}

#[test]
fn a_file_that_cannot_be_written_leaves_what_was_there() {
    let user = TestUser::new();
    user.write_file("out.npy", b"before");
    let outcome = user.run_command(&["op", "Cast", "f32:1", "--attr", "to=bf16", "-o", "out.npy"]);
    assert_eq!(outcome.status, 1);
    assert_eq!(fs::read(user.home.path().join("out.npy")).unwrap(), b"before");
    let outcome = user.run_command(&["op", "Relu", "f32:1", "-o", "nowhere/out.npy"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.starts_with("error: `nowhere/out.npy`: expected to write"), "{}", outcome.err);
}

#[test]
fn op_computes_string_outputs_as_a_model_does() {
    let user = TestUser::new();
    let run = |arguments: &[&str]| {
        let outcome = user.run_command(&[&["op"], arguments].concat());
        format!("{}{}", outcome.out, outcome.err)
    };
    assert_eq!(
        run(&["Cast", "f32:[1.5,nan]", "--attr", "to=string"]),
        "output 0 (output): string [2]\n[\"1.5\", \"nan\"]\n"
    );
    let joined = run(&["StringConcat", "string:[\"a\",\"b\"]", "string:\"c\""]);
    assert_eq!(joined, "output 0 (Z): string [2]\n[\"ac\", \"bc\"]\n");
    let explained =
        user.run_command(&["op", "Cast", "i8:7", "--attr", "to=string", "--explain", "--dry-run"]);
    assert!(explained.out.contains("new text is made on the CPU without one\n"), "{}", explained.out);
    assert_eq!(explained.status, 0);
    let refused = run(&["Cast", "c64:1+2j", "--attr", "to=string"]);
    assert!(refused.contains("error: ") && refused.contains("c64"), "{refused}");
}

#[test]
fn an_op_of_a_plugin_runs_with_the_attributes_that_it_declares() {
    let user = TestUser::new();
    user.compile_plugin("libdeclared.so", include_str!("../../../../tests/plugins/declared_ops.c"));
    let run = |arguments: &[&str]| {
        let call = ["--plugin", "libdeclared.so", "op", "--domain", "test.declared"];
        user.run_command(&[&call[..], arguments].concat())
    };
    let squared = run(&["square", "f32:[[1,2],[3,4]]", "--attr", "axis=1", "--outputs", "2"]);
    assert_eq!(
        squared.out,
        "output 0: f32 [2, 2]\n[[ 7.0, 10.0],\n [15.0, 22.0]]\n\noutput 1: f32 [2]\n[17.0, 37.0]\n",
        "{}",
        squared.err
    );
    let parts = run(&["split", "f32:[1,2,3,4]", "--outputs", "2"]);
    assert_eq!(
        parts.out, "output 0: f32 [2]\n[1.0, 2.0]\n\noutput 1: f32 [2]\n[3.0, 4.0]\n",
        "{}",
        parts.err
    );
    let total = run(&["total", "-", "f32:[1,2]", "f32:[10,20]"]);
    assert_eq!(total.out, "output 0: f32 [2]\n[11.0, 22.0]\n", "{}", total.err);
    for (attribute, words) in
        [("axes=1", "`square` has: `axis`; found `axes`"), ("axis=x", "`axis` to be a whole number")]
    {
        let refused = run(&["square", "f32:[[1]]", "--attr", attribute]);
        assert_eq!((refused.status, refused.out.as_str()), (1, ""), "{attribute}");
        assert!(refused.err.contains(words), "{attribute}: {}", refused.err);
    }
}
