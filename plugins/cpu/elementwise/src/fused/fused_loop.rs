//! Runs the segments of a fused op over chunks that stay in L1.

#![expect(unsafe_code, reason = "elements are read and written through pointers")]

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::math::TrigonometricFloat;
use oarlock_cpu_base::prefetch::{prefetch_l1, prefetch_to_write};
use oarlock_sdk::Result;

use super::super::element_loop::{ElementFault, ElementLoop, ElementMap};
use super::super::power::PowerMap;
use super::segments::{ChainSegment, MAX_SEGMENT_OPERANDS, cut_into_segments};
use super::step_call::{StepCall, StepOperand};

/// Bytes of an operand in a chunk.
const CHUNK_BYTES: usize = 4096;

const LINE_BYTES: usize = 64;

/// A cache line of memory for values between segments.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct BufferLine([u8; LINE_BYTES]);

/// Where an operand of a segment is.
#[derive(Clone, Copy, PartialEq)]
enum OperandPlace {
    Input(usize),
    Buffer(usize),
    /// A buffer of one scalar.
    Constant(usize),
    Output,
}

struct PlacedSegment {
    inner: Box<dyn ElementLoop>,
    operands: Vec<OperandPlace>,
    target: OperandPlace,
}

/// All segments of a fused op.
pub(super) struct FusedLoop {
    segments: Vec<PlacedSegment>,
    constants: Vec<Vec<BufferLine>>,
    buffers: usize,
    element_size: usize,
}

impl FusedLoop {
    pub(super) fn new<N: TrigonometricFloat + From<f32>>(
        inputs: usize,
        steps: &[StepCall<'_>],
    ) -> Result<Self>
    where
        PowerMap<N>: ElementMap,
    {
        Ok(Self::with_places::<N>(inputs, cut_into_segments::<N>(inputs, steps)?))
    }

    /// Gives each value between segments a buffer, which is free again behind the last segment that reads it.
    fn with_places<N: TrigonometricFloat>(inputs: usize, segments: Vec<ChainSegment>) -> Self {
        let (mut scalars, mut holders): (Vec<N>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
        let mut placed = Vec::new();
        for index in 0..segments.len() {
            let ChainSegment { operands, result, .. } = &segments[index];
            let later = &segments[index + 1..];
            let mut place = |operand: &StepOperand| match operand {
                StepOperand::Value(value) if *value < inputs => OperandPlace::Input(*value),
                StepOperand::Value(value) => {
                    let held = holders.iter().position(|holder| *holder == Some(*value));
                    OperandPlace::Buffer(held.unwrap_or_default())
                }
                StepOperand::Scalar(scalar) => {
                    scalars.push(N::from_f64(*scalar));
                    OperandPlace::Constant(scalars.len() - 1)
                }
            };
            let operands = operands.iter().map(&mut place).collect();
            // The result gets its buffer before those of the operands are free: loops are faster if the two are apart.
            let target = if later.is_empty() {
                OperandPlace::Output
            } else {
                let free = holders.iter().position(Option::is_none).unwrap_or(holders.len());
                holders.resize(holders.len().max(free + 1), None);
                holders[free] = Some(*result);
                OperandPlace::Buffer(free)
            };
            for holder in &mut holders {
                let is_read = |value: &usize| {
                    later.iter().any(|segment| segment.operands.contains(&StepOperand::Value(*value)))
                };
                *holder = holder.filter(is_read);
            }
            placed.push((operands, target));
        }
        let segments = segments.into_iter().zip(placed);
        Self {
            segments: segments
                .map(|(ChainSegment { inner, .. }, (operands, target))| PlacedSegment {
                    inner,
                    operands,
                    target,
                })
                .collect(),
            constants: scalars.into_iter().map(constant_buffer).collect(),
            buffers: holders.len(),
            element_size: size_of::<N>(),
        }
    }
}

/// A buffer that is full of a scalar.
fn constant_buffer<N: TrigonometricFloat>(scalar: N) -> Vec<BufferLine> {
    let mut buffer = vec![BufferLine([0; LINE_BYTES]); CHUNK_BYTES / LINE_BYTES];
    for index in 0..CHUNK_BYTES / size_of::<N>() {
        // SAFETY: the element lies in the buffer, which is aligned.
        unsafe { buffer.as_mut_ptr().cast::<N>().add(index).write(scalar) };
    }
    buffer
}

impl ElementLoop for FusedLoop {
    unsafe fn run_loop(
        &self,
        isa: Isa,
        inputs: &[*const u8],
        output: *mut u8,
        count: usize,
    ) -> Result<(), ElementFault> {
        // A single segment without constants needs no chunks.
        let is_whole = self.segments.len() == 1 && self.constants.is_empty();
        let chunk = if is_whole { count.max(1) } else { CHUNK_BYTES / self.element_size };
        // One line more than there are elements: a load waits for a store to the same place of another page, and values would often be
        // at the same place of theirs.
        let lines = (chunk.min(count) * self.element_size).div_ceil(LINE_BYTES) + 1;
        let mut buffers = Vec::<BufferLine>::with_capacity(self.buffers * lines);
        let buffers = buffers.as_mut_ptr();
        let mut pointers = [std::ptr::null(); MAX_SEGMENT_OPERANDS];
        for begin in (0..count).step_by(chunk) {
            let (length, offset) = (chunk.min(count - begin), begin * self.element_size);
            for (index, segment) in self.segments.iter().enumerate() {
                if !is_whole && count - begin > chunk {
                    self.prefetch_chunk(index, inputs, output, offset + CHUNK_BYTES);
                }
                let place = |place: &OperandPlace| match place {
                    OperandPlace::Input(input) => inputs[*input].wrapping_add(offset),
                    OperandPlace::Buffer(buffer) => buffers.wrapping_add(*buffer * lines).cast_const().cast(),
                    OperandPlace::Constant(constant) => self.constants[*constant].as_ptr().cast(),
                    OperandPlace::Output => output.wrapping_add(offset).cast_const(),
                };
                for (pointer, operand) in pointers.iter_mut().zip(&segment.operands) {
                    *pointer = place(operand);
                }
                let (operands, target) =
                    (&pointers[..segment.operands.len()], place(&segment.target).cast_mut());
                // SAFETY: the caller vouches for `count` elements of each operand; a buffer has room for a chunk and is written before
                // it is read. Only the last segment writes where inputs may be.
                unsafe { segment.inner.run_loop(isa, operands, target, length)? };
            }
        }
        Ok(())
    }
}

impl FusedLoop {
    /// Prefetches the part of the next chunk, from an offset on, that falls to a segment. All at once would wait for memory.
    #[inline(always)]
    fn prefetch_chunk(&self, segment: usize, inputs: &[*const u8], output: *mut u8, offset: usize) {
        let line =
            |segment: usize| (segment * CHUNK_BYTES / LINE_BYTES).div_ceil(self.segments.len()) * LINE_BYTES;
        for place in (line(segment)..line(segment + 1)).step_by(LINE_BYTES) {
            inputs.iter().for_each(|input| prefetch_l1(input.wrapping_add(offset + place)));
            prefetch_to_write(output.wrapping_add(offset + place));
        }
    }
}
