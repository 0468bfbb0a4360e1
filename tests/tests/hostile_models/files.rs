//! Models of files, in which things are changed: bytes, or what the bytes mean.

use oarlock_engine::import::onnx::messages::{
    AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto,
    tensor_shape_proto::dimension, type_proto,
};
use prost::Message as _;

use crate::door::{Case, Source};

/// The bytes of a model with some changes.
pub(crate) fn changed(bytes: &[u8], source: &mut Source<'_>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match ModelProto::decode(&*bytes) {
        Ok(mut model) if !source.once_in(8) => {
            for _ in 0..1 + source.below(4) {
                change(&mut model, source);
            }
            bytes = model.encode_to_vec();
        }
        _ => {}
    }
    if source.once_in(6) && !bytes.is_empty() {
        for _ in 0..1 + source.below(4) {
            let at = (source.below(256) << 8 | source.below(256)) % bytes.len();
            bytes[at] = bytes[at].wrapping_add(1 + source.below(255) as u8);
        }
    }
    bytes
}

fn change(model: &mut ModelProto, source: &mut Source<'_>) {
    if source.once_in(16) {
        for opset in &mut model.opset_import {
            opset.version = Some(source.below(30) as i64);
        }
    }
    if let Some(graph) = &mut model.graph {
        change_graph(graph, source);
    }
}

/// Some item of a list, where it has any.
fn some<'a, T>(list: &'a mut [T], source: &mut Source<'_>) -> Option<&'a mut T> {
    let at = source.below(list.len());
    list.get_mut(at)
}

fn change_graph(graph: &mut GraphProto, source: &mut Source<'_>) {
    let names: Vec<String> =
        graph.node.iter().flat_map(|node| [&node.input, &node.output]).flatten().cloned().collect();
    match source.below(12) {
        0..=6 => _ = some(&mut graph.node, source).map(|node| change_node(node, &names, source)),
        7 => _ = some(&mut graph.initializer, source).map(|tensor| change_tensor(tensor, source)),
        8 => _ = some(&mut graph.input, source).map(|info| change_type(info, source)),
        9 => _ = some(&mut graph.output, source).map(|info| change_type(info, source)),
        10 if !graph.node.is_empty() => {
            let (from, to) = (source.below(graph.node.len()), source.below(graph.node.len()));
            match source.below(3) {
                0 => graph.node.swap(from, to),
                1 => _ = graph.node.remove(from),
                _ => graph.node.insert(to, graph.node[from].clone()),
            }
        }
        _ => _ = some(&mut graph.value_info, source).map(|info| change_type(info, source)),
    }
}

fn change_node(node: &mut NodeProto, names: &[String], source: &mut Source<'_>) {
    let inner: Vec<&mut Box<GraphProto>> =
        node.attribute.iter_mut().filter_map(|attribute| attribute.g.as_mut()).collect();
    if !inner.is_empty() && !source.once_in(3) {
        let at = source.below(inner.len());
        return inner.into_iter().nth(at).into_iter().for_each(|graph| change_graph(graph, source));
    }
    match source.below(8) {
        0..=3 => _ = some(&mut node.attribute, source).map(|attribute| change_attribute(attribute, source)),
        4 => {
            let name =
                if names.is_empty() { String::new() } else { names[source.below(names.len())].clone() };
            let name = if source.once_in(4) { String::new() } else { name };
            _ = some(&mut node.input, source).map(|input| *input = name);
        }
        5 => {
            let other = &Case::working()[source.below(Case::working().len())];
            (node.op_type, node.domain) = (Some(other.op.clone()), Some(other.domain.clone()));
        }
        6 => _ = if source.once_in(2) { node.input.pop() } else { node.output.pop() },
        _ => node.attribute.truncate(source.below(node.attribute.len().max(1))),
    }
}

fn change_attribute(attribute: &mut AttributeProto, source: &mut Source<'_>) {
    if let Some(tensor) = &mut attribute.t {
        return change_tensor(tensor, source);
    }
    if attribute.i.is_some() {
        attribute.i = Some(source.int());
    } else if attribute.f.is_some() {
        attribute.f = Some(source.float() as f32);
    } else if let Some(item) = some(&mut attribute.ints, source) {
        *item = source.int();
    } else if let Some(item) = some(&mut attribute.floats, source) {
        *item = source.float() as f32;
    } else if attribute.s.is_some() {
        attribute.s = Some(source.one_of(&["", "SAME_UPPER", "linear", "reflect", "max"]).as_bytes().into());
    }
    if source.once_in(8) {
        attribute.ints.push(source.int());
    }
}

fn change_tensor(tensor: &mut TensorProto, source: &mut Source<'_>) {
    match source.below(6) {
        0 => tensor.data_type = Some(source.below(28) as i32),
        1 => tensor.dims.push(source.size()),
        2 => _ = tensor.dims.pop(),
        3 => {
            let value = source.int();
            _ = some(&mut tensor.dims, source).map(|dim| *dim = value);
        }
        _ => {
            let (int, float) = (source.int(), source.float());
            _ = some(&mut tensor.int64_data, source).map(|item| *item = int);
            _ = some(&mut tensor.float_data, source).map(|item| *item = float as f32);
            if let Some(bytes) = &mut tensor.raw_data {
                let mut changed = bytes.to_vec();
                for chunk in changed.chunks_exact_mut(8).take(2) {
                    chunk.copy_from_slice(&int.to_ne_bytes());
                }
                *bytes = changed.into();
            }
        }
    }
}

fn change_type(info: &mut ValueInfoProto, source: &mut Source<'_>) {
    if source.once_in(8) {
        info.r#type = None;
        return;
    }
    let Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)) }) = &mut info.r#type else {
        return;
    };
    let Some(shape) = tensor.shape.as_mut().filter(|_| !source.once_in(4)) else {
        tensor.elem_type = Some(source.below(28) as i32);
        return;
    };
    let value = dimension::Value::DimValue(source.int());
    _ = some(&mut shape.dim, source).map(|dim| dim.value = Some(value));
}
