//! A call that was packed once and is run many times.

#![expect(unsafe_code, reason = "a call is a struct of pointers that only its maker can vouch for")]

use std::sync::Arc;

use oarlock_abi as abi;

use super::op::Outputs;
use super::raw;
use super::site::{InputWay, KernelSite, Site, Way};
use super::watch::Watch;
use crate::memory::Allocation;
use crate::runtime::{Random, Runtime};
use crate::stream::Stream;
use crate::{Error, Result, Tensor};

/// A call with its operands, scratch memory and stream in place: running it is one call of the kernel.
///
/// Every run writes the same outputs, so they are read through here and not handed out.
pub struct Launch {
    call: abi::Call,
    site: Arc<Site>,
    stream: Stream,
    is_immediate: bool,
    /// Where a call that draws numbers draws them from.
    random: Option<Arc<Random>>,
    outputs: Outputs,
    watch: Arc<Watch>,
    /// What the call points to.
    _inputs: Vec<Option<Tensor>>,
    _descriptions: Box<[abi::Tensor]>,
    _pointers: Box<[*const abi::Tensor]>,
    _workspace: Option<Allocation>,
}

// SAFETY: the call points to descriptions, attributes and values that the launch owns, wherever it is.
unsafe impl Send for Launch {}

impl Launch {
    pub(crate) fn new(
        site: Arc<Site>,
        runtime: &Runtime,
        stream: &Stream,
        inputs: &[Option<&Tensor>],
    ) -> Result<Self> {
        let kernel = kernel(&site)?;
        let mut descriptions = kernel.descriptions.clone();
        let (given, wanted) = descriptions.split_at_mut(kernel.inputs.len());
        for ((raw, input), given) in given.iter_mut().zip(&kernel.inputs).zip(inputs) {
            let tensor = given.filter(|_| input.way == InputWay::Direct);
            if input.way == InputWay::Contiguous {
                return Err(unpackable(kernel, "contiguous inputs", "one with strides"));
            }
            if let Some(tensor) = tensor {
                kernel.order(stream, tensor)?;
                raw::place(raw, tensor);
            }
        }
        let mut outputs = Outputs::new();
        for (raw, output) in wanted.iter_mut().zip(&kernel.outputs) {
            let tensor = output.take(stream, kernel.op)?;
            if let Some(tensor) = &tensor {
                raw::place(raw, tensor);
            } else if !raw.bits.contains(abi::TensorFlags::ABSENT) {
                return Err(unpackable(kernel, "outputs of known shapes", "one whose shape depends on data"));
            }
            outputs.push(tensor);
        }
        let pointers: Box<[*const abi::Tensor]> = descriptions.iter().map(std::ptr::from_ref).collect();
        let (given, wanted) = pointers.split_at(kernel.inputs.len());
        let mut call = kernel.call(stream, given, wanted);
        let workspace = match kernel.workspace {
            0 => None,
            size => Some(kernel.device.pool()?.allocate(size, stream.id(), kernel.op)?),
        };
        if let Some(workspace) = &workspace {
            (call.workspace, call.workspace_offset) = (workspace.memory(), workspace.offset());
            call.workspace_size = kernel.workspace;
        }
        Ok(Self {
            call,
            random: (kernel.draws > 0).then(|| runtime.random().clone()),
            is_immediate: stream.is_immediate(),
            stream: stream.clone(),
            outputs,
            watch: runtime.watch().clone(),
            _inputs: inputs.iter().map(|input| input.cloned()).collect(),
            _descriptions: descriptions,
            _pointers: pointers,
            _workspace: workspace,
            site,
        })
    }

    /// Runs the call. It returns when the kernel does, which may be before its work in the stream is done.
    #[inline]
    pub fn run(&mut self) -> Result<()> {
        let Way::Kernel(kernel) = &self.site.way else { return Ok(()) };
        if let Some(random) = &self.random {
            (self.call.random_seed, self.call.random_offset) = random.draw(kernel.draws);
        }
        // SAFETY: everything the call points to is owned by this launch, and the operands are those the kernel was
        // readied with.
        let run = || unsafe { kernel.kernel.run(&self.call) };
        if self.is_immediate {
            run().map_err(|failure| kernel.failed(failure))?;
        } else {
            let launched = self.stream.launch(kernel.op, run);
            launched.map_err(|error| error.of_op(kernel.op).on_device(&kernel.device))?;
        }
        self.watch.after(kernel.op, &self.stream, &self.outputs)
    }

    /// Waits for the work, and reads an output.
    pub fn output(&self, index: usize) -> Result<Vec<u8>> {
        self.stream.synchronize()?;
        let output = self.outputs.get(index).and_then(Option::as_ref);
        let missing =
            || Error::out_of_range(format!("expected one of {} outputs, found {index}", self.outputs.len()));
        output.ok_or_else(missing)?.to_bytes()
    }
}

fn kernel(site: &Site) -> Result<&KernelSite> {
    match &site.way {
        Way::Kernel(kernel) => Ok(kernel),
        Way::Fallback => {
            Err(Error::unimplemented("expected a kernel of the device, found that the CPU does this call"))
        }
    }
}

#[cold]
fn unpackable(kernel: &KernelSite, expected: &str, found: &str) -> Error {
    Error::unimplemented(format!("expected {expected}, found {found}, which cannot be packed"))
        .of_op(kernel.op)
        .on_device(&kernel.device)
}
