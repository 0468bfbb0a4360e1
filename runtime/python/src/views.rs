//! Views of tensors. A view of a traced tensor is the result of an op, because a graph has no views.

use oarlock_core::{Attribute, Attributes, DimSelection, Tensor};
use pyo3::prelude::*;

use crate::error::OrRaise as _;
use crate::op_call::{call_named_op, call_oarlock_op};
use crate::startup::host_memory_device;
use crate::tensor::single_output;
use crate::trace::is_traced;

/// The tensor with its dimensions in another order.
pub(crate) fn transpose_view(py: Python<'_>, tensor: &Tensor, order: &[usize]) -> PyResult<Tensor> {
    if !is_traced(tensor) {
        return tensor.transpose(order).or_raise();
    }
    let order = order.iter().map(|axis| *axis as i64).collect();
    let attributes = Attributes::new().with_attribute("perm", Attribute::Ints(order));
    single_output(call_named_op(py, "Transpose", &[Some(tensor)], attributes, 1)?)
}

/// A contiguous tensor in another shape.
pub(crate) fn reshape_view(py: Python<'_>, tensor: &Tensor, dims: &[i64]) -> PyResult<Tensor> {
    if !is_traced(tensor) {
        return tensor.reshape(dims).or_raise();
    }
    let attributes = Attributes::new().with_attribute("allowzero", Attribute::Int(1));
    let dims = list_tensor(py, dims)?;
    single_output(call_named_op(py, "Reshape", &[Some(tensor), Some(&dims)], attributes, 1)?)
}

/// The tensor repeated to a shape.
pub(crate) fn expand_view(py: Python<'_>, tensor: &Tensor, dims: &[i64]) -> PyResult<Tensor> {
    if !is_traced(tensor) {
        return tensor.expand(dims).or_raise();
    }
    let dims = list_tensor(py, dims)?;
    single_output(call_named_op(py, "Expand", &[Some(tensor), Some(&dims)], Attributes::new(), 1)?)
}

/// A part of the tensor.
pub(crate) fn selection_view(py: Python<'_>, tensor: &Tensor, picks: &[DimSelection]) -> PyResult<Tensor> {
    if !is_traced(tensor) {
        return tensor.select_view(picks).or_raise();
    }
    let dims = tensor.selected_dims(picks).or_raise()?;
    let [mut starts, mut ends, mut axes, mut steps] = [const { Vec::new() }; 4];
    let consumed = picks.iter().filter(|pick| !matches!(pick, DimSelection::New));
    for (axis, pick) in consumed.enumerate() {
        let (begin, end, step) = match *pick {
            DimSelection::At(place) => (place, place + 1, 1),
            DimSelection::Range { begin, count, step } => (begin, begin + (count * step).max(1), step),
            DimSelection::Whole | DimSelection::New => continue,
        };
        let is_empty = matches!(pick, DimSelection::Range { count: 0, .. });
        starts.push(begin as i64);
        ends.push(if is_empty { begin } else { end } as i64);
        axes.push(axis as i64);
        steps.push(step as i64);
    }
    if axes.is_empty() {
        return reshape_view(py, tensor, &dims);
    }
    let lists = [starts, ends, axes, steps].map(|list| list_tensor(py, &list));
    let [starts, ends, axes, steps] = lists;
    let inputs = [Some(tensor), Some(&starts?), Some(&ends?), Some(&axes?), Some(&steps?)];
    let part = single_output(call_named_op(py, "Slice", &inputs, Attributes::new(), 1)?)?;
    if part.dims() == dims.as_slice() { Ok(part) } else { reshape_view(py, &part, &dims) }
}

/// Complex numbers as pairs of their parts, in a new last dimension.
pub(crate) fn real_view(py: Python<'_>, tensor: &Tensor) -> PyResult<Tensor> {
    if !is_traced(tensor) {
        return tensor.view_as_real().or_raise();
    }
    let dims = [tensor.dims(), &[1]].concat();
    let part = |name| {
        let part = single_output(call_oarlock_op(py, name, &[Some(tensor)], Attributes::new())?)?;
        reshape_view(py, &part, &dims)
    };
    let along = Attributes::new().with_attribute("axis", Attribute::Int(-1));
    single_output(call_named_op(py, "Concat", &[Some(&part("Real")?), Some(&part("Imag")?)], along, 1)?)
}

/// Pairs of parts in the last dimension as complex numbers.
pub(crate) fn complex_view(py: Python<'_>, tensor: &Tensor) -> PyResult<Tensor> {
    if !is_traced(tensor) {
        return tensor.view_as_complex().or_raise();
    }
    let part = |place| {
        let mut picks = vec![DimSelection::Whole; tensor.dims().len()];
        if let Some(last) = picks.last_mut() {
            *last = DimSelection::At(place);
        }
        selection_view(py, tensor, &picks)
    };
    let parts = [part(0)?, part(1)?];
    let [real, imaginary] = parts.each_ref().map(Some);
    single_output(call_oarlock_op(py, "Complex", &[real, imaginary], Attributes::new())?)
}

fn list_tensor(py: Python<'_>, numbers: &[i64]) -> PyResult<Tensor> {
    Tensor::from_slice(&host_memory_device(py)?, &[numbers.len() as i64], numbers).or_raise()
}
