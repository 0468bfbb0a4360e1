//! Numbers that stood beside arrays lately, as arrays: to make one takes as long as a small op, and programs have few of them.
//!
//! Nobody else may come by these: another library could write into them.

use std::sync::Mutex;

use oarlock_core::{Device, Dtype, Tensor};
use pyo3::prelude::*;

use super::operand::PythonNumber;
use crate::error::OrRaise as _;

/// How many are kept.
const MAX_CACHED_NUMBERS: usize = 8;

struct ScalarCache {
    /// Each with its bytes, of which those behind an element are 0.
    numbers: Vec<([u8; 16], Tensor)>,
    /// Which one the next takes the place of.
    oldest: usize,
}

static SCALAR_CACHE: Mutex<ScalarCache> = Mutex::new(ScalarCache { numbers: Vec::new(), oldest: 0 });

/// A number as an array without dimensions, to be read by an op and then dropped.
pub(super) fn scalar_tensor(number: PythonNumber, device: &Device, dtype: Dtype) -> PyResult<Tensor> {
    cached_tensor(number, device, dtype, &[])
}

/// A number as a list of one, which is how ops are told of places, likewise.
pub(crate) fn single_element_list(number: i64, device: &Device) -> PyResult<Tensor> {
    cached_tensor(PythonNumber::Integer(number.into()), device, Dtype::I64, &[1])
}

fn cached_tensor(number: PythonNumber, device: &Device, dtype: Dtype, dims: &[i64]) -> PyResult<Tensor> {
    let mut element = Vec::with_capacity(16);
    number.write_element(dtype, &mut element)?;
    let mut bytes = [0; 16];
    bytes[..element.len()].copy_from_slice(&element);
    // Another thread that is here makes its own.
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
    let made = Tensor::from_bytes(device, dtype, dims, &element).or_raise()?;
    if let Ok(mut recent) = SCALAR_CACHE.try_lock() {
        let kept = (bytes, made.clone());
        let oldest = recent.oldest;
        match recent.numbers.get_mut(oldest) {
            Some(place) => *place = kept,
            None => recent.numbers.push(kept),
        }
        recent.oldest = (oldest + 1) % MAX_CACHED_NUMBERS;
    }
    Ok(made)
}
