//! The operands of one call in memory, with guard zones around each.

use std::fmt;

use oarlock_abi as abi;

use super::{KernelTrial, SolvedCase, requirement_at};
use crate::bench::{CheckAbort, Verdict, expect_bytes};
use crate::device::TestBlock;
use crate::elements::{decode_elements, element_size, encode_elements, round_to_dtype};
use crate::kernel_call::{CallDescriptor, OperandDescriptor, with_call};
use crate::reference::{AttributeValue, ReferenceArray, ReferenceOutput, error_in_ulps};

/// Fills guard zones, gaps and outputs before a run.
const GUARD_BYTE: u8 = 0x3C;

/// How the operands of a call lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallLayout {
    /// One after another, at aligned addresses.
    Contiguous,
    /// At addresses that are aligned to an element and no more.
    Unaligned,
    /// The first dimension fastest and a gap after each element, where the kernel's record permits it.
    Strided,
    /// All inputs but the first are constants.
    Constant,
    /// An output in the memory of an input.
    InPlace(abi::InPlace),
}

impl fmt::Display for CallLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contiguous => f.write_str("contiguous"),
            Self::Unaligned => f.write_str("aligned to one element"),
            Self::Strided => f.write_str("strided"),
            Self::Constant => f.write_str("with constant inputs"),
            Self::InPlace(pair) => write!(f, "output {} in the memory of input {}", pair.output, pair.input),
        }
    }
}

/// Where an operand is.
enum OperandMemory<'a> {
    /// An optional operand that is left out.
    Nowhere,
    Device(TestBlock<'a>),
    /// Words of host memory, for operands that a kernel reads there.
    Host(Vec<u64>),
}

struct TrialOperand<'a> {
    memory: OperandMemory<'a>,
    descriptor: OperandDescriptor,
    /// All bytes of the memory at the start, guard zones included.
    bytes: Vec<u8>,
}

/// The operands of one call.
pub(crate) struct TrialOperands<'a, 'c> {
    case: &'c SolvedCase,
    layout: CallLayout,
    inputs: Vec<TrialOperand<'a>>,
    outputs: Vec<TrialOperand<'a>>,
    scratch: Option<TestBlock<'a>>,
    in_place: Option<abi::InPlace>,
}

/// A description and the bytes that belong to it.
struct OperandImage {
    bytes: Vec<u8>,
    offset: usize,
    size: usize,
    strides: Vec<i64>,
}

/// Lays elements out between guard zones.
fn lay_out(
    array: &ReferenceArray,
    dtype: abi::Dtype,
    trial: &KernelTrial<'_>,
    layout: CallLayout,
) -> OperandImage {
    let element = element_size(dtype);
    let elements = encode_elements(dtype, &array.values);
    let shift = if layout == CallLayout::Unaligned { element.max(trial.element_alignment) } else { 0 };
    let offset = trial.alignment + shift;
    let mut strides = Vec::new();
    let mut inner = elements;
    if layout == CallLayout::Strided && !array.values.is_empty() && array.rank() > 0 {
        let mut step = 2;
        for dim in &array.dims {
            strides.push(step);
            step *= *dim as i64;
        }
        let places = crate::reference::indices(&array.dims);
        let place = |at: &Vec<usize>| -> usize {
            at.iter().zip(&strides).map(|(index, stride)| index * *stride as usize).sum()
        };
        let last = places.iter().map(place).max().unwrap_or_default();
        let mut spread = vec![GUARD_BYTE; (last + 1) * element];
        for (at, bytes) in places.iter().zip(inner.chunks_exact(element)) {
            let start = place(at) * element;
            spread[start..start + element].copy_from_slice(bytes);
        }
        inner = spread;
    }
    let (before, after) = (vec![GUARD_BYTE; offset], vec![GUARD_BYTE; trial.alignment]);
    let size = inner.len();
    OperandImage { bytes: [before, inner, after].concat(), offset, size, strides }
}

impl<'a> TrialOperand<'a> {
    fn absent() -> Self {
        Self { memory: OperandMemory::Nowhere, descriptor: OperandDescriptor::absent(), bytes: Vec::new() }
    }

    fn allocate(
        trial: &KernelTrial<'a>,
        array: &ReferenceArray,
        dtype: abi::Dtype,
        place: abi::MemoryKind,
        layout: CallLayout,
    ) -> Verdict<Self> {
        let image = lay_out(array, dtype, trial, layout);
        let mut descriptor = OperandDescriptor {
            block: abi::Memory(0),
            offset: image.offset as u64,
            size: image.size as u64,
            dtype,
            bits: abi::TensorFlags(0),
            place,
            dims: array.dims.iter().map(|dim| *dim as i64).collect(),
            strides: image.strides,
        };
        let memory = if place == abi::MemoryKind::HOST {
            let mut words = vec![0u64; image.bytes.len().div_ceil(8)];
            for (index, byte) in image.bytes.iter().enumerate() {
                words[index / 8] |= u64::from_ne_bytes([*byte; 8]) & byte_mask(index % 8);
            }
            descriptor.block = abi::Memory(words.as_ptr().expose_provenance() as u64);
            OperandMemory::Host(words)
        } else {
            let block = trial.device.allocate_with(&image.bytes)?;
            descriptor.block = block.handle;
            OperandMemory::Device(block)
        };
        if image.size == 0 {
            // Operands without elements have no memory.
            (descriptor.block, descriptor.offset) = (abi::Memory(0), 0);
        }
        Ok(Self { memory, descriptor, bytes: image.bytes })
    }

    /// All bytes as they are now.
    fn read_bytes(&self) -> Verdict<Vec<u8>> {
        match &self.memory {
            OperandMemory::Nowhere => Ok(Vec::new()),
            OperandMemory::Device(block) => block.read_all(),
            OperandMemory::Host(words) => {
                let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
                Ok(bytes.take(self.bytes.len()).collect())
            }
        }
    }

    /// The range of the elements within the bytes.
    fn element_range(&self, alignment: usize) -> std::ops::Range<usize> {
        let end = self.bytes.len().saturating_sub(alignment);
        end.saturating_sub(self.descriptor.size as usize)..end
    }
}

fn byte_mask(index: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[index] = 0xFF;
    u64::from_ne_bytes(bytes)
}

impl<'a, 'c> TrialOperands<'a, 'c> {
    pub(super) fn allocate(
        trial: &KernelTrial<'a>,
        case: &'c SolvedCase,
        layout: CallLayout,
    ) -> Verdict<Self> {
        let (read, written) = (trial.kernel.inputs(), trial.kernel.outputs());
        let mut made = Vec::new();
        let mut is_any_strided = false;
        for (index, input) in case.inputs.iter().enumerate() {
            let requirement = requirement_at(&read, index).copied().unwrap_or(abi::Operand::EMPTY);
            let (Some(array), Some(dtype)) = (input, trial.inputs.at(index)) else {
                made.push(TrialOperand::absent());
                continue;
            };
            let is_strided = requirement.bits.contains(abi::OperandFlags::STRIDED);
            let own_layout = match layout {
                CallLayout::Strided if !is_strided => CallLayout::Contiguous,
                other => other,
            };
            let mut operand = TrialOperand::allocate(trial, array, dtype, requirement.place, own_layout)?;
            is_any_strided |= !operand.descriptor.strides.is_empty();
            if layout == CallLayout::Constant && index > 0 {
                operand.descriptor.bits = abi::TensorFlags::CONSTANT;
            }
            made.push(operand);
        }
        if layout == CallLayout::Strided && !is_any_strided {
            return Err(CheckAbort::unsupported("the kernel takes contiguous operands alone"));
        }
        if layout == CallLayout::Constant && made.len() < 2 {
            return Err(CheckAbort::unsupported("there is no second input"));
        }
        let mut outputs = Vec::new();
        for (index, output) in case.expected.iter().enumerate() {
            let place =
                requirement_at(&written, index).map_or(abi::MemoryKind::DEVICE, |operand| operand.place);
            let dtype = trial.outputs.at(index).unwrap_or(trial.dtype);
            let mut operand = TrialOperand::allocate(
                trial,
                &output.array,
                dtype,
                place,
                match layout {
                    CallLayout::Unaligned => CallLayout::Unaligned,
                    _ => CallLayout::Contiguous,
                },
            )?;
            operand.blank(trial)?;
            outputs.push(operand);
        }
        let mut in_place = None;
        if let CallLayout::InPlace(pair) = layout {
            share_memory(&made, &mut outputs, pair)?;
            in_place = Some(pair);
        }
        let mut all = Self { case, layout, inputs: made, outputs, scratch: None, in_place };
        let bench = trial.device.bench;
        all.with_trial_call(trial, abi::Stream(0), |call| trial.expect_accepted(call))?;
        let size =
            all.with_trial_call(trial, abi::Stream(0), |call| trial.kernel.workspace_size(bench, call))?;
        if size > 0 {
            all.scratch = Some(trial.device.allocate(size as usize)?);
        }
        Ok(all)
    }

    pub(crate) fn with_trial_call<T>(
        &self,
        trial: &KernelTrial<'_>,
        queue: abi::Stream,
        work: impl FnOnce(&abi::Call) -> T,
    ) -> T {
        let described = |all: &[TrialOperand<'_>]| {
            all.iter().map(|operand| operand.descriptor.clone()).collect::<Vec<_>>()
        };
        let (inputs, outputs) = (described(&self.inputs), described(&self.outputs));
        let descriptor =
            CallDescriptor { inputs: &inputs, outputs: &outputs, attributes: &self.case.attributes };
        with_call(trial.device, queue, descriptor, self.scratch.as_ref(), work)
    }

    pub(crate) fn has_elements(&self) -> bool {
        self.outputs.iter().all(|output| output.descriptor.size > 0)
            && self.inputs.iter().any(|input| input.descriptor.size > 0)
    }

    /// Compares all outputs with the reference; returns the largest error in ulps.
    pub(crate) fn compare_outputs(&self, trial: &KernelTrial<'_>) -> Verdict<f64> {
        let mut worst: f64 = 0.0;
        for (index, (output, expected)) in self.outputs.iter().zip(&self.case.expected).enumerate() {
            let source = match self.in_place {
                Some(pair) if pair.output as usize == index => &self.inputs[pair.input as usize],
                _ => output,
            };
            let bytes = source.read_bytes()?;
            let found =
                decode_elements(output.descriptor.dtype, &bytes[source.element_range(trial.alignment)]);
            worst = worst.max(self.compare_output(trial, index, output, expected, &found)?);
        }
        Ok(worst)
    }

    fn compare_output(
        &self,
        trial: &KernelTrial<'_>,
        index: usize,
        output: &TrialOperand<'_>,
        expected: &ReferenceOutput,
        found: &[f64],
    ) -> Verdict<f64> {
        let dtype = output.descriptor.dtype;
        let tolerance = trial.op.tolerance.ulps(dtype);
        let mut worst: f64 = 0.0;
        for (place, (value, found)) in expected.array.values.iter().zip(found).enumerate() {
            let magnitude = expected.magnitudes.get(place).copied().unwrap_or_default();
            let error = error_in_ulps(dtype, *value, magnitude, *found);
            if error > tolerance {
                let expected = round_to_dtype(dtype, *value);
                let distance =
                    if error.is_finite() { format!(", {error:.1} ulp away") } else { String::new() };
                return Err(CheckAbort::failed(format!(
                    "{}: expected {expected} (within {tolerance} ulp) as element {place} of output {index} of shape {:?}, found {found}{distance}",
                    call_summary(self.case, self.layout),
                    output.descriptor.dims
                )));
            }
            worst = worst.max(error);
        }
        Ok(worst)
    }

    /// Fails if anything but the outputs was written.
    pub(crate) fn expect_rest_untouched(&self, trial: &KernelTrial<'_>) -> Verdict {
        for (index, input) in self.inputs.iter().enumerate() {
            expect_bytes(format_args!("input {index} after the run"), &input.bytes, &input.read_bytes()?)?;
        }
        for output in &self.outputs {
            let (bytes, range) = (output.read_bytes()?, output.element_range(trial.alignment));
            expect_bytes("the bytes before the output", &output.bytes[..range.start], &bytes[..range.start])?;
            expect_bytes("the bytes after the output", &output.bytes[range.end..], &bytes[range.end..])?;
        }
        Ok(())
    }

    /// Fails if an output was written.
    pub(crate) fn expect_outputs_blank(&self) -> Verdict {
        for output in &self.outputs {
            expect_bytes("an output that no call names", &output.bytes, &output.read_bytes()?)?;
        }
        Ok(())
    }

    /// The first input in device memory, with its elements.
    pub(crate) fn first_input(&self, trial: &KernelTrial<'_>) -> Option<(&TestBlock<'a>, u64, Vec<u8>)> {
        let input = self.inputs.first()?;
        let OperandMemory::Device(block) = &input.memory else { return None };
        let elements = input.bytes[input.element_range(trial.alignment)].to_vec();
        Some((block, input.descriptor.offset, elements))
    }

    /// The first output in device memory: block, offset and size.
    pub(crate) fn first_output(&self) -> Option<(&TestBlock<'a>, u64, usize)> {
        let output = self.outputs.first()?;
        let OperandMemory::Device(block) = &output.memory else { return None };
        Some((block, output.descriptor.offset, output.descriptor.size as usize))
    }

    /// Compares elements of the first output that were read in another way.
    pub(crate) fn compare_first(&self, trial: &KernelTrial<'_>, bytes: &[u8]) -> Verdict {
        let (output, expected) = (&self.outputs[0], &self.case.expected[0]);
        let found = decode_elements(output.descriptor.dtype, bytes);
        self.compare_output(trial, 0, output, expected, &found).map(drop)
    }
}

impl TrialOperand<'_> {
    /// Overwrites the elements with guard bytes, so that an element that the kernel skips is noticed.
    fn blank(&mut self, trial: &KernelTrial<'_>) -> Verdict {
        let range = self.element_range(trial.alignment);
        self.bytes[range].fill(GUARD_BYTE);
        match &mut self.memory {
            OperandMemory::Nowhere => Ok(()),
            OperandMemory::Device(block) => block.write_bytes(0, &self.bytes),
            OperandMemory::Host(words) => {
                words.fill(u64::from_ne_bytes([GUARD_BYTE; 8]));
                Ok(())
            }
        }
    }
}

/// Makes an output use the memory of an input; unsupported if they differ in size or dtype.
fn share_memory(
    inputs: &[TrialOperand<'_>],
    outputs: &mut [TrialOperand<'_>],
    pair: abi::InPlace,
) -> Verdict {
    let (input, output) = (inputs.get(pair.input as usize), outputs.get_mut(pair.output as usize));
    let (Some(input), Some(output)) = (input, output) else {
        return Err(CheckAbort::unsupported("the call has no such operands"));
    };
    let (own, shared) = (&mut output.descriptor, &input.descriptor);
    if shared.size == 0 || own.size != shared.size || own.dtype != shared.dtype {
        return Err(CheckAbort::unsupported("input and output differ in size"));
    }
    (own.block, own.offset) = (shared.block, shared.offset);
    Ok(())
}

fn call_summary(case: &SolvedCase, layout: CallLayout) -> String {
    let shape = |input: &Option<ReferenceArray>| {
        input.as_ref().map_or("none".to_owned(), |input| format!("{:?}", input.dims))
    };
    let shapes: Vec<String> = case.inputs.iter().map(shape).collect();
    let mut summary = format!("inputs {}, {layout}", shapes.join(" and "));
    for (name, value) in &case.attributes {
        let value = match value {
            AttributeValue::Int(value) => value.to_string(),
            AttributeValue::Float(value) => value.to_string(),
            AttributeValue::Text(value) => (*value).to_owned(),
            AttributeValue::Ints(values) => format!("{values:?}"),
        };
        summary.push_str(&format!(", {name} {value}"));
    }
    if !case.name.is_empty() {
        summary.push_str(&format!(", {}", case.name));
    }
    summary
}
