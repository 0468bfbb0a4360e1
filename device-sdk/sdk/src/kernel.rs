//! Kernels: their requirements, and the C functions through which the host runs them.

#![expect(unsafe_code, reason = "the functions of a kernel are called through pointers from C")]

use core::ffi::c_void;
use std::sync::Arc;

use oarlock_abi as abi;
pub use oarlock_abi::{KernelFlags, Layout, MemoryKind, OperandFlags};

use crate::boundary::{self, OutValue};
use crate::call::KernelCall;
use crate::dtype::DtypeSet;
use crate::error::Result;
use crate::host::HostServices;
use crate::stop;

/// A kernel's requirements on one operand. The host checks them before it calls the kernel.
#[derive(Clone, Copy, Debug)]
pub struct OperandSpec(abi::Operand);

impl OperandSpec {
    /// An operand with one of these dtypes, of any rank, contiguous, in device memory.
    pub const fn new(dtypes: DtypeSet) -> Self {
        Self(abi::Operand { dtypes, rank_max: u32::MAX, ..abi::Operand::EMPTY })
    }

    /// Names the operand as the schema of the op does.
    pub const fn with_name(mut self, name: &'static str) -> Self {
        self.0.name = abi::Str::new(name);
        self
    }

    /// Ties dtypes together: operands with the same nonzero group must have the same dtype.
    pub const fn with_dtype_group(mut self, group: u32) -> Self {
        self.0.dtype_group = group;
        self
    }

    /// Bounds the number of dimensions; both bounds are inclusive.
    pub const fn with_rank(mut self, min: u32, max: u32) -> Self {
        self.0.rank_min = min;
        self.0.rank_max = max;
        self
    }

    /// Adds flags: optional, variadic (stands for all further operands), strided or unaligned.
    pub const fn with_flags(mut self, flags: OperandFlags) -> Self {
        self.0.bits = self.0.bits.union(flags);
        self
    }

    /// Requires a layout, such as channels last.
    pub const fn with_layout(mut self, layout: Layout) -> Self {
        self.0.layout = layout;
        self
    }

    /// Requires a kind of memory, such as pinned host memory.
    pub const fn in_memory(mut self, place: MemoryKind) -> Self {
        self.0.place = place;
        self
    }
}

type RunFunction<D> = dyn Fn(&D, &KernelCall<'_>) -> Result<()> + Send + Sync;
type PrepareFunction<D> = dyn Fn(&D, &KernelCall<'_>) -> Result<Arc<RunFunction<D>>> + Send + Sync;
type WorkspaceFunction<D> = dyn Fn(&D, &KernelCall<'_>) -> Result<u64> + Send + Sync;

/// An implementation of one op for one type of device.
///
/// ```
/// use oarlock_sdk::{Kernel, OperandSpec, family};
///
/// struct Npu;
/// let number = OperandSpec::new(family::FLOATING).with_dtype_group(1);
/// let relu = Kernel::new("Relu", |_: &Npu, call| {
///     let (x, y) = (call.input(0)?, call.output(0)?);
///     /* … */
///     Ok(())
/// })
/// .since_version(14)
/// .with_inputs([number.with_name("X")])
/// .with_outputs([number.with_name("Y")]);
/// ```
pub struct Kernel<D> {
    op: String,
    domain: String,
    device_type: String,
    versions: (u32, u32),
    score: i32,
    flags: KernelFlags,
    inputs: Vec<OperandSpec>,
    outputs: Vec<OperandSpec>,
    in_place: Vec<abi::InPlace>,
    prepare: Box<PrepareFunction<D>>,
    supports: Option<Box<RunFunction<D>>>,
    infer: Option<Box<RunFunction<D>>>,
    workspace: Option<Box<WorkspaceFunction<D>>>,
}

impl<D: 'static> Kernel<D> {
    /// A kernel without state: `run` does all the work.
    pub fn new(
        op: impl Into<String>,
        run: impl Fn(&D, &KernelCall<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        let run: Arc<RunFunction<D>> = Arc::new(run);
        Self::new_prepared(op, move |_, _| Ok(Arc::clone(&run)))
    }

    /// A kernel with a preparation step. `prepare` runs once for each call site: it packs constants, chooses an algorithm
    /// and returns the function that does the work. Several threads may call that function concurrently.
    pub fn new_prepared(
        op: impl Into<String>,
        prepare: impl Fn(&D, &KernelCall<'_>) -> Result<Arc<RunFunction<D>>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            op: op.into(),
            domain: String::new(),
            device_type: String::new(),
            versions: (1, 0),
            score: 100,
            flags: KernelFlags(0),
            inputs: Vec::new(),
            outputs: Vec::new(),
            in_place: Vec::new(),
            prepare: Box::new(prepare),
            supports: None,
            infer: None,
            workspace: None,
        }
    }

    /// Sets the domain of the op; the default is ONNX's.
    pub fn with_domain(mut self, domain: impl Into<String>) -> Self {
        self.domain = domain.into();
        self
    }

    /// Sets the device type that the kernel runs on; the default is the plugin's own.
    pub fn with_device_type(mut self, device_type: impl Into<String>) -> Self {
        self.device_type = device_type.into();
        self
    }

    /// Sets the first version of the op that the kernel implements; 1 by default.
    pub fn since_version(mut self, version: u32) -> Self {
        self.versions.0 = version;
        self
    }

    /// Sets the last version of the op that the kernel implements; by default, there is no upper bound.
    pub fn until_version(mut self, version: u32) -> Self {
        self.versions.1 = version;
        self
    }

    /// Sets the score: if several kernels match, the one with the highest score runs. The default is 100.
    pub fn with_score(mut self, score: i32) -> Self {
        self.score = score;
        self
    }

    /// Adds properties that the host relies on: deterministic, asynchronous, or allocating its outputs.
    pub fn with_flags(mut self, flags: KernelFlags) -> Self {
        self.flags = self.flags | flags;
        self
    }

    /// Sets the requirements on the inputs, in the order of the schema.
    pub fn with_inputs(mut self, inputs: impl IntoIterator<Item = OperandSpec>) -> Self {
        self.inputs = inputs.into_iter().collect();
        self
    }

    /// Sets the requirements on the outputs, in the order of the schema.
    pub fn with_outputs(mut self, outputs: impl IntoIterator<Item = OperandSpec>) -> Self {
        self.outputs = outputs.into_iter().collect();
        self
    }

    /// Permits the output at one index to use the memory of the input at another.
    pub fn with_in_place(mut self, output: u32, input: u32) -> Self {
        self.in_place.push(abi::InPlace { output, input });
        self
    }

    /// Adds a check for calls that meet the operand specs: `Ok` accepts a call, an `unimplemented` error with the reason
    /// declines it.
    pub fn with_support_check(
        mut self,
        supports: impl Fn(&D, &KernelCall<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.supports = Some(Box::new(supports));
        self
    }

    /// Adds shape inference, for custom ops: `infer` sets dtype and shape of each output with [`KernelCall::allocate_output`].
    pub fn with_shape_inference(
        mut self,
        infer: impl Fn(&D, &KernelCall<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.infer = Some(Box::new(infer));
        self
    }

    /// Sets the function that computes the scratch memory a call needs, in bytes. In the run, [`KernelCall::workspace`] returns it.
    pub fn with_workspace(
        mut self,
        workspace: impl Fn(&D, &KernelCall<'_>) -> Result<u64> + Send + Sync + 'static,
    ) -> Self {
        self.workspace = Some(Box::new(workspace));
        self
    }
}

/// A kernel with everything that its C record points to. The record is built once the kernel is at its final address.
pub(crate) struct RegisteredKernel<D> {
    kernel: Kernel<D>,
    inputs: Vec<abi::Operand>,
    outputs: Vec<abi::Operand>,
    input_pointers: Vec<*const abi::Operand>,
    output_pointers: Vec<*const abi::Operand>,
    device: Arc<D>,
    host: HostServices,
    record: abi::Kernel,
}

// SAFETY: the pointers lead into vectors of the same struct that are never changed.
unsafe impl<D: Send + Sync> Send for RegisteredKernel<D> {}
// SAFETY: as above.
unsafe impl<D: Send + Sync> Sync for RegisteredKernel<D> {}

impl<D: Send + Sync + 'static> RegisteredKernel<D> {
    /// The record contains the address of the struct that it is part of. Moving a `Box` would invalidate pointers into it; moving
    /// an `Arc` does not.
    pub(crate) fn new(kernel: Kernel<D>, device: Arc<D>, host: HostServices) -> Arc<Self> {
        let raw = |operands: &[OperandSpec]| operands.iter().map(|operand| operand.0).collect::<Vec<_>>();
        let (inputs, outputs) = (raw(&kernel.inputs), raw(&kernel.outputs));
        Arc::new_cyclic(|place| {
            let mut registered = Self {
                kernel,
                input_pointers: inputs.iter().map(|operand| &raw const *operand).collect(),
                output_pointers: outputs.iter().map(|operand| &raw const *operand).collect(),
                inputs,
                outputs,
                device,
                host,
                record: abi::Kernel::EMPTY,
            };
            registered.record = registered.build_record(place.as_ptr());
            registered
        })
    }

    pub(crate) fn abi_record(&self) -> &abi::Kernel {
        &self.record
    }

    fn build_record(&self, place: *const Self) -> abi::Kernel {
        let kernel = &self.kernel;
        abi::Kernel {
            op: abi::Str::borrowed(&kernel.op),
            domain: abi::Str::borrowed(&kernel.domain),
            device_type: abi::Str::borrowed(&kernel.device_type),
            version_min: kernel.versions.0,
            version_max: kernel.versions.1,
            score: kernel.score,
            bits: kernel.flags,
            inputs: self.input_pointers.as_ptr(),
            inputs_count: self.inputs.len() as u64,
            outputs: self.output_pointers.as_ptr(),
            outputs_count: self.outputs.len() as u64,
            in_place: kernel.in_place.as_ptr(),
            in_place_count: kernel.in_place.len() as u64,
            context: place.cast_mut().cast(),
            supports: kernel.supports.is_some().then_some(kernel_supports::<D>),
            infer: kernel.infer.is_some().then_some(kernel_infer::<D>),
            workspace: kernel.workspace.is_some().then_some(kernel_workspace::<D>),
            prepare: Some(kernel_prepare::<D>),
            run: Some(kernel_run::<D>),
            release: Some(kernel_release::<D>),
            ..abi::Kernel::EMPTY
        }
    }

    /// Entry of the C functions below: recovers kernel and call, and runs `body` under the panic guard.
    ///
    /// # Safety
    ///
    /// `context` is the context of this kernel's record and `call` a call the host is making.
    unsafe fn enter_kernel(
        context: *mut c_void,
        call: *const abi::Call,
        body: impl FnOnce(&Self, &KernelCall<'_>) -> Result<()>,
    ) -> abi::Error {
        // SAFETY: the caller vouches for the context, and the kernel is never changed.
        let this = unsafe { &*context.cast::<Self>() };
        boundary::guard_call(&this.host, || {
            // SAFETY: the caller vouches for the call.
            let call = unsafe { KernelCall::new(call, this.host) }?;
            body(this, &call)
        })
    }
}

unsafe extern "C" fn kernel_supports<D: Send + Sync + 'static>(
    context: *mut c_void,
    call: *const abi::Call,
) -> abi::Error {
    // SAFETY: the host hands back the kernel's context with a call of its own.
    unsafe {
        RegisteredKernel::<D>::enter_kernel(context, call, |this, call| match &this.kernel.supports {
            Some(supports) => supports(&this.device, call),
            None => Ok(()),
        })
    }
}

unsafe extern "C" fn kernel_infer<D: Send + Sync + 'static>(
    context: *mut c_void,
    call: *const abi::Call,
) -> abi::Error {
    // SAFETY: as above.
    unsafe {
        RegisteredKernel::<D>::enter_kernel(context, call, |this, call| match &this.kernel.infer {
            Some(infer) => infer(&this.device, call),
            None => Ok(()),
        })
    }
}

unsafe extern "C" fn kernel_workspace<D: Send + Sync + 'static>(
    context: *mut c_void,
    call: *const abi::Call,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: as above, and the host lets the kernel write the size.
    unsafe {
        RegisteredKernel::<D>::enter_kernel(context, call, |this, call| {
            let size = OutValue::new(size, "size")?;
            size.write(
                this.kernel.workspace.as_ref().map_or(Ok(0), |workspace| workspace(&this.device, call))?,
            )
        })
    }
}

unsafe extern "C" fn kernel_prepare<D: Send + Sync + 'static>(
    context: *mut c_void,
    call: *const abi::Call,
    state: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: as above, and the host lets the kernel write the state.
    unsafe {
        RegisteredKernel::<D>::enter_kernel(context, call, |this, call| {
            let state = OutValue::new(state, "state")?;
            let run = (this.kernel.prepare)(&this.device, call)?;
            state.write(Box::into_raw(Box::new(run)).cast())
        })
    }
}

unsafe extern "C" fn kernel_run<D: Send + Sync + 'static>(
    context: *mut c_void,
    state: *mut c_void,
    call: *const abi::Call,
) -> abi::Error {
    // SAFETY: as above, and the state is one that `prepare` made and `release` has not freed.
    unsafe {
        RegisteredKernel::<D>::enter_kernel(context, call, |this, call| {
            let run = boundary::checked_reference(state.cast::<Arc<RunFunction<D>>>(), "state")?;
            if this.host.can_stop() {
                stop::run_watched(&|| this.host.check_stop(), || run(&this.device, call))
            } else {
                run(&this.device, call)
            }
        })
    }
}

unsafe extern "C" fn kernel_release<D: Send + Sync + 'static>(
    context: *mut c_void,
    state: *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the kernel's context.
    let this = unsafe { &*context.cast::<RegisteredKernel<D>>() };
    boundary::guard_call(&this.host, || {
        if !state.is_null() {
            // SAFETY: the state is one that `prepare` made, and it is freed once.
            drop(unsafe { Box::from_raw(state.cast::<Arc<RunFunction<D>>>()) });
        }
        Ok(())
    })
}
