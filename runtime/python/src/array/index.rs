//! Parts of arrays, to read and to write.
//!
//! Whole numbers, slices, `None` and `...` are another view of the same memory. Masks and arrays of places gather elements.
//! To write is to make a tensor with other elements in some places.

use oarlock_core::{Attribute, Attributes, Dtype, Tensor};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyList, PySlice, PyTuple};

use super::operand::{Number, foreign, scalar};
use super::{Array, Operand, cast, only};
use crate::call::{Fixed, named};
use crate::error::OrRaise as _;
use crate::promote::{Kind, kind};

/// One part of a key.
enum Part<'py> {
    At(i64),
    Slice(Bound<'py, PySlice>),
    New,
    Rest,
    Mask(Tensor),
    Places(Tensor),
}

impl Part<'_> {
    /// How many dimensions it is about.
    fn takes(&self) -> usize {
        match self {
            Self::At(_) | Self::Slice(_) | Self::Places(_) => 1,
            Self::New | Self::Rest => 0,
            Self::Mask(mask) => mask.dims().len(),
        }
    }
}

fn part<'py>(key: &Bound<'py, PyAny>) -> PyResult<Part<'py>> {
    if key.is_none() {
        return Ok(Part::New);
    }
    if key.is_instance_of::<PyEllipsis>() {
        return Ok(Part::Rest);
    }
    if let Ok(slice) = key.cast::<PySlice>() {
        return Ok(Part::Slice(slice.clone()));
    }
    if let Ok(array) = key.cast::<Array>() {
        return places(array.get().tensor());
    }
    let is_array =
        key.is_instance_of::<PyBool>() || key.is_instance_of::<PyList>() || key.hasattr("__dlpack__")?;
    if is_array {
        return places(super::read::asarray(key, None, None, None)?.get().tensor());
    }
    if let Some(truth @ Number::Bool(_)) = scalar(key)? {
        return places(truth.tensor(&super::host(key.py())?, Dtype::Bool)?);
    }
    let index = key.call_method0("__index__").map_err(|_| {
        let found = key.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string());
        PyIndexError::new_err(format!(
            "expected whole numbers, slices, `...`, `None` or arrays of whole numbers or truths as an index, found {found}"
        ))
    })?;
    let place = index.extract();
    place
        .map(Part::At)
        .map_err(|_| PyIndexError::new_err(format!("expected an index that int64 has, found {index}")))
}

fn places<'py>(tensor: Tensor) -> PyResult<Part<'py>> {
    match kind(tensor.dtype()) {
        Some(Kind::Bool) => Ok(Part::Mask(tensor)),
        Some(Kind::Integer) => Ok(Part::Places(tensor)),
        _ => Err(PyIndexError::new_err(format!(
            "expected whole numbers or truths as places, found {}",
            tensor.dtype().numpy_name()
        ))),
    }
}

/// The parts of a key, with as many whole slices as there are dimensions that it does not name.
fn parts<'py>(rank: usize, key: &Bound<'py, PyAny>) -> PyResult<Vec<Part<'py>>> {
    let mut parts = match key.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|key| part(&key)).collect::<PyResult<Vec<_>>>()?,
        Err(_) => vec![part(key)?],
    };
    let taken: usize = parts.iter().map(Part::takes).sum();
    if taken > rank {
        return Err(PyIndexError::new_err(format!("expected at most {rank} indices, found {taken}")));
    }
    let mut rests = parts.iter().enumerate().filter(|(_, part)| matches!(part, Part::Rest)).map(|(at, _)| at);
    let rest = rests.next();
    if rests.next().is_some() {
        return Err(PyIndexError::new_err("expected `...` at most once, found it twice"));
    }
    let fill = (taken..rank).map(|_| Part::Slice(PySlice::full(key.py())));
    match rest {
        Some(at) => drop(parts.splice(at..=at, fill)),
        None => parts.extend(fill),
    }
    Ok(parts)
}

/// The part of a tensor that a key means.
pub(super) fn get(py: Python<'_>, tensor: &Tensor, key: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let mut seen = tensor.clone();
    // The next dimension of `seen`, and the places that are gathered, each with the dimension it is about.
    let mut axis = 0;
    let mut gathered: Vec<(usize, Tensor)> = Vec::new();
    for part in parts(tensor.dims().len(), key)? {
        match part {
            Part::Rest => {}
            Part::New => {
                seen = seen.unsqueeze(axis).or_raise()?;
                axis += 1;
            }
            Part::At(index) => {
                let size = seen.dims()[axis];
                let at = if index < 0 { index + size } else { index };
                if !(0..size).contains(&at) {
                    return Err(PyIndexError::new_err(format!(
                        "expected an index of -{size} to before {size} in dimension {axis}, found {index}"
                    )));
                }
                let at = at.unsigned_abs();
                let one = seen.slice(axis as i64, at, at + 1, 1).or_raise()?;
                seen = one.squeeze(axis as i64).or_raise()?;
            }
            Part::Slice(slice) => {
                seen = sliced(py, &seen, axis, &slice)?;
                axis += 1;
            }
            Part::Mask(mask) => {
                let end = axis + mask.dims().len();
                // Of what has no elements none are chosen, so it may be a mask of more than there is.
                let fits = |(own, mask): (&i64, &i64)| own == mask || *mask == 0;
                if !seen.dims()[axis..end].iter().zip(mask.dims()).all(fits) {
                    return Err(PyIndexError::new_err(format!(
                        "expected a mask of the shape {:?}, found {:?}",
                        &seen.dims()[axis..end],
                        mask.dims()
                    )));
                }
                if mask.dims().is_empty() {
                    // A single truth is a dimension of one element or none.
                    seen = seen.unsqueeze(axis).or_raise()?;
                    let mask = mask.unsqueeze(0).or_raise()?;
                    gathered.push((axis, true_places(py, &mask)?.remove(0)));
                    axis += 1;
                    continue;
                }
                gathered.extend((axis..end).zip(true_places(py, &mask)?));
                axis = end;
            }
            Part::Places(places) => {
                gathered.push((axis, cast(py, &places, Dtype::I64)?));
                axis += 1;
            }
        }
    }
    if gathered.is_empty() { Ok(seen) } else { gather(py, &seen, &gathered) }
}

/// Every index of one dimension that a slice means.
fn sliced(py: Python<'_>, tensor: &Tensor, axis: usize, slice: &Bound<'_, PySlice>) -> PyResult<Tensor> {
    let size = tensor.dims()[axis];
    let range = slice.indices(isize::try_from(size)?)?;
    let at = axis as i64;
    if range.slicelength == 0 {
        return tensor.slice(at, 0, 0, 1).or_raise();
    }
    if range.step > 0 {
        return tensor.slice(at, range.start as u64, range.stop as u64, range.step as u64).or_raise();
    }
    // The op counts an end before the first index as the last one, so it is said as one that is out of reach.
    let stop = if range.stop < 0 { i64::MIN } else { range.stop as i64 };
    let device = super::host(py)?;
    let list = |value: i64| Tensor::from_slice(&device, &[1], &[value]).or_raise();
    let (start, stop, axes, step) =
        (list(range.start as i64)?, list(stop)?, list(at)?, list(range.step as i64)?);
    static SLICE: Fixed = Fixed::new("Slice");
    SLICE.call(py, &[tensor, &start, &stop, &axes, &step])
}

/// For each dimension of a mask, where it is true.
fn true_places(py: Python<'_>, mask: &Tensor) -> PyResult<Vec<Tensor>> {
    static NON_ZERO: Fixed = Fixed::new("NonZero");
    let all = NON_ZERO.call(py, &[mask])?;
    (0..mask.dims().len())
        .map(|axis| {
            let at = axis as u64;
            all.slice(0, at, at + 1, 1).and_then(|row| row.squeeze(0)).or_raise()
        })
        .collect()
}

/// The elements at places of some dimensions, which become one group of dimensions: in place of the first of them where they
/// stand side by side, and before all others otherwise.
fn gather(py: Python<'_>, tensor: &Tensor, gathered: &[(usize, Tensor)]) -> PyResult<Tensor> {
    static GATHER: Fixed = Fixed::new("GatherND");
    let mut shape = oarlock_core::Dims::new();
    for (_, places) in gathered {
        shape = oarlock_core::shape::broadcast(&shape, places.dims()).or_raise()?;
    }
    let columns: Vec<Tensor> = gathered
        .iter()
        .map(|(_, places)| places.expand(&shape).and_then(|places| places.unsqueeze(shape.len())).or_raise())
        .collect::<PyResult<_>>()?;
    let columns: Vec<Option<&Tensor>> = columns.iter().map(Some).collect();
    let last = Attributes::new().with("axis", Attribute::Int(shape.len() as i64));
    let indices = only(named(py, "Concat", &columns, last, 1)?);
    let axes: Vec<usize> = gathered.iter().map(|(axis, _)| *axis).collect();
    let rank = tensor.dims().len();
    let others = (0..rank).filter(|axis| !axes.contains(axis));
    let order: Vec<usize> = axes.iter().copied().chain(others).collect();
    let made = GATHER.call(py, &[&tensor.transpose(&order).or_raise()?, &indices?])?;
    let first = axes[0];
    let is_side_by_side = axes.windows(2).all(|pair| pair[1] == pair[0] + 1);
    if !is_side_by_side || first == 0 {
        return Ok(made);
    }
    let (group, after) = (shape.len(), shape.len() + first);
    let back = (group..after).chain(0..group).chain(after..made.dims().len()).collect::<Vec<_>>();
    made.transpose(&back).or_raise()
}

/// A tensor with other elements in the part that a key means.
pub(super) fn set(
    py: Python<'_>,
    tensor: &Tensor,
    key: &Bound<'_, PyAny>,
    value: &Operand,
) -> PyResult<Tensor> {
    static SCATTER: Fixed = Fixed::new("ScatterElements");
    let dtype = tensor.dtype();
    let value = match value {
        Operand::Foreign(name) => return Err(foreign(&format!("`{name}`"))),
        Operand::Number(number) => checked(*number, dtype)?.tensor(tensor.device(), dtype)?,
        Operand::Array(value) => {
            if crate::promote::of_two(dtype, value.dtype())? != dtype && kind(value.dtype()) > kind(dtype) {
                return Err(PyTypeError::new_err(format!(
                    "expected elements that {} has, found {}\nhint: convert them with `astype`",
                    dtype.numpy_name(),
                    value.dtype().numpy_name()
                )));
            }
            cast(py, &value.to(tensor.device()).or_raise()?, dtype)?
        }
    };
    let count = i64::try_from(tensor.element_count())?;
    let places: Vec<i64> = (0..count).collect();
    let places = Tensor::from_slice(tensor.device(), tensor.dims(), &places).or_raise()?;
    let places = get(py, &places, key)?;
    let fits =
        oarlock_core::shape::broadcast(value.dims(), places.dims()).is_ok_and(|dims| *dims == *places.dims());
    if !fits {
        return Err(pyo3::exceptions::PyValueError::new_err(format!(
            "expected elements whose shape repeats to {:?}, found {:?}",
            places.dims(),
            value.dims()
        )));
    }
    let value = value.expand(places.dims()).or_raise()?;
    let flat = |tensor: &Tensor| {
        let runtime = crate::start::runtime(py)?;
        let stream = tensor.device().stream().or_raise()?;
        let whole = runtime.contiguous(tensor, stream).or_raise()?;
        whole.reshape(&[i64::try_from(whole.element_count())?]).or_raise()
    };
    let written = SCATTER.call(py, &[&flat(tensor)?, &flat(&places)?, &flat(&value)?])?;
    written.reshape(tensor.dims()).or_raise()
}

/// A number that may be written into an array: one of a kind that the dtype has.
fn checked(number: Number, dtype: Dtype) -> PyResult<Number> {
    if Some(number.kind()) <= kind(dtype) {
        return Ok(number);
    }
    Err(PyTypeError::new_err(format!(
        "expected a number that {} has, found one of another kind\nhint: convert the array with `astype`",
        dtype.numpy_name()
    )))
}
