//! `SkipLayerNormalization` of the domain `oarlock`: a sum and its normalization over the last axis, while each row is in L1.

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::with_isa;
use oarlock_sdk::{Dtype, Kernel, KernelFlags, OperandFlags, OperandSpec, Result, ensure};

use super::moments::{inverse_deviation, mean_and_variance};

pub(super) fn skip_layer_norm_kernels() -> Vec<Kernel<Cpu>> {
    let float =
        |name| OperandSpec::new(oarlock_sdk::dtype_set(&[Dtype::F32])).with_dtype_group(1).with_name(name);
    let optional = OperandFlags::OPTIONAL;
    let epsilon = |call: &oarlock_sdk::KernelCall<'_>| {
        Ok(call.float_attribute("epsilon")?.unwrap_or(f64::from(1e-5f32)) as f32)
    };
    let skip = operand_kernel("SkipLayerNormalization", epsilon, |cpu, epsilon, operands| {
        run_skip_layer_norm(cpu, *epsilon, operands)
    })
    .with_domain(OARLOCK_DOMAIN)
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([
        float("X").with_rank(1, u32::MAX),
        float("Skip"),
        float("Scale").with_rank(1, 1),
        float("B").with_rank(1, 1).with_flags(optional),
        float("Bias").with_rank(1, 1).with_flags(optional),
    ])
    .with_outputs([float("Y"), float("Sum").with_flags(optional)]);
    vec![skip]
}

fn run_skip_layer_norm(cpu: &Cpu, epsilon: f32, operands: &KernelOperands<'_, '_>) -> Result<()> {
    let call = operands.call();
    let x = call.input(0)?;
    operands.expect_dims(&call.input(1)?, "Skip", x.dims())?;
    operands.expect_dims(&call.output(0)?, "Y", x.dims())?;
    if let Some(sum) = call.optional_output(1)? {
        operands.expect_dims(&sum, "Sum", x.dims())?;
    }
    let length = x.dims().last().map_or(1, |length| *length as usize);
    let (scale, shift, bias) = (
        operands.read_input::<f32>(2)?,
        operands.read_optional_input::<f32>(3)?,
        operands.read_optional_input::<f32>(4)?,
    );
    for found in [Some(scale), shift, bias].into_iter().flatten() {
        ensure!(
            found.len() == length,
            invalid_argument,
            "expected Scale, B and Bias of {length} elements, found {}",
            found.len()
        );
    }
    let (x, skip) = (operands.read_input::<f32>(0)?, operands.read_input::<f32>(1)?);
    let (y, sums) = (operands.write_output::<f32>(0)?, operands.write_optional_output::<f32>(1)?);
    // Rows without elements may be too many to visit.
    let count = x.len().checked_div(length).unwrap_or(0);
    if count == 0 {
        return Ok(());
    }
    let outputs = (OutputRows::new(y, length), sums.map(|sums| OutputRows::new(sums, length)));
    parallel_for_parts(cpu, count, grain_for(length), outputs, |begin, (y, mut sums)| {
        with_isa!(cpu.isa(), || {
            for (row, y) in y.chunks_exact_mut(length).enumerate() {
                let range = (begin + row) * length..(begin + row + 1) * length;
                // If the sum is no output, it is kept in the memory of the result.
                add_skip(y, &x[range.clone()], &skip[range], bias);
                if let Some(sums) = &mut sums {
                    // Before the normalization, which is in place.
                    sums[row * length..][..length].copy_from_slice(y);
                }
                let (mean, variance) = mean_and_variance(y);
                let factor = inverse_deviation(variance, epsilon);
                normalize_row(y, (mean, factor), scale, shift);
            }
        });
    });
    Ok(())
}

#[inline(always)]
fn add_skip(y: &mut [f32], x: &[f32], skip: &[f32], bias: Option<&[f32]>) {
    let triples = y.iter_mut().zip(x).zip(skip);
    match bias {
        Some(bias) => triples.zip(bias).for_each(|(((y, x), skip), bias)| *y = *x + *skip + *bias),
        None => triples.for_each(|((y, x), skip)| *y = *x + *skip),
    }
}

#[inline(always)]
fn normalize_row(y: &mut [f32], (mean, factor): (f32, f32), scale: &[f32], shift: Option<&[f32]>) {
    let pairs = y.iter_mut().zip(scale);
    match shift {
        Some(shift) => {
            pairs.zip(shift).for_each(|((y, scale), shift)| *y = (*y - mean) * factor * *scale + *shift);
        }
        None => pairs.for_each(|(y, scale)| *y = (*y - mean) * factor * *scale),
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    const OP: &str = "oarlock:SkipLayerNormalization";

    fn test_numbers(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|index| ((index * 7919 + seed * 104_729) % 2003) as f32 / 500.0 - 2.0).collect()
    }

    #[test]
    fn a_sum_is_normalized_row_by_row() {
        for (rows, length) in [(1, 1), (3, 5), (40, 768), (7, 1000), (0, 4)] {
            let (x, skip) = (test_numbers(rows * length, 1), test_numbers(rows * length, 2));
            let [scale, shift, bias] = [3, 4, 5].map(|seed| test_numbers(length, seed));
            for (has_shift, has_bias) in [(true, true), (true, false), (false, true), (false, false)] {
                let sum: Vec<f32> = (0..rows * length)
                    .map(|at| x[at] + skip[at] + if has_bias { bias[at % length] } else { 0.0 })
                    .collect();
                let mut y = Vec::new();
                for row in sum.chunks_exact(length) {
                    let mean = row.iter().map(|x| f64::from(*x)).sum::<f64>() / length as f64;
                    let distance = |x: &f32| f64::from(*x) - mean;
                    let variance = row.iter().map(|x| distance(x).powi(2)).sum::<f64>() / length as f64;
                    for (at, x) in row.iter().enumerate() {
                        let scaled = distance(x) / (variance + 1e-3).sqrt() * f64::from(scale[at]);
                        y.push((scaled + if has_shift { f64::from(shift[at]) } else { 0.0 }) as f32);
                    }
                }
                let dims = [1, rows as i64, length as i64];
                let (x, skip) = (TestArray::from_values(&dims, &x), TestArray::from_values(&dims, &skip));
                let [scale, shift, bias] =
                    [&scale, &shift, &bias].map(|values| TestArray::from_values(&dims[2..], values));
                let (shift, bias) = (has_shift.then_some(&shift), has_bias.then_some(&bias));
                let inputs = [Some(&x), Some(&skip), Some(&scale), shift, bias];
                let epsilon = [("epsilon", TestAttribute::Float(1e-3))];
                let expected = [TestArray::from_values(&dims, &y), TestArray::from_values(&dims, &sum)];
                KERNELS.check_kernel(OP, 1, &epsilon, &inputs, &expected);
                KERNELS.check_kernel(OP, 1, &epsilon, &inputs, &expected[..1]);
            }
        }
    }

    #[test]
    fn a_row_with_what_is_no_number_is_none_and_the_others_are() {
        let (x, zeros) = (
            TestArray::from_values(&[2, 2], &[f32::NAN, 1.0, 1.0, -1.0]),
            TestArray::from_values(&[2, 2], &[0f32; 4]),
        );
        let inputs = [Some(&x), Some(&zeros), Some(&TestArray::from_values(&[2], &[1f32; 2])), None, None];
        let one = 1.0 / 1.00001f32.sqrt();
        KERNELS.check_kernel(
            OP,
            1,
            &[],
            &inputs,
            &[TestArray::from_values(&[2, 2], &[f32::NAN, f32::NAN, one, -one])],
        );
    }

    #[test]
    fn operands_that_do_not_fit_are_refused() {
        let (x, scale) =
            (TestArray::from_values(&[2, 3], &[1f32; 6]), TestArray::from_values(&[2], &[1f32; 2]));
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[2, 3]))];
        let message =
            KERNELS.refusal_message(OP, 1, &[], &[Some(&x), Some(&x), Some(&scale), None, None], &outputs);
        assert!(message.contains("of 3 elements, found 2"), "{message}");
        let message = KERNELS.refusal_message(
            OP,
            1,
            &[],
            &[Some(&x), Some(&scale), Some(&scale), None, None],
            &outputs,
        );
        assert!(message.contains("`Skip` of shape [2, 3], found [2]"), "{message}");
    }
}
