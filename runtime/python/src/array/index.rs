//! Indexing: parts of arrays.
//!
//! Integers, slices, `None` and `...` make a view of the same memory. Masks and index arrays gather elements.

use oarlock_core::{Attribute, Attributes, Device, DimSelection, Dtype, Tensor};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PyRange, PySlice, PyTuple};

use super::python_number::{PythonNumber, numpy_scalar};
use super::{PyTensor, cast_tensor, scalar_cache, single_output};
use crate::error::{OrRaise as _, type_name};
use crate::op_call::{StaticOp, call_named_op};
use crate::promote::{DtypeKind, dtype_kind};
use crate::trace::is_traced;
use crate::views::{expand_view, reshape_view, selection_view, transpose_view};

enum KeyPart<'py> {
    At(i64),
    Slice(Bound<'py, PySlice>),
    /// A dimension that the key does not name.
    Whole,
    New,
    Rest,
    Mask(Tensor),
    Places(Tensor),
}

impl KeyPart<'_> {
    /// Dimensions of the array that this part consumes.
    fn dimension_count(&self) -> usize {
        match self {
            Self::At(_) | Self::Slice(_) | Self::Whole | Self::Places(_) => 1,
            Self::New | Self::Rest => 0,
            Self::Mask(mask) => mask.dims().len(),
        }
    }

    fn is_index_array(&self) -> bool {
        matches!(self, Self::At(_) | Self::Mask(_) | Self::Places(_))
    }
}

/// Parses one part of a key. Index arrays are put on `device`.
fn parse_part<'py>(device: &Device, key: &Bound<'py, PyAny>) -> PyResult<KeyPart<'py>> {
    // Check common cases by exact type first, which needs no attribute lookup.
    if key.is_exact_instance_of::<PyInt>() {
        return parse_index(key);
    }
    if key.is_none() {
        return Ok(KeyPart::New);
    }
    if key.is_instance_of::<PyEllipsis>() {
        return Ok(KeyPart::Rest);
    }
    if let Ok(slice) = key.cast::<PySlice>() {
        return Ok(KeyPart::Slice(slice.clone()));
    }
    if let Ok(array) = key.cast::<PyTensor>() {
        let tensor = array.get().tensor();
        if !tensor.device().is_same_device(device) {
            return Err(PyValueError::new_err(format!(
                "expected places on `{device}`, where the array lies, found them on `{}`\nhint: move them with `to_device`",
                tensor.device()
            )));
        }
        return parse_index_array(tensor);
    }
    let is_array =
        key.is_instance_of::<PyBool>() || key.is_instance_of::<PyList>() || key.hasattr("__dlpack__")?;
    if key.cast::<PyList>().is_ok_and(|list| list.is_empty()) {
        return Ok(KeyPart::Places(Tensor::from_slice::<i64>(device, &[0], &[]).or_raise()?));
    }
    if key.is_instance_of::<PyRange>() {
        return parse_part(device, &key.py().get_type::<PyList>().call1((key,))?);
    }
    if is_array {
        let read = crate::exchange::from_python::asarray(key, None, None, None)?.get().tensor();
        return parse_index_array(read.to_device(device).or_raise()?);
    }
    if let Some(truth @ PythonNumber::Bool(_)) = numpy_scalar(key)? {
        return parse_index_array(truth.to_tensor(device, Dtype::Bool)?);
    }
    let index = key.call_method0("__index__").map_err(|_| {
        let found = type_name(key);
        PyIndexError::new_err(format!(
            "expected whole numbers, slices, `...`, `None` or arrays of whole numbers or truths as an index, found {found}"
        ))
    })?;
    parse_index(&index)
}

fn parse_index<'py>(index: &Bound<'py, PyAny>) -> PyResult<KeyPart<'py>> {
    let place = index.extract();
    place
        .map(KeyPart::At)
        .map_err(|_| PyIndexError::new_err(format!("expected an index that int64 has, found {index}")))
}

fn parse_index_array<'py>(tensor: Tensor) -> PyResult<KeyPart<'py>> {
    match dtype_kind(tensor.dtype()) {
        Some(DtypeKind::Bool) => Ok(KeyPart::Mask(tensor)),
        Some(DtypeKind::Integer) => Ok(KeyPart::Places(tensor)),
        _ => Err(PyIndexError::new_err(format!(
            "expected whole numbers or truths as places, found {}",
            tensor.dtype().numpy_name()
        ))),
    }
}

/// Splits a key and completes it to the rank of the tensor: with whole slices at `...`, which separates parts even if it
/// stands for none, or at the end.
fn parse_key_parts<'py>(tensor: &Tensor, key: &Bound<'py, PyAny>) -> PyResult<Vec<KeyPart<'py>>> {
    let (rank, device) = (tensor.dims().len(), tensor.device());
    let mut parts = match key.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().map(|key| parse_part(device, &key)).collect::<PyResult<Vec<_>>>()?,
        Err(_) => vec![parse_part(device, key)?],
    };
    let taken: usize = parts.iter().map(KeyPart::dimension_count).sum();
    if taken > rank {
        return Err(PyIndexError::new_err(format!("expected at most {rank} indices, found {taken}")));
    }
    let mut rests =
        parts.iter().enumerate().filter(|(_, part)| matches!(part, KeyPart::Rest)).map(|(at, _)| at);
    let rest = rests.next();
    if rests.next().is_some() {
        return Err(PyIndexError::new_err("expected `...` at most once, found it twice"));
    }
    let fill = (taken..rank).map(|_| KeyPart::Whole);
    match rest {
        Some(at) => drop(parts.splice(at + 1..at + 1, fill)),
        None => parts.extend(fill),
    }
    Ok(parts)
}

/// A parsed key.
#[derive(Default)]
pub(super) struct IndexKey {
    /// The selections that a view can express.
    pub(super) picks: Vec<DimSelection>,
    /// Axes of that view to reverse, each with the step of its slice.
    pub(super) turned: Vec<(usize, u64)>,
    /// The index arrays to gather with, each with the first axis it applies to.
    pub(super) gathered: Vec<(usize, GatherIndices)>,
    /// True if other parts stand between the index arrays, masks and integers; an integer counts as an index array then.
    pub(super) is_apart: bool,
}

pub(super) enum GatherIndices {
    Mask(Tensor),
    Places(Tensor),
}

impl IndexKey {
    pub(super) fn new(tensor: &Tensor, key: &Bound<'_, PyAny>) -> PyResult<Self> {
        let dims = tensor.dims();
        let mut found = Self::default();
        // The next dimension of the tensor and the next axis of the view.
        let (mut own, mut axis) = (0, 0);
        let (mut has_places, mut has_ended) = (false, false);
        for part in parse_key_parts(tensor, key)? {
            let taken = part.dimension_count();
            if part.is_index_array() {
                found.is_apart |= has_ended;
                has_places = true;
            } else {
                has_ended = has_places;
            }
            let sizes = &dims[own..own + taken];
            own += taken;
            match part {
                KeyPart::Rest => {}
                KeyPart::New => {
                    found.picks.push(DimSelection::New);
                    axis += 1;
                }
                KeyPart::At(index) => {
                    found.picks.push(DimSelection::At(normalize_index(index, sizes[0], axis)?));
                }
                KeyPart::Whole => {
                    found.picks.push(DimSelection::Whole);
                    axis += 1;
                }
                KeyPart::Slice(slice) => {
                    let (pick, turned) = resolve_slice(&slice, sizes[0])?;
                    found.picks.push(pick);
                    found.turned.extend(turned.map(|step| (axis, step)));
                    axis += 1;
                }
                KeyPart::Mask(mask) => {
                    // An array without elements selects none, so a larger mask fits as well.
                    let fits = |(own, mask): (&i64, &i64)| own == mask || *mask == 0;
                    if !sizes.iter().zip(mask.dims()).all(fits) {
                        return Err(PyIndexError::new_err(format!(
                            "expected a mask of the shape {sizes:?}, found {:?}",
                            mask.dims()
                        )));
                    }
                    // A scalar mask adds a dimension of one element or none.
                    let mask = if taken == 0 { mask.unsqueeze(0).or_raise()? } else { mask };
                    let pick = if taken == 0 { DimSelection::New } else { DimSelection::Whole };
                    let rank = mask.dims().len();
                    found.picks.extend(std::iter::repeat_n(pick, rank));
                    found.gathered.push((axis, GatherIndices::Mask(mask)));
                    axis += rank;
                }
                KeyPart::Places(places) => {
                    found.picks.push(DimSelection::Whole);
                    found.gathered.push((axis, GatherIndices::Places(places)));
                    axis += 1;
                }
            }
        }
        Ok(found)
    }

    /// True if nothing has to be gathered or reversed.
    pub(super) fn is_view(&self) -> bool {
        self.turned.is_empty() && self.gathered.is_empty()
    }
}

/// Counts a negative index from the end.
pub(super) fn normalize_index(index: i64, size: i64, axis: usize) -> PyResult<u64> {
    let at = if index < 0 { index.saturating_add(size) } else { index };
    if (0..size).contains(&at) {
        return Ok(at.unsigned_abs());
    }
    if size == 0 {
        return Err(PyIndexError::new_err(format!(
            "expected an element in dimension {axis}, found none for the index {index}"
        )));
    }
    Err(PyIndexError::new_err(format!(
        "expected an index of -{size} to before {size} in dimension {axis}, found {index}"
    )))
}

/// Resolves a slice. For a negative step, selects the whole span from the last index to the first, and returns the step by
/// which it is then reversed.
fn resolve_slice(slice: &Bound<'_, PySlice>, size: i64) -> PyResult<(DimSelection, Option<u64>)> {
    let range = slice.indices(isize::try_from(size)?)?;
    let (count, step) = (range.slicelength as u64, range.step.unsigned_abs() as u64);
    if count == 0 {
        return Ok((DimSelection::Range { begin: 0, count: 0, step: 1 }, None));
    }
    let first = range.start as u64;
    let is_turned = range.step < 0 && count > 1;
    let turned = is_turned.then_some(step);
    let (begin, count, step) = if is_turned {
        (first - (count - 1) * step, (count - 1) * step + 1, 1)
    } else {
        (first, count, step)
    };
    let pick = if begin == 0 && count == size as u64 && step == 1 {
        DimSelection::Whole
    } else {
        DimSelection::Range { begin, count, step }
    };
    Ok((pick, turned))
}

pub(super) fn select_elements(py: Python<'_>, tensor: &Tensor, key: &IndexKey) -> PyResult<Tensor> {
    let mut seen = selection_view(py, tensor, &key.picks)?;
    if !key.turned.is_empty() {
        seen = reverse_axes(py, &seen, &key.turned)?;
    }
    let mut gathered = Vec::new();
    match &key.gathered[..] {
        [] => return Ok(seen),
        [(axis, GatherIndices::Mask(mask))]
            if has_mask_shape(mask, &seen, *axis) && (*axis == 0 || !key.is_apart) =>
        {
            return compress_masked(py, &seen, *axis, mask);
        }
        parts => {
            for (axis, part) in parts {
                match part {
                    GatherIndices::Mask(mask) => gathered.extend((*axis..).zip(nonzero_indices(py, mask)?)),
                    GatherIndices::Places(places) => {
                        gathered.push((*axis, cast_tensor(py, places, Dtype::I64)?));
                    }
                }
            }
        }
    }
    gather_elements(py, &seen, &gathered, key.is_apart)
}

/// True if the mask has the shape of the dimensions from `axis` on.
fn has_mask_shape(mask: &Tensor, tensor: &Tensor, axis: usize) -> bool {
    tensor.dims().get(axis..axis + mask.dims().len()) == Some(mask.dims())
}

/// Selects elements by a mask over the dimensions from `axis` on, which become one dimension.
fn compress_masked(py: Python<'_>, tensor: &Tensor, axis: usize, mask: &Tensor) -> PyResult<Tensor> {
    let dims = tensor.dims();
    let count = i64::try_from(mask.element_count())?;
    let joined = [&dims[..axis], &[count], &dims[axis + mask.dims().len()..]].concat();
    let data = reshape_view(py, &make_contiguous(py, tensor)?, &joined)?;
    let mask = reshape_view(py, &make_contiguous(py, mask)?, &[count])?;
    let along = Attributes::new().with_attribute("axis", Attribute::Int(axis as i64));
    single_output(call_named_op(py, "Compress", &[Some(&data), Some(&mask)], along, 1)?)
}

/// Copies a tensor unless it is contiguous.
pub(super) fn make_contiguous(py: Python<'_>, tensor: &Tensor) -> PyResult<Tensor> {
    if tensor.is_contiguous() {
        return Ok(tensor.clone());
    }
    let stream = tensor.device().default_stream().or_raise()?;
    crate::startup::shared_runtime(py)?.make_contiguous(tensor, stream).or_raise()
}

/// Of a smaller array, the call of the op takes longer than the copy.
pub(super) const MAX_COPIED_HERE: u64 = 1 << 10;

/// Reverses axes of elements in the memory of the host, each with a step; `None` for other elements.
fn reverse_here(tensor: &Tensor, axes: &[(usize, u64)]) -> PyResult<Option<Tensor>> {
    let (Some(bytes), Some(size)) = (tensor.host_bytes().or_raise()?, tensor.dtype().byte_size()) else {
        return Ok(None);
    };
    let (mut dims, mut strides, mut first) = (tensor.dims().to_vec(), tensor.strides(), 0);
    for (axis, step) in axes {
        let last = dims[*axis] - 1;
        first += last * strides[*axis];
        dims[*axis] = last / *step as i64 + 1;
        strides[*axis] *= -(*step as i64);
    }
    let size = size as usize;
    let mut made = Vec::with_capacity(bytes.len());
    let mut indices = vec![0; dims.len()];
    let mut place = first;
    let count: i64 = dims.iter().product();
    for _ in 0..count {
        let start = place as usize * size;
        made.extend_from_slice(&bytes[start..start + size]);
        for axis in (0..dims.len()).rev() {
            indices[axis] += 1;
            place += strides[axis];
            if indices[axis] < dims[axis] {
                break;
            }
            place -= strides[axis] * dims[axis];
            indices[axis] = 0;
        }
    }
    Tensor::from_bytes(tensor.device(), tensor.dtype(), &dims, &made).or_raise().map(Some)
}

/// Reverses axes, each with a step.
fn reverse_axes(py: Python<'_>, tensor: &Tensor, axes: &[(usize, u64)]) -> PyResult<Tensor> {
    static SLICE: StaticOp = StaticOp::new("Slice");
    if tensor.element_count() <= MAX_COPIED_HERE
        && !is_traced(tensor)
        && let Some(reversed) = reverse_here(tensor, axes)?
    {
        return Ok(reversed);
    }
    let device = super::host_memory_device(py)?;
    let list = |value: &dyn Fn(&(usize, u64)) -> i64| {
        if let [axis] = axes {
            return scalar_cache::single_element_list(value(axis), &device);
        }
        let values: Vec<i64> = axes.iter().map(value).collect();
        Tensor::from_slice(&device, &[axes.len() as i64], &values).or_raise()
    };
    // The op reads an end of -1 as the last index, so the end has to be out of range.
    let (start, stop) = (list(&|_| -1)?, list(&|_| i64::MIN)?);
    let (axes, steps) = (list(&|(axis, _)| *axis as i64)?, list(&|(_, step)| -(*step as i64))?);
    SLICE.call(py, &[tensor, &start, &stop, &axes, &steps])
}

/// The indices of true elements, one tensor for each dimension.
fn nonzero_indices(py: Python<'_>, mask: &Tensor) -> PyResult<Vec<Tensor>> {
    static NON_ZERO: StaticOp = StaticOp::new("NonZero");
    let all = NON_ZERO.call(py, &[mask])?;
    (0..mask.dims().len())
        .map(|axis| {
            let at = axis as u64;
            all.slice(0, at, at + 1, 1).and_then(|row| row.squeeze(0)).or_raise()
        })
        .collect()
}

/// Gathers by index arrays. Their dimensions come first if the key separates them, and replace the first of the indexed ones
/// otherwise.
fn gather_elements(
    py: Python<'_>,
    tensor: &Tensor,
    gathered: &[(usize, Tensor)],
    is_apart: bool,
) -> PyResult<Tensor> {
    static GATHER: StaticOp = StaticOp::new("GatherND");
    if let ([(axis, places)], false) = (gathered, is_apart) {
        let along = Attributes::new().with_attribute("axis", Attribute::Int(*axis as i64));
        return single_output(call_named_op(py, "Gather", &[Some(tensor), Some(places)], along, 1)?);
    }
    let mut shape = oarlock_core::Dims::new();
    for (_, places) in gathered {
        shape = oarlock_core::shape::broadcast_dims(&shape, places.dims()).or_raise()?;
    }
    let behind = [vec![DimSelection::Whole; shape.len()], vec![DimSelection::New]].concat();
    let columns: Vec<Tensor> = gathered
        .iter()
        .map(|(_, places)| selection_view(py, &expand_view(py, places, &shape)?, &behind))
        .collect::<PyResult<_>>()?;
    let columns: Vec<Option<&Tensor>> = columns.iter().map(Some).collect();
    let last = Attributes::new().with_attribute("axis", Attribute::Int(shape.len() as i64));
    let indices = single_output(call_named_op(py, "Concat", &columns, last, 1)?);
    let axes: Vec<usize> = gathered.iter().map(|(axis, _)| *axis).collect();
    let rank = tensor.dims().len();
    let others = (0..rank).filter(|axis| !axes.contains(axis));
    let order: Vec<usize> = axes.iter().copied().chain(others).collect();
    let made = GATHER.call(py, &[&transpose_view(py, tensor, &order)?, &indices?])?;
    let first = axes[0];
    if is_apart || first == 0 {
        return Ok(made);
    }
    let (group, after) = (shape.len(), shape.len() + first);
    let back = (group..after).chain(0..group).chain(after..made.dims().len()).collect::<Vec<_>>();
    transpose_view(py, &made, &back)
}
