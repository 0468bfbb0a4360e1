// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.

use oarlock_abi as abi;

use crate::wire::WireBreach;
use crate::wire::stored_reader::StoredReader;

/// Reads a `tensor`.
pub(crate) fn decode_tensor(request: &mut StoredReader<'_>) -> Result<abi::Tensor, WireBreach> {
    let mut value = abi::Tensor::EMPTY;
    value.block = abi::Memory(request.take_u64()?);
    value.offset = request.take_u64()?;
    value.size_in_bytes = request.take_u64()?;
    value.dtype = abi::Dtype(request.take_u32()?);
    value.bits = abi::TensorFlags(request.take_u32()?);
    value.place = abi::MemoryKind(request.take_u32()?);
    value.layout = abi::Layout(request.take_u32()?);
    (value.dims, value.dims_count) = request.take_numbers()?;
    (value.strides, value.strides_count) = request.take_numbers()?;
    request.take_elements(&mut value)?;
    Ok(value)
}

/// Reads a `attribute`.
pub(crate) fn decode_attribute(request: &mut StoredReader<'_>) -> Result<abi::Attribute, WireBreach> {
    let mut value = abi::Attribute::EMPTY;
    value.name = request.take_str()?;
    value.kind = abi::AttributeKind(request.take_u32()?);
    value.reserved = request.take_u32()?;
    (value.ints, value.ints_count) = request.take_numbers()?;
    (value.floats, value.floats_count) = request.take_numbers()?;
    (value.strings, value.strings_count) = request.take_values(StoredReader::take_str)?;
    (value.tensors, value.tensors_count) = request.take_structs(decode_tensor)?;
    (value.graphs, value.graphs_count) = request.take_structs(decode_graph)?;
    Ok(value)
}

/// Reads a `graph_value`.
pub(crate) fn decode_graph_value(request: &mut StoredReader<'_>) -> Result<abi::GraphValue, WireBreach> {
    let mut value = abi::GraphValue::EMPTY;
    value.name = request.take_str()?;
    value.dtype = abi::Dtype(request.take_u32()?);
    value.rank_known = request.take_u32()?;
    (value.dims, value.dims_count) = request.take_numbers()?;
    if request.take_u8()? != 0 {
        let target = decode_tensor(request)?;
        value.constant = request.storage().store(target);
    }
    Ok(value)
}

/// Reads a `graph_node`.
pub(crate) fn decode_graph_node(request: &mut StoredReader<'_>) -> Result<abi::GraphNode, WireBreach> {
    let mut value = abi::GraphNode::EMPTY;
    value.name = request.take_str()?;
    value.op = request.take_str()?;
    value.domain = request.take_str()?;
    value.version = request.take_u32()?;
    value.reserved = request.take_u32()?;
    (value.inputs, value.inputs_count) = request.take_numbers()?;
    (value.outputs, value.outputs_count) = request.take_numbers()?;
    (value.attributes, value.attributes_count) = request.take_structs(decode_attribute)?;
    Ok(value)
}

/// Reads a `graph`.
pub(crate) fn decode_graph(request: &mut StoredReader<'_>) -> Result<abi::Graph, WireBreach> {
    let mut value = abi::Graph::EMPTY;
    value.name = request.take_str()?;
    (value.values, value.values_count) = request.take_structs(decode_graph_value)?;
    (value.nodes, value.nodes_count) = request.take_structs(decode_graph_node)?;
    (value.inputs, value.inputs_count) = request.take_numbers()?;
    (value.outputs, value.outputs_count) = request.take_numbers()?;
    Ok(value)
}

/// Reads a `call`.
pub(crate) fn decode_call(request: &mut StoredReader<'_>) -> Result<abi::Call, WireBreach> {
    let mut value = abi::Call::EMPTY;
    value.device = request.take_u32()?;
    value.reserved = request.take_u32()?;
    value.queue = abi::Stream(request.take_u64()?);
    (value.inputs, value.inputs_count) = request.take_structs(decode_tensor)?;
    (value.outputs, value.outputs_count) = request.take_structs(decode_tensor)?;
    (value.attributes, value.attributes_count) = request.take_structs(decode_attribute)?;
    value.workspace = abi::Memory(request.take_u64()?);
    value.workspace_offset = request.take_u64()?;
    value.workspace_size = request.take_u64()?;
    value.random_seed = request.take_u64()?;
    value.random_offset = request.take_u64()?;
    value.host_call = request.host_call();
    Ok(value)
}
