//! The operands of a kernel's call: which bytes of which blocks it may read and write.

#![expect(unsafe_code, reason = "calls and tensors are structs of the host")]

use oarlock_layer::word_const_pointer;
use oarlock_sdk::{abi, copy_sized};

use crate::breach::CallBreach;
use crate::plugin_ledger::BlockUse;

/// One operand.
#[derive(Clone, Copy)]
pub(crate) struct CallOperand {
    pub(crate) tensor: abi::Tensor,
    pub(crate) is_output: bool,
}

impl CallOperand {
    fn is_present(&self) -> bool {
        !self.tensor.bits.contains(abi::TensorFlags::ABSENT) && self.tensor.size_in_bytes > 0
    }

    /// True if the handle of its block is an address wherever the device keeps its memory.
    pub(crate) fn is_in_host_memory(&self) -> bool {
        self.tensor.place != abi::MemoryKind::DEVICE
    }
}

/// A call of a kernel, copied from the host's structs.
pub(crate) struct KernelOperands {
    pub(crate) call: abi::Call,
    pub(crate) operands: Vec<CallOperand>,
}

fn reserved_breach(name: &str, value: u32) -> CallBreach {
    CallBreach::by_caller("S-4", format!("expected 0 in `reserved` of `{name}`, found {value}"))
}

impl KernelOperands {
    /// Reads the call at an address.
    ///
    /// # Safety
    ///
    /// The address is null or that of a call of the contract.
    pub(crate) unsafe fn read_call(address: u64) -> Result<Self, CallBreach> {
        // SAFETY: the caller vouches for the address.
        unsafe { Self::read_call_into(address, Vec::new()) }
    }

    /// As [`Self::read_call`], with room for the operands from an earlier call.
    ///
    /// # Safety
    ///
    /// As for [`Self::read_call`].
    pub(crate) unsafe fn read_call_into(
        address: u64,
        mut operands: Vec<CallOperand>,
    ) -> Result<Self, CallBreach> {
        if address == 0 {
            return Err(CallBreach::by_caller("S-1", "expected the address of a call, found null"));
        }
        // SAFETY: the caller vouches for the address.
        let call = unsafe { copy_sized(word_const_pointer::<abi::Call>(address), abi::Call::EMPTY) };
        if call.size < abi::Call::SIZE_AT_FIRST {
            let message = format!(
                "expected a `call` of at least {} bytes, found {}",
                abi::Call::SIZE_AT_FIRST,
                call.size
            );
            return Err(CallBreach::by_caller("S-2", message));
        }
        if call.reserved != 0 {
            return Err(reserved_breach("call", call.reserved));
        }
        operands.clear();
        // SAFETY: the lists are those of a call of the contract.
        unsafe {
            read_tensors(&mut operands, call.inputs, call.inputs_count, false)?;
            read_tensors(&mut operands, call.outputs, call.outputs_count, true)?;
            check_attributes(&call)?;
        }
        Ok(Self { call, operands })
    }

    pub(crate) fn outputs(&self) -> &[CallOperand] {
        &self.operands[self.call.inputs_count as usize..]
    }

    /// The bytes of the device's blocks that the call uses.
    pub(crate) fn block_uses(&self) -> impl Iterator<Item = BlockUse> + '_ {
        let device = self.call.device;
        let operands =
            self.operands.iter().filter(|operand| operand.is_present() && !operand.is_in_host_memory());
        let workspace = (self.call.workspace_size > 0).then_some(BlockUse {
            block: self.call.workspace.0,
            device,
            offset: self.call.workspace_offset,
            size: self.call.workspace_size,
            writes: true,
            name: "workspace",
        });
        operands
            .map(move |operand| BlockUse {
                block: operand.tensor.block.0,
                device,
                offset: operand.tensor.offset,
                size: operand.tensor.size_in_bytes,
                writes: operand.is_output,
                name: if operand.is_output { "output" } else { "input" },
            })
            .chain(workspace)
    }

    /// Fails unless a kernel left the descriptions of its outputs as they were.
    ///
    /// # Safety
    ///
    /// The structs of the call are still there.
    pub(crate) unsafe fn check_unchanged_outputs(&self) -> Result<(), CallBreach> {
        for (index, operand) in self.outputs().iter().enumerate() {
            // SAFETY: the caller vouches for the structs, which `read_call` has read before.
            let now = unsafe { copy_sized(*self.call.outputs.add(index), abi::Tensor::EMPTY) };
            let is_there = now.block == operand.tensor.block && now.offset == operand.tensor.offset;
            check_description(index, &now, &operand.tensor, is_there)?;
        }
        Ok(())
    }
}

/// Fails if a kernel has changed the description of an output; whether it is still in its place is for the caller to say.
pub(crate) fn check_description(
    index: usize,
    now: &abi::Tensor,
    before: &abi::Tensor,
    is_there: bool,
) -> Result<(), CallBreach> {
    let is_same = is_there
        && now.size_in_bytes == before.size_in_bytes
        && now.dtype == before.dtype
        && now.place == before.place
        && now.layout == before.layout
        && now.dims_count == before.dims_count
        && now.dims == before.dims;
    if is_same {
        return Ok(());
    }
    let message = format!("expected the description of output {index} as it was, found it changed");
    Err(CallBreach::by_plugin("K-3", message))
}

/// # Safety
///
/// `source` points to `count` pointers to tensors.
unsafe fn read_tensors(
    into: &mut Vec<CallOperand>,
    source: *const *const abi::Tensor,
    count: u64,
    is_output: bool,
) -> Result<(), CallBreach> {
    let name = if is_output { "output" } else { "input" };
    if count > 0 && source.is_null() {
        let message = format!("expected a list of {count} tensors for `{name}s`, found null");
        return Err(CallBreach::by_caller("S-1", message));
    }
    for index in 0..count as usize {
        // SAFETY: the caller vouches for the list.
        let address = unsafe { *source.add(index) };
        if address.is_null() {
            let message = format!(
                "expected a tensor for {name} {index}, found null; an omitted one is marked `absent`"
            );
            return Err(CallBreach::by_caller("S-1", message));
        }
        // SAFETY: the caller vouches for the tensors.
        let tensor = unsafe { copy_sized(address, abi::Tensor::EMPTY) };
        let is_absent = tensor.bits.contains(abi::TensorFlags::ABSENT);
        if !is_absent && tensor.strides_count != 0 && tensor.strides_count != tensor.dims_count {
            let message = format!(
                "expected as many strides as dimensions of {name} {index}, found {} and {}",
                tensor.strides_count, tensor.dims_count
            );
            return Err(CallBreach::by_caller("S-1", message));
        }
        into.push(CallOperand { tensor, is_output });
    }
    Ok(())
}

/// # Safety
///
/// The attributes are those of a call of the contract.
unsafe fn check_attributes(call: &abi::Call) -> Result<(), CallBreach> {
    for index in 0..call.attributes_count as usize {
        // SAFETY: the caller vouches for the list.
        let address = unsafe { *call.attributes.add(index) };
        // SAFETY: as above.
        let reserved = unsafe { copy_sized(address, abi::Attribute::EMPTY) }.reserved;
        if reserved != 0 {
            return Err(reserved_breach("attribute", reserved));
        }
    }
    Ok(())
}
