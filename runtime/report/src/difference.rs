//! Measures how far the outputs of two runs differ.

use oarlock_core::Tensor;

use crate::scalar::TensorScalars;
use crate::statistics::scalar_to_number;

/// Largest absolute difference over the largest element of the second tensor; `None` if they cannot be compared.
pub fn largest_difference(ours: &Tensor, theirs: &Tensor) -> Result<Option<f64>, oarlock_core::Error> {
    if ours.dims() != theirs.dims() {
        return Ok(None);
    }
    Ok(relative_difference(
        &TensorScalars::from_tensor(ours)?,
        &TensorScalars::from_tensor(theirs)?,
        ours.element_count(),
    ))
}

fn relative_difference(ours: &TensorScalars<'_>, theirs: &TensorScalars<'_>, count: u64) -> Option<f64> {
    let (mut most, mut largest) = (0f64, 0f64);
    for index in 0..usize::try_from(count).ok()? {
        let (ours, theirs) =
            (scalar_to_number(&ours.scalar_at(index))?, scalar_to_number(&theirs.scalar_at(index))?);
        if ours.is_nan() && theirs.is_nan() || ours == theirs {
            continue;
        }
        // NaN or infinity on one side only makes the difference infinite.
        let apart = (ours - theirs).abs();
        most = most.max(if apart.is_nan() { f64::INFINITY } else { apart });
        largest = largest.max(theirs.abs());
    }
    Some(if most == 0.0 { 0.0 } else { most / largest.max(f64::MIN_POSITIVE) })
}

#[cfg(test)]
mod tests {
    use oarlock_core::Dtype;

    use super::*;

    #[test]
    fn outputs_differ_by_as_much_as_their_elements_do() {
        let floats = |numbers: &[f32]| {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
            TensorScalars::Bytes(Dtype::F32, bytes.into(), numbers.len())
        };
        let compare =
            |ours: &[f32], theirs: &[f32]| relative_difference(&floats(ours), &floats(theirs), 2).unwrap();
        assert_eq!(compare(&[1.0, f32::NAN], &[1.0, f32::NAN]), 0.0);
        assert_eq!(compare(&[1.0, 3.0], &[1.0, 2.0]), 0.5);
        assert!(compare(&[1.0, f32::NAN], &[1.0, 2.0]).is_infinite());
    }
}
