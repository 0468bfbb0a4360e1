//! Runs the op of a recorded kernel on the device of the replay.

use oarlock_core::{Attribute, Attributes, Constant, Device, Dtype, Op, OpInvocation, Runtime, Tensor};
use oarlock_plugin_record::{
    AttributeValues, RecordedAttribute, RecordedKernelCall, RecordedTarget, RecordedTensor,
};

use super::replay_memory::ReplayMemory;

/// The bit of `tensor_flags` for an operand that was omitted.
const ABSENT: u32 = 1 << 1;

/// An operand is not larger: a recording may say anything.
const MAX_OPERAND_BYTES: u64 = 1 << 32;

/// Why a call cannot be carried out, as a reason that is counted.
pub(super) type LeaveOut = String;

pub(super) fn is_absent(tensor: &RecordedTensor) -> bool {
    tensor.bits & ABSENT != 0
}

fn number_dtype(tensor: &RecordedTensor) -> Result<Dtype, LeaveOut> {
    let dtype = Dtype::from_abi(oarlock_abi::Dtype(tensor.dtype));
    match dtype {
        None => Err(format!("a dtype with the unknown number {}", tensor.dtype)),
        Some(Dtype::String) => Err("text is not recorded".to_owned()),
        Some(dtype) => Ok(dtype),
    }
}

/// True if the elements lie behind each other in row-major order.
pub(super) fn is_contiguous(tensor: &RecordedTensor) -> bool {
    let mut expected = 1i64;
    tensor.strides.is_empty()
        || tensor.strides.len() == tensor.dims.len()
            && tensor.dims.iter().zip(&tensor.strides).rev().all(|(dim, stride)| {
                let fits = *dim == 1 || *stride == expected;
                expected = expected.saturating_mul(*dim);
                fits
            })
}

/// The bytes of the elements in row-major order.
fn gather_elements(tensor: &RecordedTensor, bytes: &[u8], dtype: Dtype) -> Result<Vec<u8>, LeaveOut> {
    if is_contiguous(tensor) {
        return Ok(bytes.to_vec());
    }
    let unusual = || "strides that do not fit the operand".to_owned();
    let size = dtype.bits() as usize / 8;
    let is_even = dtype.bits().is_multiple_of(8) && tensor.strides.len() == tensor.dims.len();
    let count =
        tensor.dims.iter().try_fold(1usize, |count, dim| count.checked_mul(usize::try_from(*dim).ok()?));
    let count = count.filter(|count| is_even && *count <= MAX_OPERAND_BYTES as usize / size.max(1));
    let count = count.ok_or_else(unusual)?;
    let mut gathered = Vec::new();
    let mut index = vec![0i64; tensor.dims.len()];
    for _ in 0..count {
        let element: i64 =
            index.iter().zip(&tensor.strides).map(|(at, stride)| at.wrapping_mul(*stride)).sum();
        let start = usize::try_from(element).ok().and_then(|element| element.checked_mul(size));
        let found = start.and_then(|start| bytes.get(start..start.checked_add(size)?));
        gathered.extend_from_slice(found.ok_or_else(unusual)?);
        for (at, dim) in index.iter_mut().zip(&tensor.dims).rev() {
            *at += 1;
            if *at < *dim {
                break;
            }
            *at = 0;
        }
    }
    Ok(gathered)
}

/// What a replay needs to run ops.
pub(super) struct OpReplay<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) device: &'a Device,
}

impl OpReplay<'_> {
    /// Makes the op of a recorded call.
    pub(super) fn make_op(&self, target: &RecordedTarget, call: &RecordedKernelCall) -> Result<Op, LeaveOut> {
        let attributes = call.attributes.iter().try_fold(Attributes::new(), |all, recorded| {
            Ok::<_, LeaveOut>(all.with_attribute(&recorded.name, to_attribute(recorded)?))
        })?;
        let opset = match target.version {
            0 => self.runtime.latest_opset(&target.domain, &target.op),
            version => version,
        };
        Op::new(self.runtime, &target.domain, &target.op, opset, attributes)
            .map_err(|error| error.to_string())
    }

    /// Runs an op on what the recording and the memory say about its inputs; writes the outputs to the memory and returns them.
    pub(super) fn run_op(
        &self,
        op: &Op,
        plugin: &str,
        call: &RecordedKernelCall,
        memory: &mut ReplayMemory,
    ) -> Result<Vec<Option<Tensor>>, LeaveOut> {
        let inputs = call
            .inputs
            .iter()
            .map(|input| self.input_tensor(plugin, input, memory))
            .collect::<Result<Vec<Option<Tensor>>, LeaveOut>>()?;
        let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
        let invocation = OpInvocation {
            inputs: &inputs,
            outputs: call.outputs.len(),
            device: Some(self.device),
            stream: None,
        };
        let made = op.invoke(self.runtime, &invocation).map_err(|error| error.to_string())?;
        for (recorded, tensor) in call.outputs.iter().zip(&made) {
            if let (Some(tensor), false) = (tensor, is_absent(recorded)) {
                write_output(plugin, recorded, tensor, memory)?;
            }
        }
        Ok(made.into_iter().collect())
    }

    fn input_tensor(
        &self,
        plugin: &str,
        input: &RecordedTensor,
        memory: &mut ReplayMemory,
    ) -> Result<Option<Tensor>, LeaveOut> {
        if is_absent(input) {
            return Ok(None);
        }
        let dtype = number_dtype(input)?;
        if input.size_in_bytes > MAX_OPERAND_BYTES {
            return Err(format!("an operand of {} bytes", input.size_in_bytes));
        }
        let recorded = input.contents.as_ref().and_then(|contents| contents.bytes.as_deref());
        let bytes = match recorded {
            Some(bytes) => {
                let written = memory.write_bytes(plugin, input.block, input.offset, bytes);
                written.map_err(|failure| failure.to_string())?;
                bytes.to_vec()
            }
            None => {
                let found = memory.read_bytes(plugin, input.block, input.offset, input.size_in_bytes);
                let found = found.map_err(|failure| failure.to_string())?;
                // Without contents, the shapes still say what is computed.
                found.unwrap_or_else(|| vec![0; input.size_in_bytes as usize])
            }
        };
        let elements = gather_elements(input, &bytes, dtype)?;
        let tensor = Tensor::from_bytes(self.device, dtype, &input.dims, &elements);
        tensor.map(Some).map_err(|error| error.to_string())
    }

    /// The tensor that was recorded for an output; `None` if its bytes were not.
    pub(super) fn recorded_tensor(&self, output: &RecordedTensor) -> Option<Tensor> {
        let bytes = output.contents.as_ref()?.bytes.as_deref()?;
        let dtype = number_dtype(output).ok()?;
        let elements = gather_elements(output, bytes, dtype).ok()?;
        Tensor::from_bytes(self.device, dtype, &output.dims, &elements).ok()
    }
}

fn write_output(
    plugin: &str,
    recorded: &RecordedTensor,
    tensor: &Tensor,
    memory: &mut ReplayMemory,
) -> Result<(), LeaveOut> {
    if !is_contiguous(recorded) {
        return Err("outputs with strides are not written back".to_owned());
    }
    let bytes = tensor.to_bytes().map_err(|error| error.to_string())?;
    let written = memory.write_bytes(plugin, recorded.block, recorded.offset, &bytes);
    written.map(drop).map_err(|failure| failure.to_string())
}

fn to_attribute(recorded: &RecordedAttribute) -> Result<Attribute, LeaveOut> {
    let without_value = || format!("the attribute `{}` has no value", recorded.name);
    let is_list = recorded.is_list;
    Ok(match &recorded.values {
        AttributeValues::Ints(ints) if is_list => Attribute::Ints(ints.clone()),
        AttributeValues::Ints(ints) => Attribute::Int(*ints.first().ok_or_else(without_value)?),
        AttributeValues::Floats(floats) if is_list => Attribute::Floats(floats.clone()),
        AttributeValues::Floats(floats) => Attribute::Float(*floats.first().ok_or_else(without_value)?),
        AttributeValues::Strings(texts) if is_list => Attribute::Strings(texts.clone()),
        AttributeValues::Strings(texts) => {
            Attribute::String(texts.first().ok_or_else(without_value)?.clone())
        }
        AttributeValues::Tensors(tensors) => {
            let tensor = tensors.first().filter(|_| !is_list).ok_or_else(without_value)?;
            let bytes = tensor.contents.as_ref().and_then(|contents| contents.bytes.clone());
            let bytes = bytes.ok_or("the contents of a tensor attribute are not recorded")?;
            let constant = Constant::new(number_dtype(tensor)?, &tensor.dims, bytes);
            Attribute::Tensor(constant.map_err(|error| error.to_string())?)
        }
        AttributeValues::Graphs => return Err("graphs in attributes are not recorded".to_owned()),
    })
}
