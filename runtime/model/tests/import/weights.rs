//! Weights: all dtypes, as raw bytes and as typed lists, sparse ones, and those of `Constant` nodes.

use attribute_proto::AttributeType;
use oarlock_core::Dtype;
use oarlock_model::graph::Weight;
use oarlock_model::import::onnx::messages::*;
use tensor_proto::DataType;

use crate::model_builder::*;

/// Imports a tensor as an initializer.
fn import_weight(tensor: TensorProto) -> Weight {
    let name = tensor.name().to_owned();
    let mut proto = build_graph(&[], Vec::new(), &[&name]);
    proto.initializer = vec![tensor];
    let graph = import_graph(&build_model(proto));
    graph.value(graph.outputs[0]).weight.clone().unwrap()
}

/// The error of a tensor that must be refused.
fn weight_refusal(tensor: TensorProto) -> String {
    let mut proto = build_graph(&[], Vec::new(), &[tensor.name()]);
    proto.initializer = vec![tensor];
    import_refusal(&build_model(proto))
}

#[track_caller]
fn assert_holds(tensor: TensorProto, dtype: Dtype, bytes: &[u8]) {
    let dims = tensor.dims.clone();
    let weight = import_weight(tensor);
    assert_eq!(weight.dtype(), dtype);
    assert_eq!(weight.dims(), dims);
    assert_eq!(weight.as_numbers().unwrap().bytes().unwrap(), bytes);
}

#[test]
fn lists_of_numbers_become_the_bytes_of_their_dtype() {
    let of = |dtype, count: i64| build_tensor("w", dtype, &[count]);
    let ints = |dtype, count, data: &[i32]| TensorProto { int32_data: data.to_vec(), ..of(dtype, count) };
    let floats = |dtype, data: &[f32]| TensorProto { float_data: data.to_vec(), ..of(dtype, 1) };
    let doubles = |dtype, data: &[f64]| TensorProto { double_data: data.to_vec(), ..of(dtype, 1) };
    let longs = |dtype, data: &[u64]| TensorProto { uint64_data: data.to_vec(), ..of(dtype, 1) };
    let joined = |parts: &[&[u8]]| parts.concat();
    assert_holds(floats(DataType::Float, &[1.5]), Dtype::F32, &1.5f32.to_le_bytes());
    let complex = joined(&[&1f32.to_le_bytes(), &2f32.to_le_bytes()]);
    assert_holds(floats(DataType::Complex64, &[1.0, 2.0]), Dtype::C64, &complex);
    assert_holds(doubles(DataType::Double, &[1.5]), Dtype::F64, &1.5f64.to_le_bytes());
    let complex = joined(&[&1f64.to_le_bytes(), &2f64.to_le_bytes()]);
    assert_holds(doubles(DataType::Complex128, &[1.0, 2.0]), Dtype::C128, &complex);
    let long = TensorProto { int64_data: vec![-2], ..of(DataType::Int64, 1) };
    assert_holds(long, Dtype::I64, &(-2i64).to_le_bytes());
    assert_holds(longs(DataType::Uint64, &[u64::MAX]), Dtype::U64, &[255; 8]);
    assert_holds(longs(DataType::Uint32, &[u32::MAX.into()]), Dtype::U32, &[255; 4]);
    assert_holds(ints(DataType::Int32, 1, &[-2]), Dtype::I32, &(-2i32).to_le_bytes());
    assert_holds(ints(DataType::Int16, 2, &[-2, 3]), Dtype::I16, &[254, 255, 3, 0]);
    assert_holds(ints(DataType::Uint16, 1, &[65535]), Dtype::U16, &[255, 255]);
    assert_holds(ints(DataType::Float16, 1, &[0x3c00]), Dtype::F16, &[0, 0x3c]);
    assert_holds(ints(DataType::Bfloat16, 1, &[0x3f80]), Dtype::BF16, &[0x80, 0x3f]);
    assert_holds(ints(DataType::Int8, 2, &[-1, 1]), Dtype::I8, &[255, 1]);
    assert_holds(ints(DataType::Uint8, 1, &[200]), Dtype::U8, &[200]);
    assert_holds(ints(DataType::Bool, 2, &[0, 1]), Dtype::Bool, &[0, 1]);
    assert_holds(ints(DataType::Float8e4m3fn, 1, &[0x7f]), Dtype::F8E4M3, &[0x7f]);
    assert_holds(ints(DataType::Float8e5m2, 1, &[0x7f]), Dtype::F8E5M2, &[0x7f]);
    assert_holds(ints(DataType::Uint4, 3, &[0x21, 0x03]), Dtype::U4, &[0x21, 0x03]);
    assert_holds(ints(DataType::Int4, 3, &[0x21, -1]), Dtype::I4, &[0x21, 255]);
    assert_holds(ints(DataType::Float4e2m1, 2, &[0x21]), Dtype::F4E2M1, &[0x21]);
    assert_holds(ints(DataType::Uint2, 5, &[0x1b, 0x03]), Dtype::U2, &[0x1b, 0x03]);
    assert_holds(ints(DataType::Float8e4m3fnuz, 1, &[0x80]), Dtype::F8E4M3Fnuz, &[0x80]);
}

#[test]
fn bytes_are_taken_as_they_are_but_booleans_become_0_or_1() {
    assert_holds(float_tensor("w", &[2, 1], &[1.0, 2.0]), Dtype::F32, &[0, 0, 128, 63, 0, 0, 0, 64]);
    let truths =
        TensorProto { raw_data: Some(vec![0, 7, 1].into()), ..build_tensor("w", DataType::Bool, &[3]) };
    assert_holds(truths, Dtype::Bool, &[0, 1, 1]);
    let nibbles =
        TensorProto { raw_data: Some(vec![0x21, 0xf3].into()), ..build_tensor("w", DataType::Int4, &[3]) };
    assert_holds(nibbles, Dtype::I4, &[0x21, 0xf3]);
    assert_holds(build_tensor("w", DataType::Float, &[0, i64::MAX]), Dtype::F32, &[]);
}

#[test]
fn large_weights_share_the_bytes_of_the_model_and_small_ones_do_not_keep_them() {
    use prost::Message as _;
    let mut proto = build_graph(&[], Vec::new(), &["large", "small"]);
    proto.initializer =
        vec![float_tensor("large", &[100], &[1.0; 100]), float_tensor("small", &[8], &[2.0; 8])];
    let file = bytes::Bytes::from(build_model(proto).encode_to_vec());
    let graph = oarlock_model::import::onnx::decode_onnx(file.clone(), None).unwrap().graph;
    let lies_in_the_file = |at: usize| {
        let weight = graph.value(graph.outputs[at]).weight.as_ref().unwrap();
        let address = weight.as_numbers().unwrap().address();
        file.as_ptr_range().contains(&std::ptr::without_provenance(address))
    };
    assert_eq!((lies_in_the_file(0), lies_in_the_file(1)), (true, false));
}

#[test]
fn texts_are_weights_too() {
    let texts = TensorProto {
        string_data: vec!["a".into(), "ß".into()],
        ..build_tensor("w", DataType::String, &[2])
    };
    let Weight::Texts { dims, texts } = import_weight(texts) else { panic!("expected texts") };
    assert_eq!((dims, &*texts), (vec![2], ["a".to_owned(), "ß".to_owned()].as_slice()));
    let broken =
        TensorProto { string_data: vec![vec![0xff].into()], ..build_tensor("w", DataType::String, &[1]) };
    assert_contains(&weight_refusal(broken), &["initializer `w`", "text in UTF-8"]);
    assert_contains(
        &weight_refusal(build_tensor("w", DataType::String, &[2])),
        &["2 texts for the shape [2], found 0"],
    );
}

#[test]
fn elements_and_shapes_that_do_not_match_are_refused() {
    let short = TensorProto { raw_data: Some(vec![0; 7].into()), ..build_tensor("w", DataType::Float, &[2]) };
    assert_contains(&weight_refusal(short), &["graph `g`: initializer `w`", "expected 8 bytes", "found 7"]);
    let few = TensorProto { float_data: vec![1.0], ..build_tensor("w", DataType::Float, &[2]) };
    assert_contains(
        &weight_refusal(few),
        &["expected 2 numbers in `float_data` for f32 of shape [2], found 1"],
    );
    assert_contains(&weight_refusal(build_tensor("w", DataType::Float, &[1 << 40])), &["found 0"]);
    assert_contains(&weight_refusal(build_tensor("w", DataType::Float, &[i64::MAX, i64::MAX])), &["2^64"]);
    assert_contains(&weight_refusal(build_tensor("w", DataType::Float, &[-1])), &["at least 0", "[-1]"]);
    assert_contains(
        &weight_refusal(build_tensor("w", DataType::Float, &[1; 65])),
        &["at most 64 dimensions, found 65"],
    );
    let wide = TensorProto { int32_data: vec![300], ..build_tensor("w", DataType::Int8, &[1]) };
    assert_contains(&weight_refusal(wide), &["numbers that are i8, found 300"]);
    let segment = tensor_proto::Segment { begin: Some(0), end: Some(1) };
    assert_contains(
        &weight_refusal(TensorProto { segment: Some(segment), ..float_tensor("w", &[1], &[1.0]) }),
        &["a segment"],
    );
    assert_contains(
        &weight_refusal(TensorProto { data_type: Some(0), ..float_tensor("w", &[1], &[1.0]) }),
        &["a dtype, found none"],
    );
    assert_contains(
        &weight_refusal(TensorProto { data_location: Some(9), ..float_tensor("w", &[1], &[1.0]) }),
        &["location 9"],
    );
}

#[test]
fn weights_that_are_inputs_too_are_weights() {
    let mut proto = build_graph(&["x", "w"], vec![build_node("Add", &["x", "w"], &["y"])], &["y"]);
    proto.initializer = vec![float_tensor("w", &[1], &[3.0])];
    let graph = import_graph(&ModelProto { ir_version: Some(3), ..build_model(proto) });
    assert_eq!(graph.to_string(), "input x: ?\ny = Add(x, [3.0])\noutput y\n");
}

fn build_sparse_tensor(values: TensorProto, indices: TensorProto, dims: &[i64]) -> SparseTensorProto {
    SparseTensorProto { values: Some(values.into()), indices: Some(indices.into()), dims: dims.to_vec() }
}

fn sparse_model(sparse: SparseTensorProto) -> ModelProto {
    let mut proto = build_graph(&[], Vec::new(), &["w"]);
    proto.sparse_initializer = vec![sparse];
    build_model(proto)
}

#[test]
fn sparse_weights_become_dense() {
    let values = || float_tensor("w", &[2], &[1.0, 2.0]);
    for indices in [int_tensor("", &[2], &[1, 5]), int_tensor("", &[2, 2], &[0, 1, 1, 2])] {
        let graph = import_graph(&sparse_model(build_sparse_tensor(values(), indices, &[2, 3])));
        assert_eq!(graph.to_string(), "output [0.0, 1.0, 0.0, 0.0, 0.0, 2.0]\n");
    }
    for (indices, dims) in [
        (int_tensor("", &[2], &[1, 6]), vec![2, 3]),
        (int_tensor("", &[2], &[-1, 0]), vec![2, 3]),
        (int_tensor("", &[2, 2], &[0, 1, 0, 3]), vec![2, 3]),
        (int_tensor("", &[1], &[0]), vec![2, 3]),
        (int_tensor("", &[2, 2], &[0, 1, 1, 2]), vec![2, 0]),
        (float_tensor("", &[2], &[0.0, 1.0]), vec![2, 3]),
    ] {
        assert_contains(
            &import_refusal(&sparse_model(build_sparse_tensor(values(), indices, &dims))),
            &["sparse initializer `w`", "`indices`"],
        );
    }
}

#[test]
fn a_small_file_does_not_become_a_huge_dense_weight() {
    let bomb = build_sparse_tensor(float_tensor("w", &[1], &[1.0]), int_tensor("", &[1], &[0]), &[1 << 40]);
    assert_contains(&import_refusal(&sparse_model(bomb)), &["at most 268435456 bytes", "4398046511104"]);
}

#[test]
fn constant_nodes_become_weights() {
    let kind = |name, kind| build_attribute(name, kind);
    let texts = vec!["a".into(), "b".into()];
    let sparse =
        Box::new(build_sparse_tensor(float_tensor("", &[1], &[5.0]), int_tensor("", &[1], &[1]), &[2]));
    let attributes = [
        tensor_attribute("value", float_tensor("", &[1], &[1.0])),
        float_attribute("value_float", 2.0),
        AttributeProto { floats: vec![3.0], ..kind("value_floats", AttributeType::Floats) },
        int_attribute("value_int", 4),
        AttributeProto { ints: vec![4, 5], ..kind("value_ints", AttributeType::Ints) },
        AttributeProto { sparse_tensor: Some(sparse), ..kind("sparse_value", AttributeType::SparseTensor) },
        AttributeProto { s: Some("text".into()), ..kind("value_string", AttributeType::String) },
        AttributeProto { strings: texts, ..kind("value_strings", AttributeType::Strings) },
    ];
    let names: Vec<String> = (0..attributes.len()).map(|at| format!("c{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let nodes = attributes.into_iter().zip(&names);
    let nodes = nodes
        .map(|(attribute, name)| build_node("Constant", &[], &[name]).with_attribute(attribute))
        .collect();
    let graph = import_graph(&build_model(build_graph(&[], nodes, &names)));
    assert!(graph.nodes.is_empty());
    let weights: Vec<&Weight> =
        graph.outputs.iter().filter_map(|id| graph.value(*id).weight.as_ref()).collect();
    let shapes: Vec<String> = weights.iter().map(|it| format!("{} {:?}", it.dtype(), it.dims())).collect();
    assert_eq!(
        shapes,
        ["f32 [1]", "f32 []", "f32 [1]", "i64 []", "i64 [2]", "f32 [2]", "string []", "string [2]"]
    );
    assert_eq!(weights[5].as_numbers().unwrap().to_floats().unwrap(), [0.0, 5.0]);
}

#[test]
fn a_constant_node_without_one_value_is_refused() {
    let without = build_model(build_graph(&[], vec![build_node("Constant", &[], &["c"])], &["c"]));
    assert_contains(
        &import_refusal(&without),
        &["the `Constant` that makes `c`", "one attribute, which is the value, found 0"],
    );
    let two = build_node("Constant", &[], &["c"])
        .with_attribute(int_attribute("value_int", 1))
        .with_attribute(float_attribute("value_float", 1.0));
    assert_contains(
        &import_refusal(&build_model(build_graph(&[], vec![two], &["c"]))),
        &["one attribute, which is the value, found 2"],
    );
}
