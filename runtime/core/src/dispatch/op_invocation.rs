//! One call of an op: its inputs, and the outputs that it yields.

use smallvec::SmallVec;

use crate::stream::Stream;
use crate::{Device, Tensor};

/// The outputs of a call; `None` for one that was not requested.
pub type OpOutputs = SmallVec<[Option<Tensor>; 1]>;

/// One call: inputs, the number of outputs, and optionally a device and a stream.
#[derive(Clone, Copy, Debug)]
pub struct OpInvocation<'a> {
    /// The inputs; `None` for one that is left out.
    pub inputs: &'a [Option<&'a Tensor>],
    /// The number of outputs to compute.
    pub outputs: usize,
    /// The device to run on; by default the device of the inputs, or the default device if there are none.
    pub device: Option<&'a Device>,
    /// The stream to run on; by default the device's own.
    pub stream: Option<&'a Stream>,
}
