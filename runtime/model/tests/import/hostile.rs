//! Corrupt models give an error or a valid graph, nothing else: truncated anywhere, with any bit flipped, or nested too deep.

use bytes::Bytes;
use oarlock_model::graph;
use oarlock_model::import::onnx::{self, messages::*};
use prost::Message as _;
use tensor_proto::{DataLocation, DataType};

use crate::model_builder::*;

/// A small model that uses a bit of everything.
fn full_featured_model(directory: &std::path::Path) -> Bytes {
    std::fs::write(directory.join("weights"), [0; 64]).unwrap();
    let entries = [("location", "weights"), ("offset", "16"), ("length", "32")];
    let entry = |(key, value): (&str, &str)| StringStringEntryProto {
        key: Some(key.into()),
        value: Some(value.into()),
    };
    let outside = TensorProto {
        data_location: Some(DataLocation::External.into()),
        external_data: entries.into_iter().map(entry).collect(),
        ..build_tensor("outside", DataType::Float, &[8])
    };
    let body = build_graph(
        &["i", "c", "s"],
        vec![build_node("Add", &["s", "h"], &["t"]).with_domain("local")],
        &["c", "t"],
    );
    let nodes = vec![
        build_node("Constant", &[], &["k"]).with_attribute(int_attribute("value_int", 3)),
        build_node("Relu", &["x"], &["h"]),
        build_node("Loop", &["k", "", "x"], &["y"]).with_body("body", body),
        build_node("Mul", &["y", "sparse"], &["z"]),
        build_node("Add", &["z", "outside"], &["o"]),
    ];
    let mut proto = build_graph(&[], nodes, &["o"]);
    proto.input = vec![float_value_info("x", &[8])];
    proto.initializer = vec![outside, float_tensor("inside", &[2], &[1.0, 2.0])];
    proto.sparse_initializer = vec![SparseTensorProto {
        values: Some(float_tensor("sparse", &[1], &[1.0]).into()),
        indices: Some(int_tensor("", &[1], &[2]).into()),
        dims: vec![8],
    }];
    let scaled = build_node("Elu", &["a"], &["d"]).with_attribute(attribute_reference(
        "alpha",
        attribute_proto::AttributeType::Float,
        "alpha",
    ));
    let function = FunctionProto {
        name: Some("Add".into()),
        domain: Some("local".into()),
        input: vec!["a".into(), "b".into()],
        output: vec!["c".into()],
        node: vec![scaled, build_node("Add", &["d", "b"], &["c"])],
        attribute_proto: vec![float_attribute("alpha", 2.0)],
        opset_import: vec![build_opset("", 20)],
        ..FunctionProto::default()
    };
    let model = ModelProto { functions: vec![function], ..build_model(proto) };
    Bytes::from(model.encode_to_vec())
}

/// Imports a model and checks the graph; false if it is refused.
fn survives_import(bytes: Bytes, directory: &std::path::Path) -> bool {
    match onnx::decode_onnx(bytes, Some(directory)) {
        Ok(model) => {
            graph::check_graph(&model.graph).expect("what is read is a graph");
            true
        }
        Err(error) => {
            assert!(!error.message().is_empty());
            false
        }
    }
}

#[test]
fn a_model_that_is_cut_off_anywhere_is_survived() {
    let directory = tempfile::tempdir().unwrap();
    let whole = full_featured_model(directory.path());
    assert!(survives_import(whole.clone(), directory.path()));
    for end in 0..whole.len() {
        survives_import(whole.slice(..end), directory.path());
    }
}

#[test]
fn a_model_with_any_bit_turned_is_survived() {
    let directory = tempfile::tempdir().unwrap();
    let whole = full_featured_model(directory.path());
    let (mut read, mut refused) = (0, 0);
    for bit in 0..whole.len() * 8 {
        let mut turned = whole.to_vec();
        turned[bit / 8] ^= 1 << (bit % 8);
        if survives_import(turned.into(), directory.path()) { read += 1 } else { refused += 1 }
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
}

#[test]
fn a_model_with_any_byte_at_its_ends_is_survived() {
    let directory = tempfile::tempdir().unwrap();
    let whole = full_featured_model(directory.path());
    for at in 0..whole.len() {
        for byte in [0x00, 0x7f, 0x80, 0xff] {
            let mut changed = whole.to_vec();
            changed[at] = byte;
            survives_import(changed.into(), directory.path());
        }
    }
}

#[test]
fn bodies_too_deep_in_each_other_are_refused() {
    let mut inner = build_graph(&[], vec![build_node("Relu", &["x"], &["y"])], &["y"]);
    for _ in 0..40 {
        inner =
            build_graph(&[], vec![build_node("If", &["x"], &["y"]).with_body("then_branch", inner)], &["y"]);
    }
    inner.input = vec![build_value_info("x")];
    assert_contains(&import_refusal(&build_model(inner)), &["recursion limit reached"]);
}

#[test]
fn types_too_deep_in_each_other_are_refused() {
    let mut of = TypeProto::default();
    for _ in 0..200 {
        let sequence = type_proto::Sequence { elem_type: Some(Box::new(of)) };
        of = TypeProto { value: Some(type_proto::Value::SequenceType(Box::new(sequence))) };
    }
    let mut proto = build_graph(&[], Vec::new(), &[]);
    proto.input = vec![ValueInfoProto { name: Some("x".into()), r#type: Some(of) }];
    assert_contains(&import_refusal(&build_model(proto)), &["recursion limit reached"]);
}

#[test]
fn a_node_with_more_attributes_than_any_op_has_is_refused() {
    let names: Vec<String> = (0..1001).map(|at| format!("a{at}")).collect();
    let node = names
        .iter()
        .fold(build_node("Relu", &["x"], &["y"]), |node, name| node.with_attribute(int_attribute(name, 1)));
    assert_contains(
        &import_refusal(&build_model(build_graph(&["x"], vec![node], &["y"]))),
        &["at most 1000 attributes, found 1001"],
    );
}
