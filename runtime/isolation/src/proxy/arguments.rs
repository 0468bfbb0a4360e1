// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.

#![expect(unsafe_code, reason = "structs and lists are behind pointers of the caller")]

use oarlock_abi as abi;

use super::request_writer::{OperandRole, RequestWriter, copy_known};
use crate::wire::WireBreach;

/// Writes a `tensor`.
///
/// # Safety
///
/// `source` points to a struct that is as the contract describes it.
pub(crate) unsafe fn encode_tensor(
    request: &mut RequestWriter<'_, '_>,
    source: *const abi::Tensor,
) -> Result<(), WireBreach> {
    // SAFETY: the caller vouches for the struct and for what it points to.
    unsafe {
        let value = copy_known(source, abi::Tensor::EMPTY)?;
        request.put_u64(value.block.0);
        request.put_u64(value.offset);
        request.put_u64(value.size_in_bytes);
        request.put_u32(value.dtype.0);
        request.put_u32(value.bits.0);
        request.put_u32(value.place.0);
        request.put_u32(value.layout.0);
        request.put_numbers(value.dims, value.dims_count)?;
        request.put_numbers(value.strides, value.strides_count)?;
        request.put_elements(&value)?;
    }
    Ok(())
}

/// Writes a `attribute`.
///
/// # Safety
///
/// `source` points to a struct that is as the contract describes it.
pub(crate) unsafe fn encode_attribute(
    request: &mut RequestWriter<'_, '_>,
    source: *const abi::Attribute,
) -> Result<(), WireBreach> {
    // SAFETY: the caller vouches for the struct and for what it points to.
    unsafe {
        let value = copy_known(source, abi::Attribute::EMPTY)?;
        request.put_str(value.name)?;
        request.put_u32(value.kind.0);
        request.put_u32(value.reserved);
        request.put_numbers(value.ints, value.ints_count)?;
        request.put_numbers(value.floats, value.floats_count)?;
        request.put_items(value.strings, value.strings_count, RequestWriter::put_str)?;
        request.set_role(OperandRole::Attribute);
        request.put_items(value.tensors, value.tensors_count, encode_tensor)?;
        request.put_items(value.graphs, value.graphs_count, encode_graph)?;
    }
    Ok(())
}

/// Writes a `graph_value`.
///
/// # Safety
///
/// `source` points to a struct that is as the contract describes it.
pub(crate) unsafe fn encode_graph_value(
    request: &mut RequestWriter<'_, '_>,
    source: *const abi::GraphValue,
) -> Result<(), WireBreach> {
    // SAFETY: the caller vouches for the struct and for what it points to.
    unsafe {
        let value = copy_known(source, abi::GraphValue::EMPTY)?;
        request.put_str(value.name)?;
        request.put_u32(value.dtype.0);
        request.put_u32(value.rank_known);
        request.put_numbers(value.dims, value.dims_count)?;
        request.put_u8((!value.constant.is_null()).into());
        if !value.constant.is_null() {
            encode_tensor(request, value.constant)?;
        }
    }
    Ok(())
}

/// Writes a `graph_node`.
///
/// # Safety
///
/// `source` points to a struct that is as the contract describes it.
pub(crate) unsafe fn encode_graph_node(
    request: &mut RequestWriter<'_, '_>,
    source: *const abi::GraphNode,
) -> Result<(), WireBreach> {
    // SAFETY: the caller vouches for the struct and for what it points to.
    unsafe {
        let value = copy_known(source, abi::GraphNode::EMPTY)?;
        request.put_str(value.name)?;
        request.put_str(value.op)?;
        request.put_str(value.domain)?;
        request.put_u32(value.version);
        request.put_u32(value.reserved);
        request.put_numbers(value.inputs, value.inputs_count)?;
        request.put_numbers(value.outputs, value.outputs_count)?;
        request.put_items(value.attributes, value.attributes_count, encode_attribute)?;
    }
    Ok(())
}

/// Writes a `graph`.
///
/// # Safety
///
/// `source` points to a struct that is as the contract describes it.
pub(crate) unsafe fn encode_graph(
    request: &mut RequestWriter<'_, '_>,
    source: *const abi::Graph,
) -> Result<(), WireBreach> {
    // SAFETY: the caller vouches for the struct and for what it points to.
    unsafe {
        let value = copy_known(source, abi::Graph::EMPTY)?;
        request.put_str(value.name)?;
        request.put_items(value.values, value.values_count, encode_graph_value)?;
        request.put_items(value.nodes, value.nodes_count, encode_graph_node)?;
        request.put_numbers(value.inputs, value.inputs_count)?;
        request.put_numbers(value.outputs, value.outputs_count)?;
    }
    Ok(())
}

/// Writes a `call`.
///
/// # Safety
///
/// `source` points to a struct that is as the contract describes it.
pub(crate) unsafe fn encode_call(
    request: &mut RequestWriter<'_, '_>,
    source: *const abi::Call,
) -> Result<(), WireBreach> {
    // SAFETY: the caller vouches for the struct and for what it points to.
    unsafe {
        let value = copy_known(source, abi::Call::EMPTY)?;
        request.put_u32(value.device);
        request.put_u32(value.reserved);
        request.put_u64(value.queue.0);
        request.set_role(OperandRole::Input);
        request.put_items(value.inputs, value.inputs_count, encode_tensor)?;
        request.set_role(OperandRole::Output);
        request.put_items(value.outputs, value.outputs_count, encode_tensor)?;
        request.put_items(value.attributes, value.attributes_count, encode_attribute)?;
        request.put_u64(value.workspace.0);
        request.put_u64(value.workspace_offset);
        request.put_u64(value.workspace_size);
        request.put_u64(value.random_seed);
        request.put_u64(value.random_offset);
    }
    Ok(())
}

/// Writes the output of a call that the host has just described.
///
/// # Safety
///
/// The call is alive.
pub(crate) unsafe fn encode_output(
    request: &mut RequestWriter<'_, '_>,
    call: *const abi::Call,
    index: u32,
) -> Result<(), WireBreach> {
    // SAFETY: the caller vouches for the call, whose list has as many outputs as it says.
    unsafe {
        let value = copy_known(call, abi::Call::EMPTY)?;
        if u64::from(index) >= value.outputs_count {
            return Err(WireBreach::new(
                format!("one of {} outputs", value.outputs_count),
                index.to_string(),
            ));
        }
        encode_tensor(request, value.outputs.add(index as usize).read())
    }
}
