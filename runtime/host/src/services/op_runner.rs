//! Ops that a kernel calls by name while it runs.
//!
//! The function for this is experimental: a plugin finds it by its name, and does without on a host that has none. The core
//! answers for the thread on which it called the kernel.

#![expect(unsafe_code, reason = "the operands are structs of the plugin")]

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

use oarlock_abi as abi;

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

/// An op to run. All operands are in host memory, and stay there and unchanged until the answer, except for what is written to the
/// outputs.
#[derive(Debug)]
pub struct OpRequest<'a> {
    /// The domain; empty is that of ONNX.
    pub domain: &'a str,
    /// The name.
    pub op: &'a str,
    /// The version of all schemas; 0 is the newest.
    pub opset: u32,
    /// The inputs.
    pub inputs: &'a [&'a abi::Tensor],
    /// The attributes.
    pub attributes: &'a [&'a abi::Attribute],
    /// The outputs to write.
    pub outputs: &'a [&'a abi::Tensor],
}

/// Runs ops for a kernel.
pub trait OpRunner {
    /// Runs one op.
    ///
    /// # Safety
    ///
    /// The operands and attributes are as the contract describes them, and the operands lie in host memory.
    unsafe fn run_op(&self, request: &OpRequest<'_>) -> Result<(), PluginFailure>;
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
///
/// # Safety
///
/// As for [`OpRunner::run_op`].
unsafe fn run_requested(request: &OpRequest<'_>) -> Result<(), PluginFailure> {
    let Some(runner) = RUNNER.get() else {
        let message = format!(
            "expected `{}` to be called by the kernel of an op in a domain of its own, on host memory and on the thread that \
             runs it, found another place",
            request.op
        );
        return Err(PluginFailure::new("host", Code::PRECONDITION_NOT_MET, message));
    };
    // SAFETY: the runner is there as long as `with_op_runner` runs, which sets and takes back the pointer on this thread; the
    // caller vouches for the rest.
    unsafe { runner.as_ref().run_op(request) }
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
    let wrong = |found: String| {
        let message = format!("expected at most {MAX_LIST} {what}, found {found}");
        PluginFailure::new("host", Code::INVALID_ARGUMENT, message)
    };
    if items.is_null() || count > MAX_LIST {
        return Err(wrong(format!("{count} at {items:p}")));
    }
    // SAFETY: not null, and the caller vouches for the list.
    let pointers = unsafe { std::slice::from_raw_parts(items, count as usize) };
    // SAFETY: the caller vouches for the structs.
    let items = pointers.iter().map(|pointer| unsafe { pointer.as_ref() });
    items.collect::<Option<Vec<&T>>>().ok_or_else(|| wrong("a null pointer among them".to_owned()))
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
    // SAFETY: the caller vouches for the lists.
    let (inputs, attributes, outputs) = unsafe {
        (
            listed(inputs.0, inputs.1, "inputs")?,
            listed(attributes.0, attributes.1, "attributes")?,
            listed(outputs.0, outputs.1, "outputs")?,
        )
    };
    let request =
        OpRequest { domain, op, opset, inputs: &inputs, attributes: &attributes, outputs: &outputs };
    // SAFETY: as above.
    unsafe { run_requested(&request) }
}
