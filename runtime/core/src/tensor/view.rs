//! Views: tensors with other shapes or strides on the same elements.

use super::{Tensor, TensorLayout};
use crate::{Dims, Dtype, Error, Result, shape};

impl Tensor {
    /// Permutes the dimensions: dimension `order[i]` becomes dimension `i`.
    pub fn transpose(&self, order: &[usize]) -> Result<Self> {
        let mut is_seen = vec![false; self.0.layout.dims.len()];
        let is_order = order.len() == self.0.layout.dims.len()
            && order
                .iter()
                .all(|axis| is_seen.get_mut(*axis).is_some_and(|seen| !std::mem::replace(seen, true)));
        if !is_order {
            let rank = self.0.layout.dims.len();
            return Err(Error::invalid_argument(format!(
                "expected each number below {rank} once as the order of dimensions, found {order:?}"
            )));
        }
        let strides = self.addressable_strides()?;
        let dims = order.iter().map(|axis| self.0.layout.dims[*axis]).collect();
        self.view_with_strides(dims, order.iter().map(|axis| strides[*axis]).collect(), 0)
    }

    /// Selects every `step`th index of one dimension, from `begin` up to but not including `end`.
    pub fn slice(&self, axis: i64, begin: u64, end: u64, step: u64) -> Result<Self> {
        let axis = shape::resolve_axis(axis, self.0.layout.dims.len())?;
        let size = self.0.layout.dims[axis].unsigned_abs();
        if begin > end || end > size || step == 0 {
            return Err(Error::out_of_range(format!(
                "expected a range of 0..{size} and a step of at least 1, found {begin}..{end} and {step}"
            )));
        }
        let mut strides = self.addressable_strides()?;
        let (mut dims, first) =
            (self.0.layout.dims.clone(), strides[axis].unsigned_abs().saturating_mul(begin));
        dims[axis] = signed_size((end - begin).div_ceil(step))?;
        strides[axis] = strides[axis].saturating_mul(signed_size(step)?);
        self.view_with_strides(dims, strides, first)
    }

    /// Broadcasts to a larger shape: dimensions of size 1 can become any size, and new dimensions may be added in front.
    pub fn expand(&self, dims: &[i64]) -> Result<Self> {
        let fits = shape::broadcast_dims(&self.0.layout.dims, dims)?.as_slice() == dims;
        if !fits {
            let found = &self.0.layout.dims;
            return Err(Error::invalid_argument(format!(
                "expected a shape that repeats to {dims:?}, found {found:?}"
            )));
        }
        shape::size_in_bytes(self.0.layout.dtype, dims)?;
        let (old, new) = (self.addressable_strides()?, dims.len() - self.0.layout.dims.len());
        let stride = |at: usize| {
            let own = at.checked_sub(new)?;
            (self.0.layout.dims[own] != 1).then_some(old[own])
        };
        let strides: Dims = (0..dims.len()).map(|at| stride(at).unwrap_or(0)).collect();
        self.view_with_strides(dims.into(), strides, 0)
    }

    /// The same elements in another shape. Fails for a tensor that is not contiguous, since its elements would have
    /// to move.
    pub fn reshape(&self, dims: &[i64]) -> Result<Self> {
        let (expected, found) = (self.element_count(), shape::element_count(dims)?);
        if expected != found {
            return Err(Error::invalid_argument(format!(
                "expected a shape of {expected} elements, found {dims:?} of {found}"
            )));
        }
        if !self.is_contiguous() {
            return Err(Error::precondition_not_met("expected a contiguous tensor, found one with strides")
                .with_advice("make it contiguous with the op `Identity` first"));
        }
        Ok(self.view_at(TensorLayout::contiguous(self.device(), self.0.layout.dtype, dims)?, 0))
    }

    /// Removes a dimension of size 1.
    pub fn squeeze(&self, axis: i64) -> Result<Self> {
        let axis = shape::resolve_axis(axis, self.0.layout.dims.len())?;
        let (mut dims, mut strides) = (self.0.layout.dims.clone(), self.strides());
        if dims[axis] != 1 {
            let found = dims[axis];
            return Err(Error::invalid_argument(format!(
                "expected a dimension of 1 to leave out, found {found} in {dims:?}"
            )));
        }
        dims.remove(axis);
        strides.remove(axis);
        self.view_with_strides(dims, strides, 0)
    }

    /// Inserts a dimension of size 1 before dimension `axis`.
    pub fn unsqueeze(&self, axis: usize) -> Result<Self> {
        let (mut dims, mut strides) = (self.0.layout.dims.clone(), self.strides());
        if axis > dims.len() {
            let rank = dims.len();
            return Err(Error::out_of_range(format!("expected a place of at most {rank}, found {axis}")));
        }
        let stride = match dims.get(axis) {
            Some(size) => (*size).max(1).saturating_mul(strides[axis]),
            None => 1,
        };
        dims.insert(axis, 1);
        strides.insert(axis, stride);
        self.view_with_strides(dims, strides, 0)
    }

    /// Views complex numbers as pairs of real ones, in a new last dimension of size 2.
    pub fn view_as_real(&self) -> Result<Self> {
        let part = match self.0.layout.dtype {
            Dtype::C64 => Dtype::F32,
            Dtype::C128 => Dtype::F64,
            other => return Err(Error::invalid_argument(format!("expected complex numbers, found {other}"))),
        };
        let (mut dims, mut strides) = (self.0.layout.dims.clone(), self.strides());
        strides.iter_mut().for_each(|stride| *stride = stride.saturating_mul(2));
        dims.push(2);
        strides.push(1);
        Ok(self.view_at(TensorLayout::strided(self.device(), part, dims, strides)?, 0))
    }

    /// Views pairs of real numbers, adjacent in the last dimension, as complex ones.
    pub fn view_as_complex(&self) -> Result<Self> {
        let whole = match self.0.layout.dtype {
            Dtype::F32 => Dtype::C64,
            Dtype::F64 => Dtype::C128,
            other => return Err(Error::invalid_argument(format!("expected f32 or f64, found {other}"))),
        };
        let (mut dims, mut strides) = (self.0.layout.dims.clone(), self.strides());
        let is_pair = dims.pop() == Some(2) && strides.pop() == Some(1);
        // The stride of a dimension of size 1 is never used.
        let is_whole = |(size, stride): (&i64, &i64)| *size == 1 || stride % 2 == 0;
        if !is_pair || !dims.iter().zip(&strides).all(is_whole) {
            let found = &self.0.layout.dims;
            return Err(Error::invalid_argument(format!(
                "expected pairs of parts side by side in the last dimension, found {found:?}"
            )));
        }
        strides.iter_mut().for_each(|stride| *stride /= 2);
        Ok(self.view_at(TensorLayout::strided(self.device(), whole, dims, strides)?, 0))
    }

    /// The strides; fails for packed dtypes, whose elements have no addresses of their own.
    fn addressable_strides(&self) -> Result<Dims> {
        if self.0.layout.dtype.is_packed() {
            let dtype = self.0.layout.dtype;
            return Err(Error::unimplemented(format!(
                "expected elements of whole bytes, found {dtype}, of which several share a byte"
            )));
        }
        Ok(self.strides())
    }

    pub(super) fn view_with_strides(&self, dims: Dims, strides: Dims, first: u64) -> Result<Self> {
        let dtype = self.0.layout.dtype;
        // An empty tensor has no first element.
        let first = if dims.contains(&0) { 0 } else { first };
        let skipped = first * dtype.byte_size().unwrap_or(1);
        Ok(self.view_at(TensorLayout::strided(self.device(), dtype, dims, strides)?, skipped))
    }
}

fn signed_size(size: u64) -> Result<i64> {
    i64::try_from(size).map_err(|_| Error::out_of_range(format!("expected a size below 2^63, found {size}")))
}
