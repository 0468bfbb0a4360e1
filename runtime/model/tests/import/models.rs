//! Metadata, inputs and outputs, types and attributes.

use oarlock_core::{Attribute, Attributes, ErrorKind};
use oarlock_model::import::onnx;
use oarlock_model::import::onnx::messages::*;
use prost::Message as _;

use crate::model_builder::*;

fn relu_model() -> ModelProto {
    build_model(build_graph(&["x"], vec![build_node("Relu", &["x"], &["y"])], &["y"]))
}

#[test]
fn a_model_says_who_made_it_and_for_what() {
    let mut proto = relu_model();
    proto.producer_name = Some("maker".into());
    proto.producer_version = Some("2.1".into());
    proto.opset_import.push(build_opset("com.example", 3));
    let entry = StringStringEntryProto { key: Some("licence".into()), value: Some("free".into()) };
    proto.metadata_props.push(entry);
    let model = read_model(&proto).unwrap();
    assert_eq!((model.format.as_str(), model.producer.as_str()), ("ONNX, IR 10", "maker 2.1"));
    assert_eq!(model.opsets["ai.onnx"], 20);
    assert_eq!(model.opsets["com.example"], 3);
    assert_eq!(model.metadata["licence"], "free");
    assert_eq!(model.graph.to_string(), "input x: ?\ny = Relu(x)\noutput y\n");
    assert_eq!(model.graph.nodes[0].opset, 20);
}

#[test]
fn both_names_of_onnxs_own_domain_are_one() {
    let mut proto = build_model(build_graph(
        &["x"],
        vec![build_node("Relu", &["x"], &["y"]).with_domain("ai.onnx")],
        &["y"],
    ));
    proto.opset_import = vec![build_opset("ai.onnx", 13)];
    let graph = import_graph(&proto);
    assert!(graph.nodes[0].is_op("Relu"));
    assert_eq!(graph.nodes[0].opset, 13);
}

#[test]
fn versions_that_nobody_knows_are_refused_with_those_that_are_known() {
    for version in [None, Some(2), Some(15), Some(i64::MIN)] {
        let error = read_model(&ModelProto { ir_version: version, ..relu_model() }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unimplemented);
        assert_contains(error.message(), &["expected an IR version from 3 to 14, found "]);
    }
    for version in [0, -1, 1000, i64::MAX] {
        let error = read_model(&ModelProto { opset_import: vec![build_opset("", version)], ..relu_model() })
            .unwrap_err();
        assert_contains(
            error.message(),
            &["expected an opset of `ai.onnx` from 1 to ", &format!("found {version}")],
        );
    }
    let twice = vec![build_opset("", 20), build_opset("ai.onnx", 21)];
    assert_contains(
        &import_refusal(&ModelProto { opset_import: twice, ..relu_model() }),
        &["one opset of `ai.onnx`", "two that differ"],
    );
}

#[test]
fn a_node_of_a_domain_that_the_model_does_not_import_is_refused() {
    let of_other = build_node("Fast", &["x"], &["y"]).with_domain("com.example").with_name("fast1");
    assert_contains(
        &import_refusal(&build_model(build_graph(&["x"], vec![of_other], &["y"]))),
        &["graph `g`: `com.example.Fast` (`fast1`)", "an opset of `com.example`", "found `ai.onnx`"],
    );
    assert_contains(
        &import_refusal(&ModelProto { opset_import: Vec::new(), ..relu_model() }),
        &["an opset of `ai.onnx`", "none at all"],
    );
}

#[test]
fn what_is_no_model_is_refused() {
    assert_contains(
        &onnx::decode_onnx(bytes::Bytes::new(), None).unwrap_err().to_string(),
        &["an ONNX model", "an empty file"],
    );
    let text = bytes::Bytes::from_static(b"<html>not here</html>");
    let error = onnx::decode_onnx(text, None).unwrap_err();
    assert_contains(error.message(), &["expected an ONNX model, found a web page"]);
    assert_contains(error.advice().unwrap(), &["download the model again"]);
    let noise = bytes::Bytes::from_static(b"\xff\xfe\xfd");
    assert_contains(
        &onnx::decode_onnx(noise, None).unwrap_err().to_string(),
        &["expected an ONNX model, found 3 bytes that are no protobuf message of ONNX"],
    );
    let saved_model = bytes::Bytes::from_static(b"\x08\x01\x12\x09\x0a\x07\x22\x05serve");
    assert_contains(
        &onnx::decode_onnx(saved_model, None).unwrap_err().to_string(),
        &["expected an ONNX model, found a SavedModel of TensorFlow"],
    );
    assert_contains(
        &import_refusal(&ModelProto { graph: None, ..relu_model() }),
        &["expected a graph, found a model without one"],
    );
}

#[test]
fn a_file_that_is_none_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let missing = oarlock_model::import::load_model(&directory.path().join("missing.onnx")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert_contains(missing.message(), &["missing.onnx`: expected a file, found none"]);
    assert_eq!(missing.message().matches("missing.onnx").count(), 1);
}

#[test]
fn a_directory_is_the_only_model_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let refusal = || oarlock_model::import::load_model(directory.path()).unwrap_err();
    std::fs::write(directory.path().join("config.json"), "{}").unwrap();
    std::fs::create_dir(directory.path().join("below.onnx")).unwrap();
    assert_eq!(refusal().kind(), ErrorKind::NotFound);
    assert_contains(refusal().message(), &["expected a directory with a Paddle program (`*.json`"]);
    std::fs::write(directory.path().join("model.tflite"), b"\x1c\0\0\0TFL3").unwrap();
    assert_contains(refusal().message(), &["found `model.tflite`, which is a model of TensorFlow Lite"]);
    assert_contains(refusal().advice().unwrap(), &["tf2onnx"]);
    std::fs::write(directory.path().join("relu.onnx"), relu_model().encode_to_vec()).unwrap();
    assert_eq!(oarlock_model::import::load_model(directory.path()).unwrap().graph.nodes.len(), 1);
    std::fs::write(directory.path().join("other.pdmodel"), "").unwrap();
    assert_contains(
        refusal().message(),
        &["expected one model in a directory, found `other.pdmodel`, `relu.onnx`"],
    );
    assert_contains(refusal().advice().unwrap(), &["name one of these files"]);
}

#[test]
fn types_are_read_with_their_symbols() {
    use tensor_shape_proto::dimension::Value::{DimParam, DimValue};
    let dim = |value| tensor_shape_proto::Dimension { value };
    let dims = [Some(DimParam("batch".into())), Some(DimValue(3)), Some(DimValue(-1)), None];
    let shape = TensorShapeProto { dim: dims.into_iter().map(dim).collect() };
    let tensor = type_proto::Tensor { elem_type: Some(1), shape: Some(shape) };
    let inner = |tensor: &type_proto::Tensor| {
        Some(Box::new(TypeProto { value: Some(type_proto::Value::TensorType(tensor.clone())) }))
    };
    let unranked = type_proto::Tensor { elem_type: Some(7), shape: None };
    let sequence = type_proto::Sequence { elem_type: inner(&unranked) };
    let optional = type_proto::Optional { elem_type: inner(&tensor) };
    let map = type_proto::Map { key_type: Some(8), value_type: inner(&unranked) };
    let mut proto = build_graph(&[], vec![build_node("Relu", &["x"], &["y"])], &["y"]);
    proto.input = vec![
        typed_value_info("x", type_proto::Value::TensorType(tensor)),
        typed_value_info("s", type_proto::Value::SequenceType(Box::new(sequence))),
        typed_value_info("o", type_proto::Value::OptionalType(Box::new(optional))),
        typed_value_info("m", type_proto::Value::MapType(Box::new(map))),
    ];
    proto.value_info = vec![float_value_info("y", &[1, 2]), float_value_info("nobody", &[1])];
    let graph = import_graph(&build_model(proto));
    let types: Vec<String> = graph.inputs.iter().map(|id| graph.value(*id).declared.to_string()).collect();
    assert_eq!(
        types,
        [
            "f32[batch, 3, ?, ?]",
            "sequence of i64[…]",
            "optional f32[batch, 3, ?, ?]",
            "map of string to i64[…]"
        ]
    );
    assert_eq!(graph.value(graph.outputs[0]).declared.to_string(), "f32[1, 2]");
}

#[test]
fn types_that_cannot_be_are_refused() {
    let input = |value| {
        let mut proto = build_graph(&[], vec![build_node("Relu", &["x"], &["y"])], &["y"]);
        proto.input = vec![value];
        build_model(proto)
    };
    assert_contains(
        &import_refusal(&input(float_value_info("x", &[3, -5]))),
        &["graph `g`: input `x`", "at least 0", "-5"],
    );
    assert_contains(
        &import_refusal(&input(float_value_info("x", &[1; 65]))),
        &["at most 64 dimensions, found 65"],
    );
    let tensor = |elem_type| type_proto::Value::TensorType(type_proto::Tensor { elem_type, shape: None });
    assert_contains(
        &import_refusal(&input(typed_value_info("x", tensor(Some(999))))),
        &["a dtype of ONNX, found number 999"],
    );
    assert_contains(
        &import_refusal(&input(typed_value_info("x", tensor(Some(27))))),
        &["supported, found `FLOAT6E2M3`"],
    );
}

#[test]
fn attributes_of_every_type_are_read() {
    use attribute_proto::AttributeType;
    let texts =
        |texts: &[&'static str]| texts.iter().map(|text| bytes::Bytes::from(*text)).collect::<Vec<_>>();
    let odd = build_node("Odd", &["x"], &["y"])
        .with_attribute(int_attribute("int", -3))
        .with_attribute(float_attribute("float", 0.5))
        .with_attribute(AttributeProto {
            s: Some("text".into()),
            ..build_attribute("string", AttributeType::String)
        })
        .with_attribute(AttributeProto { ints: vec![1, 2], ..build_attribute("ints", AttributeType::Ints) })
        .with_attribute(AttributeProto {
            floats: vec![1.5],
            ..build_attribute("floats", AttributeType::Floats)
        })
        .with_attribute(AttributeProto {
            strings: texts(&["a", "b"]),
            ..build_attribute("strings", AttributeType::Strings)
        })
        .with_attribute(tensor_attribute("tensor", float_tensor("", &[2], &[1.0, 2.0])))
        .with_attribute(build_attribute("nothing", AttributeType::Ints))
        .with_attribute(AttributeProto {
            name: Some("untyped".into()),
            i: Some(7),
            ..AttributeProto::default()
        })
        .with_domain("com.example");
    let mut proto = build_model(build_graph(&["x"], vec![odd], &["y"]));
    proto.opset_import.push(build_opset("com.example", 1));
    let graph = import_graph(&proto);
    let attributes = &graph.nodes[0].attributes;
    assert_eq!(attributes.get_int("int").unwrap(), Some(-3));
    assert_eq!(attributes.get_float("float").unwrap(), Some(0.5));
    assert_eq!(attributes.get_string("string").unwrap(), Some("text"));
    assert_eq!(attributes.get_ints("ints").unwrap(), Some([1, 2].as_slice()));
    assert_eq!(attributes.get("floats"), Some(&Attribute::Floats(vec![1.5])));
    assert_eq!(attributes.get("strings"), Some(&Attribute::Strings(vec!["a".into(), "b".into()])));
    assert_eq!(attributes.get_tensor("tensor").unwrap().unwrap().to_floats().unwrap(), [1.0, 2.0]);
    assert_eq!(attributes.get_ints("nothing").unwrap(), Some([].as_slice()));
    assert_eq!(attributes.get_int("untyped").unwrap(), Some(7));
}

#[test]
fn attributes_that_cannot_be_are_refused_with_their_node() {
    use attribute_proto::AttributeType;
    let of = |attribute| {
        import_refusal(&build_model(build_graph(
            &["x"],
            vec![build_node("Elu", &["x"], &["y"]).with_attribute(attribute)],
            &["y"],
        )))
    };
    let unknown = AttributeProto { r#type: Some(99), ..build_attribute("alpha", AttributeType::Int) };
    assert_contains(&of(unknown), &["the `Elu` that makes `y`: the attribute `alpha`", "number 99"]);
    assert_contains(&of(build_attribute("alpha", AttributeType::Graph)), &["the type `GRAPH`, found none"]);
    assert_contains(
        &of(AttributeProto { name: Some("alpha".into()), ..Default::default() }),
        &["without type and value"],
    );
    let text =
        AttributeProto { s: Some(vec![0xff].into()), ..build_attribute("alpha", AttributeType::String) };
    assert_contains(&of(text), &["text in UTF-8"]);
    assert_contains(
        &of(attribute_reference("alpha", AttributeType::Float, "a")),
        &["this is no function", "`a`"],
    );
    let twice = build_node("Elu", &["x"], &["y"])
        .with_attribute(float_attribute("alpha", 1.0))
        .with_attribute(float_attribute("alpha", 2.0));
    assert_contains(
        &import_refusal(&build_model(build_graph(&["x"], vec![twice], &["y"]))),
        &["every attribute once, found `alpha` twice"],
    );
}

#[test]
fn the_type_of_an_optional_becomes_that_of_its_value() {
    let tensor = type_proto::Tensor { elem_type: Some(1), shape: None };
    let declared = TypeProto { value: Some(type_proto::Value::TensorType(tensor)) };
    let kind = build_attribute("type", attribute_proto::AttributeType::TypeProto);
    let optional = build_node("Optional", &[], &["y"])
        .with_attribute(AttributeProto { tp: Some(Box::new(declared)), ..kind });
    let graph = import_graph(&build_model(build_graph(&[], vec![optional], &["y"])));
    assert_eq!(graph.value(graph.outputs[0]).declared.to_string(), "optional f32[…]");
}

#[test]
fn operands_that_are_left_out_keep_the_places_of_the_others() {
    let clip = build_node("Clip", &["x", "", "high"], &["y"]);
    let resize = build_node("Split", &["y", "", ""], &["a", "", "c"]);
    let graph = import_graph(&build_model(build_graph(&["x", "high"], vec![clip, resize], &["a", "c"])));
    assert_eq!(
        graph.to_string(),
        "input x: ?\ninput high: ?\ny = Clip(x, _, high)\na, _, c = Split(y)\noutput a\noutput c\n"
    );
    assert_eq!(graph.nodes[1].inputs.len(), 1);
}

#[test]
fn operands_that_an_old_model_repeats_from_an_axis_on_get_the_dimensions_they_lack() {
    let add = build_node("Add", &["x", "b"], &["y"])
        .with_attribute(int_attribute("broadcast", 1))
        .with_attribute(int_attribute("axis", 1));
    let mut proto = build_graph(&[], vec![add], &["y"]);
    proto.input = vec![float_value_info("x", &[2, 3, 4, 5]), float_value_info("b", &[3])];
    let old = |graph| ModelProto { opset_import: vec![build_opset("", 6)], ..build_model(graph) };
    let graph = import_graph(&old(proto.clone()));
    assert_contains(
        &graph.to_string(),
        &["b aligned = Unsqueeze(b) axes=Ints([1, 2])\ny = Add(x, b aligned)\n"],
    );
    assert_eq!(graph.nodes[1].opset, 7);
    proto.input[1] = float_value_info("b", &[3, 4, 5, 6]);
    assert_contains(
        &import_refusal(&old(proto.clone())),
        &["an axis from which on 4 of 4 dimensions follow, found 1"],
    );
    proto.input[1] = build_value_info("b");
    assert_contains(&import_refusal(&old(proto)), &["operands of a known number of dimensions"]);
}

#[test]
fn mappers_of_categories_are_labels_in_the_direction_of_their_input() {
    use attribute_proto::AttributeType;
    use tensor_proto::DataType;
    let strings = |name: &str| AttributeProto {
        strings: ["a", "b", "a"].map(|text| text.as_bytes().to_vec().into()).to_vec(),
        ..build_attribute(name, AttributeType::Strings)
    };
    let labels = |op: &str, dtype: Option<DataType>, attributes: Vec<AttributeProto>| {
        let mut node = build_node(op, &["x"], &["y"]).with_domain("ai.onnx.ml");
        node.attribute = attributes;
        let mut proto = build_graph(&["x"], vec![node], &["y"]);
        if let Some(dtype) = dtype {
            let tensor = type_proto::Tensor { elem_type: Some(dtype.into()), shape: None };
            proto.input = vec![typed_value_info("x", type_proto::Value::TensorType(tensor))];
        }
        let mut model = build_model(proto);
        model.opset_import.push(build_opset("ai.onnx.ml", 1));
        let graph = import_graph(&model);
        let node = &graph.nodes[0];
        assert_eq!((&*node.op, node.opset), ("LabelEncoder", 2));
        node.attributes.clone()
    };
    let mapper = |dtype: Option<DataType>, default: AttributeProto| {
        let numbers =
            AttributeProto { ints: vec![1, 2, 3], ..build_attribute("cats_int64s", AttributeType::Ints) };
        labels("CategoryMapper", dtype, vec![strings("cats_strings"), numbers, default])
    };
    let texts = || Attribute::Strings(["a", "b", "a"].map(str::to_owned).to_vec());
    let to_numbers_of = |numbers: [i64; 3], default| {
        let pairs = Attributes::new()
            .with_attribute("keys_strings", texts())
            .with_attribute("values_int64s", Attribute::Ints(numbers.to_vec()));
        pairs.with_attribute("default_int64", Attribute::Int(default))
    };
    let to_texts_of = |numbers: [i64; 3], default: &str| {
        let pairs = Attributes::new()
            .with_attribute("keys_int64s", Attribute::Ints(numbers.to_vec()))
            .with_attribute("values_strings", texts());
        pairs.with_attribute("default_string", Attribute::String(default.to_owned()))
    };
    let text = || {
        let kind = build_attribute("default_string", AttributeType::String);
        AttributeProto { s: Some(b"none".to_vec().into()), ..kind }
    };
    let to_numbers = |default| to_numbers_of([3, 2, 1], default);
    let to_texts = |default| to_texts_of([3, 2, 1], default);
    assert_eq!(mapper(Some(DataType::String), int_attribute("default_int64", 7)), to_numbers(7));
    assert_eq!(mapper(Some(DataType::String), text()), to_numbers(-1));
    assert_eq!(mapper(Some(DataType::Int64), int_attribute("default_int64", 7)), to_texts("_Unused"));
    assert_eq!(mapper(None, int_attribute("default_int64", 7)), to_numbers(7));
    assert_eq!(mapper(None, text()), to_texts("none"));
    // In the first version of `LabelEncoder`, numbers are positions, and the last of equal classes wins.
    let encoder = |dtype| labels("LabelEncoder", Some(dtype), vec![strings("classes_strings")]);
    assert_eq!(encoder(DataType::String), to_numbers_of([2, 1, 0], -1));
    assert_eq!(encoder(DataType::Int64), to_texts_of([2, 1, 0], "_Unused"));
}
