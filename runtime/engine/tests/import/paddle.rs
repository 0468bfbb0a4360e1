//! Programs of Paddle with their parameters, whole and broken.

use bytes::Bytes;
use oarlock_core::Result;
use oarlock_engine::graph::{self, Graph};
use oarlock_engine::import::paddle::{self, messages::*};
use oarlock_engine::{Model, import};
use prost::Message as _;

use crate::build::says;

pub(crate) const F32: i32 = 5;
const I64: i32 = 3;
const DENSE_TENSOR: i32 = 7;

pub(crate) fn variable(name: &str, dtype: i32, dims: &[i64]) -> VarDesc {
    let tensor = var_type::TensorDesc { data_type: Some(dtype), dims: dims.to_vec() };
    let kind = VarType {
        r#type: Some(DENSE_TENSOR),
        dense_tensor: Some(var_type::DenseTensorDesc { tensor: Some(tensor) }),
        tensor_array: None,
    };
    VarDesc { name: Some(name.into()), r#type: Some(kind), persistable: None }
}

pub(crate) fn parameter(name: &str, dims: &[i64]) -> VarDesc {
    VarDesc { persistable: Some(true), ..variable(name, F32, dims) }
}

pub(crate) fn operands(lists: &[(&str, &[&str])]) -> Vec<op_desc::Var> {
    let list = |(parameter, arguments): &(&str, &[&str])| op_desc::Var {
        parameter: Some((*parameter).into()),
        arguments: arguments.iter().map(|name| (*name).into()).collect(),
    };
    lists.iter().map(list).collect()
}

pub(crate) fn op(
    name: &str,
    inputs: &[(&str, &[&str])],
    outputs: &[(&str, &[&str])],
    attrs: Vec<op_desc::Attr>,
) -> OpDesc {
    OpDesc { r#type: Some(name.into()), inputs: operands(inputs), outputs: operands(outputs), attrs }
}

pub(crate) fn named(name: &str) -> op_desc::Attr {
    op_desc::Attr { name: Some(name.into()), ..op_desc::Attr::default() }
}

pub(crate) fn int(name: &str, value: i32) -> op_desc::Attr {
    op_desc::Attr { i: Some(value), ..named(name) }
}

pub(crate) fn ints(name: &str, values: &[i32]) -> op_desc::Attr {
    op_desc::Attr { ints: values.to_vec(), ..named(name) }
}

pub(crate) fn text(name: &str, value: &str) -> op_desc::Attr {
    op_desc::Attr { s: Some(value.into()), ..named(name) }
}

/// A program with one input `x` and one output, which the last of its ops makes as `y`.
pub(crate) fn program(variables: Vec<VarDesc>, ops: Vec<OpDesc>) -> ProgramDesc {
    let feed = op("feed", &[("X", &["feed"])], &[("Out", &["x"])], vec![int("col", 0)]);
    let fetch = op("fetch", &[("X", &["y"])], &[("Out", &["fetch"])], vec![int("col", 0)]);
    let ops = [vec![feed], ops, vec![fetch]].concat();
    let block = BlockDesc { idx: Some(0), parent_idx: Some(-1), vars: variables, ops };
    ProgramDesc { blocks: vec![block], version: Some(ProgramVersion { version: Some(2_006_002) }) }
}

/// A file with the parameters whose elements are given.
pub(crate) fn file_of(parameters: &[(&[i64], &[f32])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (dims, values) in parameters {
        let tensor = var_type::TensorDesc { data_type: Some(F32), dims: dims.to_vec() }.encode_to_vec();
        bytes.extend([0; 4]);
        bytes.extend(0u64.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend((tensor.len() as u32).to_le_bytes());
        bytes.extend(tensor);
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
    bytes
}

pub(crate) fn read(program: &ProgramDesc, parameters: Vec<u8>) -> Result<Model> {
    let model = paddle::decode(program.encode_to_vec().into(), Some(parameters.into()))?;
    graph::check(&model.graph).expect("a program that is read is a graph");
    Ok(model)
}

pub(crate) fn graph_of(program: &ProgramDesc) -> Graph {
    read(program, Vec::new()).unwrap_or_else(|error| panic!("{error}")).graph
}

pub(crate) fn refusal(program: &ProgramDesc) -> String {
    read(program, Vec::new()).unwrap_err().to_string()
}

/// A layer with a parameter that is a matrix and one that is added; their names are not in the order of their use.
fn layer() -> (ProgramDesc, Vec<u8>) {
    let variables = vec![
        variable("x", F32, &[-1, 2]),
        parameter("w_0", &[2, 2]),
        parameter("b_0", &[2]),
        variable("product", F32, &[-1, 2]),
        variable("y", F32, &[-1, 2]),
    ];
    let ops = vec![
        op("matmul_v2", &[("X", &["x"]), ("Y", &["w_0"])], &[("Out", &["product"])], Vec::new()),
        op(
            "elementwise_add",
            &[("X", &["product"]), ("Y", &["b_0"])],
            &[("Out", &["y"])],
            vec![int("axis", -1)],
        ),
    ];
    let parameters = file_of(&[(&[2], &[5.0, 6.0]), (&[2, 2], &[1.0, 2.0, 3.0, 4.0])]);
    (program(variables, ops), parameters)
}

#[test]
fn parameters_are_found_in_the_order_of_their_names() {
    let (program, parameters) = layer();
    let model = read(&program, parameters).unwrap();
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
    let (program, parameters) = layer();
    std::fs::write(&path, program.encode_to_vec()).unwrap();
    let error = import::load(&path).unwrap_err();
    says(&error.to_string(), &["layer.pdmodel`", "expected parameters, found none for `w_0`"]);
    says(error.advice().unwrap(), &[".pdiparams"]);
    std::fs::write(directory.path().join("layer.pdiparams"), &parameters).unwrap();
    assert_eq!(import::load(&path).unwrap().graph.nodes.len(), 2);
}

#[test]
fn parameters_that_are_cut_off_or_too_many_are_refused() {
    let (program, parameters) = layer();
    for end in 0..parameters.len() {
        says(
            &read(&program, parameters[..end].to_vec()).unwrap_err().to_string(),
            &["parameters: `", "more bytes"],
        );
    }
    let more = [parameters, vec![0; 3]].concat();
    says(
        &read(&program, more).unwrap_err().to_string(),
        &["ends with the last parameter, found 3 bytes more"],
    );
}

#[test]
fn a_program_with_any_bit_turned_or_cut_off_anywhere_is_survived() {
    let (program, parameters) = layer();
    let (program, parameters) = (program.encode_to_vec(), Bytes::from(parameters));
    let survive = |program: &[u8], parameters: &[u8]| {
        let read = paddle::decode(Bytes::copy_from_slice(program), Some(Bytes::copy_from_slice(parameters)));
        if let Ok(model) = read {
            graph::check(&model.graph).expect("what is read is a graph");
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
    let ops = vec![op("matrix_nms", &[], &[], Vec::new()), op("generate_proposals_v2", &[], &[], Vec::new())];
    says(
        &refusal(&program(Vec::new(), ops)),
        &["ops that are supported, found `generate_proposals_v2`, `matrix_nms`"],
    );
}

#[test]
fn a_name_means_what_was_made_last() {
    let relu = |from, to| op("relu", &[("X", &[from])], &[("Out", &[to])], Vec::new());
    let graph = graph_of(&program(Vec::new(), vec![relu("x", "a"), relu("a", "a"), relu("a", "y")]));
    assert_eq!(graph.nodes.len(), 3);
    assert_eq!(graph.nodes[2].input(0), graph.nodes[1].output(0));
    says(&refusal(&program(Vec::new(), vec![relu("gone", "y")])), &["the `relu` that makes `y`", "`gone`"]);
}

#[test]
fn what_is_handed_on_to_an_output_keeps_the_name_of_the_output() {
    let dropout = op(
        "dropout",
        &[("X", &["x"])],
        &[("Out", &["y"])],
        vec![text("dropout_implementation", "upscale_in_train")],
    );
    let graph = graph_of(&program(Vec::new(), vec![dropout]));
    assert_eq!(graph.to_string(), "input x: ?\ny = Identity(x)\noutput y\n");
}

#[test]
fn operands_are_aligned_from_the_axis_that_an_op_names() {
    let add = |axis| {
        let inputs: [(&str, &[&str]); 2] = [("X", &["x"]), ("Y", &["x2"])];
        let second =
            op("fill_constant", &[], &[("Out", &["x2"])], vec![int("dtype", F32), ints("shape", &[3])]);
        let add = op("elementwise_add", &inputs, &[("Out", &["y"])], vec![int("axis", axis)]);
        program(vec![variable("x", F32, &[-1, 3, 4, 4]), variable("x2", F32, &[3])], vec![second, add])
    };
    says(&graph_of(&add(1)).to_string(), &["Unsqueeze([0.0, 0.0, 0.0], [1.0, 2.0])", "y = Add(x, #"]);
    says(&graph_of(&add(3)).to_string(), &["y = Add(x, [0.0, 0.0, 0.0])"]);
    says(&refusal(&add(4)), &["an axis from which on 1 of 4 dimensions follow, found 4"]);
    says(&refusal(&add(i32::MIN)), &["found -2147483648"]);
}

#[test]
fn windows_that_cut_into_equal_parts_become_ordinary_ones() {
    let pool = |dims: &[i64], parts: [i32; 2]| {
        let adaptive = op_desc::Attr { b: Some(true), ..named("adaptive") };
        let attributes = vec![adaptive, ints("ksize", &parts), text("pooling_type", "avg")];
        let pool = op("pool2d", &[("X", &["x"])], &[("Out", &["y"])], attributes);
        program(vec![variable("x", F32, dims)], vec![pool])
    };
    let graph = graph_of(&pool(&[-1, 3, 8, 8], [4, 2]));
    assert!(graph.nodes[0].is("AveragePool"));
    assert_eq!(graph.nodes[0].attributes.ints("kernel_shape").unwrap(), Some([2, 4].as_slice()));
    for dims in [[-1, 3, 9, 8], [-1, 3, -1, -1]] {
        let graph = graph_of(&pool(&dims, [4, 2]));
        assert_eq!(graph.nodes.iter().filter(|node| node.is("ReduceMean")).count(), 4 + 2);
    }
    says(&refusal(&pool(&[-1, 3, 100, 8], [65, 2])), &["1 to 64 parts, found 65"]);
}

#[test]
fn a_row_that_stands_for_nothing_is_zeros() {
    let table = parameter("t", &[2, 2]);
    let padding = op_desc::Attr { l: Some(1), ..named("padding_idx") };
    let lookup = op("lookup_table_v2", &[("W", &["t"]), ("Ids", &["x"])], &[("Out", &["y"])], vec![padding]);
    let program = program(vec![variable("x", I64, &[-1]), table, variable("y", F32, &[-1, 2])], vec![lookup]);
    let parameters = file_of(&[(&[2, 2], &[1.0, 2.0, 3.0, 4.0])]);
    let ops: Vec<String> =
        read(&program, parameters).unwrap().graph.nodes.iter().map(|node| node.op.to_string()).collect();
    assert_eq!(ops, ["Gather", "Equal", "Unsqueeze", "Where"]);
}

#[test]
fn a_variable_of_more_dimensions_than_tensors_have_is_refused() {
    let many = variable("x", F32, &[1; 65]);
    says(&refusal(&program(vec![many], Vec::new())), &["at most 64 dimensions, found 65 of `x`"]);
}

#[test]
fn a_variable_that_is_fed_twice_is_refused() {
    let again = op("feed", &[("X", &["feed"])], &[("Out", &["x"])], vec![int("col", 1)]);
    let relu = op("relu", &[("X", &["x"])], &[("Out", &["y"])], Vec::new());
    let program = program(vec![variable("x", F32, &[2])], vec![again, relu]);
    says(&refusal(&program), &["inputs of different names, found `x` twice"]);
}
