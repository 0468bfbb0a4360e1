//! Mutated model files: changed bytes, or changes to the decoded model.

use oarlock_engine::import::onnx::messages::{
    AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto,
    tensor_shape_proto::dimension, type_proto,
};
use prost::Message as _;

use crate::door::{CallCase, ChoiceSource};

/// The bytes of a model with some changes.
pub(crate) fn change_bytes(bytes: &[u8], source: &mut ChoiceSource<'_>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match ModelProto::decode(&*bytes) {
        Ok(mut model) if !source.once_in(8) => {
            for _ in 0..1 + source.choose_below(4) {
                change_model(&mut model, source);
            }
            bytes = model.encode_to_vec();
        }
        _ => {}
    }
    if source.once_in(6) && !bytes.is_empty() {
        for _ in 0..1 + source.choose_below(4) {
            let at = (source.choose_below(256) << 8 | source.choose_below(256)) % bytes.len();
            bytes[at] = bytes[at].wrapping_add(1 + source.choose_below(255) as u8);
        }
    }
    bytes
}

fn change_model(model: &mut ModelProto, source: &mut ChoiceSource<'_>) {
    if source.once_in(16) {
        for opset in &mut model.opset_import {
            opset.version = Some(source.choose_below(30) as i64);
        }
    }
    if let Some(graph) = &mut model.graph {
        change_graph(graph, source);
    }
}

/// Some item of a list, or `None` if it is empty.
fn choose_item<'a, T>(list: &'a mut [T], source: &mut ChoiceSource<'_>) -> Option<&'a mut T> {
    let at = source.choose_below(list.len());
    list.get_mut(at)
}

fn change_graph(graph: &mut GraphProto, source: &mut ChoiceSource<'_>) {
    let names: Vec<String> =
        graph.node.iter().flat_map(|node| [&node.input, &node.output]).flatten().cloned().collect();
    match source.choose_below(12) {
        0..=6 => _ = choose_item(&mut graph.node, source).map(|node| change_node(node, &names, source)),
        7 => _ = choose_item(&mut graph.initializer, source).map(|tensor| change_tensor(tensor, source)),
        8 => _ = choose_item(&mut graph.input, source).map(|info| change_type(info, source)),
        9 => _ = choose_item(&mut graph.output, source).map(|info| change_type(info, source)),
        10 if !graph.node.is_empty() => {
            let (from, to) = (source.choose_below(graph.node.len()), source.choose_below(graph.node.len()));
            match source.choose_below(3) {
                0 => graph.node.swap(from, to),
                1 => _ = graph.node.remove(from),
                _ => graph.node.insert(to, graph.node[from].clone()),
            }
        }
        _ => _ = choose_item(&mut graph.value_info, source).map(|info| change_type(info, source)),
    }
}

fn change_node(node: &mut NodeProto, names: &[String], source: &mut ChoiceSource<'_>) {
    let inner: Vec<&mut Box<GraphProto>> =
        node.attribute.iter_mut().filter_map(|attribute| attribute.g.as_mut()).collect();
    if !inner.is_empty() && !source.once_in(3) {
        let at = source.choose_below(inner.len());
        return inner.into_iter().nth(at).into_iter().for_each(|graph| change_graph(graph, source));
    }
    match source.choose_below(8) {
        0..=3 => {
            _ = choose_item(&mut node.attribute, source).map(|attribute| change_attribute(attribute, source));
        }
        4 => {
            let name = if names.is_empty() {
                String::new()
            } else {
                names[source.choose_below(names.len())].clone()
            };
            let name = if source.once_in(4) { String::new() } else { name };
            _ = choose_item(&mut node.input, source).map(|input| *input = name);
        }
        5 => {
            let other = &CallCase::working_cases()[source.choose_below(CallCase::working_cases().len())];
            (node.op_type, node.domain) = (Some(other.op.clone()), Some(other.domain.clone()));
        }
        6 => _ = if source.once_in(2) { node.input.pop() } else { node.output.pop() },
        _ => node.attribute.truncate(source.choose_below(node.attribute.len().max(1))),
    }
}

fn change_attribute(attribute: &mut AttributeProto, source: &mut ChoiceSource<'_>) {
    if let Some(tensor) = &mut attribute.t {
        return change_tensor(tensor, source);
    }
    if attribute.i.is_some() {
        attribute.i = Some(source.choose_int());
    } else if attribute.f.is_some() {
        attribute.f = Some(source.choose_float() as f32);
    } else if let Some(item) = choose_item(&mut attribute.ints, source) {
        *item = source.choose_int();
    } else if let Some(item) = choose_item(&mut attribute.floats, source) {
        *item = source.choose_float() as f32;
    } else if attribute.s.is_some() {
        attribute.s =
            Some(source.choose_from(&["", "SAME_UPPER", "linear", "reflect", "max"]).as_bytes().into());
    }
    if source.once_in(8) {
        attribute.ints.push(source.choose_int());
    }
}

fn change_tensor(tensor: &mut TensorProto, source: &mut ChoiceSource<'_>) {
    match source.choose_below(6) {
        0 => tensor.data_type = Some(source.choose_below(28) as i32),
        1 => tensor.dims.push(source.choose_size()),
        2 => _ = tensor.dims.pop(),
        3 => {
            let value = source.choose_int();
            _ = choose_item(&mut tensor.dims, source).map(|dim| *dim = value);
        }
        _ => {
            let (int, float) = (source.choose_int(), source.choose_float());
            _ = choose_item(&mut tensor.int64_data, source).map(|item| *item = int);
            _ = choose_item(&mut tensor.float_data, source).map(|item| *item = float as f32);
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

fn change_type(info: &mut ValueInfoProto, source: &mut ChoiceSource<'_>) {
    if source.once_in(8) {
        info.r#type = None;
        return;
    }
    let Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)) }) = &mut info.r#type else {
        return;
    };
    let Some(shape) = tensor.shape.as_mut().filter(|_| !source.once_in(4)) else {
        tensor.elem_type = Some(source.choose_below(28) as i32);
        return;
    };
    let value = dimension::Value::DimValue(source.choose_int());
    _ = choose_item(&mut shape.dim, source).map(|dim| dim.value = Some(value));
}
