//! Ops that the kernel of another op calls by name.
//!
//! Only kernels of ops without a schema can do so, and only where operands are in host memory: the inputs are copied into tensors of
//! the CPU, and the outputs are copied from them. The op is resolved for each call, so this suits ops that compute for longer
//! than that takes, such as `MatMul`.

use oarlock_abi as abi;
use oarlock_host::{Code, OpRequest, OpRunner, PluginFailure, RequestedAttribute, with_op_runner};

use super::Op;
use crate::dispatch::op_invocation::OpInvocation;
use crate::runtime::Runtime;
use crate::{Attribute, Attributes, Dtype, Error, Result, Tensor};

/// Calls a kernel that may call ops of the runtime by name.
pub fn with_nested_ops<R>(runtime: &Runtime, call: impl FnOnce() -> R) -> R {
    with_op_runner(&NestedOps(runtime), call)
}

/// Runs the ops that kernels call in a runtime.
struct NestedOps<'a>(&'a Runtime);

impl NestedOps<'_> {
    fn run_request(&self, request: &OpRequest<'_>) -> Result<()> {
        let OpRequest { domain, op, opset, inputs, attributes, outputs } = request;
        let runtime = self.0;
        let cpu = runtime.device("cpu")?;
        let copied = inputs.iter().map(|input| {
            let Some(input) = input else { return Ok(None) };
            Tensor::from_bytes(&cpu, known_dtype(input.dtype)?, input.dims, input.bytes).map(Some)
        });
        let copied = copied.collect::<Result<Vec<Option<Tensor>>>>()?;
        let attributes = attributes.iter().map(read_attribute).collect::<Result<Attributes>>()?;
        let opset = if *opset == 0 { runtime.latest_opset(domain, op) } else { *opset };
        let given: Vec<Option<&Tensor>> = copied.iter().map(Option::as_ref).collect();
        let call = OpInvocation { inputs: &given, outputs: outputs.len(), device: Some(&cpu), stream: None };
        let computed = Op::new(runtime, domain, op, opset, attributes)?.invoke(runtime, &call)?;
        for (index, (place, tensor)) in outputs.iter().zip(&computed).enumerate() {
            let Some(tensor) = tensor else { continue };
            if (tensor.dtype(), tensor.dims()) != (known_dtype(place.dtype)?, place.dims) {
                return Err(Error::invalid_argument(format!(
                    "expected a place for {} of shape {:?}, which the op computes, found one of shape {:?}",
                    tensor.dtype(),
                    tensor.dims(),
                    place.dims
                ))
                .with_operand(format!("output {index}")));
            }
            place.write_bytes(&tensor.to_bytes()?)?;
        }
        Ok(())
    }
}

impl OpRunner for NestedOps<'_> {
    fn run_op(&self, request: &OpRequest<'_>) -> std::result::Result<(), PluginFailure> {
        self.run_request(request).map_err(|error| {
            let error = if error.op().is_some() { error } else { error.with_op(request.op) };
            PluginFailure::new("core", Code(error.kind() as u32), error.to_string())
        })
    }
}

fn known_dtype(dtype: abi::Dtype) -> Result<Dtype> {
    let unknown = || Error::invalid_argument(format!("expected a dtype, found the number {}", dtype.0));
    Dtype::from_abi(dtype).ok_or_else(unknown)
}

fn read_attribute(requested: &RequestedAttribute<'_>) -> Result<(String, Attribute)> {
    let RequestedAttribute { name, kind, ints, floats, strings } = requested;
    let texts = || strings.iter().map(|text| (*text).to_owned()).collect();
    let value = match (*kind, *ints, *floats, &strings[..]) {
        (abi::AttributeKind::INT, [int], ..) => Attribute::Int(*int),
        (abi::AttributeKind::FLOAT, _, [float], _) => Attribute::Float(*float),
        (abi::AttributeKind::STRING, _, _, [text]) => Attribute::String((*text).to_owned()),
        (abi::AttributeKind::INTS, ..) => Attribute::Ints(ints.to_vec()),
        (abi::AttributeKind::FLOATS, ..) => Attribute::Floats(floats.to_vec()),
        (abi::AttributeKind::STRINGS, ..) => Attribute::Strings(texts()),
        (kind, ..) => {
            let message =
                format!("expected `{name}` as numbers or texts, found an attribute of kind {}", kind.0);
            return Err(Error::invalid_argument(message));
        }
    };
    Ok(((*name).to_owned(), value))
}
