//! `oarlock run`.

use std::fs;

use serde_json::json;
use zip::CompressionMethod;

use super::model_builder::ModelBuilder;
use super::{float_bytes, npy_file, npz_file, read_npz, user_with_models};

#[test]
fn outputs_are_printed_with_what_there_is_to_say_of_them() {
    let outcome =
        user_with_models().run_command(&["run", "product.onnx", "-i", "x=f32:[[1,2,3],[-1,-2,-3]]"]);
    assert_eq!((outcome.status, outcome.err.as_str()), (0, ""));
    let expected = "y: f32 [2, 2]\nfrom 0 to 6, mean 3, deviation 3\n[[6.0, 0.0],\n [0.0, 6.0]]\n";
    assert_eq!(outcome.out, expected);
}

#[test]
fn a_large_output_is_printed_in_part() {
    let user = user_with_models();
    let outcome = user.run_command(&["run", "pair.onnx", "--random", "1", "--shape", "n=1000"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    assert!(outcome.out.contains(", …, ") && outcome.out.len() < 1000, "{}", outcome.out);
}

#[test]
fn files_of_numpy_go_in_and_come_out() {
    let user = user_with_models();
    user.write_file("a.npy", &npy_file("<f4", "(2,)", &float_bytes(&[1.0, 2.0])));
    let outcome =
        user.run_command(&["run", "pair.onnx", "-i", "a=a.npy", "-i", "b=f32:[1,1.6]", "-o", "made/here"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let result = |name: &str| fs::read(user.home.path().join("made/here").join(name)).unwrap();
    assert_eq!(result("sum.npy"), npy_file("<f4", "(2,)", &float_bytes(&[2.0, 3.6])));
    assert_eq!(result("sum_rounded.npy"), npy_file("<i8", "(2,)", &[2i64, 3].map(i64::to_le_bytes).concat()));
    assert!(outcome.out.contains("written to `made/here/sum_rounded.npy`"), "{}", outcome.out);
}

#[test]
fn archives_of_numpy_go_in_stored_or_deflated_and_come_out() {
    let user = user_with_models();
    let arrays = |method| {
        let array = |numbers: &[f32]| npy_file("<f4", "(2,)", &float_bytes(numbers));
        npz_file(&[("a", array(&[1.0, 2.0])), ("b", array(&[1.0, 1.0]))], method)
    };
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        user.write_file("in.npz", &arrays(method));
        let outcome = user.run_command(&["run", "pair.onnx", "-i", "in.npz", "-o", "out.npz"]);
        assert_eq!(outcome.status, 0, "{}", outcome.err);
        let result = read_npz(&user.home.path().join("out.npz"));
        let names: Vec<&str> = result.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["sum.npy", "sum/rounded.npy"]);
        assert_eq!(result[0].1, npy_file("<f4", "(2,)", &float_bytes(&[2.0, 3.0])));
    }
    // The outputs serve as inputs of the next run.
    let outcome = user.run_command(&["run", "pair.onnx", "-i", "out.npz", "--random", "0"]);
    assert!(outcome.err.contains("expected one of the inputs `a`, `b`, found `sum`"), "{}", outcome.err);
}

#[test]
fn what_numpy_has_no_dtype_for_is_written_with_more_bits() {
    let user = user_with_models();
    let model = ModelBuilder::new()
        .with_input("x: f32[2]")
        .with_attributed_node("y = Cast(x)", &[("to", 16)])
        .with_output("y: bf16[2]");
    user.write_file("narrow.onnx", &model.into_bytes());
    let outcome = user.run_command(&["run", "narrow.onnx", "-i", "f32:[1.5,-2]", "-o", "."]);
    assert!(outcome.out.contains("y: bf16 [2]") && outcome.out.contains("written as f32"), "{}", outcome.out);
    let result = fs::read(user.home.path().join("y.npy")).unwrap();
    assert_eq!(result, npy_file("<f4", "(2,)", &float_bytes(&[1.5, -2.0])));
}

#[test]
fn texts_go_in_and_come_out() {
    let user = user_with_models();
    let model = ModelBuilder::new()
        .with_input("x: string[2]")
        .with_node("y = Identity(x)")
        .with_output("y: string[2]");
    user.write_file("text.onnx", &model.into_bytes());
    let outcome = user.run_command(&["run", "text.onnx", "-i", r#"string:["a","üb"]"#, "-o", "out.npz"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let letters = [97u32, 0, 252, 98].map(u32::to_le_bytes).concat();
    assert_eq!(read_npz(&user.home.path().join("out.npz"))[0].1, npy_file("<U2", "(2,)", &letters));
}

#[test]
fn a_tensor_of_onnx_goes_in() {
    use oarlock_engine::import::onnx::messages::{TensorProto, tensor_proto::DataType};
    use prost::Message as _;
    let user = user_with_models();
    let (dims, data_type) = (vec![1], Some(DataType::Float.into()));
    let tensor = TensorProto { dims, data_type, float_data: vec![2.5], ..TensorProto::default() };
    user.write_file("a.pb", &tensor.encode_to_vec());
    user.write_file("b.pb", b"no tensor");
    let outcome = user.run_command(&["run", "pair.onnx", "-i", "a=a.pb", "-i", "b=f32:[1]"]);
    assert!(outcome.out.starts_with("sum: f32 [1]\n[3.5]\n"), "{} {}", outcome.out, outcome.err);
    let outcome = user.run_command(&["run", "pair.onnx", "-i", "a=a.pb", "-i", "b=b.pb"]);
    assert!(outcome.err.starts_with("error: `b.pb`: expected an ONNX tensor, found"), "{}", outcome.err);
}

#[test]
fn a_run_is_there_for_programs() {
    let report = user_with_models()
        .run_command(&["run", "pair.onnx", "-i", "a=f32:[1]", "-i", "b=f32:[2]", "--json"])
        .parse_json();
    assert_eq!(report["inputs"][1], json!({ "name": "b", "dtype": "f32", "shape": [1] }));
    assert_eq!((&report["devices"], &report["model"]), (&json!(["cpu:0"]), &json!("pair.onnx")));
    assert!(report["load_ms"].is_number() && report["run_ms"].is_number(), "{report}");
    let output = &report["outputs"][1];
    assert_eq!((&output["name"], &output["elements"]), (&json!("sum/rounded"), &json!([3])));
    assert_eq!(output["statistics"]["max"], json!(3.0));
}

#[test]
fn an_output_whose_shape_depends_on_data_comes_out() {
    let user = user_with_models();
    let model =
        ModelBuilder::new().with_input("x: f32[n]").with_node("y = NonZero(x)").with_output("y: i64[1, m]");
    user.write_file("data.onnx", &model.into_bytes());
    let outcome = user.run_command(&["run", "data.onnx", "-i", "f32:[0,5,0,7]"]);
    assert_eq!(outcome.out, "y: i64 [1, 2]\nfrom 1 to 3, mean 2, deviation 1\n[[1, 3]]\n", "{}", outcome.err);
}

#[test]
fn a_file_that_is_protected_is_told_before_anything_runs() {
    use std::os::unix::fs::PermissionsExt as _;
    let user = user_with_models();
    let file = user.write_file("out.npz", b"");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let outcome = user.run_command(&["run", "product.onnx", "--random", "0", "-o", "out.npz"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.contains("expected a file that may be written"), "{}", outcome.err);
    let outcome = user.run_command(&["run", "product.onnx", "--random", "0", "-o", "product.onnx"]);
    assert!(outcome.err.contains("expected a directory, or a file that ends in"), "{}", outcome.err);
}

#[test]
fn every_node_may_have_threads_and_flags_of_its_own() {
    let user = user_with_models();
    let run =
        |more: &[&str]| user.run_command(&[&["run", "product.onnx", "-i", "f32:[[1,2,3]]"], more].concat());
    assert_eq!(run(&["--threads", "1", "--set", "deterministic=true"]).status, 0);
    assert_eq!(run(&["--threads", "0"]).status, 2);
    let wrong = run(&["--set", "thread=1"]);
    assert!(wrong.status == 1 && wrong.err.contains("did you mean `threads`"), "{}", wrong.err);
}
