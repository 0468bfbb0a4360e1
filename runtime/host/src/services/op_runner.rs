//! Ops that a kernel calls by name while it runs.
//!
//! The function for this is experimental: a plugin finds it by its name, and does without on a host that has none. The core
//! answers for the thread on which it called the kernel.

#![expect(unsafe_code, reason = "the operands are structs of the plugin")]

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

use oarlock_abi as abi;

use super::argument_failure;
use super::errors::{Code, PluginFailure};

/// The name of the experimental function, of the type [`RunOp`].
pub const RUN_OP: &str = "run_op_since_1_2";

/// The limit on each list of an [`OpRequest`].
const MAX_LIST: u64 = 1 << 16;

/// Runs an op on operands in host memory. The outputs are tensors with memory, and the op has to compute just their dtypes and
/// shapes.
pub type RunOp = unsafe extern "C" fn(
    context: *mut c_void,
    domain: abi::Str,
    op: abi::Str,
    opset: u32,
    inputs: *const *const abi::Tensor,
    inputs_count: u64,
    attributes: *const *const abi::Attribute,
    attributes_count: u64,
    outputs: *const *const abi::Tensor,
    outputs_count: u64,
) -> abi::Error;

/// An input: contiguous elements in host memory.
#[derive(Clone, Copy, Debug)]
pub struct HostOperand<'a> {
    /// The type of the elements.
    pub dtype: abi::Dtype,
    /// The sizes of all dimensions.
    pub dims: &'a [i64],
    /// As many bytes as the plugin stated.
    pub bytes: &'a [u8],
}

/// The place of an output: contiguous elements in host memory.
#[derive(Clone, Copy, Debug)]
pub struct HostPlace<'a> {
    /// The type of the elements.
    pub dtype: abi::Dtype,
    /// The sizes of all dimensions.
    pub dims: &'a [i64],
    address: *mut u8,
    size: usize,
}

impl HostPlace<'_> {
    /// Writes all elements.
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<(), PluginFailure> {
        if bytes.len() != self.size {
            return Err(argument_failure(
                &format!("a place of {} bytes", bytes.len()),
                &format!("{} bytes", self.size),
            ));
        }
        // SAFETY: the plugin vouches for the place, which has this size; whatever was read from there was copied.
        unsafe { ptr::copy(bytes.as_ptr(), self.address, self.size) };
        Ok(())
    }
}

/// The value of an attribute; a single one is a list of its own kind with one item.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestedAttribute<'a> {
    /// The name.
    pub name: &'a str,
    /// The kind: `INT`, `FLOAT`, `STRING` or a list of these.
    pub kind: abi::AttributeKind,
    /// The whole numbers.
    pub ints: &'a [i64],
    /// The numbers.
    pub floats: &'a [f64],
    /// The texts.
    pub strings: Vec<&'a str>,
}

/// An op to run.
#[derive(Debug)]
pub struct OpRequest<'a> {
    /// The domain; empty is that of ONNX.
    pub domain: &'a str,
    /// The name.
    pub op: &'a str,
    /// The version of all schemas; 0 is the newest.
    pub opset: u32,
    /// The inputs; `None` for one that is left out.
    pub inputs: Vec<Option<HostOperand<'a>>>,
    /// The attributes.
    pub attributes: Vec<RequestedAttribute<'a>>,
    /// The outputs to write.
    pub outputs: Vec<HostPlace<'a>>,
}

/// Runs ops for a kernel.
pub trait OpRunner {
    /// Runs one op: copies its inputs before it writes an output.
    fn run_op(&self, request: &OpRequest<'_>) -> Result<(), PluginFailure>;
}

thread_local! {
    /// The runner of the innermost [`with_op_runner`] on this thread.
    static RUNNER: Cell<Option<ptr::NonNull<dyn OpRunner>>> = const { Cell::new(None) };
}

/// Calls a kernel. While it runs, ops that it calls on this thread go to `runner`.
pub fn with_op_runner<R>(runner: &dyn OpRunner, work: impl FnOnce() -> R) -> R {
    /// Puts the outer runner back, also if the work panics.
    struct OuterRunner(Option<ptr::NonNull<dyn OpRunner>>);
    impl Drop for OuterRunner {
        fn drop(&mut self) {
            RUNNER.set(self.0);
        }
    }
    let runner = ptr::NonNull::from(runner);
    // SAFETY: the cast changes the lifetime alone, and `OuterRunner` takes the pointer back before that lifetime ends.
    let runner: ptr::NonNull<dyn OpRunner> = unsafe { std::mem::transmute(runner) };
    let _outer = OuterRunner(RUNNER.replace(Some(runner)));
    work()
}

/// Passes a request to the runner of this thread.
fn run_requested(request: &OpRequest<'_>) -> Result<(), PluginFailure> {
    let Some(runner) = RUNNER.get() else {
        let message = format!(
            "expected `{}` to be called by the kernel of an op in a domain of its own, on host memory and on the thread that \
             runs it, found another place",
            request.op
        );
        return Err(PluginFailure::new("host", Code::PRECONDITION_NOT_MET, message));
    };
    // SAFETY: the runner is there as long as `with_op_runner` runs, which sets and takes back the pointer on this thread.
    unsafe { runner.as_ref() }.run_op(request)
}

/// A list of the contract.
///
/// # Safety
///
/// `items` is null or has `count` items that live for `'a`.
unsafe fn slice_at<'a, T>(items: *const T, count: u64, what: &str) -> Result<&'a [T], PluginFailure> {
    match usize::try_from(count) {
        Ok(0) => Ok(&[]),
        // SAFETY: not null, and the caller vouches for the items.
        Ok(count) if !items.is_null() => Ok(unsafe { std::slice::from_raw_parts(items, count) }),
        _ => Err(argument_failure(what, &format!("{count} at {items:p}"))),
    }
}

/// The dims, address and size of an operand in host memory, which has to be contiguous.
///
/// # Safety
///
/// The operand is as the contract describes it and lives for `'a`.
unsafe fn operand_place(operand: &abi::Tensor) -> Result<HostPlace<'_>, PluginFailure> {
    // SAFETY: the caller vouches for the lists.
    let (dims, strides) = unsafe {
        (
            slice_at(operand.dims, operand.dims_count, "dimensions")?,
            slice_at(operand.strides, operand.strides_count, "strides")?,
        )
    };
    let mut next = 1_i64;
    let is_dense = strides.iter().zip(dims).rev().all(|(stride, size)| {
        let is_next = *size == 1 || *stride == next;
        next = next.saturating_mul(*size);
        is_next
    });
    if !is_dense && !dims.contains(&0) {
        return Err(argument_failure("a contiguous operand", &format!("strides {strides:?} for {dims:?}")));
    }
    let address = operand.block.0.wrapping_add(operand.offset) as *mut u8;
    let size = usize::try_from(operand.size_in_bytes).unwrap_or(usize::MAX);
    if size > isize::MAX as usize || (size > 0 && address.is_null()) {
        return Err(argument_failure("an operand with memory", &format!("{size} bytes at {address:p}")));
    }
    Ok(HostPlace { dtype: operand.dtype, dims, address, size })
}

/// # Safety
///
/// As for [`operand_place`]; the operand lies in host memory and does not change.
unsafe fn read_operand(operand: &abi::Tensor) -> Result<Option<HostOperand<'_>>, PluginFailure> {
    if operand.bits.contains(abi::TensorFlags::ABSENT) {
        return Ok(None);
    }
    // SAFETY: the caller vouches for the operand and its memory.
    unsafe {
        let HostPlace { dtype, dims, address, size } = operand_place(operand)?;
        Ok(Some(HostOperand { dtype, dims, bytes: slice_at(address, size as u64, "bytes")? }))
    }
}

/// # Safety
///
/// The attribute is as the contract describes it and lives for `'a`.
unsafe fn read_attribute(raw: &abi::Attribute) -> Result<RequestedAttribute<'_>, PluginFailure> {
    let not_text = || argument_failure("UTF-8 text in an attribute", "other bytes");
    // SAFETY: the caller vouches for texts and lists.
    unsafe {
        let strings = slice_at(raw.strings, raw.strings_count, "texts")?.iter().map(|text| text.text());
        Ok(RequestedAttribute {
            name: raw.name.text().ok_or_else(not_text)?,
            kind: raw.kind,
            ints: slice_at(raw.ints, raw.ints_count, "whole numbers")?,
            floats: slice_at(raw.floats, raw.floats_count, "numbers")?,
            strings: strings.collect::<Option<Vec<_>>>().ok_or_else(not_text)?,
        })
    }
}

/// A list of pointers to structs as a list of references.
///
/// # Safety
///
/// `items` is null or has `count` pointers, each null or to a struct that lives for `'a`.
unsafe fn listed<'a, T>(items: *const *const T, count: u64, what: &str) -> Result<Vec<&'a T>, PluginFailure> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if items.is_null() || count > MAX_LIST {
        return Err(argument_failure(
            &format!("at most {MAX_LIST} {what}"),
            &format!("{count} at {items:p}"),
        ));
    }
    // SAFETY: not null, and the caller vouches for the list.
    let pointers = unsafe { std::slice::from_raw_parts(items, count as usize) };
    // SAFETY: the caller vouches for the structs.
    let items = pointers.iter().map(|pointer| unsafe { pointer.as_ref() });
    let items = items.collect::<Option<Vec<&T>>>();
    items.ok_or_else(|| argument_failure(what, "a null pointer among them"))
}

/// The service, once the arguments are found to be readable.
///
/// # Safety
///
/// As for the parameters of [`RunOp`]: the plugin vouches for its lists.
pub(super) unsafe fn serve_op(
    domain: &str,
    op: &str,
    opset: u32,
    inputs: (*const *const abi::Tensor, u64),
    attributes: (*const *const abi::Attribute, u64),
    outputs: (*const *const abi::Tensor, u64),
) -> Result<(), PluginFailure> {
    // SAFETY: the caller vouches for the lists and what is in them.
    let (inputs, attributes, outputs) = unsafe {
        (
            listed(inputs.0, inputs.1, "inputs")?
                .into_iter()
                .map(|one| read_operand(one))
                .collect::<Result<_, _>>()?,
            listed(attributes.0, attributes.1, "attributes")?
                .into_iter()
                .map(|one| read_attribute(one))
                .collect::<Result<_, _>>()?,
            listed(outputs.0, outputs.1, "outputs")?
                .into_iter()
                .map(|one| operand_place(one))
                .collect::<Result<_, _>>()?,
        )
    };
    run_requested(&OpRequest { domain, op, opset, inputs, attributes, outputs })
}
