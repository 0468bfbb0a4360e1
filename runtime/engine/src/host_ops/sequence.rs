//! Ops on sequences and optionals, which kernels cannot handle.

use oarlock_core::{Attribute, Attributes, Dtype, Error, Op, OpInvocation, Result, Tensor};

use super::{host_scalar, required_input};
use crate::graph::Node;
use crate::runtime_value::RuntimeValue;
use crate::session_environment::SessionEnvironment;

pub(crate) enum SequenceOp {
    Construct,
    Empty,
    At,
    Insert,
    Erase,
    Length,
    Split { axis: i64, keeps_axis: bool },
    Concat { axis: i64, is_new_axis: bool },
    Optional,
    OptionalHasElement,
    OptionalGetElement,
}

impl SequenceOp {
    /// Returns `None` for a node that kernels run.
    pub(super) fn from_node(node: &Node) -> Result<Option<Self>> {
        let int = |name: &str, default: i64| -> Result<i64> {
            Ok(node.attributes.get_int(name)?.unwrap_or(default))
        };
        Ok(Some(match &*node.op {
            "SequenceConstruct" => Self::Construct,
            "SequenceEmpty" => Self::Empty,
            "SequenceAt" => Self::At,
            "SequenceInsert" => Self::Insert,
            "SequenceErase" => Self::Erase,
            "SequenceLength" => Self::Length,
            "SplitToSequence" => Self::Split { axis: int("axis", 0)?, keeps_axis: int("keepdims", 1)? != 0 },
            "ConcatFromSequence" => {
                Self::Concat { axis: int("axis", 0)?, is_new_axis: int("new_axis", 0)? != 0 }
            }
            "Optional" => Self::Optional,
            "OptionalHasElement" => Self::OptionalHasElement,
            "OptionalGetElement" => Self::OptionalGetElement,
            _ => return Ok(None),
        }))
    }

    pub(super) fn run(
        &self,
        environment: &SessionEnvironment,
        inputs: &[Option<RuntimeValue>],
    ) -> Result<RuntimeValue> {
        let input = |index: usize| required_input(inputs, index);
        match self {
            Self::Construct => inputs
                .iter()
                .flatten()
                .map(sequence_element)
                .collect::<Result<_>>()
                .map(RuntimeValue::Sequence),
            Self::Empty => Ok(RuntimeValue::Sequence(Vec::new())),
            Self::At => {
                let elements = input(0)?.as_sequence()?;
                let at = element_position(input(1)?, elements.len(), false)?;
                Ok(elements[at].clone())
            }
            Self::Insert => {
                let mut elements = input(0)?.as_sequence()?.to_vec();
                let at = match inputs.get(2) {
                    Some(Some(at)) => element_position(at, elements.len(), true)?,
                    _ => elements.len(),
                };
                elements.insert(at, sequence_element(input(1)?)?);
                Ok(RuntimeValue::Sequence(elements))
            }
            Self::Erase => {
                let mut elements = input(0)?.as_sequence()?.to_vec();
                let last = elements.len().checked_sub(1).ok_or_else(|| out_of_range(-1, 0))?;
                let at = match inputs.get(1) {
                    Some(Some(at)) => element_position(at, elements.len(), false)?,
                    _ => last,
                };
                elements.remove(at);
                Ok(RuntimeValue::Sequence(elements))
            }
            Self::Length => {
                let count = i64::try_from(input(0)?.as_sequence()?.len()).unwrap_or(i64::MAX);
                host_scalar(&environment.host, Dtype::I64, count.to_ne_bytes().to_vec())
            }
            Self::Split { axis, keeps_axis } => {
                split_tensor(environment, input(0)?.as_tensor()?, inputs.get(1), *axis, *keeps_axis)
            }
            Self::Concat { axis, is_new_axis } => {
                let elements = input(0)?.as_sequence()?;
                let tensors: Vec<Tensor> =
                    elements.iter().map(|element| element.as_tensor().cloned()).collect::<Result<_>>()?;
                concatenate_tensors(environment, &tensors, *axis, *is_new_axis).map(RuntimeValue::Tensor)
            }
            Self::OptionalGetElement => match input(0)? {
                RuntimeValue::Nothing => {
                    Err(Error::invalid_argument("expected an optional that holds something, found nothing"))
                }
                value => Ok(value.clone()),
            },
            Self::Optional => Ok(inputs.first().cloned().flatten().unwrap_or(RuntimeValue::Nothing)),
            Self::OptionalHasElement => {
                let has = !matches!(inputs.first(), None | Some(None | Some(RuntimeValue::Nothing)));
                host_scalar(&environment.host, Dtype::Bool, vec![u8::from(has)])
            }
        }
    }
}

/// Checks that a value may be an element of a sequence. Nested sequences are refused: they could double in size with each op,
/// and no ONNX op creates any.
pub(crate) fn sequence_element(value: &RuntimeValue) -> Result<RuntimeValue> {
    value.as_tensor().cloned().map(RuntimeValue::Tensor)
}

/// Resolves a position; negative ones count from the end.
fn element_position(at: &RuntimeValue, length: usize, may_be_end: bool) -> Result<usize> {
    let at = at.as_tensor()?.to_constant()?.to_ints()?.first().copied().unwrap_or(0);
    let size = i64::try_from(length).unwrap_or(i64::MAX);
    let from_start = if at < 0 { at + size } else { at };
    let most = if may_be_end { size } else { size - 1 };
    match usize::try_from(from_start) {
        Ok(position) if from_start <= most => Ok(position),
        _ => Err(out_of_range(at, length)),
    }
}

#[cold]
fn out_of_range(at: i64, length: usize) -> Error {
    Error::out_of_range(format!("expected a position in a sequence of {length} elements, found {at}"))
}

/// Splits a tensor along an axis: into single slices, equal parts, or parts of the listed sizes.
fn split_tensor(
    environment: &SessionEnvironment,
    tensor: &Tensor,
    sizes: Option<&Option<RuntimeValue>>,
    axis: i64,
    keeps_axis: bool,
) -> Result<RuntimeValue> {
    let axis = oarlock_core::shape::resolve_axis(axis, tensor.dims().len())?;
    let length = tensor.dims()[axis];
    let (sizes, drops_axis) = match sizes.and_then(Option::as_ref) {
        None => (split_sizes(length, 1)?, !keeps_axis),
        Some(sizes) => {
            let sizes = sizes.as_tensor()?.to_constant()?;
            let list = sizes.to_ints()?;
            match (sizes.dims().len(), &*list) {
                (0, [0]) => {
                    return Err(Error::invalid_argument("expected parts of at least 1 element, found 0"));
                }
                (0, [size]) => (split_sizes(length, *size)?, false),
                _ => (list, false),
            }
        }
    };
    let total = sizes.iter().try_fold(0i64, |total, size| total.checked_add(*size));
    if sizes.iter().any(|size| *size < 0) || total != Some(length) {
        return Err(Error::invalid_argument(format!(
            "expected parts that together have {length} elements, found {sizes:?}"
        ))
        .with_operand("input 1 (split)"));
    }
    let mut begin = 0u64;
    let mut elements = Vec::new();
    for size in sizes {
        let end = begin + size.unsigned_abs();
        let part = match drops_axis {
            true => select_index(environment, tensor, axis, begin)?,
            false => tensor.slice(i64::try_from(axis).unwrap_or(0), begin, end, 1)?,
        };
        elements.push(RuntimeValue::Tensor(part));
        begin = end;
    }
    Ok(RuntimeValue::Sequence(elements))
}

/// Selects one index along an axis and removes the axis.
pub(crate) fn select_index(
    environment: &SessionEnvironment,
    tensor: &Tensor,
    axis: usize,
    index: u64,
) -> Result<Tensor> {
    let part = tensor.slice(i64::try_from(axis).unwrap_or(0), index, index + 1, 1)?;
    let mut dims = part.dims().to_vec();
    dims.remove(axis);
    environment.runtime.make_contiguous(&part, part.device().default_stream()?)?.reshape(&dims)
}

/// Limit on the parts of a split; each is a tensor, which takes far more memory than an element.
const MAX_SPLIT_PARTS: i64 = 1 << 20;

/// Sizes of equal parts; the last one may be smaller.
fn split_sizes(length: i64, size: i64) -> Result<Vec<i64>> {
    let size = size.max(1);
    let whole = length / size;
    if whole >= MAX_SPLIT_PARTS {
        return Err(Error::resource_exhausted(format!(
            "expected a sequence of at most {MAX_SPLIT_PARTS} parts, found {length} elements in parts of {size}"
        )));
    }
    let mut parts = vec![size; usize::try_from(whole).unwrap_or(0)];
    if length % size > 0 {
        parts.push(length % size);
    }
    Ok(parts)
}

/// Concatenates tensors along an axis, or stacks them along a new one.
pub(crate) fn concatenate_tensors(
    environment: &SessionEnvironment,
    tensors: &[Tensor],
    axis: i64,
    is_new_axis: bool,
) -> Result<Tensor> {
    let Some(first) = tensors.first() else {
        return Err(Error::invalid_argument(
            "expected a sequence of at least one tensor, found an empty one",
        ));
    };
    let device = first.device();
    let mut parts = Vec::new();
    for tensor in tensors {
        let tensor =
            environment.runtime.make_contiguous(&tensor.to_device(device)?, device.default_stream()?)?;
        parts.push(match is_new_axis {
            false => tensor,
            true => {
                let mut dims = tensor.dims().to_vec();
                let axis = oarlock_core::shape::resolve_axis(axis, dims.len() + 1)?;
                dims.insert(axis, 1);
                tensor.reshape(&dims)?
            }
        });
    }
    let attributes = Attributes::new().with_attribute("axis", Attribute::Int(axis));
    let op = Op::new(&environment.runtime, "", "Concat", 13, attributes)?;
    let inputs: Vec<Option<&Tensor>> = parts.iter().map(Some).collect();
    let call = OpInvocation { inputs: &inputs, outputs: 1, device: None, stream: None };
    let result = op.invoke(&environment.runtime, &call)?.pop().flatten();
    result.ok_or_else(|| Error::fatal("expected an output, found none").with_op("Concat"))
}
