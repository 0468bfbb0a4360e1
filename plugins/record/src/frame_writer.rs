//! Frames as bytes. All numbers are little-endian.
//!
//! A file is [`FILE_MAGIC`], then frames: the size of the rest of the frame as a `u32`, its kind as a byte, its fields. Text and
//! lists begin with their number of bytes or items as a `u32`.

use crate::recording_frames::{
    AttributeValues, RecordedAttribute, RecordedCall, RecordedContents, RecordedKernelCall, RecordedPart,
    RecordedTensor, RecordingFrame,
};

/// The first bytes of a recording; the last four are the version of the format.
pub const FILE_MAGIC: [u8; 12] = *b"oarlock\n\x01\0\0\0";

/// The kinds of frames and parts.
pub(crate) mod kind {
    pub(crate) const TARGET: u8 = 1;
    pub(crate) const SLOT: u8 = 2;
    pub(crate) const CALL: u8 = 3;
    pub(crate) const OUT: u8 = 1;
    pub(crate) const CONTENTS: u8 = 2;
    pub(crate) const KERNEL: u8 = 3;
    pub(crate) const INTS: u8 = 1;
    pub(crate) const FLOATS: u8 = 2;
    pub(crate) const STRINGS: u8 = 3;
    pub(crate) const TENSORS: u8 = 4;
    pub(crate) const GRAPHS: u8 = 5;
}

/// Appends a frame.
pub fn encode_frame(out: &mut Vec<u8>, frame: &RecordingFrame) {
    let start = out.len();
    out.extend([0; 4]);
    match frame {
        RecordingFrame::Target(target) => {
            out.push(kind::TARGET);
            put_u32(out, target.number);
            for text in [&target.plugin, &target.table, &target.op, &target.domain] {
                put_bytes(out, text.as_bytes());
            }
            put_u32(out, target.version);
        }
        RecordingFrame::Slot(slot) => {
            out.push(kind::SLOT);
            out.extend(slot.number.to_le_bytes());
            put_bytes(out, slot.name.as_bytes());
            put_list(out, &slot.words, |out, word| put_bytes(out, word.as_bytes()));
        }
        RecordingFrame::Call(call) => put_call(out, call),
    }
    end_frame(out, start);
}

pub(crate) fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

fn put_list<T>(out: &mut Vec<u8>, items: &[T], put: impl Fn(&mut Vec<u8>, &T)) {
    put_u32(out, items.len() as u32);
    items.iter().for_each(|item| put(out, item));
}

fn put_call(out: &mut Vec<u8>, call: &RecordedCall) {
    put_call_head(out, call.target, call.slot, call.thread, call.failed);
    put_list(out, &call.words, |out, word| put_u64(out, *word));
    put_list(out, &call.parts, put_part);
}

fn put_call_head(out: &mut Vec<u8>, target: u32, slot: u16, thread: u32, failed: bool) {
    let mut head = [kind::CALL; 12];
    head[1..5].copy_from_slice(&target.to_le_bytes());
    head[5..7].copy_from_slice(&slot.to_le_bytes());
    head[7..11].copy_from_slice(&thread.to_le_bytes());
    head[11] = u8::from(failed);
    out.extend_from_slice(&head);
}

/// Appends the frame of a kernel's run, whose part is encoded already; this happens in every launch, and so without allocating.
pub(crate) fn encode_run_frame(
    out: &mut Vec<u8>,
    (target, slot, thread, failed): (u32, u16, u32, bool),
    words: &[u64],
    kernel_part: &[u8],
) {
    let start = out.len();
    out.extend([0; 4]);
    put_call_head(out, target, slot, thread, failed);
    put_list(out, words, |out, word| put_u64(out, *word));
    put_u32(out, 1);
    out.extend_from_slice(kernel_part);
    end_frame(out, start);
}

/// Writes the size of a frame in front of it.
fn end_frame(out: &mut [u8], start: usize) {
    let size = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&size.to_le_bytes());
}

fn put_part(out: &mut Vec<u8>, part: &RecordedPart) {
    match part {
        RecordedPart::Out { word, value } => {
            out.extend([kind::OUT, *word]);
            put_u64(out, *value);
        }
        RecordedPart::Contents { word, contents } => {
            out.extend([kind::CONTENTS, *word]);
            put_contents(out, contents);
        }
        RecordedPart::Kernel(call) => {
            out.push(kind::KERNEL);
            put_kernel_call(out, call);
        }
    }
}

fn put_contents(out: &mut Vec<u8>, contents: &RecordedContents) {
    put_content_parts(out, contents.size, contents.hash, contents.bytes.as_deref());
}

pub(crate) fn put_content_parts(out: &mut Vec<u8>, size: u64, hash: Option<u64>, bytes: Option<&[u8]>) {
    put_u64(out, size);
    out.push(u8::from(hash.is_some()) | u8::from(bytes.is_some()) << 1);
    hash.iter().for_each(|hash| put_u64(out, *hash));
    bytes.iter().for_each(|bytes| put_bytes(out, bytes));
}

fn put_kernel_call(out: &mut Vec<u8>, call: &RecordedKernelCall) {
    put_u32(out, call.device);
    put_u64(out, call.queue);
    put_list(out, &call.inputs, put_tensor);
    put_list(out, &call.outputs, put_tensor);
    put_list(out, &call.attributes, put_attribute);
}

pub(crate) fn put_tensor(out: &mut Vec<u8>, tensor: &RecordedTensor) {
    put_u32(out, tensor.bits);
    for number in [tensor.block, tensor.offset, tensor.size_in_bytes] {
        put_u64(out, number);
    }
    put_u32(out, tensor.dtype);
    put_u32(out, tensor.place);
    put_list(out, &tensor.dims, |out, dim| out.extend(dim.to_le_bytes()));
    put_list(out, &tensor.strides, |out, stride| out.extend(stride.to_le_bytes()));
    out.push(u8::from(tensor.contents.is_some()));
    tensor.contents.iter().for_each(|contents| put_contents(out, contents));
}

pub(crate) fn put_attribute(out: &mut Vec<u8>, attribute: &RecordedAttribute) {
    put_bytes(out, attribute.name.as_bytes());
    out.push(u8::from(attribute.is_list));
    match &attribute.values {
        AttributeValues::Ints(ints) => {
            out.push(kind::INTS);
            put_list(out, ints, |out, int| out.extend(int.to_le_bytes()));
        }
        AttributeValues::Floats(floats) => {
            out.push(kind::FLOATS);
            put_list(out, floats, |out, float| out.extend(float.to_le_bytes()));
        }
        AttributeValues::Strings(strings) => {
            out.push(kind::STRINGS);
            put_list(out, strings, |out, text| put_bytes(out, text.as_bytes()));
        }
        AttributeValues::Tensors(tensors) => {
            out.push(kind::TENSORS);
            put_list(out, tensors, put_tensor);
        }
        AttributeValues::Graphs => out.push(kind::GRAPHS),
    }
}
