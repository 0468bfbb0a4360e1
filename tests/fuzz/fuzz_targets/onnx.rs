//! ONNX models: arbitrary bytes, and arbitrary messages shaped like a model, mostly with meaningful names.
#![no_main]

#[expect(dead_code, reason = "the rest is for models that are run")]
mod message;

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use oarlock_engine::graph;
use oarlock_engine::import::onnx::{self, messages::*};
use prost::Message as _;

const NAMES: [&str; 10] = ["", "a", "b", "c", "d", "e", "f", "g", "h", "i"];
const OPS: [&str; 8] = ["Add", "Constant", "F", "G", "H", "If", "Loop", "Relu"];
const DOMAINS: [&str; 4] = ["", "ai.onnx", "local", "unknown"];
const KEYS: [&str; 4] = ["length", "location", "offset", "other"];
const TEXTS: [&str; 8] =
    ["0", "16", "-1", "18446744073709551615", "weights", "./weights", "../weights", "/etc/passwd"];
const ATTRIBUTES: [&str; 6] = ["alpha", "body", "sparse_value", "value", "value_ints", "value_string"];
/// Nesting limit of graphs.
const MAX_DEPTH: usize = 6;

/// A directory with a file of external weights.
static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let directory = std::env::temp_dir().join(format!("oarlock-fuzz-onnx-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory for weights");
    std::fs::write(directory.join("weights"), [1; 64]).expect("a file of weights");
    directory
});

fuzz_target!(|bytes: &[u8]| {
    let Some((how, rest)) = bytes.split_first() else { return };
    let encoded = match how % 4 {
        0 => rest.to_vec(),
        _ => match model(&mut Unstructured::new(rest)) {
            Ok(model) => model.encode_to_vec(),
            Err(_) => return,
        },
    };
    if let Ok(model) = onnx::decode_onnx(encoded.into(), Some(&DIRECTORY)) {
        graph::check_graph(&model.graph).expect("what is read is a graph");
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    match data[..size].first() {
        Some(how) if how % 4 == 0 => message::mutate(data, size, max_size, |_| 0, seed),
        _ => fuzzer_mutate(data, size, max_size),
    }
});

fn one(source: &mut Unstructured, of: &[&str]) -> Result<String> {
    Ok((*source.choose(of)?).to_owned())
}

/// Up to `most` items.
fn some<T>(
    source: &mut Unstructured,
    most: usize,
    make: impl Fn(&mut Unstructured) -> Result<T>,
) -> Result<Vec<T>> {
    (0..source.int_in_range(0..=most)?).map(|_| make(source)).collect()
}

/// An item, or `None`.
fn maybe<T>(
    source: &mut Unstructured,
    make: impl FnOnce(&mut Unstructured) -> Result<T>,
) -> Result<Option<T>> {
    if source.ratio(1, 4)? { Ok(None) } else { make(source).map(Some) }
}

/// Mostly a number in the range, sometimes any.
fn number(source: &mut Unstructured, from: i64, to: i64) -> Result<i64> {
    if source.ratio(1, 32)? { source.arbitrary() } else { source.int_in_range(from..=to) }
}

fn model(source: &mut Unstructured) -> Result<ModelProto> {
    Ok(ModelProto {
        ir_version: Some(number(source, 3, 14)?),
        opset_import: vec![opset(source, "")?, opset(source, "local")?],
        functions: some(source, 4, function)?,
        graph: maybe(source, |source| graph_of(source, 0))?,
        ..ModelProto::default()
    })
}

fn opset(source: &mut Unstructured, domain: &str) -> Result<OperatorSetIdProto> {
    Ok(OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(number(source, 1, 28)?) })
}

fn function(source: &mut Unstructured) -> Result<FunctionProto> {
    Ok(FunctionProto {
        name: Some(one(source, &["F", "G", "H"])?),
        domain: Some(one(source, &DOMAINS[1..3])?),
        overload: maybe(source, |_| Ok(String::new()))?,
        input: some(source, 3, |source| one(source, &NAMES))?,
        output: some(source, 3, |source| one(source, &NAMES))?,
        attribute: Vec::new(),
        attribute_proto: some(source, 2, |source| attribute(source, MAX_DEPTH))?,
        node: some(source, 4, |source| node(source, 1))?,
        opset_import: some(source, 2, |source| {
            let domain = one(source, &DOMAINS)?;
            opset(source, &domain)
        })?,
        value_info: some(source, 1, info)?,
    })
}

fn graph_of(source: &mut Unstructured, depth: usize) -> Result<GraphProto> {
    Ok(GraphProto {
        doc_string: None,
        node: some(source, 6, |source| node(source, depth))?,
        name: maybe(source, |source| one(source, &NAMES))?,
        initializer: some(source, 2, tensor)?,
        sparse_initializer: some(source, 1, sparse)?,
        input: some(source, 3, info)?,
        output: some(source, 3, info)?,
        value_info: some(source, 1, info)?,
    })
}

fn node(source: &mut Unstructured, depth: usize) -> Result<NodeProto> {
    Ok(NodeProto {
        input: some(source, 3, |source| one(source, &NAMES))?,
        output: some(source, 3, |source| one(source, &NAMES))?,
        name: maybe(source, |source| one(source, &NAMES))?,
        op_type: maybe(source, |source| one(source, &OPS))?,
        domain: maybe(source, |source| one(source, &DOMAINS))?,
        overload: None,
        attribute: some(source, 2, |source| attribute(source, depth))?,
    })
}

fn attribute(source: &mut Unstructured, depth: usize) -> Result<AttributeProto> {
    let mut attribute = AttributeProto {
        name: Some(one(source, &ATTRIBUTES)?),
        r#type: maybe(source, |source| Ok(number(source, 0, 15)? as i32))?,
        ..AttributeProto::default()
    };
    match source.int_in_range(0..=10)? {
        0 => attribute.ref_attr_name = Some(one(source, &ATTRIBUTES)?),
        1 => attribute.f = Some(source.arbitrary()?),
        2 => attribute.i = Some(source.arbitrary()?),
        3 => attribute.s = Some(source.arbitrary::<Vec<u8>>()?.into()),
        4 => attribute.t = Some(Box::new(tensor(source)?)),
        5 if depth < MAX_DEPTH => attribute.g = Some(Box::new(graph_of(source, depth + 1)?)),
        6 => attribute.sparse_tensor = Some(Box::new(sparse(source)?)),
        7 => attribute.tp = Some(Box::new(kind(source)?)),
        8 => attribute.ints = source.arbitrary()?,
        9 => attribute.floats = source.arbitrary()?,
        _ => attribute.strings = some(source, 2, |source| Ok(source.arbitrary::<Vec<u8>>()?.into()))?,
    }
    Ok(attribute)
}

fn tensor(source: &mut Unstructured) -> Result<TensorProto> {
    let mut tensor = TensorProto {
        dims: some(source, 3, |source| number(source, 0, 3))?,
        data_type: Some(number(source, 0, 28)? as i32),
        name: Some(one(source, &NAMES)?),
        ..TensorProto::default()
    };
    match source.int_in_range(0..=7)? {
        0 => tensor.float_data = source.arbitrary()?,
        1 => tensor.int32_data = source.arbitrary()?,
        2 => tensor.int64_data = source.arbitrary()?,
        3 => tensor.double_data = source.arbitrary()?,
        4 => tensor.uint64_data = source.arbitrary()?,
        5 => tensor.string_data = some(source, 4, |source| Ok(source.arbitrary::<Vec<u8>>()?.into()))?,
        6 => {
            tensor.data_location = Some(number(source, 0, 1)? as i32);
            tensor.external_data = some(source, 4, entry)?;
        }
        _ => {
            // As many bytes as the shape needs, for dtypes of whole bytes.
            let elements = tensor.dims.iter().try_fold(1i64, |count, dim| count.checked_mul(*dim));
            let width = *source.choose(&[1, 2, 4, 8, 16])?;
            let size = elements.unwrap_or(0).clamp(0, 64) as usize * width;
            tensor.raw_data = Some(vec![2; size].into());
        }
    }
    Ok(tensor)
}

fn entry(source: &mut Unstructured) -> Result<StringStringEntryProto> {
    Ok(StringStringEntryProto { key: Some(one(source, &KEYS)?), value: Some(one(source, &TEXTS)?) })
}

fn sparse(source: &mut Unstructured) -> Result<SparseTensorProto> {
    Ok(SparseTensorProto {
        values: maybe(source, tensor)?.map(Box::new),
        indices: maybe(source, tensor)?.map(Box::new),
        dims: some(source, 3, |source| number(source, 0, 3))?,
    })
}

fn info(source: &mut Unstructured) -> Result<ValueInfoProto> {
    Ok(ValueInfoProto { name: Some(one(source, &NAMES)?), r#type: maybe(source, kind)? })
}

fn kind(source: &mut Unstructured) -> Result<TypeProto> {
    let inner = |source: &mut Unstructured| Ok(maybe(source, kind)?.map(Box::new));
    let elem_type = Some(number(source, 0, 28)? as i32);
    let value = match source.int_in_range(0..=4)? {
        0 => type_proto::Value::SequenceType(Box::new(type_proto::Sequence { elem_type: inner(source)? })),
        1 => type_proto::Value::OptionalType(Box::new(type_proto::Optional { elem_type: inner(source)? })),
        2 => {
            let map = type_proto::Map { key_type: elem_type, value_type: inner(source)? };
            type_proto::Value::MapType(Box::new(map))
        }
        _ => {
            let dim = |source: &mut Unstructured| {
                let value = tensor_shape_proto::dimension::Value::DimValue(number(source, -1, 3)?);
                Ok(tensor_shape_proto::Dimension { value: Some(value) })
            };
            let shape = maybe(source, |source| Ok(TensorShapeProto { dim: some(source, 3, dim)? }))?;
            type_proto::Value::TensorType(type_proto::Tensor { elem_type, shape })
        }
    };
    Ok(TypeProto { value: Some(value) })
}
