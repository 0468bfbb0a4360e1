//! Broken models end with an error or a graph, never otherwise: cut off anywhere, with any bit turned, or too deep.

use bytes::Bytes;
use oarlock_engine::graph;
use oarlock_engine::import::onnx::{self, messages::*};
use prost::Message as _;
use tensor_proto::{DataLocation, DataType};

use crate::build::*;

/// A small model with a bit of everything.
fn everything(directory: &std::path::Path) -> Bytes {
    std::fs::write(directory.join("weights"), [0; 64]).unwrap();
    let entries = [("location", "weights"), ("offset", "16"), ("length", "32")];
    let entry = |(key, value): (&str, &str)| StringStringEntryProto {
        key: Some(key.into()),
        value: Some(value.into()),
    };
    let outside = TensorProto {
        data_location: Some(DataLocation::External.into()),
        external_data: entries.into_iter().map(entry).collect(),
        ..tensor("outside", DataType::Float, &[8])
    };
    let body = graph(&["i", "c", "s"], vec![node("Add", &["s", "h"], &["t"]).of("local")], &["c", "t"]);
    let nodes = vec![
        node("Constant", &[], &["k"]).with(int("value_int", 3)),
        node("Relu", &["x"], &["h"]),
        node("Loop", &["k", "", "x"], &["y"]).body("body", body),
        node("Mul", &["y", "sparse"], &["z"]),
        node("Add", &["z", "outside"], &["o"]),
    ];
    let mut proto = graph(&[], nodes, &["o"]);
    proto.input = vec![floats_of("x", &[8])];
    proto.initializer = vec![outside, floats("inside", &[2], &[1.0, 2.0])];
    proto.sparse_initializer = vec![SparseTensorProto {
        values: Some(floats("sparse", &[1], &[1.0]).into()),
        indices: Some(ints("", &[1], &[2]).into()),
        dims: vec![8],
    }];
    let scaled =
        node("Elu", &["a"], &["d"]).with(reference("alpha", attribute_proto::AttributeType::Float, "alpha"));
    let function = FunctionProto {
        name: Some("Add".into()),
        domain: Some("local".into()),
        input: vec!["a".into(), "b".into()],
        output: vec!["c".into()],
        node: vec![scaled, node("Add", &["d", "b"], &["c"])],
        attribute_proto: vec![float("alpha", 2.0)],
        opset_import: vec![opset("", 20)],
        ..FunctionProto::default()
    };
    let model = ModelProto { functions: vec![function], ..model(proto) };
    Bytes::from(model.encode_to_vec())
}

/// Reads a model; what becomes of it is a graph.
fn survive(bytes: Bytes, directory: &std::path::Path) -> bool {
    match onnx::decode(bytes, Some(directory)) {
        Ok(model) => {
            graph::check(&model.graph).expect("what is read is a graph");
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
    let whole = everything(directory.path());
    assert!(survive(whole.clone(), directory.path()));
    for end in 0..whole.len() {
        survive(whole.slice(..end), directory.path());
    }
}

#[test]
fn a_model_with_any_bit_turned_is_survived() {
    let directory = tempfile::tempdir().unwrap();
    let whole = everything(directory.path());
    let (mut read, mut refused) = (0, 0);
    for bit in 0..whole.len() * 8 {
        let mut turned = whole.to_vec();
        turned[bit / 8] ^= 1 << (bit % 8);
        if survive(turned.into(), directory.path()) { read += 1 } else { refused += 1 }
    }
    assert!(read > 0 && refused > 0, "{read} read, {refused} refused");
}

#[test]
fn a_model_with_any_byte_at_its_ends_is_survived() {
    let directory = tempfile::tempdir().unwrap();
    let whole = everything(directory.path());
    for at in 0..whole.len() {
        for byte in [0x00, 0x7f, 0x80, 0xff] {
            let mut changed = whole.to_vec();
            changed[at] = byte;
            survive(changed.into(), directory.path());
        }
    }
}

#[test]
fn bodies_too_deep_in_each_other_are_refused() {
    let mut inner = graph(&[], vec![node("Relu", &["x"], &["y"])], &["y"]);
    for _ in 0..40 {
        inner = graph(&[], vec![node("If", &["x"], &["y"]).body("then_branch", inner)], &["y"]);
    }
    inner.input = vec![value("x")];
    says(&refusal(&model(inner)), &["recursion limit reached"]);
}

#[test]
fn types_too_deep_in_each_other_are_refused() {
    let mut of = TypeProto::default();
    for _ in 0..200 {
        let sequence = type_proto::Sequence { elem_type: Some(Box::new(of)) };
        of = TypeProto { value: Some(type_proto::Value::SequenceType(Box::new(sequence))) };
    }
    let mut proto = graph(&[], Vec::new(), &[]);
    proto.input = vec![ValueInfoProto { name: Some("x".into()), r#type: Some(of) }];
    says(&refusal(&model(proto)), &["recursion limit reached"]);
}

#[test]
fn a_node_with_more_attributes_than_any_op_has_is_refused() {
    let names: Vec<String> = (0..1001).map(|at| format!("a{at}")).collect();
    let node = names.iter().fold(node("Relu", &["x"], &["y"]), |node, name| node.with(int(name, 1)));
    says(&refusal(&model(graph(&["x"], vec![node], &["y"]))), &["at most 1000 attributes, found 1001"]);
}
