//! Paddle programs in JSON, valid and corrupt.

use bytes::Bytes;
use oarlock_core::Result;
use oarlock_model::import::{self, paddle};
use oarlock_model::{Model, graph};
use prost::Message as _;

use crate::model_builder::assert_contains;
use crate::paddle::parameter_file;

fn tensor_type(dtype: &str, dims: &str) -> String {
    format!(r##"{{"#":"0.t_dtensor","D":[{{"#":"0.t_{dtype}"}},{dims},"NCHW",[],0]}}"##)
}

fn attribute_json(name: &str, kind: &str, value: &str) -> String {
    format!(r##"{{"N":"{name}","AT":{{"#":"{kind}","D":{value}}}}}"##)
}

/// An op with one output.
fn op_json(name: &str, attributes: &[String], inputs: &[i64], output: i64, kind: &str) -> String {
    let inputs: Vec<String> = inputs.iter().map(|number| format!(r#"{{"%":{number}}}"#)).collect();
    let (attributes, inputs) = (attributes.join(","), inputs.join(","));
    format!(r##"{{"#":"{name}","A":[{attributes}],"I":[{inputs}],"O":[{{"%":{output},"TT":{kind}}}]}}"##)
}

fn program_json(ops: &[String]) -> String {
    let ops = ops.join(",");
    let block = format!(r##"{{"#":"block_0","args":[],"ops":[{ops}]}}"##);
    let kind = r#"{"magic":"pir","trainable":false,"version":4}"#;
    format!(r##"{{"base_code":{kind},"program":{{"regions":[{{"#":"region_0","blocks":[{block}]}}]}}}}"##)
}

fn input_json() -> String {
    let name = attribute_json("name", "0.a_str", r#""x""#);
    op_json("1.data", &[name], &[], 2, &tensor_type("f32", "[-1,2]"))
}

fn output_json(number: i64) -> String {
    let attributes = [attribute_json("name", "0.a_str", r#""y""#), attribute_json("col", "0.a_i32", "0")];
    op_json("1.fetch", &attributes, &[number], 99, &tensor_type("f32", "[-1,2]"))
}

/// A product with a parameter, and a softmax over an axis that a separate op makes.
fn softmax_layer() -> (String, Vec<u8>) {
    let kind = tensor_type("f32", "[2,2]");
    let parameter = format!(
        r##"{{"#":"p","A":[0,1,1,"weight"],"DA":[],"O":{{"%":1,"TT":{kind}}},"OA":[1,0,1],"QA":[]}}"##
    );
    let matmul = [attribute_json("transpose_y", "0.a_bool", "true")];
    let axis = attribute_json("value", "0.a_array", r##"[{"#":"0.a_i64","D":1}]"##);
    let ops = [
        parameter,
        input_json(),
        op_json("1.matmul", &matmul, &[2, 1], 3, &tensor_type("f32", "[-1,2]")),
        op_json("1.full_int_array", &[axis], &[], 4, &tensor_type("i64", "[1]")),
        op_json(
            "1.sum",
            &[attribute_json("keepdim", "0.a_bool", "true")],
            &[3, 4],
            5,
            &tensor_type("f32", "[-1,1]"),
        ),
        op_json("1.relu_", &[], &[5], 6, &tensor_type("f32", "[-1,1]")),
        output_json(6),
    ];
    (program_json(&ops), parameter_file(&[(&[2, 2], &[1.0, 2.0, 3.0, 4.0])]))
}

fn read_program(program: &str, parameters: Vec<u8>) -> Result<Model> {
    let model = paddle::decode_paddle(program.as_bytes().to_vec().into(), Some(parameters.into()))?;
    graph::check_graph(&model.graph).expect("a program that is read is a graph");
    Ok(model)
}

#[test]
fn a_program_in_json_is_one_as_before_under_other_names() {
    let (program, parameters) = softmax_layer();
    let model = read_program(&program, parameters).unwrap();
    assert_eq!(
        (model.format.as_str(), model.producer.as_str()),
        ("Paddle program in JSON, version 4", "Paddle 3")
    );
    let text = model.graph.to_string();
    assert_contains(&text, &["input x: f32[?, 2]\n", "Transpose([1.0, 2.0, 3.0, 4.0])", "%3 = MatMul(x, "]);
    assert_contains(&text, &["%5 = ReduceSum(%3, [1.0]) keepdims=Int(1)\n", "y = Relu(%5)\n", "output y\n"]);
}

#[test]
fn a_program_in_json_is_known_by_the_name_of_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("inference.json");
    let (program, parameters) = softmax_layer();
    std::fs::write(&path, program).unwrap();
    assert_contains(
        &import::load_model(&path).unwrap_err().to_string(),
        &["inference.json`", "found none for `weight`"],
    );
    std::fs::write(directory.path().join("inference.pdiparams"), parameters).unwrap();
    assert_eq!(import::load_model(&path).unwrap().graph.outputs.len(), 1);
    // As PaddleX writes directories.
    std::fs::write(directory.path().join("inference.yml"), "Global: {}").unwrap();
    std::fs::write(directory.path().join("config.json"), r#"{"model_type": "PP-OCR"}"#).unwrap();
    assert_eq!(import::load_model(directory.path()).unwrap().graph.outputs.len(), 1);
}

#[test]
fn a_program_of_paddle_2_that_looks_like_json_is_none() {
    let looks_so = |length: usize| {
        let name = "y".repeat(length);
        let fill = crate::paddle::build_op("fill_constant", &[], &[("Out", &[&name])], Vec::new());
        let block = paddle::messages::BlockDesc { ops: vec![fill], ..Default::default() };
        let program = paddle::messages::ProgramDesc { blocks: vec![block], version: None };
        Some(program.encode_to_vec()).filter(|bytes| bytes.starts_with(b"\n{"))
    };
    let bytes = (0..123).find_map(looks_so).expect("a program with a first block of 123 bytes");
    assert_eq!(paddle::decode_paddle(bytes.into(), None).unwrap().format, "Paddle program");
}

#[test]
fn what_is_no_program_says_so() {
    assert_contains(
        &read_program("{", Vec::new()).unwrap_err().to_string(),
        &["expected a program of Paddle 3 in JSON, found a text of another kind"],
    );
    assert_contains(
        &read_program("{\"modelTopology\": {}}", Vec::new()).unwrap_err().to_string(),
        &["expected a program of Paddle 3 in JSON, found a model of TensorFlow.js"],
    );
    assert_contains(
        &read_program("{\"base_code\": {}}", Vec::new()).unwrap_err().to_string(),
        &["expected a program of Paddle 3 in JSON", "`magic`"],
    );
    let other = program_json(&[]).replace("pir", "fir");
    assert_contains(
        &read_program(&other, Vec::new()).unwrap_err().to_string(),
        &["`magic` to be pir, found fir"],
    );
    let gone = program_json(&[input_json(), op_json("1.relu", &[], &[7], 3, &tensor_type("f32", "[2]"))]);
    assert_contains(
        &read_program(&gone, Vec::new()).unwrap_err().to_string(),
        &["`1.relu`: ", "value 7, which is not"],
    );
    let strange = program_json(&[
        input_json(),
        op_json("1.generate_proposals", &[], &[2], 3, &tensor_type("f32", "[2]")),
    ]);
    assert_contains(
        &read_program(&strange, Vec::new()).unwrap_err().to_string(),
        &["found `pd_op.generate_proposals`"],
    );
    let deep = "[".repeat(100_000);
    assert_contains(&read_program(&format!("{{{deep}"), Vec::new()).unwrap_err().to_string(), &["in JSON"]);
}

#[test]
fn a_program_in_json_with_any_bit_turned_or_cut_off_anywhere_is_survived() {
    let (program, parameters) = softmax_layer();
    let parameters = Bytes::from(parameters);
    let survive = |program: &[u8]| {
        if let Ok(model) = paddle::decode_paddle(Bytes::copy_from_slice(program), Some(parameters.clone())) {
            graph::check_graph(&model.graph).expect("what is read is a graph");
        }
    };
    for bit in 0..program.len() * 8 {
        let mut turned = program.clone().into_bytes();
        turned[bit / 8] ^= 1 << (bit % 8);
        survive(&turned);
        survive(&program.as_bytes()[..bit / 8]);
    }
}
