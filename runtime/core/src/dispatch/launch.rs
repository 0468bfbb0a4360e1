//! A call that was packed once and is run many times.

#![expect(unsafe_code, reason = "a call is run on operands that only its maker can vouch for")]

use std::sync::Arc;

use super::ahead::{Packed, Place};
use super::op::Outputs;
use super::site::{InputWay, KernelSite, Site, Way};
use super::watch::Watch;
use crate::memory::Allocation;
use crate::runtime::Runtime;
use crate::stream::Stream;
use crate::{Error, Result, Tensor};

/// A call with its operands, scratch memory and stream in place: running it is one call of the kernel.
///
/// Every run writes the same outputs, so they are read through here and not handed out.
pub struct Launch {
    packed: Packed,
    outputs: Outputs,
    watch: Arc<Watch>,
    /// What the call points to.
    _inputs: Vec<Option<Tensor>>,
    _workspace: Option<Allocation>,
}

impl Launch {
    pub(crate) fn new(
        site: &Site,
        runtime: &Runtime,
        stream: &Stream,
        inputs: &[Option<&Tensor>],
    ) -> Result<Self> {
        let kernel = kernel(site)?;
        let mut packed = Packed::new(kernel.clone(), runtime, stream);
        for (index, (input, given)) in kernel.inputs.iter().zip(inputs).enumerate() {
            if input.way == InputWay::Contiguous {
                return Err(unpackable(kernel, "contiguous inputs", "one with strides"));
            }
            if let Some(tensor) = given.filter(|_| input.way == InputWay::Direct) {
                kernel.order(stream, tensor)?;
                packed.place_input(index, Place::of(tensor));
            }
        }
        let mut outputs = Outputs::new();
        for (index, output) in kernel.outputs.iter().enumerate() {
            let tensor = output.take(stream, kernel.op)?;
            if let Some(tensor) = &tensor {
                packed.place_output(index, Place::of(tensor));
            } else if !output.is_absent() {
                return Err(unpackable(kernel, "outputs of known shapes", "one whose shape depends on data"));
            }
            outputs.push(tensor);
        }
        let workspace = match kernel.workspace {
            0 => None,
            size => Some(kernel.device.pool()?.allocate(size, stream.id(), kernel.op)?),
        };
        if let Some(workspace) = &workspace {
            packed.place_workspace(Place::within(workspace, 0));
        }
        Ok(Self {
            packed,
            outputs,
            watch: runtime.watch().clone(),
            _inputs: inputs.iter().map(|input| input.cloned()).collect(),
            _workspace: workspace,
        })
    }

    /// Runs the call. It returns when the kernel does, which may be before its work in the stream is done.
    #[inline]
    pub fn run(&mut self) -> Result<()> {
        // SAFETY: the operands are tensors of this launch, the scratch memory is its own, and nobody else gets its outputs.
        unsafe { self.packed.run()? };
        self.watch.after(self.packed.site().op, self.packed.stream(), &self.outputs)
    }

    /// Waits for the work, and reads an output.
    pub fn output(&self, index: usize) -> Result<Vec<u8>> {
        self.packed.stream().synchronize()?;
        let output = self.outputs.get(index).and_then(Option::as_ref);
        let missing =
            || Error::out_of_range(format!("expected one of {} outputs, found {index}", self.outputs.len()));
        output.ok_or_else(missing)?.to_bytes()
    }
}

fn kernel(site: &Site) -> Result<&Arc<KernelSite>> {
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
