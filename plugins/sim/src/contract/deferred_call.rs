//! What is kept of a call until its stream gets to it.
//!
//! A call and everything it points to are the host's, and good until the call returns. Shapes, attributes and operands in
//! the host's memory are copied; memory of the device is only named, since it stays the stream's until it is past the call.

#![expect(unsafe_code, reason = "a call is a struct of pointers into the host")]

use std::any::Any;
use std::{ptr, slice};

use oarlock_sdk::{MemoryKind, abi};

/// A call of a kernel that outlives the one the host made.
pub(super) struct DeferredCall {
    /// Everything but the operands.
    pub(super) call: abi::Call,
    pub(super) inputs: Vec<abi::Tensor>,
    pub(super) outputs: Vec<abi::Tensor>,
    /// What all of it points to.
    _lists: OwnedLists,
}

impl DeferredCall {
    /// Copies a call.
    ///
    /// # Safety
    ///
    /// The call is one that the host is making.
    pub(super) unsafe fn copy_call(call: &abi::Call) -> Self {
        let mut lists = OwnedLists::default();
        // SAFETY: the host promises that each list matches its count, and that what is in it can be read.
        let (inputs, outputs, attributes) = unsafe {
            let inputs =
                iterate_list(call.inputs, call.inputs_count).map(|input| lists.copy_tensor(input)).collect();
            let outputs = iterate_list(call.outputs, call.outputs_count)
                .map(|output| lists.copy_tensor(output))
                .collect();
            let attributes: Vec<abi::Attribute> = iterate_list(call.attributes, call.attributes_count)
                .map(|attribute| lists.copy_attribute(attribute))
                .collect();
            (inputs, outputs, lists.pointer_list(attributes))
        };
        let call = abi::Call {
            next: ptr::null(),
            inputs: ptr::null(),
            outputs: ptr::null(),
            attributes,
            host_call: ptr::null_mut(),
            ..*call
        };
        Self { call, inputs, outputs, _lists: lists }
    }

    /// Shows the call to a kernel that wants to know about it before it runs.
    pub(super) fn with_call<R>(&self, look: impl FnOnce(&abi::Call) -> R) -> R {
        let pointers = |operands: &[abi::Tensor]| operands.iter().map(ptr::from_ref).collect::<Vec<_>>();
        let (inputs, outputs) = (pointers(&self.inputs), pointers(&self.outputs));
        look(&abi::Call { inputs: inputs.as_ptr(), outputs: outputs.as_ptr(), ..self.call })
    }
}

// SAFETY: the pointers lead into lists that go with the call and that nobody changes.
unsafe impl Send for DeferredCall {}

/// Copies of lists, each at the address it has for as long as this lives.
#[derive(Default)]
struct OwnedLists(Vec<Box<dyn Any>>);

impl OwnedLists {
    fn keep_list<T: 'static>(&mut self, list: Vec<T>) -> *const T {
        let address = list.as_ptr();
        self.0.push(Box::new(list));
        address
    }

    /// # Safety
    ///
    /// There are `count` items.
    unsafe fn copy_list<T: Copy + 'static>(&mut self, source: *const T, count: u64) -> *const T {
        if count == 0 {
            return ptr::null();
        }
        // SAFETY: the caller vouches for the items.
        self.keep_list(unsafe { slice::from_raw_parts(source, count as usize) }.to_vec())
    }

    /// # Safety
    ///
    /// The text can be read.
    unsafe fn copy_text(&mut self, text: abi::Str) -> abi::Str {
        // SAFETY: the caller vouches for the bytes.
        abi::Str { data: unsafe { self.copy_list(text.data, text.size) }, size: text.size }
    }

    /// A list of pointers to some structs.
    fn pointer_list<T: 'static>(&mut self, structs: Vec<T>) -> *const *const T {
        let count = structs.len();
        let first = self.keep_list(structs);
        self.keep_list((0..count).map(|index| first.wrapping_add(index)).collect())
    }

    /// # Safety
    ///
    /// The tensor is an operand of a call that the host is making.
    unsafe fn copy_tensor(&mut self, tensor: &abi::Tensor) -> abi::Tensor {
        if tensor.bits.contains(abi::TensorFlags::ABSENT) {
            return abi::Tensor { bits: abi::TensorFlags::ABSENT, ..abi::Tensor::EMPTY };
        }
        if tensor.place == MemoryKind::HOST {
            // SAFETY: the caller vouches for it.
            return unsafe { self.copy_host_tensor(tensor) };
        }
        // What never changes on the device cannot be looked at there before the stream gets to it either.
        let bits = abi::TensorFlags(tensor.bits.0 & !abi::TensorFlags::CONSTANT.0);
        // SAFETY: the caller vouches for the lists.
        abi::Tensor { bits, ..unsafe { self.copy_shape(tensor) } }
    }

    /// # Safety
    ///
    /// The tensor's lists match their counts.
    unsafe fn copy_shape(&mut self, tensor: &abi::Tensor) -> abi::Tensor {
        // SAFETY: the caller vouches for the lists.
        let (dims, strides) = unsafe {
            (
                self.copy_list(tensor.dims, tensor.dims_count),
                self.copy_list(tensor.strides, tensor.strides_count),
            )
        };
        abi::Tensor { next: ptr::null(), dims, strides, ..*tensor }
    }

    /// # Safety
    ///
    /// The tensor lies in the host's memory and can be read.
    unsafe fn copy_host_tensor(&mut self, tensor: &abi::Tensor) -> abi::Tensor {
        let mut bytes = OperandBuffer::filled_with(tensor.size_in_bytes as usize, 0);
        if tensor.size_in_bytes > 0 {
            let source = ptr::with_exposed_provenance(tensor.block.0.wrapping_add(tensor.offset) as usize);
            // SAFETY: the caller vouches for the bytes.
            let source = unsafe { slice::from_raw_parts(source, bytes.size) };
            bytes.as_bytes_mut().copy_from_slice(source);
        }
        let block = bytes.as_device_memory();
        self.0.push(Box::new(bytes));
        // SAFETY: the caller vouches for the lists.
        abi::Tensor { block, offset: 0, ..unsafe { self.copy_shape(tensor) } }
    }

    /// Copies all of an attribute but graphs, which the kernels of the CPU do not look at.
    ///
    /// # Safety
    ///
    /// The attribute is one of a call that the host is making.
    unsafe fn copy_attribute(&mut self, attribute: &abi::Attribute) -> abi::Attribute {
        // SAFETY: the host promises that each list matches its count, and that what is in it can be read.
        unsafe {
            let strings: Vec<abi::Str> = (0..attribute.strings_count as usize)
                .map(|index| self.copy_text(attribute.strings.add(index).read()))
                .collect();
            let tensors: Vec<abi::Tensor> = iterate_list(attribute.tensors, attribute.tensors_count)
                .map(|tensor| self.copy_host_tensor(tensor))
                .collect();
            abi::Attribute {
                next: ptr::null(),
                name: self.copy_text(attribute.name),
                ints: self.copy_list(attribute.ints, attribute.ints_count),
                floats: self.copy_list(attribute.floats, attribute.floats_count),
                strings: self.keep_list(strings),
                tensors: self.pointer_list(tensors),
                graphs: ptr::null(),
                graphs_count: 0,
                ..*attribute
            }
        }
    }
}

/// The structs of a list of the contract.
///
/// # Safety
///
/// The list has `count` pointers to structs that can be read for `'a`.
unsafe fn iterate_list<'a, T: 'a>(list: *const *const T, count: u64) -> impl Iterator<Item = &'a T> {
    // SAFETY: the caller vouches for the list.
    (0..count as usize).map(move |index| unsafe { &**list.add(index) })
}

/// Memory of the host's for one operand, aligned for elements of every dtype.
pub(super) struct OperandBuffer {
    words: Vec<u128>,
    size: usize,
}

impl OperandBuffer {
    /// Memory of so many bytes, each with this value.
    pub(super) fn filled_with(size: usize, byte: u8) -> Self {
        let word = u128::from_ne_bytes([byte; size_of::<u128>()]);
        Self { words: vec![word; size.div_ceil(size_of::<u128>())], size }
    }

    /// The address as an operand of a call states it.
    pub(super) fn as_device_memory(&mut self) -> abi::Memory {
        abi::Memory(self.words.as_mut_ptr().expose_provenance() as u64)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        // SAFETY: the words are at least `size` bytes, every pattern of which is a value.
        unsafe { slice::from_raw_parts(self.words.as_ptr().cast(), self.size) }
    }

    pub(super) fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and every pattern of bytes is a word.
        unsafe { slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.size) }
    }
}
