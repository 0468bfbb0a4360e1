//! Reads what the words of a call lead to.

#![expect(unsafe_code, reason = "the words of a call are addresses of its caller")]

use oarlock_layer::{LayerCall, ParameterKind, word_const_pointer};
use oarlock_sdk::{abi, copy_sized};
use rustc_hash::FxHashMap;

use crate::content_hash::hash_bytes;
use crate::frame_writer::{kind, put_attribute, put_content_parts, put_tensor, put_u32, put_u64};
use crate::recording_frames::{
    AttributeValues, RecordedAttribute, RecordedContents, RecordedPart, RecordedTensor,
};

/// How much of the bytes is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentLevel {
    Shapes,
    Referenced,
    Full,
}

/// Operands whose contents the recording explains, at most.
const MAX_KNOWN: usize = 1 << 16;

/// The hashes of operands by address and size: what the recording already says about them.
#[derive(Debug, Default)]
pub(crate) struct KnownContents(FxHashMap<(u64, u64), u64>);

impl KnownContents {
    /// Notes the hash of an operand; true if it was known.
    pub(crate) fn note_hash(&mut self, address: u64, size: u64, hash: u64) -> bool {
        if self.0.len() >= MAX_KNOWN {
            self.0.clear();
        }
        self.0.insert((address, size), hash) == Some(hash)
    }
}

impl ContentLevel {
    /// Bytes at an address, as far as they are recorded.
    ///
    /// # Safety
    ///
    /// There are `size` bytes to read at the address, unless the size is 0.
    pub(crate) unsafe fn capture_bytes(self, address: u64, size: u64) -> RecordedContents {
        if self == Self::Shapes || size == 0 || address == 0 {
            return RecordedContents { size, ..RecordedContents::default() };
        }
        // SAFETY: the caller vouches for the bytes.
        let bytes = unsafe { core::slice::from_raw_parts(word_const_pointer::<u8>(address), size as usize) };
        let kept = (self == Self::Full).then(|| bytes.to_vec());
        RecordedContents { size, hash: Some(hash_bytes(bytes)), bytes: kept }
    }
}

/// The bytes that a call reads from the host.
///
/// # Safety
///
/// The words of the call are those of its slot.
pub(crate) unsafe fn capture_sources(call: &LayerCall<'_>, level: ContentLevel) -> Vec<RecordedPart> {
    let description = call.description();
    let mut parts = Vec::new();
    for (index, (parameter, &address)) in description.parameters.iter().zip(call.words()).enumerate() {
        let size = match parameter.kind {
            ParameterKind::InBytes => call.words()[index + 1],
            ParameterKind::InAddress => match description.parameter_position("size") {
                Some(at) => call.words()[at],
                None => continue,
            },
            _ => continue,
        };
        // SAFETY: the caller vouches for the words: the source has this size.
        let contents = unsafe { level.capture_bytes(address, size) };
        parts.push(RecordedPart::Contents { word: index as u8, contents });
    }
    parts
}

/// What a call that succeeded wrote for its caller.
///
/// # Safety
///
/// The words of the call are those of its slot, and the call has succeeded.
pub(crate) unsafe fn capture_results(
    call: &LayerCall<'_>,
    level: ContentLevel,
    parts: &mut Vec<RecordedPart>,
) {
    for (index, (parameter, &address)) in call.description().parameters.iter().zip(call.words()).enumerate() {
        let word = index as u8;
        if address == 0 {
            continue;
        }
        // SAFETY: the caller vouches for the words: the places have these types.
        let value = unsafe {
            match parameter.kind {
                ParameterKind::OutHandle(_) | ParameterKind::OutAddress | ParameterKind::OutNumber(8) => {
                    *word_const_pointer::<u64>(address)
                }
                ParameterKind::OutNumber(4) => u64::from(*word_const_pointer::<u32>(address)),
                ParameterKind::OutBytes => {
                    let contents = level.capture_bytes(address, call.words()[index + 1]);
                    parts.push(RecordedPart::Contents { word, contents });
                    continue;
                }
                _ => continue,
            }
        };
        parts.push(RecordedPart::Out { word, value });
    }
}

/// Encodes the call of a kernel, with the inputs that the recording does not explain yet, up to its outputs.
///
/// # Safety
///
/// `address` is that of a call of the contract; `is_readable` is true only if handles of blocks on its device are addresses.
pub(crate) unsafe fn encode_kernel_call(
    out: &mut Vec<u8>,
    address: u64,
    level: ContentLevel,
    known: &mut KnownContents,
    is_readable: impl Fn(u32) -> bool,
) {
    // SAFETY: the caller vouches for the call.
    let call = unsafe { copy_sized(word_const_pointer::<abi::Call>(address), abi::Call::EMPTY) };
    let place = OperandPlace { is_readable: is_readable(call.device), is_output: false };
    out.push(kind::KERNEL);
    put_u32(out, call.device);
    put_u64(out, call.queue.0);
    put_u32(out, call.inputs_count as u32);
    // SAFETY: the lists are those of a call of the contract.
    unsafe {
        for input in list_of_pointers(call.inputs, call.inputs_count, abi::Tensor::EMPTY) {
            encode_operand(out, &input, level, known, place);
        }
    }
}

/// Encodes the outputs and the attributes of a call that has returned, the rest of its part. Outputs of a call that failed are left
/// out.
///
/// # Safety
///
/// As for [`encode_kernel_call`].
pub(crate) unsafe fn encode_kernel_outputs(
    out: &mut Vec<u8>,
    address: u64,
    failed: bool,
    level: ContentLevel,
    known: &mut KnownContents,
    is_readable: impl Fn(u32) -> bool,
) {
    // SAFETY: the caller vouches for the call and its lists.
    unsafe {
        let call = copy_sized(word_const_pointer::<abi::Call>(address), abi::Call::EMPTY);
        // Work in a stream may not be done yet.
        let place =
            OperandPlace { is_readable: is_readable(call.device) && call.queue.0 == 0, is_output: true };
        let outputs = if failed { 0 } else { call.outputs_count };
        put_u32(out, outputs as u32);
        for output in list_of_pointers(call.outputs, outputs, abi::Tensor::EMPTY) {
            encode_operand(out, &output, level, known, place);
        }
        put_u32(out, call.attributes_count as u32);
        for attribute in list_of_pointers(call.attributes, call.attributes_count, abi::Attribute::EMPTY) {
            put_attribute(out, &capture_attribute(&attribute, level));
        }
    }
}

/// Where an operand is, and which side writes it.
#[derive(Clone, Copy)]
struct OperandPlace {
    is_readable: bool,
    is_output: bool,
}

/// Encodes an operand as [`RecordedTensor`] is encoded.
///
/// # Safety
///
/// The lists of the tensor are those of the contract, and its bytes can be read if it is in host memory, or if `place` says so of the
/// device's.
unsafe fn encode_operand(
    out: &mut Vec<u8>,
    tensor: &abi::Tensor,
    level: ContentLevel,
    known: &mut KnownContents,
    place: OperandPlace,
) {
    if tensor.bits.contains(abi::TensorFlags::ABSENT) {
        return put_tensor(out, &RecordedTensor { bits: tensor.bits.0, ..RecordedTensor::default() });
    }
    // One write for all fields of known size: this is done for each operand of each launch.
    let mut head = [0; 36];
    head[..4].copy_from_slice(&tensor.bits.0.to_le_bytes());
    head[4..12].copy_from_slice(&tensor.block.0.to_le_bytes());
    head[12..20].copy_from_slice(&tensor.offset.to_le_bytes());
    head[20..28].copy_from_slice(&tensor.size_in_bytes.to_le_bytes());
    head[28..32].copy_from_slice(&tensor.dtype.0.to_le_bytes());
    head[32..].copy_from_slice(&tensor.place.0.to_le_bytes());
    out.extend_from_slice(&head);
    for (numbers, count) in [(tensor.dims, tensor.dims_count), (tensor.strides, tensor.strides_count)] {
        put_u32(out, count as u32);
        for index in 0..count as usize {
            // SAFETY: the caller vouches for the lists.
            out.extend_from_slice(&unsafe { *numbers.add(index) }.to_le_bytes());
        }
    }
    let is_readable = place.is_readable || tensor.place != abi::MemoryKind::DEVICE;
    let is_text = tensor.dtype == abi::Dtype::STRING;
    let size = tensor.size_in_bytes;
    if level == ContentLevel::Shapes || is_text || size == 0 || !is_readable {
        return out.push(0);
    }
    let address = tensor.block.0.wrapping_add(tensor.offset);
    // SAFETY: the caller vouches for the bytes.
    let bytes = unsafe { core::slice::from_raw_parts(word_const_pointer::<u8>(address), size as usize) };
    let hash = hash_bytes(bytes);
    let is_explained = known.note_hash(address, size, hash) && !place.is_output;
    out.push(u8::from(!is_explained));
    if !is_explained {
        put_content_parts(out, size, Some(hash), (level == ContentLevel::Full).then_some(bytes));
    }
}

/// # Safety
///
/// `items` points to `count` pointers to structs of the contract.
unsafe fn list_of_pointers<T: Copy>(items: *const *const T, count: u64, empty: T) -> impl Iterator<Item = T> {
    // SAFETY: the caller vouches for the list.
    (0..count as usize).map(move |index| unsafe { copy_sized(*items.add(index), empty) })
}

/// # Safety
///
/// `items` points to `count` numbers.
unsafe fn list_of<T: Copy>(items: *const T, count: u64) -> Vec<T> {
    // SAFETY: the caller vouches for the list.
    (0..count as usize).map(|index| unsafe { items.add(index).read_unaligned() }).collect()
}

/// # Safety
///
/// The lists of the tensor are those of the contract.
unsafe fn capture_tensor(tensor: &abi::Tensor) -> RecordedTensor {
    let bits = tensor.bits.0;
    if tensor.bits.contains(abi::TensorFlags::ABSENT) {
        return RecordedTensor { bits, ..RecordedTensor::default() };
    }
    RecordedTensor {
        bits,
        block: tensor.block.0,
        offset: tensor.offset,
        size_in_bytes: tensor.size_in_bytes,
        dtype: tensor.dtype.0,
        place: tensor.place.0,
        // SAFETY: the caller vouches for the lists.
        dims: unsafe { list_of(tensor.dims, tensor.dims_count) },
        // SAFETY: as above.
        strides: unsafe { list_of(tensor.strides, tensor.strides_count) },
        contents: None,
    }
}

/// # Safety
///
/// The lists of the attribute are those of the contract, and its tensors are in host memory.
unsafe fn capture_attribute(attribute: &abi::Attribute, level: ContentLevel) -> RecordedAttribute {
    use abi::AttributeKind as Kind;
    let kind = attribute.kind;
    // SAFETY: the caller vouches for the lists.
    let (name, values) = unsafe {
        let values = match kind {
            Kind::INT | Kind::INTS => AttributeValues::Ints(list_of(attribute.ints, attribute.ints_count)),
            Kind::FLOAT | Kind::FLOATS => {
                AttributeValues::Floats(list_of(attribute.floats, attribute.floats_count))
            }
            Kind::STRING | Kind::STRINGS => {
                let texts = list_of(attribute.strings, attribute.strings_count);
                AttributeValues::Strings(
                    texts.iter().map(|text| text.text().unwrap_or_default().to_owned()).collect(),
                )
            }
            Kind::TENSOR | Kind::TENSORS => {
                let tensors =
                    list_of_pointers(attribute.tensors, attribute.tensors_count, abi::Tensor::EMPTY);
                AttributeValues::Tensors(
                    tensors
                        .map(|tensor| {
                            let mut recorded = capture_tensor(&tensor);
                            if tensor.dtype != abi::Dtype::STRING {
                                let address = tensor.block.0.wrapping_add(tensor.offset);
                                recorded.contents = Some(level.capture_bytes(address, tensor.size_in_bytes));
                            }
                            recorded
                        })
                        .collect(),
                )
            }
            _ => AttributeValues::Graphs,
        };
        (attribute.name.text().unwrap_or("?").to_owned(), values)
    };
    let is_list = matches!(kind, Kind::INTS | Kind::FLOATS | Kind::STRINGS | Kind::TENSORS | Kind::GRAPHS);
    RecordedAttribute { name, is_list, values }
}
