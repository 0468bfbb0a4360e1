//! `STFT`: the Fourier transforms of windows that slide over signals.

use oarlock_cpu_base::compute_element::FloatElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, try_parallel_for_parts};
use oarlock_sdk::{Complex, Kernel, OperandFlags, OperandSpec, PluginError, Result, dispatch, ensure};

use super::dft::optional_integer;
use super::fourier::FourierTransform;
use super::{SIGNAL_FLOATS, length_operand, optional_length_operand};

pub(super) fn stft_kernels() -> Vec<Kernel<Cpu>> {
    let number = OperandSpec::new(SIGNAL_FLOATS).with_dtype_group(1);
    let plan = |call: &oarlock_sdk::KernelCall<'_>| Ok(call.int_attribute("onesided")?.unwrap_or(1) != 0);
    let kernel = operand_kernel("STFT", plan, |cpu, is_onesided, operands| {
        let dtype = operands.call().input(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16, T => transform_windows::<T>(cpu, *is_onesided, operands))
    });
    let inputs = [
        number.with_name("signal").with_rank(2, 3),
        length_operand("frame_step"),
        number.with_name("window").with_rank(1, 1).with_flags(OperandFlags::OPTIONAL),
        optional_length_operand("frame_length"),
    ];
    vec![
        kernel
            .since_version(17)
            .with_inputs(inputs)
            .with_outputs([number.with_name("output").with_rank(4, 4)]),
    ]
}

fn transform_windows<T: FloatElement>(
    cpu: &Cpu,
    is_onesided: bool,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let call = operands.call();
    let (signal, output) = (call.input(0)?, call.output(0)?);
    let (signals, samples, parts) = match *signal.dims() {
        [signals, samples] => (signals, samples, 1),
        [signals, samples, parts] => (signals, samples, parts),
        ref other => {
            return Err(PluginError::invalid_argument(format!(
                "expected 2 or 3 dimensions, found {other:?}"
            )));
        }
    };
    let window = operands.read_optional_input::<T>(2)?;
    let window: Option<Vec<f64>> =
        window.map(|window| window.iter().map(|weight| weight.to_float().to_f64()).collect());
    let step = optional_integer(operands, 1)?.unwrap_or(0);
    let stated = optional_integer(operands, 3)?.or(window.as_ref().map(|window| window.len() as i64));
    let length = stated.unwrap_or(samples);
    ensure!(
        step > 0
            && (1..=samples).contains(&length)
            && (1..=2).contains(&parts)
            && window.as_ref().is_none_or(|window| window.len() as i64 == length),
        invalid_argument,
        "expected frames of a window's length that step forwards over {samples} samples, found {length} samples and a step \
         of {step}"
    );
    // Only frames that fit as a whole: ONNX does not pad the signal.
    let frames = (samples - length) / step + 1;
    let bins = if is_onesided { length / 2 + 1 } else { length };
    operands.expect_dims(&output, "output", &[signals, frames, bins, 2])?;
    let (signal, output) = (operands.read_input::<T>(0)?, operands.write_output::<T>(0)?);
    if output.is_empty() {
        return Ok(());
    }
    let (parts, step, length) = (parts as usize, step as usize, length as usize);
    let (frames, samples) = (frames as usize, samples as usize);
    // One transform for all frames: making one takes longer than using it.
    let fourier = FourierTransform::new(cpu, length)?;
    let width = 2 * bins as usize;
    let rows = output.len() / width;
    try_parallel_for_parts(
        cpu,
        rows,
        grain_for(length * 16),
        OutputRows::new(output, width),
        |first, output| {
            let (mut numbers, mut room) = (Vec::new(), Vec::new());
            for (index, output) in output.chunks_mut(width).enumerate() {
                let (which, frame) = ((first + index) / frames, (first + index) % frames);
                let frame = &signal[(which * samples + frame * step) * parts..][..length * parts];
                numbers.clear();
                for (at, sample) in frame.chunks(parts).enumerate() {
                    let weight = window.as_ref().map_or(1.0, |window| window[at]);
                    let part = |part: usize| {
                        sample.get(part).map_or(0.0, |part: &T| part.to_float().to_f64()) * weight
                    };
                    numbers.push(Complex::new(part(0), part(1)));
                }
                fourier.transform_forward(cpu, &mut numbers, &mut room)?;
                // A one-sided output has no room for the mirrored half, and the loop ends there.
                for (output, number) in output.chunks_mut(2).zip(&numbers) {
                    output.copy_from_slice(
                        &[number.re, number.im].map(|part| T::from_float(T::Float::from_f64(part))),
                    );
                }
            }
            Ok(())
        },
    )
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::TestArray;

    #[test]
    fn a_real_signal_may_lack_its_last_dimension() {
        let samples: Vec<f32> = (0..24).map(|n| (n as f32 * 0.7).sin()).collect();
        let [step, frame] = [4i64, 6].map(|size| TestArray::from_values(&[], &[size]));
        let transforms = |dims: &[i64]| {
            let signal = TestArray::from_values(dims, &samples);
            let inputs = [Some(&signal), Some(&step), None, Some(&frame)];
            let result =
                KERNELS.run_kernel("STFT", 17, &[], &inputs, &[Some((Dtype::F32, &[2, 2, 4, 2]))]).unwrap();
            result.into_iter().next().flatten().unwrap().values::<f32>()
        };
        let first = transforms(&[2, 12]);
        assert_eq!(first, transforms(&[2, 12, 1]));
        // The lowest frequency of the first frame is the sum of its samples.
        assert!((first[0] - samples[..6].iter().sum::<f32>()).abs() < 1e-5, "{first:?}");
    }
}
