//! Shape inference: computes the outputs of an op from what is known about its inputs.
//!
//! The same rules serve single calls, where everything is known, and models that are planned before their inputs
//! exist, where little may be known. So a rule checks what it can and computes what follows. An unknown size makes
//! everything that depends on it unknown, but is never an error.
//!
//! To find the rule of an op, start at `rule_index.rs`. Each family of ops has a file that begins with a table: which rule
//! applies to which op in which versions, and which inputs' elements the shapes depend on.

mod context;
mod fact;
mod output;
mod rule;
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
mod rule_index;
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
pub(crate) use rule::InferenceRule;
pub(crate) use rule_index::find_rule;

/// An op, and what is known about its operands.
#[derive(Clone, Copy, Debug)]
pub struct InferenceRequest<'a> {
    /// The domain, such as `oarlock`. ONNX's own is `ai.onnx` or the empty name.
    pub domain: &'a str,
    /// The name, such as `Conv`.
    pub op: &'a str,
    /// The since-version of the op.
    pub version: u32,
    /// The attributes, including the schema's defaults.
    pub attributes: &'a Attributes,
    /// What is known about each input; `None` for one that is left out.
    pub inputs: &'a [Option<TensorFact>],
    /// One item for each requested output: its dtype if the schema determines it, that is, if it is fixed, if only one is
    /// possible, or if it equals the dtype of an input.
    pub outputs: &'a [Option<Dtype>],
}

/// Infers the outputs, or reports the operand that the op does not accept.
pub fn infer_facts(call: &InferenceRequest<'_>) -> Result<Vec<TensorFact>> {
    infer_outputs(call).map_err(|error| error.with_op(call.op))
}

/// The indices of inputs whose elements the output shapes depend on.
pub fn value_input_indices(domain: &str, op: &str, version: u32) -> &'static [usize] {
    rule_index::find_rule(domain, op, version).map_or(&[], |rule| rule.values)
}

/// True if any version of an op has a rule.
pub fn has_rule(domain: &str, op: &str) -> bool {
    rule_index::has_rule(domain, op)
}

fn infer_outputs(inference: &InferenceRequest<'_>) -> Result<Vec<TensorFact>> {
    let rule = rule_index::find_rule(inference.domain, inference.op, inference.version).ok_or_else(|| {
        let InferenceRequest { domain, op, version, .. } = inference;
        Error::unimplemented(format!(
            "expected an op whose shapes can be inferred, found `{op}` of the domain `{domain}` in version {version}"
        ))
    })?;
    infer_with_rule(rule, inference)
}

/// Like [`infer_facts`], with a rule that was looked up before.
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

/// Merges a rule's result with the dtype of the schema, and checks that a tensor of that shape can exist.
fn finish_output(output: InferredOutput, from_schema: Option<Dtype>) -> Result<TensorFact> {
    let dtype = output.dtype.or(from_schema).ok_or_else(|| {
        Error::invalid_argument("expected a dtype that follows from the inputs and attributes, found none")
    })?;
    let fact = TensorFact { dtype, dims: output.dims, value: output.value };
    if let Some(dims) = &fact.dims {
        // An unknown size may be 0, and then the others may be arbitrarily large.
        let at_least: Dims = dims.iter().map(|dim| dim.known_size().unwrap_or(0)).collect();
        shape::size_in_bytes(dtype, &at_least)?;
    }
    Ok(fact)
}
