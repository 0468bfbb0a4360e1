//! Ops on sequences and optionals, which no kernel can see.

use oarlock_core::{Attribute, Attributes, Dtype, Error, Invocation, Op, Result, Tensor};

use super::control::{given, scalar};
use crate::datum::Datum;
use crate::environment::Environment;
use crate::graph::Node;

/// An op on sequences or optionals.
pub(super) enum SequenceOp {
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
    /// The op of a node; nothing for one that kernels run.
    pub(super) fn of(node: &Node) -> Result<Option<Self>> {
        let int =
            |name: &str, default: i64| -> Result<i64> { Ok(node.attributes.int(name)?.unwrap_or(default)) };
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

    pub(super) fn run(&self, environment: &Environment, inputs: &[Option<Datum>]) -> Result<Datum> {
        let input = |index: usize| given(inputs, index);
        match self {
            Self::Construct => {
                inputs.iter().flatten().map(element).collect::<Result<_>>().map(Datum::Sequence)
            }
            Self::Empty => Ok(Datum::Sequence(Vec::new())),
            Self::At => {
                let elements = input(0)?.sequence()?;
                let at = position(input(1)?, elements.len(), false)?;
                Ok(elements[at].clone())
            }
            Self::Insert => {
                let mut elements = input(0)?.sequence()?.to_vec();
                let at = match inputs.get(2) {
                    Some(Some(at)) => position(at, elements.len(), true)?,
                    _ => elements.len(),
                };
                elements.insert(at, element(input(1)?)?);
                Ok(Datum::Sequence(elements))
            }
            Self::Erase => {
                let mut elements = input(0)?.sequence()?.to_vec();
                let last = elements.len().checked_sub(1).ok_or_else(|| out_of_range(-1, 0))?;
                let at = match inputs.get(1) {
                    Some(Some(at)) => position(at, elements.len(), false)?,
                    _ => last,
                };
                elements.remove(at);
                Ok(Datum::Sequence(elements))
            }
            Self::Length => {
                let count = i64::try_from(input(0)?.sequence()?.len()).unwrap_or(i64::MAX);
                scalar(&environment.host, Dtype::I64, count.to_ne_bytes().to_vec())
            }
            Self::Split { axis, keeps_axis } => {
                split(environment, input(0)?.tensor()?, inputs.get(1), *axis, *keeps_axis)
            }
            Self::Concat { axis, is_new_axis } => {
                let elements = input(0)?.sequence()?;
                let tensors: Vec<Tensor> =
                    elements.iter().map(|element| element.tensor().cloned()).collect::<Result<_>>()?;
                concatenate(environment, &tensors, *axis, *is_new_axis).map(Datum::Tensor)
            }
            Self::OptionalGetElement => match input(0)? {
                Datum::Nothing => {
                    Err(Error::invalid_argument("expected an optional that holds something, found nothing"))
                }
                datum => Ok(datum.clone()),
            },
            Self::Optional => Ok(inputs.first().cloned().flatten().unwrap_or(Datum::Nothing)),
            Self::OptionalHasElement => {
                let has = !matches!(inputs.first(), None | Some(None | Some(Datum::Nothing)));
                scalar(&environment.host, Dtype::Bool, vec![u8::from(has)])
            }
        }
    }
}

/// What may be an element of a sequence. Sequences in sequences would double with each op, and no op of ONNX makes any.
pub(super) fn element(datum: &Datum) -> Result<Datum> {
    datum.tensor().cloned().map(Datum::Tensor)
}

/// The element that a position means; one below 0 counts from the end.
fn position(at: &Datum, length: usize, may_be_end: bool) -> Result<usize> {
    let at = at.tensor()?.to_constant()?.ints()?.first().copied().unwrap_or(0);
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

/// Cuts a tensor along an axis: into slices of one, of equal parts, or of parts of the sizes in a list.
fn split(
    environment: &Environment,
    tensor: &Tensor,
    sizes: Option<&Option<Datum>>,
    axis: i64,
    keeps_axis: bool,
) -> Result<Datum> {
    let axis = oarlock_core::shape::axis(axis, tensor.dims().len())?;
    let length = tensor.dims()[axis];
    let (sizes, drops_axis) = match sizes.and_then(Option::as_ref) {
        None => (parts_of(length, 1)?, !keeps_axis),
        Some(sizes) => {
            let sizes = sizes.tensor()?.to_constant()?;
            let list = sizes.ints()?;
            match (sizes.dims().len(), &*list) {
                (0, [0]) => {
                    return Err(Error::invalid_argument("expected parts of at least 1 element, found 0"));
                }
                (0, [size]) => (parts_of(length, *size)?, false),
                _ => (list, false),
            }
        }
    };
    let total = sizes.iter().try_fold(0i64, |total, size| total.checked_add(*size));
    if sizes.iter().any(|size| *size < 0) || total != Some(length) {
        return Err(Error::invalid_argument(format!(
            "expected parts that together have {length} elements, found {sizes:?}"
        ))
        .of_operand("input 1 (split)"));
    }
    let mut begin = 0u64;
    let mut elements = Vec::new();
    for size in sizes {
        let end = begin + size.unsigned_abs();
        let part = match drops_axis {
            true => part_of(environment, tensor, axis, begin)?,
            false => tensor.slice(i64::try_from(axis).unwrap_or(0), begin, end, 1)?,
        };
        elements.push(Datum::Tensor(part));
        begin = end;
    }
    Ok(Datum::Sequence(elements))
}

/// One index of a dimension, without the dimension.
pub(super) fn part_of(environment: &Environment, tensor: &Tensor, axis: usize, index: u64) -> Result<Tensor> {
    let part = tensor.slice(i64::try_from(axis).unwrap_or(0), index, index + 1, 1)?;
    let mut dims = part.dims().to_vec();
    dims.remove(axis);
    environment.runtime.contiguous(&part, part.device().stream()?)?.reshape(&dims)
}

/// The most parts that a tensor is cut into. Each takes far more memory than an element does.
const MOST_PARTS: i64 = 1 << 20;

/// The sizes of parts that are equal, but for the last one.
fn parts_of(length: i64, size: i64) -> Result<Vec<i64>> {
    let size = size.max(1);
    let whole = length / size;
    if whole >= MOST_PARTS {
        return Err(Error::resource_exhausted(format!(
            "expected a sequence of at most {MOST_PARTS} parts, found {length} elements in parts of {size}"
        )));
    }
    let mut parts = vec![size; usize::try_from(whole).unwrap_or(0)];
    if length % size > 0 {
        parts.push(length % size);
    }
    Ok(parts)
}

/// Puts tensors one after the other along an axis, or beside each other along a new one.
pub(super) fn concatenate(
    environment: &Environment,
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
        let tensor = environment.runtime.contiguous(&tensor.to(device)?, device.stream()?)?;
        parts.push(match is_new_axis {
            false => tensor,
            true => {
                let mut dims = tensor.dims().to_vec();
                let axis = oarlock_core::shape::axis(axis, dims.len() + 1)?;
                dims.insert(axis, 1);
                tensor.reshape(&dims)?
            }
        });
    }
    let attributes = Attributes::new().with("axis", Attribute::Int(axis));
    let op = Op::new(&environment.runtime, "", "Concat", 13, attributes)?;
    let inputs: Vec<Option<&Tensor>> = parts.iter().map(Some).collect();
    let call = Invocation { inputs: &inputs, outputs: 1, device: None, stream: None };
    let made = op.invoke(&environment.runtime, &call)?.pop().flatten();
    made.ok_or_else(|| Error::fatal("expected an output, found none").of_op("Concat"))
}
