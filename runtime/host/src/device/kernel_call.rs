//! Calls one kernel once, from checks to outputs.
//!
//! This is how tools try a kernel; a program that makes the same call often prepares it once, as a
//! [`PreparedKernel`].

#![expect(unsafe_code, reason = "a call is a struct of pointers")]

use oarlock_abi as abi;

use crate::device::call_record::{CallRecord, DeviceTensor};
use crate::device::kernel::{HostCall, PreparedKernel};
use crate::services::errors::Failure;
use crate::{Device, Kernel, KernelInfo, OperandInfo};

impl Kernel {
    /// Runs the kernel in the device's own queue. An output that is `None` is one whose memory the kernel asks for;
    /// afterwards every output has its tensor.
    pub fn run(
        &self,
        device: &Device,
        inputs: &[&DeviceTensor],
        outputs: &mut [Option<DeviceTensor>],
    ) -> Result<(), Failure> {
        self.info.check(device, inputs, outputs)?;
        let record = CallRecord::new(device, outputs);
        let described: Vec<abi::Tensor> = inputs.iter().map(|input| input.describe()).collect();
        let given: Vec<*const abi::Tensor> = described.iter().map(std::ptr::from_ref).collect();
        let wanted = record.tensors();
        let host_call = HostCall::new(&record);
        let mut call = abi::Call {
            device: device.id(),
            inputs: given.as_ptr(),
            inputs_count: given.len() as u64,
            outputs: wanted.as_ptr(),
            outputs_count: wanted.len() as u64,
            host_call: host_call.address(),
            ..abi::Call::EMPTY
        };
        // SAFETY: everything the call points to lives until this function returns, here and below.
        unsafe { self.calls.supports(&call) }.transpose()?;
        // SAFETY: as above.
        let size = unsafe { self.calls.workspace(&call) }.transpose()?.unwrap_or(0);
        let workspace = device.allocate(size)?;
        call.workspace = workspace.memory();
        call.workspace_size = size;
        // SAFETY: as above.
        let prepared = unsafe { PreparedKernel::new(device.plugin().clone(), self.calls, &call)? };
        // SAFETY: as above; the kernel was readied for this call.
        unsafe { prepared.run(&call) }?;
        device.synchronize()?;
        drop(prepared);
        for (output, allocated) in outputs.iter_mut().zip(record.into_allocated()) {
            if allocated.is_some() {
                *output = allocated;
            }
        }
        match outputs.iter().position(Option::is_none) {
            None => Ok(()),
            Some(index) => {
                Err(device.refuse("memory for every output", format!("none for output {index}"), ""))
            }
        }
    }
}

impl KernelInfo {
    /// Refuses a call that does not meet what the kernel demands.
    fn check(
        &self,
        device: &Device,
        inputs: &[&DeviceTensor],
        outputs: &[Option<DeviceTensor>],
    ) -> Result<(), Failure> {
        if self.device_type != device.device_type() {
            let expected = format!("a device of the type `{}`", self.device_type);
            return Err(device.refuse(expected, format_args!("`{device}`"), ""));
        }
        let sides = [
            ("input", &self.inputs, inputs.iter().map(|tensor| Some(*tensor)).collect::<Vec<_>>()),
            ("output", &self.outputs, outputs.iter().map(Option::as_ref).collect()),
        ];
        for (side, operands, tensors) in sides {
            let is_variadic = operands.last().is_some_and(|last| last.variadic);
            let needed = operands.iter().take_while(|operand| !operand.optional && !operand.variadic).count();
            if tensors.len() < needed || (tensors.len() > operands.len() && !is_variadic) {
                let expected = format!("{needed} to {} {side}s of `{}`", operands.len(), self.op);
                return Err(device.refuse(expected, tensors.len(), ""));
            }
            for (index, tensor) in tensors.iter().enumerate() {
                let Some(operand) = operands.get(index).or(operands.last()) else { continue };
                if let Some(tensor) = tensor {
                    operand.check(device, tensor).map_err(|found| {
                        let expected =
                            format!("an operand that the kernel for `{}` takes as {side} {index}", self.op);
                        device.refuse(expected, found, "")
                    })?;
                }
            }
        }
        Ok(())
    }
}

impl OperandInfo {
    fn check(&self, device: &Device, tensor: &DeviceTensor) -> Result<(), String> {
        let rank = u32::try_from(tensor.dims.len()).unwrap_or(u32::MAX);
        if !self.takes(tensor.dtype) {
            Err(format!("the dtype `{}`", tensor.dtype.name().unwrap_or("unknown")))
        } else if rank < self.rank_min || rank > self.rank_max {
            Err(format!("{rank} dimensions"))
        } else if !tensor.block.device().is(device) {
            Err(format!("memory of `{}`", tensor.block.device()))
        } else if self.layout != abi::Layout::PLAIN.0 {
            Err("dimensions in the order of the op".to_owned())
        } else if self.place != abi::MemoryKind::DEVICE.0 {
            Err("memory of the device".to_owned())
        } else if crate::size_in_bytes(tensor.dtype, &tensor.dims)
            .is_none_or(|size| size > tensor.block.size())
        {
            Err(format!(
                "a shape {:?} that its block of {} bytes does not hold",
                tensor.dims,
                tensor.block.size()
            ))
        } else {
            Ok(())
        }
    }
}
