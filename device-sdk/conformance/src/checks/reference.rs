//! Reference results of element-wise ops, computed in the simplest way.
//!
//! Elements are small numbers that every dtype here represents exactly, so `f64` serves as the reference for all.

use oarlock_abi::Dtype;

/// An op that the suite can check: its name and its number of inputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReferenceOp {
    pub(super) name: &'static str,
    pub(super) inputs: usize,
    compute: fn(&[f64]) -> f64,
}

pub(super) const REFERENCE_OPS: &[ReferenceOp] = &[
    ReferenceOp { name: "Add", inputs: 2, compute: |x| x[0] + x[1] },
    ReferenceOp { name: "Sub", inputs: 2, compute: |x| x[0] - x[1] },
    ReferenceOp { name: "Mul", inputs: 2, compute: |x| x[0] * x[1] },
    ReferenceOp { name: "Div", inputs: 2, compute: |x| x[0] / x[1] },
    ReferenceOp { name: "Neg", inputs: 1, compute: |x| -x[0] },
    ReferenceOp { name: "Abs", inputs: 1, compute: |x| x[0].abs() },
    ReferenceOp { name: "Relu", inputs: 1, compute: |x| x[0].max(0.0) },
];

pub(super) const REFERENCE_DTYPES: [Dtype; 4] = [Dtype::F32, Dtype::F64, Dtype::I32, Dtype::I64];

fn is_integer(dtype: Dtype) -> bool {
    [Dtype::I32, Dtype::I64].contains(&dtype)
}

/// Input values: integers for integer dtypes, multiples of a quarter for others, never 0.
pub(super) fn sample_values(dtype: Dtype, seed: usize, count: usize) -> Vec<f64> {
    let step = if is_integer(dtype) { 1.0 } else { 0.25 };
    let value = |index: usize| match (index * 7 + seed * 5) % 23 {
        11 => 12.0 * step,
        number => (number as f64 - 11.0) * step,
    };
    (0..count).map(value).collect()
}

/// Encodes values as elements of a dtype, as they are stored in device memory.
pub(super) fn encode_values(dtype: Dtype, values: &[f64]) -> Vec<u8> {
    let one = |value: &f64| match dtype {
        Dtype::F32 => (*value as f32).to_ne_bytes().to_vec(),
        Dtype::F64 => value.to_ne_bytes().to_vec(),
        Dtype::I32 => (*value as i32).to_ne_bytes().to_vec(),
        _ => (*value as i64).to_ne_bytes().to_vec(),
    };
    values.iter().flat_map(one).collect()
}

/// Decodes elements from device memory.
pub(super) fn decode_values(dtype: Dtype, bytes: &[u8]) -> Vec<f64> {
    let (quads, octets) = (bytes.as_chunks::<4>().0.iter(), bytes.as_chunks::<8>().0.iter());
    match dtype {
        Dtype::F32 => quads.map(|bytes| f32::from_ne_bytes(*bytes).into()).collect(),
        Dtype::F64 => octets.map(|bytes| f64::from_ne_bytes(*bytes)).collect(),
        Dtype::I32 => quads.map(|bytes| i32::from_ne_bytes(*bytes).into()).collect(),
        _ => octets.map(|bytes| i64::from_ne_bytes(*bytes) as f64).collect(),
    }
}

pub(super) fn element_count(dims: &[i64]) -> usize {
    dims.iter().map(|dim| *dim as usize).product()
}

/// Computes the op on inputs with their shapes, broadcast to the shape of the output.
pub(super) fn compute_reference(
    op: ReferenceOp,
    dtype: Dtype,
    inputs: &[(&[i64], &[f64])],
    output: &[i64],
) -> Vec<f64> {
    let element = |index| {
        let operands: Vec<f64> =
            inputs.iter().map(|(dims, values)| values[broadcast_index(index, dims, output)]).collect();
        let value = (op.compute)(&operands);
        if is_integer(dtype) { value.trunc() } else { value }
    };
    (0..element_count(output)).map(element).collect()
}

/// The index of the input element that is broadcast to element `index` of the output.
fn broadcast_index(mut index: usize, dims: &[i64], output: &[i64]) -> usize {
    let (mut place, mut step) = (0, 1);
    for axis in 1..=output.len() {
        let size = output[output.len() - axis] as usize;
        let at = index % size;
        index /= size;
        if let Some(dim) = dims.len().checked_sub(axis).map(|at| dims[at] as usize) {
            place += if dim == 1 { 0 } else { at * step };
            step *= dim;
        }
    }
    place
}

/// The first element that differs. Devices may round a division to a neighboring value.
pub(super) fn first_difference(dtype: Dtype, expected: &[f64], found: &[f64]) -> Option<usize> {
    let tolerance = match dtype {
        Dtype::F32 => 4.0 * f64::from(f32::EPSILON),
        Dtype::F64 => 4.0 * f64::EPSILON,
        _ => 0.0,
    };
    let is_close = |expected: f64, found: f64| (expected - found).abs() <= tolerance * expected.abs();
    expected.iter().zip(found).position(|(expected, found)| !is_close(*expected, *found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_repeated_along_dimensions_of_one_and_missing_ones() {
        let values: Vec<f64> = (0..3).map(f64::from).collect();
        let sums = compute_reference(
            REFERENCE_OPS[0],
            Dtype::F32,
            &[(&[2, 1], &[10.0, 20.0]), (&[3], &values)],
            &[2, 3],
        );
        assert_eq!(sums, [10.0, 11.0, 12.0, 20.0, 21.0, 22.0]);
    }

    #[test]
    fn integers_are_cut_and_elements_survive_each_dtype() {
        assert_eq!(
            compute_reference(REFERENCE_OPS[3], Dtype::I32, &[(&[1], &[7.0]), (&[1], &[-2.0])], &[1]),
            [-3.0]
        );
        for dtype in REFERENCE_DTYPES {
            let values = sample_values(dtype, 3, 50);
            assert!(!values.contains(&0.0));
            assert_eq!(decode_values(dtype, &encode_values(dtype, &values)), values);
        }
    }

    #[test]
    fn a_difference_of_one_bit_is_a_rounding_and_of_more_is_not() {
        let one_up = f64::from(1.0f32.next_up());
        assert_eq!(first_difference(Dtype::F32, &[1.0, 1.0], &[1.0, one_up]), None);
        assert_eq!(first_difference(Dtype::F32, &[1.0, 1.0], &[1.0, 1.001]), Some(1));
        assert_eq!(first_difference(Dtype::I32, &[1.0], &[2.0]), Some(0));
        assert_eq!(first_difference(Dtype::F32, &[1.0], &[f64::NAN]), Some(0));
    }
}
