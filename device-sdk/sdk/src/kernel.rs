//! Kernels: what a plugin says about each, and how the host gets to run it.

#![expect(unsafe_code, reason = "the functions of a kernel are called through pointers from C")]

use core::ffi::c_void;
use std::sync::Arc;

use oarlock_abi as abi;
pub use oarlock_abi::{KernelFlags, Layout, MemoryKind, OperandFlags};

use crate::boundary::{self, Out};
use crate::call::Call;
use crate::dtype::DtypeSet;
use crate::error::Result;
use crate::host::Host;

/// What a kernel demands of one operand.
#[derive(Clone, Copy, Debug)]
pub struct Operand(abi::Operand);

impl Operand {
    /// An operand with one of these dtypes, of any rank, contiguous, on the device.
    pub const fn new(dtypes: DtypeSet) -> Self {
        Self(abi::Operand { dtypes, rank_max: u32::MAX, ..abi::Operand::EMPTY })
    }

    /// Its name in the schema of the op.
    pub const fn named(mut self, name: &'static str) -> Self {
        self.0.name = abi::Str::new(name);
        self
    }

    /// Operands with the same group, other than 0, must have the same dtype.
    pub const fn group(mut self, group: u32) -> Self {
        self.0.dtype_group = group;
        self
    }

    /// How many dimensions it may have.
    pub const fn rank(mut self, min: u32, max: u32) -> Self {
        self.0.rank_min = min;
        self.0.rank_max = max;
        self
    }

    /// Whether it may be left out, stands for all further ones, or may have strides.
    pub const fn flags(mut self, flags: OperandFlags) -> Self {
        self.0.bits = self.0.bits.union(flags);
        self
    }

    /// What order its dimensions must be in.
    pub const fn layout(mut self, layout: Layout) -> Self {
        self.0.layout = layout;
        self
    }

    /// Where it must lie.
    pub const fn on(mut self, place: MemoryKind) -> Self {
        self.0.place = place;
        self
    }
}

type Run<D> = dyn Fn(&D, &Call<'_>) -> Result<()> + Send + Sync;
type Prepare<D> = dyn Fn(&D, &Call<'_>) -> Result<Arc<Run<D>>> + Send + Sync;
type Workspace<D> = dyn Fn(&D, &Call<'_>) -> Result<u64> + Send + Sync;

/// One way of running one op on the device of a plugin.
///
/// ```
/// use oarlock_sdk::{Kernel, Operand, family};
///
/// struct Npu;
/// let number = Operand::new(family::FLOATING).group(1);
/// let relu = Kernel::new("Relu", |_: &Npu, call| {
///     let (x, y) = (call.input(0)?, call.output(0)?);
///     /* … */
///     Ok(())
/// })
/// .since(14)
/// .inputs([number.named("X")])
/// .outputs([number.named("Y")]);
/// ```
pub struct Kernel<D> {
    op: String,
    domain: String,
    device_type: String,
    versions: (u32, u32),
    score: i32,
    flags: KernelFlags,
    inputs: Vec<Operand>,
    outputs: Vec<Operand>,
    in_place: Vec<abi::InPlace>,
    prepare: Box<Prepare<D>>,
    supports: Option<Box<Run<D>>>,
    infer: Option<Box<Run<D>>>,
    workspace: Option<Box<Workspace<D>>>,
}

impl<D: 'static> Kernel<D> {
    /// A kernel that needs no state: one function that does the work.
    pub fn new(
        op: impl Into<String>,
        run: impl Fn(&D, &Call<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        let run: Arc<Run<D>> = Arc::new(run);
        Self::prepared(op, move |_, _| Ok(Arc::clone(&run)))
    }

    /// A kernel that is readied once for each place it is called from: `prepare` packs constants, picks an algorithm, and
    /// returns the function that does the work, which several threads may call at once.
    pub fn prepared(
        op: impl Into<String>,
        prepare: impl Fn(&D, &Call<'_>) -> Result<Arc<Run<D>>> + Send + Sync + 'static,
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
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.domain = domain.into();
        self
    }

    /// The device type the kernel is for; without it the plugin's own.
    pub fn device_type(mut self, device_type: impl Into<String>) -> Self {
        self.device_type = device_type.into();
        self
    }

    /// The first version of the op that the kernel implements.
    pub fn since(mut self, version: u32) -> Self {
        self.versions.0 = version;
        self
    }

    /// The last version of the op that the kernel implements.
    pub fn until(mut self, version: u32) -> Self {
        self.versions.1 = version;
        self
    }

    /// Of several kernels that fit, the one with the highest score runs; 100 without this.
    pub fn score(mut self, score: i32) -> Self {
        self.score = score;
        self
    }

    /// What is special about the kernel.
    pub fn flags(mut self, flags: KernelFlags) -> Self {
        self.flags = self.flags | flags;
        self
    }

    /// What the kernel demands of its inputs.
    pub fn inputs(mut self, inputs: impl IntoIterator<Item = Operand>) -> Self {
        self.inputs = inputs.into_iter().collect();
        self
    }

    /// What the kernel demands of its outputs.
    pub fn outputs(mut self, outputs: impl IntoIterator<Item = Operand>) -> Self {
        self.outputs = outputs.into_iter().collect();
        self
    }

    /// Lets an output use the memory of an input.
    pub fn in_place(mut self, output: u32, input: u32) -> Self {
        self.in_place.push(abi::InPlace { output, input });
        self
    }

    /// Decides about each call that meets the demands: success, or `unimplemented` with the reason.
    pub fn supports(
        mut self,
        supports: impl Fn(&D, &Call<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.supports = Some(Box::new(supports));
        self
    }

    /// Says the dtypes and shapes of the outputs with [`Call::allocate_output`], for ops of the plugin's own.
    pub fn infer(mut self, infer: impl Fn(&D, &Call<'_>) -> Result<()> + Send + Sync + 'static) -> Self {
        self.infer = Some(Box::new(infer));
        self
    }

    /// Says how much scratch memory a call needs, in bytes.
    pub fn workspace(
        mut self,
        workspace: impl Fn(&D, &Call<'_>) -> Result<u64> + Send + Sync + 'static,
    ) -> Self {
        self.workspace = Some(Box::new(workspace));
        self
    }
}

/// A kernel with everything its C record points to. The record is made once the kernel has its final place in memory.
pub(crate) struct Registered<D> {
    kernel: Kernel<D>,
    inputs: Vec<abi::Operand>,
    outputs: Vec<abi::Operand>,
    input_pointers: Vec<*const abi::Operand>,
    output_pointers: Vec<*const abi::Operand>,
    device: Arc<D>,
    host: Host,
    record: abi::Kernel,
}

// SAFETY: the pointers lead into vectors of the same struct that are never changed.
unsafe impl<D: Send + Sync> Send for Registered<D> {}
// SAFETY: as above.
unsafe impl<D: Send + Sync> Sync for Registered<D> {}

impl<D: Send + Sync + 'static> Registered<D> {
    /// The record holds the address of what it is in. Unlike a `Box`, an `Arc` that is moved leaves such an address good.
    pub(crate) fn new(kernel: Kernel<D>, device: Arc<D>, host: Host) -> Arc<Self> {
        let raw = |operands: &[Operand]| operands.iter().map(|operand| operand.0).collect::<Vec<_>>();
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
            registered.record = registered.describe(place.as_ptr());
            registered
        })
    }

    pub(crate) fn record(&self) -> &abi::Kernel {
        &self.record
    }

    fn describe(&self, place: *const Self) -> abi::Kernel {
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
            supports: kernel.supports.is_some().then_some(supports::<D>),
            infer: kernel.infer.is_some().then_some(infer::<D>),
            workspace: kernel.workspace.is_some().then_some(workspace::<D>),
            prepare: Some(prepare::<D>),
            run: Some(run::<D>),
            release: Some(release::<D>),
            ..abi::Kernel::EMPTY
        }
    }

    /// Runs one of the kernel's functions on a call.
    ///
    /// # Safety
    ///
    /// `context` is the context of this kernel's record and `call` a call the host is making.
    unsafe fn enter(
        context: *mut c_void,
        call: *const abi::Call,
        body: impl FnOnce(&Self, &Call<'_>) -> Result<()>,
    ) -> abi::Error {
        // SAFETY: the caller vouches for the context, and the kernel is never changed.
        let this = unsafe { &*context.cast::<Self>() };
        boundary::guard(&this.host, || {
            // SAFETY: the caller vouches for the call.
            let call = unsafe { Call::new(call, this.host) }?;
            body(this, &call)
        })
    }
}

unsafe extern "C" fn supports<D: Send + Sync + 'static>(
    context: *mut c_void,
    call: *const abi::Call,
) -> abi::Error {
    // SAFETY: the host hands back the kernel's context with a call of its own.
    unsafe {
        Registered::<D>::enter(context, call, |this, call| match &this.kernel.supports {
            Some(supports) => supports(&this.device, call),
            None => Ok(()),
        })
    }
}

unsafe extern "C" fn infer<D: Send + Sync + 'static>(
    context: *mut c_void,
    call: *const abi::Call,
) -> abi::Error {
    // SAFETY: as above.
    unsafe {
        Registered::<D>::enter(context, call, |this, call| match &this.kernel.infer {
            Some(infer) => infer(&this.device, call),
            None => Ok(()),
        })
    }
}

unsafe extern "C" fn workspace<D: Send + Sync + 'static>(
    context: *mut c_void,
    call: *const abi::Call,
    size: *mut u64,
) -> abi::Error {
    // SAFETY: as above, and the size is the host's to have written.
    unsafe {
        Registered::<D>::enter(context, call, |this, call| {
            let size = Out::new(size, "size")?;
            size.write(
                this.kernel.workspace.as_ref().map_or(Ok(0), |workspace| workspace(&this.device, call))?,
            )
        })
    }
}

unsafe extern "C" fn prepare<D: Send + Sync + 'static>(
    context: *mut c_void,
    call: *const abi::Call,
    state: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: as above, and the state is the host's to have written.
    unsafe {
        Registered::<D>::enter(context, call, |this, call| {
            let state = Out::new(state, "state")?;
            let run = (this.kernel.prepare)(&this.device, call)?;
            state.write(Box::into_raw(Box::new(run)).cast())
        })
    }
}

unsafe extern "C" fn run<D: Send + Sync + 'static>(
    context: *mut c_void,
    state: *mut c_void,
    call: *const abi::Call,
) -> abi::Error {
    // SAFETY: as above, and the state is one that `prepare` made and `release` has not freed.
    unsafe {
        Registered::<D>::enter(context, call, |this, call| {
            let run = boundary::reference(state.cast::<Arc<Run<D>>>(), "state")?;
            run(&this.device, call)
        })
    }
}

unsafe extern "C" fn release<D: Send + Sync + 'static>(
    context: *mut c_void,
    state: *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the kernel's context.
    let this = unsafe { &*context.cast::<Registered<D>>() };
    boundary::guard(&this.host, || {
        if !state.is_null() {
            // SAFETY: the state is one that `prepare` made, and it is freed once.
            drop(unsafe { Box::from_raw(state.cast::<Arc<Run<D>>>()) });
        }
        Ok(())
    })
}
