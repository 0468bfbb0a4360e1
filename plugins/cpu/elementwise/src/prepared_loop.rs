//! A prepared kernel: a loop with the conversions of its operands.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::OnceLock;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::{KernelCall, PluginError, Result, TensorView, ensure};

use super::element_loop::{ElementFault, ElementLoop};
use super::iteration_space::{IterationSpace, MAX_OPERANDS, OperandShape, ensure_dtype};
use super::operand_conversion::OperandConversion;
use super::tiling::LoopTiling;

/// Fewer bytes of operands are not worth another thread.
const GRAIN_BYTES: usize = 32 << 10;

/// Up to this many elements run as one loop on the calling thread: planning and threads would take longer than the loop.
const SHORT_ELEMENTS: usize = 2048;

/// A loop, and how each operand gets into it.
pub(super) struct PreparedLoop {
    inner: Box<dyn ElementLoop>,
    inputs: Vec<OperandConversion>,
    output: OperandConversion,
    /// True if the loop takes all operands in place.
    is_direct: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LoopOperand<'a> {
    pub(super) shape: OperandShape<'a>,
    /// The address of the first element.
    pub(super) address: usize,
    /// The size in bytes.
    pub(super) size: usize,
}

impl<'a> LoopOperand<'a> {
    pub(super) fn from_tensor(tensor: &TensorView<'a>, conversion: &OperandConversion) -> Result<Self> {
        ensure_dtype(tensor, conversion.dtype)?;
        let (block, offset) = tensor.memory_location();
        let address = block.0.wrapping_add(offset) as usize;
        Ok(Self { shape: OperandShape::from_tensor(tensor), address, size: tensor.size_in_bytes() as usize })
    }

    /// The elements from an offset on, contiguous in another shape.
    pub(super) fn slice_from<'b>(
        &self,
        dims: &'b [i64],
        start: usize,
        conversion: &OperandConversion,
    ) -> Result<LoopOperand<'b>> {
        ensure!(
            conversion.packed_offset(start) == 0,
            unimplemented,
            "expected parts of whole bytes, found one from the middle of a byte on"
        );
        let skipped = conversion.byte_count(start);
        let (address, size) = (self.address.wrapping_add(skipped), self.size.saturating_sub(skipped));
        Ok(LoopOperand { shape: OperandShape { dims, strides: &[] }, address, size })
    }

    /// Checks that the elements lie in the operand's memory.
    fn check_bounds(&self, conversion: &OperandConversion) -> Result<()> {
        let bytes = conversion.byte_count(self.shape.element_span()?);
        let (address, size) = (self.address, self.size);
        ensure!(bytes <= size, out_of_range, "expected room for {bytes} bytes, found {size}");
        let is_valid = address.is_multiple_of(conversion.alignment())
            && address != 0
            && address.checked_add(size).is_some();
        ensure!(bytes == 0 || is_valid, invalid_argument, "expected an aligned address, found {address:#x}");
        Ok(())
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.address < other.address.saturating_add(other.size)
            && other.address < self.address.saturating_add(self.size)
    }
}

impl PreparedLoop {
    pub(super) fn new(
        inner: impl ElementLoop + 'static,
        inputs: impl Into<Vec<OperandConversion>>,
        output: OperandConversion,
    ) -> Self {
        let inputs = inputs.into();
        let is_direct = inputs.iter().chain([&output]).all(|conversion| conversion.converter.is_none());
        Self { inner: Box::new(inner), inputs, output, is_direct }
    }

    pub(super) fn input_conversions(&self) -> &[OperandConversion] {
        &self.inputs
    }

    pub(super) fn output_conversion(&self) -> &OperandConversion {
        &self.output
    }

    /// Runs the loop over the first inputs of a call, for its first output.
    #[inline]
    pub(super) fn run<const N: usize>(&self, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
        let output = call.output(0)?;
        match self.contiguous_operands::<N>(call, &output)? {
            // SAFETY: each operand has `count` contiguous elements of the type of the loop, and is apart from the output or the
            // very same memory.
            Some((pointers, target, count)) => unsafe {
                self.inner.run_loop(cpu.isa(), &pointers, target, count).map_err(fault_error)
            },
            None => self.run_general::<N>(cpu, call, &output),
        }
    }

    #[inline(never)]
    fn run_general<const N: usize>(
        &self,
        cpu: &Cpu,
        call: &KernelCall<'_>,
        output: &TensorView<'_>,
    ) -> Result<()> {
        let target = LoopOperand::from_tensor(output, &self.output)?;
        let mut operands = [target; N];
        for (index, (operand, conversion)) in operands.iter_mut().zip(&self.inputs).enumerate() {
            *operand = LoopOperand::from_tensor(&call.input(index)?, conversion)?;
        }
        self.run_on_operands(cpu, &operands, target)
    }

    /// The addresses of a few elements that the loop takes in place. Anything else, and whatever is wrong, is left to
    /// [`PreparedLoop::run_on_operands`].
    #[inline]
    fn contiguous_operands<const N: usize>(
        &self,
        call: &KernelCall<'_>,
        output: &TensorView<'_>,
    ) -> Result<Option<([*const u8; N], *mut u8, usize)>> {
        if !self.is_direct || self.inputs.len() != N {
            return Ok(None);
        }
        let mut count = 1usize;
        for dim in output.dims() {
            // Both factors are small, so their product does not overflow.
            match usize::try_from(*dim) {
                Ok(dim) if dim <= SHORT_ELEMENTS && count <= SHORT_ELEMENTS => count *= dim,
                _ => return Ok(None),
            }
        }
        let Some(target) =
            contiguous_address(output, &self.output, count).filter(|_| count <= SHORT_ELEMENTS)
        else {
            return Ok(None);
        };
        let mut pointers = [std::ptr::null(); N];
        for (index, (pointer, conversion)) in pointers.iter_mut().zip(&self.inputs).enumerate() {
            let input = call.input(index)?;
            let Some(source) = contiguous_address(&input, conversion, count) else { return Ok(None) };
            // An input that overlaps the output otherwise than element by element would be overwritten before it is read.
            let distance = source.abs_diff(target);
            let is_same = distance == 0 && conversion.bits == self.output.bits;
            let is_apart = distance >= conversion.byte_count(count).max(self.output.byte_count(count));
            let (dims, others) = (input.dims(), output.dims());
            let has_shape =
                dims.len() == others.len() && dims.iter().zip(others).all(|(dim, other)| dim == other);
            if !has_shape || !(is_same || is_apart) {
                return Ok(None);
            }
            *pointer = source as *const u8;
        }
        Ok(Some((pointers, target as *mut u8, count)))
    }

    pub(super) fn run_on_operands(
        &self,
        cpu: &Cpu,
        inputs: &[LoopOperand<'_>],
        output: LoopOperand<'_>,
    ) -> Result<()> {
        ensure!(
            inputs.len() == self.inputs.len() && inputs.len() < MAX_OPERANDS,
            invalid_argument,
            "expected {} inputs, as the kernel was prepared for, found {}",
            self.inputs.len(),
            inputs.len()
        );
        self.check_output(&output)?;
        let mut shapes = [output.shape; MAX_OPERANDS];
        for (index, (input, conversion)) in inputs.iter().zip(&self.inputs).enumerate() {
            input.check_bounds(conversion)?;
            shapes[index] = input.shape;
        }
        self.run_planned(cpu, inputs, output, &IterationSpace::new(&shapes[..=inputs.len()])?)
    }

    /// Checks that all elements of the output lie in its memory, no two at the same place.
    fn check_output(&self, output: &LoopOperand<'_>) -> Result<()> {
        output.check_bounds(&self.output)?;
        let contiguous = LoopOperand { shape: OperandShape { strides: &[], ..output.shape }, ..*output };
        if output.shape.strides.is_empty() { Ok(()) } else { contiguous.check_bounds(&self.output) }
    }

    fn run_planned(
        &self,
        cpu: &Cpu,
        inputs: &[LoopOperand<'_>],
        output: LoopOperand<'_>,
        plan: &IterationSpace,
    ) -> Result<()> {
        if plan.element_count() == 0 {
            return Ok(());
        }
        // An output that shares memory with an input goes through a buffer even if it needs no conversion.
        let shared = inputs.iter().any(|input| input.overlaps(&output));
        let tiling = LoopTiling::new(plan, &self.inputs, &self.output, shared)?;
        let mut addresses = [output.address; MAX_OPERANDS];
        for (address, input) in addresses.iter_mut().zip(inputs) {
            *address = input.address;
        }
        let fault = OnceLock::new();
        let bytes = self
            .inputs
            .iter()
            .chain([&self.output])
            .map(|conversion| conversion.byte_count(tiling.elements_per_tile()))
            .sum::<usize>();
        // Packed outputs run on one thread: elements that share a byte must not be written at the same time.
        let grain =
            if self.output.is_packed() { tiling.total_tiles() } else { GRAIN_BYTES.div_ceil(bytes.max(1)) };
        cpu.parallel_for(tiling.total_tiles(), grain, |begin, end| {
            // SAFETY: the operands were checked to lie in memory as far as the iteration space reaches, and pieces do not
            // overlap.
            if let Err(found) = unsafe { tiling.run_tiles(&*self.inner, cpu.isa(), &addresses, begin..end) } {
                let _ = fault.set(found);
            }
        });
        fault.into_inner().map_or(Ok(()), |fault| Err(fault_error(fault)))
    }
}

/// The address of a tensor, if its `count` elements are contiguous.
#[inline]
fn contiguous_address(
    tensor: &TensorView<'_>,
    conversion: &OperandConversion,
    count: usize,
) -> Option<usize> {
    let (block, offset) = tensor.memory_location();
    let address = block.0.wrapping_add(offset) as usize;
    let is_valid = tensor.dtype() == conversion.dtype
        && tensor.strides().is_empty()
        && conversion.byte_count(count) as u64 <= tensor.size_in_bytes()
        && address & conversion.alignment().wrapping_sub(1) == 0
        && address != 0;
    is_valid.then_some(address)
}

#[cold]
fn fault_error(fault: ElementFault) -> PluginError {
    PluginError::invalid_argument(fault.0)
}
