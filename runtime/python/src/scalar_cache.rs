//! Caches scalars of recent expressions as tensors. Creating one takes as long as a small op, and programs use few different
//! numbers.
//!
//! Cached tensors must never leave this module's callers: another library could write to them.

use std::sync::Mutex;

use oarlock_core::{Device, Dtype, Tensor};
use pyo3::prelude::*;

use crate::error::OrRaise as _;
use crate::python_number::PythonNumber;

const MAX_CACHED_NUMBERS: usize = 8;

struct ScalarCache {
    /// Each number's bytes, padded with zeros, and its tensor.
    numbers: Vec<([u8; 16], Tensor)>,
    /// Index that is replaced next.
    oldest: usize,
}

static SCALAR_CACHE: Mutex<ScalarCache> = Mutex::new(ScalarCache { numbers: Vec::new(), oldest: 0 });

/// A number as a scalar tensor, only to be read by an op and then dropped.
pub(crate) fn scalar_tensor(number: PythonNumber, device: &Device, dtype: Dtype) -> PyResult<Tensor> {
    cached_tensor(number, device, dtype, &[])
}

/// An integer as a list of one, the form of an op's index argument; likewise only for ops.
pub(crate) fn single_element_list(number: i64, device: &Device) -> PyResult<Tensor> {
    cached_tensor(PythonNumber::Integer(number.into()), device, Dtype::I64, &[1])
}

fn cached_tensor(number: PythonNumber, device: &Device, dtype: Dtype, dims: &[i64]) -> PyResult<Tensor> {
    let mut element = Vec::with_capacity(16);
    number.write_element(dtype, &mut element)?;
    let mut bytes = [0; 16];
    bytes[..element.len()].copy_from_slice(&element);
    // If another thread holds the cache, make a new tensor instead of waiting.
    if let Ok(recent) = SCALAR_CACHE.try_lock() {
        let is_it = |(known, tensor): &&([u8; 16], Tensor)| {
            *known == bytes
                && tensor.dtype() == dtype
                && tensor.dims() == dims
                && tensor.device().is_same_device(device)
        };
        if let Some((_, tensor)) = recent.numbers.iter().find(is_it) {
            return Ok(tensor.clone());
        }
    }
    let result = Tensor::from_bytes(device, dtype, dims, &element).or_raise()?;
    if let Ok(mut recent) = SCALAR_CACHE.try_lock() {
        let kept = (bytes, result.clone());
        let oldest = recent.oldest;
        match recent.numbers.get_mut(oldest) {
            Some(place) => *place = kept,
            None => recent.numbers.push(kept),
        }
        recent.oldest = (oldest + 1) % MAX_CACHED_NUMBERS;
    }
    Ok(result)
}
