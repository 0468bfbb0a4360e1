//! Inference: what the outputs of an op will be, from what is known about its inputs.
//!
//! The same rules serve a single call, where everything is known, and a model that is prepared before its inputs
//! exist, where little may be. So a rule checks what it can see and computes what follows; a size that is not known
//! makes what depends on it unknown, and is never a reason for an error.
//!
//! `table.rs` is where to look for an op. Every family of ops has a file with a table on top that says which rule
//! infers which op in which versions, and on the elements of which inputs the shapes depend.

mod context;
mod fact;
mod output;
mod table;
mod values;

mod attention;
mod channels_last;
mod conv;
mod convert;
mod create;
mod einsum;
mod elementwise;
mod fused;
mod indexing;
mod linear_algebra;
mod loss;
mod matmul;
mod normalize;
mod optimizers;
mod pool;
mod quantized;
mod rearrange;
mod recurrent;
mod reduce;
mod reshape;
mod resize;
mod signal;
mod slice;
mod spatial;
mod text;
mod traditional_ml;
mod window;

use crate::{Attributes, Dims, Dtype, Error, Result, shape};

use context::InferenceContext;
pub use fact::{PartialDim, PartialDims, TensorFact};
use output::InferredOutput;
pub(crate) use table::{InferenceRule, find_rule as rule};

/// One op with what is known about its operands.
#[derive(Clone, Copy, Debug)]
pub struct InferenceRequest<'a> {
    /// The domain of the op, such as `oarlock`. That of ONNX is `ai.onnx`, for which the empty name stands too.
    pub domain: &'a str,
    /// The name of the op.
    pub op: &'a str,
    /// The version of the domain since which the op is as it is.
    pub version: u32,
    /// The attributes, with defaults where the schema has some.
    pub attributes: &'a Attributes,
    /// What is known about each input; none where an optional one is left out.
    pub inputs: &'a [Option<TensorFact>],
    /// One for each output that is wanted, with its dtype where the schema says it: because it is always the same,
    /// because it is the only one that is possible, or because an input has it.
    pub outputs: &'a [Option<Dtype>],
}

/// Says what the outputs will be, or which operand is not what the op takes.
pub fn infer_facts(call: &InferenceRequest<'_>) -> Result<Vec<TensorFact>> {
    infer_outputs(call).map_err(|error| error.with_op(call.op))
}

/// The inputs whose elements, and not only whose shapes, the shapes of the outputs depend on.
pub fn value_input_indices(domain: &str, op: &str, version: u32) -> &'static [usize] {
    table::find_rule(domain, op, version).map_or(&[], |rule| rule.values)
}

/// Whether there is a rule for an op, in whatever version.
pub fn has_rule(domain: &str, op: &str) -> bool {
    table::has_rule(domain, op)
}

fn infer_outputs(inference: &InferenceRequest<'_>) -> Result<Vec<TensorFact>> {
    let rule = table::find_rule(inference.domain, inference.op, inference.version).ok_or_else(|| {
        let InferenceRequest { domain, op, version, .. } = inference;
        Error::unimplemented(format!(
            "expected an op whose shapes can be inferred, found `{op}` of the domain `{domain}` in version {version}"
        ))
    })?;
    infer_with_rule(rule, inference)
}

/// The same by a rule that was found before.
pub(crate) fn infer_with_rule(
    rule: &InferenceRule,
    inference: &InferenceRequest<'_>,
) -> Result<Vec<TensorFact>> {
    let call = InferenceContext::new(inference);
    call.check_inputs()?;
    let outputs = (rule.infer)(&call)?;
    let (wanted, possible) = (inference.outputs.len(), outputs.len());
    if wanted > possible {
        return Err(Error::invalid_argument(format!("expected at most {possible} outputs, found {wanted}")));
    }
    let facts = outputs.into_iter().zip(inference.outputs).enumerate().map(|(at, (output, dtype))| {
        finish_output(output, *dtype).map_err(|error| error.with_operand(format!("output {at}")))
    });
    facts.collect()
}

/// Turns what a rule says into a fact, and makes sure that a tensor of that shape can exist.
fn finish_output(output: InferredOutput, from_schema: Option<Dtype>) -> Result<TensorFact> {
    let dtype = output.dtype.or(from_schema).ok_or_else(|| {
        Error::invalid_argument("expected a dtype that follows from the inputs and attributes, found none")
    })?;
    let fact = TensorFact { dtype, dims: output.dims, value: output.value };
    if let Some(dims) = &fact.dims {
        // A size that is not known may be 0, and then the others may be anything.
        let at_least: Dims = dims.iter().map(|dim| dim.known_size().unwrap_or(0)).collect();
        shape::size_in_bytes(dtype, &at_least)?;
    }
    Ok(fact)
}
