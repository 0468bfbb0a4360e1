//! Reference implementations in plain Rust, in `f64`.

use oarlock_sdk::Dtype;

pub(super) const FLOAT_DTYPES: [Dtype; 4] = [Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64];
pub(super) const INTEGER_DTYPES: [Dtype; 8] =
    [Dtype::I8, Dtype::U8, Dtype::I16, Dtype::U16, Dtype::I32, Dtype::U32, Dtype::I64, Dtype::U64];

/// Every index of a shape, in row-major order.
pub(super) fn all_indices(dims: &[i64]) -> Vec<Vec<i64>> {
    let count: i64 = dims.iter().product();
    let index = |mut flat: i64| {
        let mut index = vec![0; dims.len()];
        for axis in (0..dims.len()).rev() {
            index[axis] = flat % dims[axis];
            flat /= dims[axis];
        }
        index
    };
    (0..count).map(index).collect()
}

/// Flat position of an index in a contiguous operand that broadcasts.
pub(super) fn broadcast_position(dims: &[i64], index: &[i64]) -> usize {
    let missing = index.len() - dims.len();
    let own = dims.iter().zip(&index[missing..]);
    own.fold(0, |at, (dim, index)| at * *dim as usize + if *dim == 1 { 0 } else { *index as usize })
}

/// Applies a function to two operands that broadcast to `dims`.
pub(super) fn zip_broadcast(
    dims: &[i64],
    (a_dims, a): (&[i64], &[f64]),
    (b_dims, b): (&[i64], &[f64]),
    function: impl Fn(f64, f64) -> f64,
) -> Vec<f64> {
    all_indices(dims)
        .iter()
        .map(|index| function(a[broadcast_position(a_dims, index)], b[broadcast_position(b_dims, index)]))
        .collect()
}

/// The error function: its series near 0, its continued fraction far out.
pub(super) fn erf(x: f64) -> f64 {
    if x.abs() > 3.0 {
        let x2 = x * x;
        let fraction = (1..60).rev().fold(0.0, |tail, step| f64::from(step) / 2.0 / (x.abs() + tail));
        return x.signum() * (1.0 - (-x2).exp() / (std::f64::consts::PI.sqrt() * (x.abs() + fraction)));
    }
    let mut term = x;
    let mut sum = x;
    for step in 1..80 {
        term *= -x * x / f64::from(step);
        sum += term / f64::from(2 * step + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}
