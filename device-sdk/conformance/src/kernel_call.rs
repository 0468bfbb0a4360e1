//! Calls of kernels under test, and their prepared states.

#![expect(unsafe_code, reason = "kernels are called through raw pointers")]

use std::ffi::c_void;

use oarlock_abi as abi;

use crate::bench::{CallError, TestBench, Verdict, slot};
use crate::device::{DeviceUnderTest, TestBlock};
use crate::kernel_record::KernelUnderTest;
use crate::reference::AttributeValue;

impl<'a> KernelUnderTest<'a> {
    /// Asks the kernel whether it accepts a call; the inner result is its answer.
    pub(crate) fn supports(self, bench: &TestBench, call: &abi::Call) -> Verdict<Result<(), CallError>> {
        if self.raw.supports.is_none() {
            return Ok(Ok(()));
        }
        Ok(slot!(bench, self.raw.context => self.raw, supports(call)))
    }

    pub(crate) fn workspace_size(self, bench: &TestBench, call: &abi::Call) -> Verdict<u64> {
        let mut size = 0;
        if self.raw.workspace.is_some() {
            slot!(bench, self.raw.context => self.raw, workspace(call, &raw mut size))?;
        }
        Ok(size)
    }

    /// Prepares the kernel for calls like this one.
    pub(crate) fn prepare(self, bench: &'a TestBench, call: &abi::Call) -> Verdict<PreparedState<'a>> {
        let mut state = std::ptr::null_mut();
        if self.raw.prepare.is_some() {
            slot!(bench, self.raw.context => self.raw, prepare(call, &raw mut state))?;
        }
        Ok(PreparedState { kernel: self, bench, state })
    }
}

/// The prepared state of a kernel, released when dropped.
pub(crate) struct PreparedState<'a> {
    kernel: KernelUnderTest<'a>,
    bench: &'a TestBench,
    state: *mut c_void,
}

// SAFETY: one state may be used by several threads at once (rule K-4).
unsafe impl Sync for PreparedState<'_> {}

impl PreparedState<'_> {
    pub(crate) fn run(&self, call: &abi::Call) -> Verdict {
        Ok(slot!(self.bench, self.kernel.raw.context => self.kernel.raw, run(self.state, call))?)
    }

    fn release_state(&self) -> Verdict {
        Ok(slot!(self.bench, self.kernel.raw.context => self.kernel.raw, release(self.state))?)
    }
}

impl Drop for PreparedState<'_> {
    fn drop(&mut self) {
        if self.kernel.raw.release.is_some() {
            // The result of the check matters more than this.
            let _ = self.release_state();
        }
    }
}

/// An operand as a call describes it.
#[derive(Clone, Debug)]
pub(crate) struct OperandDescriptor {
    pub(crate) block: abi::Memory,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) dtype: abi::Dtype,
    pub(crate) bits: abi::TensorFlags,
    pub(crate) place: abi::MemoryKind,
    pub(crate) dims: Vec<i64>,
    /// Empty for a contiguous operand.
    pub(crate) strides: Vec<i64>,
}

impl OperandDescriptor {
    /// An optional operand that is left out.
    pub(crate) fn absent() -> Self {
        Self {
            block: abi::Memory(0),
            offset: 0,
            size: 0,
            dtype: abi::Tensor::EMPTY.dtype,
            bits: abi::TensorFlags::ABSENT,
            place: abi::MemoryKind::DEVICE,
            dims: Vec::new(),
            strides: Vec::new(),
        }
    }

    fn to_tensor(&self) -> abi::Tensor {
        abi::Tensor {
            block: self.block,
            offset: self.offset,
            size_in_bytes: self.size,
            dtype: self.dtype,
            bits: self.bits,
            place: self.place,
            dims: self.dims.as_ptr(),
            dims_count: self.dims.len() as u64,
            strides: self.strides.as_ptr(),
            strides_count: self.strides.len() as u64,
            ..abi::Tensor::EMPTY
        }
    }
}

/// The operands and attributes of a call.
#[derive(Clone, Copy)]
pub(crate) struct CallDescriptor<'a> {
    pub(crate) inputs: &'a [OperandDescriptor],
    pub(crate) outputs: &'a [OperandDescriptor],
    pub(crate) attributes: &'a [(&'static str, AttributeValue)],
}

/// One element of each kind, which an attribute points to.
struct AttributeStore {
    ints: Vec<i64>,
    floats: Vec<f64>,
    texts: Vec<abi::Str>,
}

impl AttributeStore {
    fn new(value: &AttributeValue) -> Self {
        let (mut ints, mut floats, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        match value {
            AttributeValue::Int(value) => ints.push(*value),
            AttributeValue::Ints(values) => ints.clone_from(values),
            AttributeValue::Float(value) => floats.push(*value),
            AttributeValue::Text(text) => texts.push(abi::Str::borrowed(text)),
        }
        Self { ints, floats, texts }
    }
}

fn attribute_kind(value: &AttributeValue) -> abi::AttributeKind {
    match value {
        AttributeValue::Int(_) => abi::AttributeKind::INT,
        AttributeValue::Ints(_) => abi::AttributeKind::INTS,
        AttributeValue::Float(_) => abi::AttributeKind::FLOAT,
        AttributeValue::Text(_) => abi::AttributeKind::STRING,
    }
}

fn pointers<T>(items: &[T]) -> Vec<*const T> {
    items.iter().map(|item| &raw const *item).collect()
}

/// Builds a call on a stream, with the workspace if there is one, and passes it to `work`.
pub(crate) fn with_call<T>(
    device: DeviceUnderTest<'_>,
    queue: abi::Stream,
    described: CallDescriptor<'_>,
    scratch: Option<&TestBlock<'_>>,
    work: impl FnOnce(&abi::Call) -> T,
) -> T {
    let tensors =
        |all: &[OperandDescriptor]| all.iter().map(OperandDescriptor::to_tensor).collect::<Vec<_>>();
    let (inputs, outputs) = (tensors(described.inputs), tensors(described.outputs));
    let stored: Vec<AttributeStore> =
        described.attributes.iter().map(|(_, value)| AttributeStore::new(value)).collect();
    let attributes: Vec<abi::Attribute> = described
        .attributes
        .iter()
        .zip(&stored)
        .map(|((name, value), store)| abi::Attribute {
            name: abi::Str::borrowed(name),
            kind: attribute_kind(value),
            ints: store.ints.as_ptr(),
            ints_count: store.ints.len() as u64,
            floats: store.floats.as_ptr(),
            floats_count: store.floats.len() as u64,
            strings: store.texts.as_ptr(),
            strings_count: store.texts.len() as u64,
            ..abi::Attribute::EMPTY
        })
        .collect();
    let (input_pointers, output_pointers) = (pointers(&inputs), pointers(&outputs));
    let attribute_pointers = pointers(&attributes);
    work(&abi::Call {
        device: device.id,
        queue,
        inputs: input_pointers.as_ptr(),
        inputs_count: input_pointers.len() as u64,
        outputs: output_pointers.as_ptr(),
        outputs_count: output_pointers.len() as u64,
        attributes: attribute_pointers.as_ptr(),
        attributes_count: attribute_pointers.len() as u64,
        workspace: scratch.map_or(abi::Memory(0), |block| block.handle),
        workspace_size: scratch.map_or(0, |block| block.size),
        ..abi::Call::EMPTY
    })
}
