//! Ops that the kernel of another op calls by name.
//!
//! Only kernels of ops without a schema can do so, and only where operands are in host memory: the inputs are copied into tensors of
//! the CPU, and the outputs are copied from them. The op is resolved for each call, so this suits ops that compute for longer
//! than that takes, such as `MatMul`.

#![expect(unsafe_code, reason = "operands of a plugin are bytes behind addresses")]

use oarlock_abi as abi;
use oarlock_host::{Code, OpRequest, OpRunner, PluginFailure, with_op_runner};

use super::Op;
use crate::dispatch::op_invocation::OpInvocation;
use crate::runtime::Runtime;
use crate::{Attribute, Attributes, Device, Dtype, Error, Result, Tensor, shape};

/// Calls a kernel that may call ops of the runtime by name.
pub fn with_nested_ops<R>(runtime: &Runtime, call: impl FnOnce() -> R) -> R {
    with_op_runner(&NestedOps(runtime), call)
}

/// Runs the ops that kernels call in a runtime.
struct NestedOps<'a>(&'a Runtime);

impl NestedOps<'_> {
    /// # Safety
    ///
    /// As for [`OpRunner::run_op`].
    unsafe fn run_request(&self, request: &OpRequest<'_>) -> Result<()> {
        let OpRequest { domain, op, opset, inputs, attributes, outputs } = *request;
        let runtime = self.0;
        let cpu = runtime.device("cpu")?;
        // SAFETY: the caller vouches for the attributes and the inputs.
        let (attributes, inputs) = unsafe {
            let read = |input: &&abi::Tensor| read_operand(&cpu, input);
            (
                attributes.iter().map(|one| read_attribute(one)).collect::<Result<Attributes>>()?,
                inputs.iter().map(read).collect::<Result<Vec<Option<Tensor>>>>()?,
            )
        };
        let opset = if opset == 0 { runtime.latest_opset(domain, op) } else { opset };
        let given: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
        let call = OpInvocation { inputs: &given, outputs: outputs.len(), device: Some(&cpu), stream: None };
        let computed = Op::new(runtime, domain, op, opset, attributes)?.invoke(runtime, &call)?;
        for (index, (output, tensor)) in outputs.iter().zip(&computed).enumerate() {
            let Some(tensor) = tensor else { continue };
            // SAFETY: the caller vouches for the output.
            unsafe { write_operand(output, tensor) }
                .map_err(|error| error.with_operand(format!("output {index}")))?;
        }
        Ok(())
    }
}

impl OpRunner for NestedOps<'_> {
    unsafe fn run_op(&self, request: &OpRequest<'_>) -> std::result::Result<(), PluginFailure> {
        // SAFETY: the caller vouches for the request.
        let answer = unsafe { self.run_request(request) };
        answer.map_err(|error| {
            let error = if error.op().is_some() { error } else { error.with_op(request.op) };
            PluginFailure::new("core", Code(error.kind() as u32), error.to_string())
        })
    }
}

/// Reads a list of the contract.
///
/// # Safety
///
/// `items` is null or has `count` items that live for `'a`.
unsafe fn slice_at<'a, T>(items: *const T, count: u64) -> &'a [T] {
    if items.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: not null, and the caller vouches for the items.
    unsafe { std::slice::from_raw_parts(items, count as usize) }
}

/// The dtype, shape, address and size of an operand, which must be contiguous.
///
/// # Safety
///
/// The operand is as the contract describes it.
unsafe fn operand_bytes(operand: &abi::Tensor) -> Result<(Dtype, &[i64], *mut u8, usize)> {
    // SAFETY: the caller vouches for the lists.
    let (dims, strides) = unsafe {
        (slice_at(operand.dims, operand.dims_count), slice_at(operand.strides, operand.strides_count))
    };
    let dtype = Dtype::from_abi(operand.dtype).filter(|dtype| *dtype != Dtype::String);
    let dtype = dtype.ok_or_else(|| {
        Error::invalid_argument(format!("expected a dtype of numbers, found the dtype {}", operand.dtype.0))
    })?;
    if !strides.is_empty() && !shape::is_contiguous(dims, strides) {
        return Err(Error::invalid_argument(format!(
            "expected a contiguous operand, found one of shape {dims:?} with strides {strides:?}"
        )));
    }
    let size = usize::try_from(shape::size_in_bytes(dtype, dims)?)
        .map_err(|_| Error::out_of_range("expected an operand that fits into memory"))?;
    let address = operand.block.0.wrapping_add(operand.offset) as *mut u8;
    if size > 0 && address.is_null() {
        return Err(Error::invalid_argument("expected an operand with memory, found none"));
    }
    Ok((dtype, dims, address, size))
}

/// # Safety
///
/// As for [`operand_bytes`]; the operand lies in host memory.
unsafe fn read_operand(cpu: &Device, operand: &abi::Tensor) -> Result<Option<Tensor>> {
    if operand.bits.contains(abi::TensorFlags::ABSENT) {
        return Ok(None);
    }
    // SAFETY: the caller vouches for the operand and its memory.
    let (dtype, dims, bytes) = unsafe {
        let (dtype, dims, address, size) = operand_bytes(operand)?;
        (dtype, dims, slice_at(address.cast_const(), size as u64))
    };
    Tensor::from_bytes(cpu, dtype, dims, bytes).map(Some)
}

/// # Safety
///
/// As for [`read_operand`]; nobody else uses the memory.
unsafe fn write_operand(operand: &abi::Tensor, tensor: &Tensor) -> Result<()> {
    // SAFETY: the caller vouches for the operand.
    let (dtype, dims, address, size) = unsafe { operand_bytes(operand) }?;
    if (tensor.dtype(), tensor.dims()) != (dtype, dims) {
        let (found, shape) = (tensor.dtype(), tensor.dims());
        return Err(Error::invalid_argument(format!(
            "expected a place for {found} of shape {shape:?}, which the op computes, found one for {dtype} of shape {dims:?}"
        )));
    }
    let bytes = tensor.to_bytes()?;
    // SAFETY: dtype and shape are the same, so there are `size` bytes; the caller vouches for the memory.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address, size.min(bytes.len())) };
    Ok(())
}

/// # Safety
///
/// The attribute is as the contract describes it.
unsafe fn read_attribute(raw: &abi::Attribute) -> Result<(String, Attribute)> {
    let not_text = || Error::invalid_argument("expected UTF-8 text in an attribute, found other bytes");
    // SAFETY: the caller vouches for texts and lists.
    let (name, ints, floats, strings) = unsafe {
        let strings = slice_at(raw.strings, raw.strings_count).iter();
        (
            raw.name.text().ok_or_else(not_text)?.to_owned(),
            slice_at(raw.ints, raw.ints_count),
            slice_at(raw.floats, raw.floats_count),
            strings
                .map(|text| text.text().map(str::to_owned))
                .collect::<Option<Vec<_>>>()
                .ok_or_else(not_text)?,
        )
    };
    let value = match (raw.kind, ints, floats, &strings[..]) {
        (abi::AttributeKind::INT, [int], _, _) => Attribute::Int(*int),
        (abi::AttributeKind::FLOAT, _, [float], _) => Attribute::Float(*float),
        (abi::AttributeKind::STRING, _, _, [text]) => Attribute::String(text.clone()),
        (abi::AttributeKind::INTS, ..) => Attribute::Ints(ints.to_vec()),
        (abi::AttributeKind::FLOATS, ..) => Attribute::Floats(floats.to_vec()),
        (abi::AttributeKind::STRINGS, ..) => Attribute::Strings(strings),
        (kind, ..) => {
            return Err(Error::invalid_argument(format!(
                "expected `{name}` as numbers or texts, found an attribute of kind {}",
                kind.0
            )));
        }
    };
    Ok((name, value))
}
