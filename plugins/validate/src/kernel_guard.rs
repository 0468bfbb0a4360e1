//! Whether a kernel keeps to its memory (rule K-3): small outputs and the workspace move between guard bytes for the time of the
//! run, and small inputs are compared with copies.
//!
//! Only memory that the host can address is guarded, and only on the synchronous stream, where nothing else uses it. Outputs that
//! share bytes with another operand stay where they are.

#![expect(unsafe_code, reason = "operands are read and written where the host says they are")]

use std::cell::Cell;

use oarlock_layer::{pointer_word, word_const_pointer, word_pointer};
use oarlock_sdk::abi;

use crate::breach::CallBreach;
use crate::kernel_operands::{CallOperand, KernelOperands, check_description};
use crate::plugin_ledger::BlockUse;

/// Larger operands are not guarded: the copies would take longer than the kernel.
const MAX_GUARDED_BYTES: u64 = 64 << 10;

/// Guard bytes before and after a moved operand.
const GUARD_BYTES: usize = 64;
const GUARD_BYTE: u8 = 0xC7;

/// A moved operand starts where its own address does within so many bytes, so that it is aligned alike.
const ALIGNMENT: usize = 64;

/// An output, or the workspace, that was moved.
struct MovedOperand {
    /// The address that it came from and goes back to.
    home: u64,
    size: usize,
    /// Where it is in the buffer.
    start: usize,
    /// Which output it is; `None` for the workspace.
    output: Option<usize>,
}

/// An input that must not change.
struct WatchedInput {
    address: u64,
    size: usize,
    start: usize,
    index: usize,
}

/// Buffers that a thread reuses for all runs.
#[derive(Default)]
pub(crate) struct GuardBuffers {
    bytes: Vec<u8>,
    copies: Vec<u8>,
    moved: Vec<MovedOperand>,
    watched: Vec<WatchedInput>,
    tensors: Vec<abi::Tensor>,
    pointers: Vec<*const abi::Tensor>,
    call: Option<Box<abi::Call>>,
    /// Room for the operands and uses of the next call.
    pub(crate) operands: Vec<CallOperand>,
    pub(crate) uses: Vec<BlockUse>,
}

thread_local! {
    static BUFFERS: Cell<Option<Box<GuardBuffers>>> = const { Cell::new(None) };
}

impl GuardBuffers {
    pub(crate) fn take_from_thread() -> Box<Self> {
        BUFFERS.take().unwrap_or_default()
    }

    pub(crate) fn return_to_thread(self: Box<Self>) {
        BUFFERS.set(Some(self));
    }

    /// Moves and copies what a run may write and must not write. Returns the address of the call for the kernel.
    ///
    /// # Safety
    ///
    /// The operands are those of the call at `address`, which the host passed to `run`; `is_addressable` is true only if the handles
    /// of the device's blocks are addresses.
    pub(crate) unsafe fn set_guards(
        &mut self,
        address: u64,
        operands: &KernelOperands,
        is_addressable: bool,
        moves_outputs: bool,
    ) -> u64 {
        self.moved.clear();
        self.watched.clear();
        self.copies.clear();
        let place = |tensor: &abi::Tensor, in_host_memory: bool| {
            let is_known = is_addressable || in_host_memory;
            let is_absent = tensor.bits.contains(abi::TensorFlags::ABSENT) || tensor.size_in_bytes == 0;
            (is_known && !is_absent && tensor.size_in_bytes <= MAX_GUARDED_BYTES)
                .then(|| tensor.block.0.wrapping_add(tensor.offset))
        };
        let inputs = operands.call.inputs_count as usize;
        for (index, operand) in operands.operands[..inputs].iter().enumerate() {
            let is_written = operands.outputs().iter().any(|output| overlap(&operand.tensor, &output.tensor));
            let Some(address) = place(&operand.tensor, operand.is_in_host_memory()).filter(|_| !is_written)
            else {
                continue;
            };
            let size = operand.tensor.size_in_bytes as usize;
            let start = self.copies.len();
            // SAFETY: the host vouches for the bytes of the operand, and their address is known.
            let bytes = unsafe { core::slice::from_raw_parts(word_const_pointer::<u8>(address), size) };
            self.copies.extend_from_slice(bytes);
            self.watched.push(WatchedInput { address, size, start, index });
        }
        if moves_outputs {
            self.plan_moves(operands, is_addressable, place);
        }
        if self.moved.is_empty() {
            return address;
        }
        // SAFETY: the operands are those of the call, whose outputs' bytes the caller vouches for.
        unsafe { self.move_operands() };
        self.make_call(operands)
    }

    fn plan_moves(
        &mut self,
        operands: &KernelOperands,
        is_addressable: bool,
        place: impl Fn(&abi::Tensor, bool) -> Option<u64>,
    ) {
        let mut end = 0;
        let mut add = |home: u64, size: u64, output: Option<usize>| {
            let start = end + GUARD_BYTES + ALIGNMENT;
            end = start + size as usize + GUARD_BYTES;
            MovedOperand { home, size: size as usize, start, output }
        };
        for (index, output) in operands.outputs().iter().enumerate() {
            let tensor = &output.tensor;
            let is_alone =
                operands.operands.iter().filter(|other| overlap(tensor, &other.tensor)).count() == 1;
            let is_plain = tensor.strides_count == 0 && tensor.dtype != abi::Dtype::STRING;
            let home = place(tensor, output.is_in_host_memory()).filter(|_| is_alone && is_plain);
            self.moved.extend(home.map(|home| add(home, tensor.size_in_bytes, Some(index))));
        }
        let call = &operands.call;
        if is_addressable && (1..=MAX_GUARDED_BYTES).contains(&call.workspace_size) {
            let home = call.workspace.0.wrapping_add(call.workspace_offset);
            self.moved.push(add(home, call.workspace_size, None));
        }
        self.bytes.clear();
        self.bytes.resize(end + ALIGNMENT, GUARD_BYTE);
        // Each operand starts at an address that is aligned like its home.
        let base = pointer_word(self.bytes.as_ptr()) as usize;
        for moved in &mut self.moved {
            let wanted = moved.home as usize % ALIGNMENT;
            let at = (base + moved.start) % ALIGNMENT;
            moved.start = moved.start + wanted + ALIGNMENT - at - if wanted >= at { ALIGNMENT } else { 0 };
        }
    }

    /// # Safety
    ///
    /// The homes of the moved operands can be read.
    unsafe fn move_operands(&mut self) {
        for moved in &self.moved {
            // SAFETY: the caller vouches for the home, and the buffer has room from `start` on.
            unsafe {
                let target = self.bytes.as_mut_ptr().add(moved.start);
                target.copy_from_nonoverlapping(word_const_pointer::<u8>(moved.home), moved.size);
            }
        }
    }

    fn make_call(&mut self, operands: &KernelOperands) -> u64 {
        let base = pointer_word(self.bytes.as_mut_ptr());
        self.tensors.clear();
        self.tensors.extend(operands.outputs().iter().map(|output| output.tensor));
        let mut call = operands.call;
        call.size = call.size.min(size_of::<abi::Call>() as u32);
        for moved in &self.moved {
            let block = abi::Memory(base + moved.start as u64);
            match moved.output {
                Some(index) => {
                    let tensor = &mut self.tensors[index];
                    (tensor.block, tensor.offset) = (block, 0);
                    tensor.size = tensor.size.min(size_of::<abi::Tensor>() as u32);
                }
                None => (call.workspace, call.workspace_offset) = (block, 0),
            }
        }
        self.pointers.clear();
        self.pointers.extend(self.tensors.iter().map(|tensor| &raw const *tensor));
        call.outputs = self.pointers.as_ptr();
        let kept = self.call.get_or_insert_with(|| Box::new(call));
        **kept = call;
        pointer_word(&raw const **kept)
    }

    /// True if the kernel got a call of the layer's own.
    pub(crate) fn has_moved(&self) -> bool {
        !self.moved.is_empty()
    }

    /// Looks at guards, inputs and descriptions after the run, and moves everything home.
    ///
    /// # Safety
    ///
    /// `set_guards` was called for this run, and the memory of its operands is still there.
    pub(crate) unsafe fn check_guards(&mut self, operands: &KernelOperands) -> Result<(), CallBreach> {
        let mut result = Ok(());
        if self.has_moved() {
            let outputs = self.tensors.iter().zip(operands.outputs()).enumerate();
            for (index, (now, before)) in outputs {
                result = result.and(check_description(index, now, &before.tensor, true));
            }
        }
        for input in &self.watched {
            // SAFETY: the caller vouches for the memory of the operands.
            let now =
                unsafe { core::slice::from_raw_parts(word_const_pointer::<u8>(input.address), input.size) };
            let before = &self.copies[input.start..input.start + input.size];
            if now != before {
                let byte = now.iter().zip(before).position(|(now, before)| now != before).unwrap_or(0);
                let message = format!("expected input {} as it was, found byte {byte} changed", input.index);
                result = Err(CallBreach::by_plugin("K-3", message));
            }
        }
        for moved in &self.moved {
            let end = moved.start + moved.size;
            const INTACT: [u8; GUARD_BYTES] = [GUARD_BYTE; GUARD_BYTES];
            let before = &self.bytes[moved.start - GUARD_BYTES..moved.start];
            let after = &self.bytes[end..end + GUARD_BYTES];
            let name = || moved.output.map_or("the workspace".to_owned(), |index| format!("output {index}"));
            if *after != INTACT {
                let byte = after.iter().position(|byte| *byte != GUARD_BYTE).unwrap_or(0);
                let message = format!(
                    "expected no write past the {} bytes of {}, found one {byte} bytes behind its end",
                    moved.size,
                    name()
                );
                result = Err(CallBreach::by_plugin("K-3", message));
            } else if *before != INTACT {
                let message = format!("expected no write before {}, found one", name());
                result = Err(CallBreach::by_plugin("K-3", message));
            }
            // SAFETY: the caller vouches for the home.
            unsafe {
                word_pointer::<u8>(moved.home)
                    .copy_from_nonoverlapping(self.bytes.as_ptr().add(moved.start), moved.size);
            }
        }
        result
    }
}

/// Whether two tensors share bytes; a tensor shares those that it has with itself.
fn overlap(left: &abi::Tensor, right: &abi::Tensor) -> bool {
    let (left_start, right_start) =
        (left.block.0.wrapping_add(left.offset), right.block.0.wrapping_add(right.offset));
    left_start < right_start.wrapping_add(right.size_in_bytes)
        && right_start < left_start.wrapping_add(left.size_in_bytes)
}
