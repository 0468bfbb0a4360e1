//! Kernels: what a plugin says about each, and how the host gets to run it.

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

/// What a kernel demands of one operand.
#[derive(Clone, Copy, Debug)]
pub struct OperandSpec(abi::Operand);

impl OperandSpec {
    /// An operand with one of these dtypes, of any rank, contiguous, on the device.
    pub const fn new(dtypes: DtypeSet) -> Self {
        Self(abi::Operand { dtypes, rank_max: u32::MAX, ..abi::Operand::EMPTY })
    }

    /// Its name in the schema of the op.
    pub const fn with_name(mut self, name: &'static str) -> Self {
        self.0.name = abi::Str::new(name);
        self
    }

    /// Operands with the same group, other than 0, must have the same dtype.
    pub const fn with_dtype_group(mut self, group: u32) -> Self {
        self.0.dtype_group = group;
        self
    }

    /// How many dimensions it may have.
    pub const fn with_rank(mut self, min: u32, max: u32) -> Self {
        self.0.rank_min = min;
        self.0.rank_max = max;
        self
    }

    /// Whether it may be left out, stands for all further ones, or may have strides.
    pub const fn with_flags(mut self, flags: OperandFlags) -> Self {
        self.0.bits = self.0.bits.union(flags);
        self
    }

    /// What order its dimensions must be in.
    pub const fn with_layout(mut self, layout: Layout) -> Self {
        self.0.layout = layout;
        self
    }

    /// Where it must lie.
    pub const fn in_memory(mut self, place: MemoryKind) -> Self {
        self.0.place = place;
        self
    }
}

type RunFunction<D> = dyn Fn(&D, &KernelCall<'_>) -> Result<()> + Send + Sync;
type PrepareFunction<D> = dyn Fn(&D, &KernelCall<'_>) -> Result<Arc<RunFunction<D>>> + Send + Sync;
type WorkspaceFunction<D> = dyn Fn(&D, &KernelCall<'_>) -> Result<u64> + Send + Sync;

/// One way of running one op on the device of a plugin.
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
    /// A kernel that needs no state: one function that does the work.
    pub fn new(
        op: impl Into<String>,
        run: impl Fn(&D, &KernelCall<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        let run: Arc<RunFunction<D>> = Arc::new(run);
        Self::new_prepared(op, move |_, _| Ok(Arc::clone(&run)))
    }

    /// A kernel that is readied once for each place it is called from: `prepare` packs constants, picks an algorithm, and
    /// returns the function that does the work, which several threads may call at once.
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

    /// The domain of the op; without it the op is ONNX's.
    pub fn with_domain(mut self, domain: impl Into<String>) -> Self {
        self.domain = domain.into();
        self
    }

    /// The device type the kernel is for; without it the plugin's own.
    pub fn with_device_type(mut self, device_type: impl Into<String>) -> Self {
        self.device_type = device_type.into();
        self
    }

    /// The first version of the op that the kernel implements.
    pub fn since_version(mut self, version: u32) -> Self {
        self.versions.0 = version;
        self
    }

    /// The last version of the op that the kernel implements.
    pub fn until_version(mut self, version: u32) -> Self {
        self.versions.1 = version;
        self
    }

    /// Of several kernels that fit, the one with the highest score runs; 100 without this.
    pub fn with_score(mut self, score: i32) -> Self {
        self.score = score;
        self
    }

    /// What is special about the kernel.
    pub fn with_flags(mut self, flags: KernelFlags) -> Self {
        self.flags = self.flags | flags;
        self
    }

    /// What the kernel demands of its inputs.
    pub fn with_inputs(mut self, inputs: impl IntoIterator<Item = OperandSpec>) -> Self {
        self.inputs = inputs.into_iter().collect();
        self
    }

    /// What the kernel demands of its outputs.
    pub fn with_outputs(mut self, outputs: impl IntoIterator<Item = OperandSpec>) -> Self {
        self.outputs = outputs.into_iter().collect();
        self
    }

    /// Lets an output use the memory of an input.
    pub fn with_in_place(mut self, output: u32, input: u32) -> Self {
        self.in_place.push(abi::InPlace { output, input });
        self
    }

    /// Decides about each call that meets the demands: success, or `unimplemented` with the reason.
    pub fn with_support_check(
        mut self,
        supports: impl Fn(&D, &KernelCall<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.supports = Some(Box::new(supports));
        self
    }

    /// Says the dtypes and shapes of the outputs with [`KernelCall::allocate_output`], for ops of the plugin's own.
    pub fn with_shape_inference(
        mut self,
        infer: impl Fn(&D, &KernelCall<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.infer = Some(Box::new(infer));
        self
    }

    /// Says how much scratch memory a call needs, in bytes.
    pub fn with_workspace(
        mut self,
        workspace: impl Fn(&D, &KernelCall<'_>) -> Result<u64> + Send + Sync + 'static,
    ) -> Self {
        self.workspace = Some(Box::new(workspace));
        self
    }
}

/// A kernel with everything its C record points to. The record is made once the kernel has its final place in memory.
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
    /// The record holds the address of what it is in. Unlike a `Box`, an `Arc` that is moved leaves such an address good.
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

    /// Runs one of the kernel's functions on a call.
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
    // SAFETY: as above, and the size is the host's to have written.
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
    // SAFETY: as above, and the state is the host's to have written.
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
            run(&this.device, call)
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
