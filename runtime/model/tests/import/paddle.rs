//! Paddle programs with their parameters, valid and corrupt.

use bytes::Bytes;
use oarlock_core::Result;
use oarlock_model::graph::{self, Graph};
use oarlock_model::import::paddle::{self, messages::*};
use oarlock_model::{Model, import};
use prost::Message as _;

use crate::model_builder::assert_contains;

pub(crate) const F32_TYPE: i32 = 5;
const I64_TYPE: i32 = 3;
const DENSE_TENSOR_TYPE: i32 = 7;

pub(crate) fn build_variable(name: &str, dtype: i32, dims: &[i64]) -> VarDesc {
    let tensor = var_type::TensorDesc { data_type: Some(dtype), dims: dims.to_vec() };
    let kind = VarType {
        r#type: Some(DENSE_TENSOR_TYPE),
        dense_tensor: Some(var_type::DenseTensorDesc { tensor: Some(tensor) }),
        tensor_array: None,
    };
    VarDesc { name: Some(name.into()), r#type: Some(kind), persistable: None }
}

pub(crate) fn build_parameter(name: &str, dims: &[i64]) -> VarDesc {
    VarDesc { persistable: Some(true), ..build_variable(name, F32_TYPE, dims) }
}

pub(crate) fn operand_lists(lists: &[(&str, &[&str])]) -> Vec<op_desc::Var> {
    let list = |(parameter, arguments): &(&str, &[&str])| op_desc::Var {
        parameter: Some((*parameter).into()),
        arguments: arguments.iter().map(|name| (*name).into()).collect(),
    };
    lists.iter().map(list).collect()
}

pub(crate) fn build_op(
    name: &str,
    inputs: &[(&str, &[&str])],
    outputs: &[(&str, &[&str])],
    attrs: Vec<op_desc::Attr>,
) -> OpDesc {
    OpDesc {
        r#type: Some(name.into()),
        inputs: operand_lists(inputs),
        outputs: operand_lists(outputs),
        attrs,
    }
}

pub(crate) fn empty_attribute(name: &str) -> op_desc::Attr {
    op_desc::Attr { name: Some(name.into()), ..op_desc::Attr::default() }
}

pub(crate) fn int_attribute(name: &str, value: i32) -> op_desc::Attr {
    op_desc::Attr { i: Some(value), ..empty_attribute(name) }
}

pub(crate) fn ints_attribute(name: &str, values: &[i32]) -> op_desc::Attr {
    op_desc::Attr { ints: values.to_vec(), ..empty_attribute(name) }
}

pub(crate) fn text_attribute(name: &str, value: &str) -> op_desc::Attr {
    op_desc::Attr { s: Some(value.into()), ..empty_attribute(name) }
}

/// A program with one input `x` and one output `y`, which the last op writes.
pub(crate) fn build_program(variables: Vec<VarDesc>, ops: Vec<OpDesc>) -> ProgramDesc {
    let feed = build_op("feed", &[("X", &["feed"])], &[("Out", &["x"])], vec![int_attribute("col", 0)]);
    let fetch = build_op("fetch", &[("X", &["y"])], &[("Out", &["fetch"])], vec![int_attribute("col", 0)]);
    let ops = [vec![feed], ops, vec![fetch]].concat();
    let block = BlockDesc { idx: Some(0), parent_idx: Some(-1), vars: variables, ops };
    ProgramDesc { blocks: vec![block], version: Some(ProgramVersion { version: Some(2_006_002) }) }
}

/// A parameter file with the given tensors.
pub(crate) fn parameter_file(parameters: &[(&[i64], &[f32])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (dims, values) in parameters {
        let tensor = var_type::TensorDesc { data_type: Some(F32_TYPE), dims: dims.to_vec() }.encode_to_vec();
        bytes.extend([0; 4]);
        bytes.extend(0u64.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend((tensor.len() as u32).to_le_bytes());
        bytes.extend(tensor);
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
    bytes
}

pub(crate) fn read_program(program: &ProgramDesc, parameters: Vec<u8>) -> Result<Model> {
    let model = paddle::decode_paddle(program.encode_to_vec().into(), Some(parameters.into()))?;
    graph::check_graph(&model.graph).expect("a program that is read is a graph");
    Ok(model)
}

pub(crate) fn import_graph(program: &ProgramDesc) -> Graph {
    read_program(program, Vec::new()).unwrap_or_else(|error| panic!("{error}")).graph
}

pub(crate) fn import_refusal(program: &ProgramDesc) -> String {
    read_program(program, Vec::new()).unwrap_err().to_string()
}

/// A linear layer whose parameters' names are not in the order of their use.
fn linear_layer() -> (ProgramDesc, Vec<u8>) {
    let variables = vec![
        build_variable("x", F32_TYPE, &[-1, 2]),
        build_parameter("w_0", &[2, 2]),
        build_parameter("b_0", &[2]),
        build_variable("product", F32_TYPE, &[-1, 2]),
        build_variable("y", F32_TYPE, &[-1, 2]),
    ];
    let ops = vec![
        build_op("matmul_v2", &[("X", &["x"]), ("Y", &["w_0"])], &[("Out", &["product"])], Vec::new()),
        build_op(
            "elementwise_add",
            &[("X", &["product"]), ("Y", &["b_0"])],
            &[("Out", &["y"])],
            vec![int_attribute("axis", -1)],
        ),
    ];
    let parameters = parameter_file(&[(&[2], &[5.0, 6.0]), (&[2, 2], &[1.0, 2.0, 3.0, 4.0])]);
    (build_program(variables, ops), parameters)
}

#[test]
fn parameters_are_found_in_the_order_of_their_names() {
    let (program, parameters) = linear_layer();
    let model = read_program(&program, parameters).unwrap();
    assert_eq!((model.producer.as_str(), model.opsets["ai.onnx"]), ("Paddle 2.6.2", 20));
    let expected = "\
input x: f32[?, 2]
product = MatMul(x, [1.0, 2.0, 3.0, 4.0])
y = Add(product, [5.0, 6.0])
output y
";
    assert_eq!(model.graph.to_string(), expected);
}

#[test]
fn a_program_is_read_with_the_file_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("layer.pdmodel");
    let (program, parameters) = linear_layer();
    std::fs::write(&path, program.encode_to_vec()).unwrap();
    let error = import::load_model(&path).unwrap_err();
    assert_contains(&error.to_string(), &["layer.pdmodel`", "expected parameters, found none for `w_0`"]);
    assert_contains(error.advice().unwrap(), &[".pdiparams"]);
    std::fs::write(directory.path().join("layer.pdiparams"), &parameters).unwrap();
    assert_eq!(import::load_model(&path).unwrap().graph.nodes.len(), 2);
}

#[test]
fn programs_of_old_names_have_their_parameters_in_one_file_or_in_one_each() {
    let (program, parameters) = linear_layer();
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).unwrap();
    write("__model__", &program.encode_to_vec());
    write("w_0", &parameter_file(&[(&[2, 2], &[1.0, 2.0, 3.0, 4.0])]));
    let error = import::load_model(directory.path()).unwrap_err();
    assert_contains(&error.to_string(), &["__model__`", "expected parameters, found none for `b_0`"]);
    write("b_0", &parameters);
    let error = import::load_model(directory.path()).unwrap_err();
    assert_contains(&error.to_string(), &["`b_0`", "expected a file that ends with the last parameter"]);
    write("b_0", &parameter_file(&[(&[2], &[5.0, 6.0])]));
    let expected = read_program(&program, parameters.clone()).unwrap().graph.to_string();
    assert_eq!(import::load_model(directory.path()).unwrap().graph.to_string(), expected);
    write("b_0", &[]);
    write("__params__", &parameters);
    let file = directory.path().join("__model__");
    assert_eq!(import::load_model(&file).unwrap().graph.to_string(), expected);
}

#[test]
fn a_parameter_leads_to_no_file_elsewhere() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("model");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(outer.path().join("w"), parameter_file(&[(&[2], &[1.0, 2.0])])).unwrap();
    let load = |name: &str| {
        let variables = vec![
            build_variable("x", F32_TYPE, &[-1, 2]),
            build_parameter(name, &[2]),
            build_variable("y", F32_TYPE, &[-1, 2]),
        ];
        let sum = build_op(
            "elementwise_add",
            &[("X", &["x"]), ("Y", &[name])],
            &[("Out", &["y"])],
            vec![int_attribute("axis", -1)],
        );
        std::fs::write(directory.join("__model__"), build_program(variables, vec![sum]).encode_to_vec())
            .unwrap();
        import::load_model(&directory)
    };
    let absolute = outer.path().join("w").display().to_string();
    for name in ["../w", absolute.as_str()] {
        assert_contains(&load(name).unwrap_err().to_string(), &["expected parameters, found none for"]);
    }
    std::fs::create_dir(directory.join("below")).unwrap();
    std::fs::copy(outer.path().join("w"), directory.join("below/w")).unwrap();
    assert_eq!(load("below/w").unwrap().graph.nodes.len(), 1);
}

#[test]
fn parameters_that_are_cut_off_or_too_many_are_refused() {
    let (program, parameters) = linear_layer();
    for end in 0..parameters.len() {
        assert_contains(
            &read_program(&program, parameters[..end].to_vec()).unwrap_err().to_string(),
            &["parameters: `", "more bytes"],
        );
    }
    let more = [parameters, vec![0; 3]].concat();
    assert_contains(
        &read_program(&program, more).unwrap_err().to_string(),
        &["ends with the last parameter, found 3 bytes more"],
    );
}

#[test]
fn a_program_with_any_bit_turned_or_cut_off_anywhere_is_survived() {
    let (program, parameters) = linear_layer();
    let (program, parameters) = (program.encode_to_vec(), Bytes::from(parameters));
    let survive = |program: &[u8], parameters: &[u8]| {
        let read =
            paddle::decode_paddle(Bytes::copy_from_slice(program), Some(Bytes::copy_from_slice(parameters)));
        if let Ok(model) = read {
            graph::check_graph(&model.graph).expect("what is read is a graph");
        }
    };
    for bit in 0..program.len() * 8 {
        let mut turned = program.clone();
        turned[bit / 8] ^= 1 << (bit % 8);
        survive(&turned, &parameters);
        survive(&program[..bit / 8], &parameters);
    }
    for bit in 0..parameters.len() * 8 {
        let mut turned = parameters.to_vec();
        turned[bit / 8] ^= 1 << (bit % 8);
        survive(&program, &turned);
    }
}

#[test]
fn all_ops_that_are_not_supported_are_named() {
    let ops = vec![
        build_op("matrix_nms", &[], &[], Vec::new()),
        build_op("generate_proposals_v2", &[], &[], Vec::new()),
    ];
    assert_contains(
        &import_refusal(&build_program(Vec::new(), ops)),
        &["ops that are supported, found `generate_proposals_v2`, `matrix_nms`"],
    );
}

#[test]
fn a_name_means_what_was_made_last() {
    let relu = |from, to| build_op("relu", &[("X", &[from])], &[("Out", &[to])], Vec::new());
    let graph =
        import_graph(&build_program(Vec::new(), vec![relu("x", "a"), relu("a", "a"), relu("a", "y")]));
    assert_eq!(graph.nodes.len(), 3);
    assert_eq!(graph.nodes[2].input(0), graph.nodes[1].output(0));
    assert_contains(
        &import_refusal(&build_program(Vec::new(), vec![relu("gone", "y")])),
        &["the `relu` that makes `y`", "`gone`"],
    );
}

#[test]
fn what_is_handed_on_to_an_output_keeps_the_name_of_the_output() {
    let dropout = build_op(
        "dropout",
        &[("X", &["x"])],
        &[("Out", &["y"])],
        vec![text_attribute("dropout_implementation", "upscale_in_train")],
    );
    let graph = import_graph(&build_program(Vec::new(), vec![dropout]));
    assert_eq!(graph.to_string(), "input x: ?\ny = Identity(x)\noutput y\n");
}

#[test]
fn operands_are_aligned_from_the_axis_that_an_op_names() {
    let add = |axis| {
        let inputs: [(&str, &[&str]); 2] = [("X", &["x"]), ("Y", &["x2"])];
        let second = build_op(
            "fill_constant",
            &[],
            &[("Out", &["x2"])],
            vec![int_attribute("dtype", F32_TYPE), ints_attribute("shape", &[3])],
        );
        let add = build_op("elementwise_add", &inputs, &[("Out", &["y"])], vec![int_attribute("axis", axis)]);
        build_program(
            vec![build_variable("x", F32_TYPE, &[-1, 3, 4, 4]), build_variable("x2", F32_TYPE, &[3])],
            vec![second, add],
        )
    };
    assert_contains(
        &import_graph(&add(1)).to_string(),
        &["Unsqueeze([0.0, 0.0, 0.0], [1.0, 2.0])", "y = Add(x, #"],
    );
    assert_contains(&import_graph(&add(3)).to_string(), &["y = Add(x, [0.0, 0.0, 0.0])"]);
    assert_contains(&import_refusal(&add(4)), &["an axis from which on 1 of 4 dimensions follow, found 4"]);
    assert_contains(&import_refusal(&add(i32::MIN)), &["found -2147483648"]);
}

#[test]
fn windows_that_cut_into_equal_parts_become_ordinary_ones() {
    let pool = |dims: &[i64], parts: [i32; 2]| {
        let adaptive = op_desc::Attr { b: Some(true), ..empty_attribute("adaptive") };
        let attributes =
            vec![adaptive, ints_attribute("ksize", &parts), text_attribute("pooling_type", "avg")];
        let pool = build_op("pool2d", &[("X", &["x"])], &[("Out", &["y"])], attributes);
        build_program(vec![build_variable("x", F32_TYPE, dims)], vec![pool])
    };
    let graph = import_graph(&pool(&[-1, 3, 8, 8], [4, 2]));
    assert!(graph.nodes[0].is_op("AveragePool"));
    assert_eq!(graph.nodes[0].attributes.get_ints("kernel_shape").unwrap(), Some([2, 4].as_slice()));
    for dims in [[-1, 3, 9, 8], [-1, 3, -1, -1]] {
        let graph = import_graph(&pool(&dims, [4, 2]));
        assert_eq!(graph.nodes.iter().filter(|node| node.is_op("ReduceMean")).count(), 4 + 2);
    }
    assert_contains(&import_refusal(&pool(&[-1, 3, 100, 8], [65, 2])), &["1 to 64 parts, found 65"]);
}

#[test]
fn a_row_that_stands_for_nothing_is_zeros() {
    let table = build_parameter("t", &[2, 2]);
    let padding = op_desc::Attr { l: Some(1), ..empty_attribute("padding_idx") };
    let lookup =
        build_op("lookup_table_v2", &[("W", &["t"]), ("Ids", &["x"])], &[("Out", &["y"])], vec![padding]);
    let program = build_program(
        vec![build_variable("x", I64_TYPE, &[-1]), table, build_variable("y", F32_TYPE, &[-1, 2])],
        vec![lookup],
    );
    let parameters = parameter_file(&[(&[2, 2], &[1.0, 2.0, 3.0, 4.0])]);
    let ops: Vec<String> = read_program(&program, parameters)
        .unwrap()
        .graph
        .nodes
        .iter()
        .map(|node| node.op.to_string())
        .collect();
    assert_eq!(ops, ["Gather", "Equal", "Unsqueeze", "Where"]);
}

#[test]
fn a_variable_of_more_dimensions_than_tensors_have_is_refused() {
    let many = build_variable("x", F32_TYPE, &[1; 65]);
    assert_contains(
        &import_refusal(&build_program(vec![many], Vec::new())),
        &["at most 64 dimensions, found 65 of `x`"],
    );
}

#[test]
fn a_variable_that_is_fed_twice_is_refused() {
    let again = build_op("feed", &[("X", &["feed"])], &[("Out", &["x"])], vec![int_attribute("col", 1)]);
    let relu = build_op("relu", &[("X", &["x"])], &[("Out", &["y"])], Vec::new());
    let program = build_program(vec![build_variable("x", F32_TYPE, &[2])], vec![again, relu]);
    assert_contains(&import_refusal(&program), &["inputs of different names, found `x` twice"]);
}
