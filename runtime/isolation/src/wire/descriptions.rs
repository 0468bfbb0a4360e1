// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.

#![expect(unsafe_code, reason = "the lists of a description are behind pointers of the plugin")]

use oarlock_abi as abi;

use super::WireBreach;
use super::byte_writer::ByteWriter;
use super::stored_reader::StoredReader;

/// Writes a `in_place`.
///
/// # Safety
///
/// Its texts and lists are as the contract describes them.
pub(crate) unsafe fn encode_in_place(writer: &mut ByteWriter<'_>, value: &abi::InPlace) {
    writer.put_u32(value.output);
    writer.put_u32(value.input);
}

/// Reads a `in_place`.
pub(crate) fn decode_in_place(request: &mut StoredReader<'_>) -> Result<abi::InPlace, WireBreach> {
    let mut value = abi::InPlace::EMPTY;
    value.output = request.take_u32()?;
    value.input = request.take_u32()?;
    Ok(value)
}

/// Writes a `operand`.
///
/// # Safety
///
/// Its texts and lists are as the contract describes them.
pub(crate) unsafe fn encode_operand(writer: &mut ByteWriter<'_>, value: &abi::Operand) {
    // SAFETY: the caller vouches for the text.
    writer.put_bytes(unsafe { value.name.bytes() }.unwrap_or_default());
    writer.put_u64(value.dtypes.0);
    writer.put_u32(value.dtype_group);
    writer.put_u32(value.rank_min);
    writer.put_u32(value.rank_max);
    writer.put_u32(value.bits.0);
    writer.put_u32(value.place.0);
    writer.put_u32(value.layout.0);
}

/// Reads a `operand`.
pub(crate) fn decode_operand(request: &mut StoredReader<'_>) -> Result<abi::Operand, WireBreach> {
    let mut value = abi::Operand::EMPTY;
    value.name = request.take_str()?;
    value.dtypes = abi::DtypeSet(request.take_u64()?);
    value.dtype_group = request.take_u32()?;
    value.rank_min = request.take_u32()?;
    value.rank_max = request.take_u32()?;
    value.bits = abi::OperandFlags(request.take_u32()?);
    value.place = abi::MemoryKind(request.take_u32()?);
    value.layout = abi::Layout(request.take_u32()?);
    Ok(value)
}

/// Writes a `kernel`.
///
/// # Safety
///
/// Its texts and lists are as the contract describes them.
pub(crate) unsafe fn encode_kernel(writer: &mut ByteWriter<'_>, value: &abi::Kernel) {
    // SAFETY: the caller vouches for the text.
    writer.put_bytes(unsafe { value.op.bytes() }.unwrap_or_default());
    // SAFETY: the caller vouches for the text.
    writer.put_bytes(unsafe { value.domain.bytes() }.unwrap_or_default());
    // SAFETY: the caller vouches for the text.
    writer.put_bytes(unsafe { value.device_type.bytes() }.unwrap_or_default());
    writer.put_u32(value.version_min);
    writer.put_u32(value.version_max);
    writer.put_i32(value.score);
    writer.put_u32(value.bits.0);
    writer.put_u32(value.inputs_count as u32);
    for index in 0..value.inputs_count as usize {
        // SAFETY: the caller vouches for the items.
        unsafe {
            let item = value.inputs.add(index);
            encode_operand(writer, &*item.read());
        }
    }
    writer.put_u32(value.outputs_count as u32);
    for index in 0..value.outputs_count as usize {
        // SAFETY: the caller vouches for the items.
        unsafe {
            let item = value.outputs.add(index);
            encode_operand(writer, &*item.read());
        }
    }
    writer.put_u32(value.in_place_count as u32);
    for index in 0..value.in_place_count as usize {
        // SAFETY: the caller vouches for the items.
        unsafe {
            let item = value.in_place.add(index);
            encode_in_place(writer, &*item);
        }
    }
}

/// Reads a `kernel`.
pub(crate) fn decode_kernel(request: &mut StoredReader<'_>) -> Result<abi::Kernel, WireBreach> {
    let mut value = abi::Kernel::EMPTY;
    value.op = request.take_str()?;
    value.domain = request.take_str()?;
    value.device_type = request.take_str()?;
    value.version_min = request.take_u32()?;
    value.version_max = request.take_u32()?;
    value.score = request.take_i32()?;
    value.bits = abi::KernelFlags(request.take_u32()?);
    (value.inputs, value.inputs_count) = request.take_structs(decode_operand)?;
    (value.outputs, value.outputs_count) = request.take_structs(decode_operand)?;
    (value.in_place, value.in_place_count) = request.take_values(decode_in_place)?;
    Ok(value)
}

/// Writes a `plugin`.
///
/// # Safety
///
/// Its texts and lists are as the contract describes them.
pub(crate) unsafe fn encode_plugin(writer: &mut ByteWriter<'_>, value: &abi::Plugin) {
    writer.put_u32(value.contract_major);
    writer.put_u32(value.contract_minor);
    writer.put_u32(value.contract_minor_oldest);
    writer.put_u32(value.sanitizer.0);
    writer.put_u64(value.offers.0);
    // SAFETY: the caller vouches for the text.
    writer.put_bytes(unsafe { value.name.bytes() }.unwrap_or_default());
    // SAFETY: the caller vouches for the text.
    writer.put_bytes(unsafe { value.version.bytes() }.unwrap_or_default());
    // SAFETY: the caller vouches for the text.
    writer.put_bytes(unsafe { value.vendor.bytes() }.unwrap_or_default());
    // SAFETY: the caller vouches for the text.
    writer.put_bytes(unsafe { value.package.bytes() }.unwrap_or_default());
    // SAFETY: the caller vouches for the text.
    writer.put_bytes(unsafe { value.device_type.bytes() }.unwrap_or_default());
    // SAFETY: the caller vouches for the text.
    writer.put_bytes(unsafe { value.device_subtype.bytes() }.unwrap_or_default());
    // SAFETY: the caller vouches for the text.
    writer.put_bytes(unsafe { value.visible_devices_variable.bytes() }.unwrap_or_default());
    writer.put_u32(value.support_level.0);
    writer.put_u32(value.reserved);
    // SAFETY: the caller vouches for the text.
    writer.put_bytes(unsafe { value.support_note.bytes() }.unwrap_or_default());
}

/// Reads a `plugin`.
pub(crate) fn decode_plugin(request: &mut StoredReader<'_>) -> Result<abi::Plugin, WireBreach> {
    let mut value = abi::Plugin::EMPTY;
    value.contract_major = request.take_u32()?;
    value.contract_minor = request.take_u32()?;
    value.contract_minor_oldest = request.take_u32()?;
    value.sanitizer = abi::Sanitizer(request.take_u32()?);
    value.offers = abi::PluginFlags(request.take_u64()?);
    value.name = request.take_str()?;
    value.version = request.take_str()?;
    value.vendor = request.take_str()?;
    value.package = request.take_str()?;
    value.device_type = request.take_str()?;
    value.device_subtype = request.take_str()?;
    value.visible_devices_variable = request.take_str()?;
    value.support_level = abi::SupportLevel(request.take_u32()?);
    value.reserved = request.take_u32()?;
    value.support_note = request.take_str()?;
    Ok(value)
}
