//! `DFT`: the Fourier transform along one axis.

use std::sync::{Arc, Mutex, PoisonError};

use oarlock_cpu_base::compute_element::FloatElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::axis::AxisLayout;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{AxisLines, try_parallel_for_parts};
use oarlock_cpu_base::rows::scratch::try_reserve_vec;
use oarlock_sdk::{
    Complex, Kernel, KernelCall, MemoryKind, OperandFlags, OperandSpec, PluginError, Result, dispatch, ensure,
};

use super::fourier::FourierTransform;
use super::real_fourier::RealFourierTransform;
use super::roots_of_unity::swap_components;
use super::{LENGTH_DTYPES, SIGNAL_FLOATS, optional_length_operand};

pub(super) fn dft_kernels() -> Vec<Kernel<Cpu>> {
    let number = OperandSpec::new(SIGNAL_FLOATS).with_dtype_group(1).with_rank(2, u32::MAX);
    let row = |default_axis: i64| {
        operand_kernel(
            "DFT",
            move |call| DftSettings::new(call, default_axis),
            |cpu, settings, operands| {
                let dtype = operands.call().input(0)?.dtype();
                dispatch!(dtype, floating_and_half + bf16, T => run_dft::<T>(cpu, settings, operands))
            },
        )
        .with_outputs([number.with_name("output")])
    };
    let input = number.with_name("input");
    let axis = OperandSpec::new(LENGTH_DTYPES)
        .with_name("axis")
        .with_rank(0, 1)
        .in_memory(MemoryKind::HOST)
        .with_flags(OperandFlags::OPTIONAL);
    vec![
        row(1)
            .since_version(17)
            .until_version(19)
            .with_inputs([input, optional_length_operand("dft_length")]),
        row(-2).since_version(20).with_inputs([input, optional_length_operand("dft_length"), axis]),
    ]
}

struct DftSettings {
    axis: Option<i64>,
    default_axis: i64,
    is_inverse: bool,
    is_onesided: bool,
    /// The last transform: making one takes longer than using it.
    known: Mutex<Option<Arc<LineTransform>>>,
}

impl DftSettings {
    fn new(call: &KernelCall<'_>, default_axis: i64) -> Result<Self> {
        let is_set = |name| call.int_attribute(name).map(|value| value.unwrap_or(0) != 0);
        let (is_inverse, is_onesided) = (is_set("inverse")?, is_set("onesided")?);
        Ok(Self {
            axis: call.int_attribute("axis")?,
            default_axis,
            is_inverse,
            is_onesided,
            known: Mutex::default(),
        })
    }
}

/// The integer in an operand that may be left out.
pub(super) fn optional_integer(operands: &KernelOperands<'_, '_>, index: usize) -> Result<Option<i64>> {
    let Some(input) = operands.call().optional_input(index)? else { return Ok(None) };
    let found = match input.dtype() {
        oarlock_sdk::Dtype::I32 => {
            operands.read_input::<i32>(index)?.iter().map(|value| i64::from(*value)).collect()
        }
        _ => operands.read_input::<i64>(index)?.to_vec(),
    };
    match found[..] {
        [found] => Ok(Some(found)),
        _ => Err(PluginError::invalid_argument(format!(
            "expected one integer as input {index}, found {found:?}"
        ))),
    }
}

fn run_dft<T: FloatElement>(
    cpu: &Cpu,
    settings: &DftSettings,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let call = operands.call();
    let (input, output) = (call.input(0)?, call.output(0)?);
    let dims = input.dims();
    // Up to version 19 the axis is an attribute, later an operand.
    let axis = optional_integer(operands, 2)?.or(settings.axis).unwrap_or(settings.default_axis);
    let Some((parts, outer)) = dims.split_last() else {
        return Err(PluginError::invalid_argument("expected two dimensions or more, found a scalar"));
    };
    let counted = if axis < 0 { axis.saturating_add(dims.len() as i64) } else { axis };
    ensure!(
        (0..outer.len() as i64).contains(&counted),
        out_of_range,
        "expected an axis before the last of {} dimensions, found {axis}",
        dims.len()
    );
    let place = counted as usize;
    let is_real_output = settings.is_inverse && settings.is_onesided;
    let given = dims[place];
    // A one-sided spectrum of an even length has one number more than half of it. NumPy's `irfft` assumes the same.
    let default = if is_real_output { (given - 1).saturating_mul(2) } else { given };
    let length = optional_integer(operands, 1)?.unwrap_or(default);
    ensure!(
        (1..=i64::from(i32::MAX)).contains(&length) && (1..=2).contains(parts),
        invalid_argument,
        "expected a transform of at least one real or complex number, found a length of {length} for {dims:?}"
    );
    let kept = if settings.is_onesided && !settings.is_inverse { length / 2 + 1 } else { length };
    let mut expected = dims.to_vec();
    expected[place] = kept;
    expected[outer.len()] = if is_real_output { 1 } else { 2 };
    operands.expect_dims(&output, "output", &expected)?;
    let (from, to) = (AxisLayout::new(dims, counted)?, AxisLayout::new(&expected, counted)?);
    let (input, output) = (operands.read_input::<T>(0)?, operands.write_output::<T>(0)?);
    if output.is_empty() {
        return Ok(());
    }
    let is_real_input = *parts == 1 && !settings.is_inverse;
    let is_halved = length % 2 == 0 && (is_real_input || is_real_output);
    let transform = settings.line_transform(cpu, length as usize, is_halved)?;
    let job =
        DftTask { transform: &transform, parts: *parts as usize, from, to, is_inverse: settings.is_inverse };
    if is_real_output {
        job.run_lines::<T, 1>(cpu, input, output.as_chunks_mut().0)
    } else {
        job.run_lines::<T, 2>(cpu, input, output.as_chunks_mut().0)
    }
}

enum LineTransform {
    Whole(FourierTransform),
    Halved(RealFourierTransform),
}

impl LineTransform {
    fn length(&self) -> usize {
        match self {
            Self::Whole(fourier) => fourier.length(),
            Self::Halved(halved) => halved.length(),
        }
    }
}

impl DftSettings {
    fn line_transform(&self, cpu: &Cpu, length: usize, is_halved: bool) -> Result<Arc<LineTransform>> {
        let fits = |transform: &&Arc<LineTransform>| {
            transform.length() == length && matches!(***transform, LineTransform::Halved(_)) == is_halved
        };
        // The lock is not held while a transform is made: two calls may both make one, and the later one stays. A lock that a panic
        // poisoned guards a whole value, because it is only ever replaced.
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(transform) = known.as_ref().filter(fits) {
            return Ok(transform.clone());
        }
        let transform = Arc::new(if is_halved {
            LineTransform::Halved(RealFourierTransform::new(cpu, length)?)
        } else {
            LineTransform::Whole(FourierTransform::new(cpu, length)?)
        });
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(transform.clone());
        Ok(transform)
    }
}

struct DftTask<'a> {
    transform: &'a LineTransform,
    /// The number of elements per number of the input.
    parts: usize,
    from: AxisLayout,
    to: AxisLayout,
    is_inverse: bool,
}

impl DftTask<'_> {
    fn run_lines<T: FloatElement, const PARTS: usize>(
        &self,
        cpu: &Cpu,
        input: &[T],
        output: &mut [[T; PARTS]],
    ) -> Result<()> {
        let length = self.transform.length();
        let inner = self.from.inner / self.parts;
        let lines = self.to.outer * inner;
        let outputs = AxisLines::new(output, self.to.length, inner);
        try_parallel_for_parts(cpu, lines, grain_for(length * 16), outputs, |_, mut outputs| {
            let mut work = DftScratch::default();
            for (line, _) in outputs.line_groups(1) {
                let start = (line / inner * self.from.length * inner + line % inner) * self.parts;
                // Lines without elements begin nowhere, and are all zeros.
                let elements = input.get(start..).unwrap_or_default();
                // If the line is shorter than the transform, the zeros behind it stay.
                let numbers = self.reset_line(&mut work, PARTS == 1)?;
                self.read_line(elements, inner, numbers);
                self.transform_line(cpu, &mut work, PARTS == 1)?;
                let is_paired = PARTS == 1 && matches!(self.transform, LineTransform::Halved(_));
                write_line(outputs.line_elements(line), &work.numbers, is_paired);
            }
            Ok(())
        })
    }

    /// Zeroes the memory for a line.
    fn reset_line<'w>(
        &self,
        work: &'w mut DftScratch,
        is_real_output: bool,
    ) -> Result<&'w mut [Complex<f64>]> {
        let length = self.transform.length();
        // Transforms of real numbers work on half as many complex ones, and spectra have one more number than that.
        let (count, read) = match self.transform {
            LineTransform::Halved(_) if is_real_output => (length / 2 + 1, length / 2 + 1),
            LineTransform::Halved(_) => (length / 2, length / 2),
            // Only one half of a one-sided spectrum is read; the other is its mirror image.
            LineTransform::Whole(_) if is_real_output => (length, length / 2 + 1),
            LineTransform::Whole(_) => (length, length),
        };
        work.numbers.clear();
        if work.numbers.capacity() < count {
            work.numbers = try_reserve_vec(count)?;
        }
        work.numbers.resize(count, Complex::default());
        Ok(&mut work.numbers[..read])
    }

    /// Reads the numbers of a line, as many as there is room for. Real ones are read in pairs if the transform takes them so.
    fn read_line<T: FloatElement>(&self, elements: &[T], inner: usize, numbers: &mut [Complex<f64>]) {
        let of = |part: &T| part.to_float().to_f64();
        let count = self.from.length;
        if self.parts == 2 {
            let from = elements.as_chunks::<2>().0.iter().step_by(inner).take(count);
            for (number, [re, im]) in numbers.iter_mut().zip(from) {
                *number = Complex::new(of(re), of(im));
            }
            return;
        }
        // Pairs are those of a real signal. A spectrum of real numbers has one in each bin.
        let is_paired = !self.is_inverse && matches!(self.transform, LineTransform::Halved(_));
        let mut from = elements.iter().step_by(inner).take(count);
        for number in numbers {
            let Some(re) = from.next() else { return };
            number.re = of(re);
            if is_paired && let Some(im) = from.next() {
                number.im = of(im);
            }
        }
    }

    /// Transforms a line in place. The inverse is the transform of numbers with swapped components.
    fn transform_line(&self, cpu: &Cpu, work: &mut DftScratch, is_real_output: bool) -> Result<()> {
        let DftScratch { numbers, others, room } = work;
        // Only the inverse is scaled, as in NumPy.
        let scale = 1.0 / self.transform.length() as f64;
        match self.transform {
            LineTransform::Whole(fourier) if self.is_inverse => {
                if is_real_output {
                    mirror_spectrum(numbers);
                }
                numbers.iter_mut().for_each(|number| *number = swap_components(*number));
                fourier.transform_forward(cpu, numbers, room)?;
                numbers.iter_mut().for_each(|number| *number = swap_components(*number) * scale);
            }
            LineTransform::Whole(fourier) => fourier.transform_forward(cpu, numbers, room)?,
            LineTransform::Halved(halved) if self.is_inverse => {
                halved.transform_backward(cpu, numbers, others, room)?;
                others.iter_mut().for_each(|number| *number *= scale);
                std::mem::swap(numbers, others);
            }
            LineTransform::Halved(halved) => {
                halved.transform_forward(cpu, numbers, room)?;
                halved.spectrum(numbers, self.to.length, others)?;
                std::mem::swap(numbers, others);
            }
        }
        Ok(())
    }
}

/// Memory that lines reuse, one after the other.
#[derive(Default)]
struct DftScratch {
    numbers: Vec<Complex<f64>>,
    others: Vec<Complex<f64>>,
    room: Vec<Complex<f64>>,
}

/// Writes a line of numbers; if they are paired, the parts of each are two real numbers.
fn write_line<'a, T: FloatElement, const PARTS: usize>(
    mut out: impl Iterator<Item = &'a mut [T; PARTS]>,
    numbers: &[Complex<f64>],
    is_paired: bool,
) {
    for number in numbers {
        let parts = [number.re, number.im].map(|part| T::from_float(T::Float::from_f64(part)));
        let Some(first) = out.next() else { return };
        first.copy_from_slice(&parts[..PARTS]);
        if is_paired && let Some(second) = out.next() {
            second[0] = parts[1];
        }
    }
}

/// Completes the spectrum of a real signal from its first half.
fn mirror_spectrum(numbers: &mut [Complex<f64>]) {
    let length = numbers.len();
    for index in 0..=length / 2 {
        let other = (length - index) % length;
        // What is its own mirror image is real.
        if other == index {
            numbers[index].im = 0.0;
        } else {
            numbers[other] = numbers[index].conj();
        }
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn half_a_spectrum_becomes_the_signal_it_came_from() {
        let signal = TestArray::from_values(&[1, 5, 1], &[1f32, 2., -3., 0.5, 4.]);
        let onesided = [("onesided", TestAttribute::Int(1))];
        let spectrum: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[1, 3, 2]))];
        let inputs = [Some(&signal), None, None];
        let found = crate::KERNELS.run_kernel("DFT", 20, &onesided, &inputs, &spectrum).unwrap();
        let both = [("onesided", TestAttribute::Int(1)), ("inverse", TestAttribute::Int(1))];
        let length = TestArray::from_values(&[], &[5i64]);
        KERNELS.check_kernel("DFT", 20, &both, &[found[0].as_ref(), Some(&length), None], &[signal]);
    }

    /// The definition of the transform, on numbers as pairs.
    fn direct_dft(numbers: &[[f64; 2]], sign: f64) -> Vec<[f64; 2]> {
        let length = numbers.len();
        let roots: Vec<(f64, f64)> = (0..length)
            .map(|turn| (sign * 2.0 * std::f64::consts::PI * turn as f64 / length as f64).sin_cos())
            .collect();
        let sum = |bin: usize| {
            numbers.iter().enumerate().fold([0.0; 2], |sum, (at, [re, im])| {
                let (sine, cosine) = roots[at * bin % length];
                [sum[0] + re * cosine - im * sine, sum[1] + re * sine + im * cosine]
            })
        };
        (0..length).map(sum).collect()
    }

    fn is_close(found: &[f64], expected: &[f64], size: usize) -> bool {
        found.len() == expected.len()
            && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 2e-12 * size as f64)
    }

    #[test]
    fn transforms_of_all_lengths_are_the_sums_they_stand_for() {
        let lengths = (1..140).chain([210, 256, 289, 331, 400, 961, 1000, 1009, 1024, 1155, 2048]);
        for (length, isa) in lengths.zip(["scalar", "sse4.1", "avx2", "avx512"].into_iter().cycle()) {
            let complex: Vec<[f64; 2]> =
                (0..length).map(|at| [(at as f64).sin(), (at * at % 7) as f64 - 3.0]).collect();
            let real: Vec<[f64; 2]> = complex.iter().map(|[re, _]| [*re, 0.0]).collect();
            let (size, bins) = (length as i64, length as i64 / 2 + 1);
            let run = |attributes: &[&'static str], dims: &[i64], elements: &[f64], made: &[i64]| {
                let attributes: Vec<_> =
                    attributes.iter().map(|name| (*name, TestAttribute::Int(1))).collect();
                let inputs = [
                    Some(&TestArray::from_values(dims, elements)),
                    Some(&TestArray::from_values(&[], &[size])),
                    None,
                ];
                let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F64, made))];
                let found = KERNELS.run_with_isa(isa, "DFT", 20, &attributes, &inputs, &outputs).unwrap();
                found[0].as_ref().unwrap().values::<f64>()
            };
            let whole = [1, size, 2];
            let elements = complex.as_flattened();
            let spectrum = direct_dft(&complex, -1.0);
            assert!(
                is_close(&run(&[], &whole, elements, &whole), spectrum.as_flattened(), length),
                "{length}"
            );
            let mut back = direct_dft(&complex, 1.0);
            back.as_flattened_mut().iter_mut().for_each(|part| *part /= length as f64);
            let found = run(&["inverse"], &whole, elements, &whole);
            assert!(is_close(&found, back.as_flattened(), length), "{length} and back");
            let reals: Vec<f64> = real.iter().map(|[re, _]| *re).collect();
            let spectrum = direct_dft(&real, -1.0);
            let found = run(&[], &[1, size, 1], &reals, &whole);
            assert!(is_close(&found, spectrum.as_flattened(), length), "{length} real numbers");
            let mut half = run(&["onesided"], &[1, size, 1], &reals, &[1, bins, 2]);
            assert!(is_close(&half, spectrum[..bins as usize].as_flattened(), length), "half of {length}");
            // The imaginary parts of the ends do not matter.
            half[1] = 7.0;
            if length % 2 == 0 {
                *half.last_mut().unwrap() = 7.0;
            }
            let found = run(&["inverse", "onesided"], &[1, bins, 2], &half, &[1, size, 1]);
            assert!(is_close(&found, &reals, length), "half of {length} and back");
            // The spectrum of an even signal is real, and may come without imaginary parts.
            let even: Vec<f64> = (0..length).map(|at| reals[at] + reals[(length - at) % length]).collect();
            let half = run(&["onesided"], &[1, size, 1], &even, &[1, bins, 2]);
            let half: Vec<f64> = half.chunks(2).map(|number| number[0]).collect();
            let found = run(&["inverse", "onesided"], &[1, bins, 1], &half, &[1, size, 1]);
            assert!(is_close(&found, &even, length), "the real half of {length} and back");
        }
    }

    #[test]
    fn signals_are_cut_or_filled_up_to_the_length_of_the_transform() {
        let signal = TestArray::from_values(&[1, 3, 1], &[1f64, 2., 3.]);
        for (length, expected) in
            [(2i64, vec![3f64, 0., -1., 0.]), (4, vec![6., 0., -2., -2., 2., 0., -2., 2.])]
        {
            let expected = TestArray::from_values(&[1, length, 2], &expected);
            let length = TestArray::from_values(&[1], &[length]);
            KERNELS.check_kernel("DFT", 17, &[], &[Some(&signal), Some(&length)], &[expected]);
        }
    }

    #[test]
    fn a_signal_without_elements_is_filled_with_zeros() {
        let (signal, length) =
            (TestArray::from_values::<f64>(&[0, 2, 2], &[]), TestArray::from_values(&[], &[3i64]));
        let axis = TestArray::from_values(&[], &[0i64]);
        let zeros = TestArray::from_values(&[3, 2, 2], &[0f64; 12]);
        KERNELS.check_kernel("DFT", 20, &[], &[Some(&signal), Some(&length), Some(&axis)], &[zeros]);
    }

    #[test]
    fn the_axis_of_the_parts_and_hostile_lengths_are_refused() {
        let signal = TestArray::from_values(&[1, 3, 1], &[1f64, 2., 3.]);
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F64, &[1, 3, 2]))];
        for axis in [2, -1, i64::MIN] {
            let axis = TestArray::from_values(&[], &[axis]);
            let message =
                KERNELS.refusal_message("DFT", 20, &[], &[Some(&signal), None, Some(&axis)], &outputs);
            assert!(message.contains("an axis before the last"), "{message}");
        }
        for length in [0, -1, i64::MAX] {
            let length = TestArray::from_values(&[], &[length]);
            KERNELS.refusal_message("DFT", 20, &[], &[Some(&signal), Some(&length), None], &outputs);
        }
    }
}
