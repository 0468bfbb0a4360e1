//! A call kept until its stream gets to it.
//!
//! A call and everything it points to belong to the host and are valid only until the call returns. Shapes, attributes and
//! operands in host memory are copied; device memory is only referenced, since it stays valid until the stream has passed the
//! call.

#![expect(unsafe_code, reason = "a call is a struct of pointers into the host")]

use std::any::Any;
use std::{ptr, slice};

use oarlock_sdk::{MemoryKind, abi};

/// A copy of a kernel call that outlives the host's call.
pub(super) struct DeferredCall {
    /// The call without its operands.
    pub(super) call: abi::Call,
    pub(super) inputs: Vec<abi::Tensor>,
    pub(super) outputs: Vec<abi::Tensor>,
    /// Backing storage for the pointers in all of it.
    _lists: OwnedLists,
}

impl DeferredCall {
    /// Copies a call.
    ///
    /// # Safety
    ///
    /// The host is making this call right now.
    pub(super) unsafe fn copy_call(call: &abi::Call) -> Self {
        let mut lists = OwnedLists::default();
        // SAFETY: the host guarantees that each list matches its count and that its items can be read.
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

    /// Passes the call to a kernel that inspects it before it runs.
    pub(super) fn with_call<R>(&self, look: impl FnOnce(&abi::Call) -> R) -> R {
        let pointers = |operands: &[abi::Tensor]| operands.iter().map(ptr::from_ref).collect::<Vec<_>>();
        let (inputs, outputs) = (pointers(&self.inputs), pointers(&self.outputs));
        look(&abi::Call { inputs: inputs.as_ptr(), outputs: outputs.as_ptr(), ..self.call })
    }
}

// SAFETY: the pointers lead into lists that move with the call and are never modified.
unsafe impl Send for DeferredCall {}

/// Copies of lists, at stable addresses for the life of this struct.
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
    /// `source` points to `count` items.
    unsafe fn copy_list<T: Copy + 'static>(&mut self, source: *const T, count: u64) -> *const T {
        if count == 0 {
            return ptr::null();
        }
        // SAFETY: the caller guarantees the items.
        self.keep_list(unsafe { slice::from_raw_parts(source, count as usize) }.to_vec())
    }

    /// # Safety
    ///
    /// The text can be read.
    unsafe fn copy_text(&mut self, text: abi::Str) -> abi::Str {
        // SAFETY: the caller guarantees the bytes.
        abi::Str { data: unsafe { self.copy_list(text.data, text.size) }, size: text.size }
    }

    /// Boxes structs and returns a list of pointers to them.
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
            // SAFETY: the caller guarantees the tensor.
            return unsafe { self.copy_host_tensor(tensor) };
        }
        // A device constant cannot be read before the stream gets there, so the kernel must not treat it as one.
        let bits = abi::TensorFlags(tensor.bits.0 & !abi::TensorFlags::CONSTANT.0);
        // SAFETY: the caller guarantees the lists.
        abi::Tensor { bits, ..unsafe { self.copy_shape(tensor) } }
    }

    /// # Safety
    ///
    /// The tensor's lists match their counts.
    unsafe fn copy_shape(&mut self, tensor: &abi::Tensor) -> abi::Tensor {
        // SAFETY: the caller guarantees the lists.
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
            // SAFETY: the caller guarantees the bytes.
            let source = unsafe { slice::from_raw_parts(source, bytes.size) };
            bytes.as_bytes_mut().copy_from_slice(source);
        }
        let block = bytes.as_device_memory();
        self.0.push(Box::new(bytes));
        // SAFETY: the caller guarantees the lists.
        abi::Tensor { block, offset: 0, ..unsafe { self.copy_shape(tensor) } }
    }

    /// Copies an attribute, except graphs, which no CPU kernel reads.
    ///
    /// # Safety
    ///
    /// The attribute is one of a call that the host is making.
    unsafe fn copy_attribute(&mut self, attribute: &abi::Attribute) -> abi::Attribute {
        // SAFETY: the host guarantees that each list matches its count and that its items can be read.
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

/// Iterates over the structs of a list of the contract.
///
/// # Safety
///
/// The list has `count` pointers to structs that can be read for `'a`.
unsafe fn iterate_list<'a, T: 'a>(list: *const *const T, count: u64) -> impl Iterator<Item = &'a T> {
    // SAFETY: the caller guarantees the list.
    (0..count as usize).map(move |index| unsafe { &**list.add(index) })
}

/// Host memory for one operand, aligned for elements of every dtype.
pub(super) struct OperandBuffer {
    words: Vec<u128>,
    size: usize,
}

impl OperandBuffer {
    /// Allocates `size` bytes with the value `byte`.
    pub(super) fn filled_with(size: usize, byte: u8) -> Self {
        let word = u128::from_ne_bytes([byte; size_of::<u128>()]);
        Self { words: vec![word; size.div_ceil(size_of::<u128>())], size }
    }

    /// The address in the form that an operand of a call has.
    pub(super) fn as_device_memory(&mut self) -> abi::Memory {
        abi::Memory(self.words.as_mut_ptr().expose_provenance() as u64)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        // SAFETY: the words span at least `size` bytes, and every byte pattern is a valid `u8`.
        unsafe { slice::from_raw_parts(self.words.as_ptr().cast(), self.size) }
    }

    pub(super) fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and every byte pattern is also a valid word.
        unsafe { slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.size) }
    }
}
