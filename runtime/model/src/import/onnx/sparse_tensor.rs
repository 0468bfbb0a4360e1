//! Converts sparse tensors to dense ones.

use oarlock_core::{Constant, Dtype, Result, shape};

use super::budget::ImportBudget;
use super::external_data::ExternalFiles;
use super::messages::{SparseTensorProto, TensorProto};
use super::tensor;
use crate::graph::Weight;
use crate::import::error_location::{ErrorLocation as _, invalid_model};

/// Returns all elements of a sparse tensor, zeros included.
pub(super) fn densify_weight(
    sparse: &SparseTensorProto,
    external: &mut ExternalFiles,
    budget: &mut ImportBudget,
) -> Result<Weight> {
    let mut part = |part: &Option<Box<TensorProto>>, name: &str| {
        let proto =
            part.as_ref().ok_or_else(|| invalid_model(format!("`{name}` of a sparse tensor"), "none"))?;
        match tensor::import_weight(proto, external).with_location(|| format!("`{name}`"))? {
            Weight::Numbers(numbers) => Ok(numbers),
            Weight::Texts { .. } => Err(invalid_model("numbers in a sparse tensor", "texts")),
        }
    };
    let (values, indices) = (part(&sparse.values, "values")?, part(&sparse.indices, "indices")?);
    let dtype = values.dtype();
    let Some(width) = dtype.byte_size().and_then(|bytes| usize::try_from(bytes).ok()) else {
        return Err(invalid_model("a sparse tensor of elements of whole bytes", dtype));
    };
    let count = values.size_in_bytes() / width;
    let (dims, rank) = (&sparse.dims, sparse.dims.len());
    let size = shape::size_in_bytes(dtype, dims)?;
    budget.spend_dense_bytes(size, values.size_in_bytes())?;
    let places = dense_indices(&indices, count, dims)?;
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
    for (place, value) in places.into_iter().zip(values.bytes()?.chunks_exact(width)) {
        match bytes.get_mut(place * width..(place + 1) * width) {
            Some(to) => to.copy_from_slice(value),
            None => return Err(invalid_model(format!("indices into {rank} dimensions {dims:?}"), place)),
        }
    }
    Ok(Weight::Numbers(Constant::new(dtype, dims, bytes)?))
}

/// Positions of the values in the dense tensor. Indices may be linear, or one for each dimension.
fn dense_indices(indices: &Constant, count: usize, dims: &[i64]) -> Result<Vec<usize>> {
    if indices.dtype() != Dtype::I64 {
        return Err(invalid_model("`indices` of i64", indices.dtype()));
    }
    let (elements, list) = (shape::element_count(dims)?, indices.to_ints()?);
    let outside = |index: i64| invalid_model(format!("`indices` in the shape {dims:?}"), index);
    let inside = |index: i64, size: u64| match u64::try_from(index) {
        Ok(index) if index < size => Ok(index as usize),
        _ => Err(outside(index)),
    };
    let (given, rank) = (indices.dims(), dims.len());
    match given {
        [listed] if *listed as usize == count => list.iter().map(|index| inside(*index, elements)).collect(),
        [listed, each] if *listed as usize == count && *each as usize == rank && rank > 0 => {
            let place = |index: &[i64]| {
                let steps = shape::contiguous_strides(dims);
                let axes = index.iter().zip(dims).zip(&steps);
                axes.map(|((index, size), step)| Ok(inside(*index, *size as u64)? * *step as usize)).sum()
            };
            list.chunks_exact(rank).map(place).collect()
        }
        _ => Err(invalid_model(
            format!("`indices` of shape [{count}] or [{count}, {rank}]"),
            format!("{given:?}"),
        )),
    }
}
