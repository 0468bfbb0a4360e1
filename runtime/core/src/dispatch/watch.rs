//! What is done behind every kernel when the user asks for it: waiting, and looking for NaN and infinity.

use std::sync::atomic::{AtomicBool, Ordering};

use super::op::Outputs;
use crate::flags::Flags;
use crate::stream::Stream;
use crate::{Dtype, Error, Result, Tensor};

/// The flags `benchmark` and `check_nan_inf`, kept where reading them costs nothing.
#[derive(Debug)]
pub(crate) struct Watch {
    is_on: AtomicBool,
    waits: bool,
    looks: bool,
    skipped_ops: Vec<String>,
    /// Pairs of an op's name and a part of an output's.
    skipped_outputs: Vec<(String, String)>,
}

impl Watch {
    pub(crate) fn new(flags: &Flags) -> Self {
        let (waits, looks) = (flags.is_on("benchmark"), flags.is_on("check_nan_inf"));
        let pair = |text: String| text.split_once(':').map(|(op, output)| (op.to_owned(), output.to_owned()));
        Self {
            is_on: AtomicBool::new(waits || looks),
            waits,
            looks,
            skipped_ops: flags.list("check_nan_inf_skip_ops"),
            skipped_outputs: flags.list("check_nan_inf_skip_outputs").into_iter().filter_map(pair).collect(),
        }
    }

    /// Does what is to be done behind a kernel.
    #[inline]
    pub(crate) fn after(&self, op: &'static str, stream: &Stream, outputs: &Outputs) -> Result<()> {
        if self.is_on.load(Ordering::Relaxed) { self.look(op, stream, outputs) } else { Ok(()) }
    }

    #[cold]
    fn look(&self, op: &'static str, stream: &Stream, outputs: &Outputs) -> Result<()> {
        if self.waits {
            stream.synchronize().map_err(|error| error.of_op(op))?;
        }
        if !self.looks || self.skipped_ops.iter().any(|skipped| skipped == op) {
            return Ok(());
        }
        for (index, output) in outputs.iter().enumerate() {
            let name = format!("output {index}");
            let is_skipped = |(of, part): &(String, String)| of == op && name.contains(part.as_str());
            if let Some(tensor) = output.as_ref().filter(|_| !self.skipped_outputs.iter().any(is_skipped)) {
                check(tensor, &name).map_err(|error| error.of_op(op).on_device(tensor.device()))?;
            }
        }
        Ok(())
    }
}

/// How many elements are what, and the first that is not a number of the usual kind.
#[derive(Default)]
struct Tally {
    nan: u64,
    infinite: u64,
    finite: u64,
    first: Option<(u64, f64)>,
}

impl Tally {
    fn of(elements: impl Iterator<Item = f64>) -> Self {
        let mut tally = Self::default();
        for (at, element) in (0..).zip(elements) {
            match element {
                element if element.is_nan() => tally.nan += 1,
                element if element.is_infinite() => tally.infinite += 1,
                _ => tally.finite += 1,
            }
            if !element.is_finite() {
                tally.first.get_or_insert((at, element));
            }
        }
        tally
    }
}

fn check(tensor: &Tensor, name: &str) -> Result<()> {
    let tally = match tensor.dtype() {
        Dtype::F16 => Tally::of(tensor.to_vec::<half::f16>()?.into_iter().map(f64::from)),
        Dtype::BF16 => Tally::of(tensor.to_vec::<half::bf16>()?.into_iter().map(f64::from)),
        Dtype::F32 => Tally::of(tensor.to_vec::<f32>()?.into_iter().map(f64::from)),
        Dtype::F64 => Tally::of(tensor.to_vec::<f64>()?.into_iter()),
        _ => return Ok(()),
    };
    let Some((at, value)) = tally.first else { return Ok(()) };
    let Tally { nan, infinite, finite, .. } = tally;
    let count = tensor.element_count();
    Err(Error::precondition_not_met(format!(
        "expected finite numbers, found NaN or infinity: numel:{count} index:{at} value:{value}, there are \
         {nan},{infinite},{finite} nan,inf,num"
    ))
    .of_operand(name)
    .hint("the flags `check_nan_inf_skip_ops` and `check_nan_inf_skip_outputs` pass over what may have them"))
}
