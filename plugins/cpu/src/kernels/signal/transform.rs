//! `DFT`: the Fourier transform along one axis.

use oarlock_sdk::{
    Call, Complex, Error, Kernel, MemoryKind, Operand, OperandFlags, Result, dispatch, ensure,
};

use super::fourier::Fourier;
use super::{FLOATS, LENGTHS, optional_length};
use crate::device::Cpu;
use crate::kernels::rows::axis::Axis;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Float, Real};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Lines, in_parallel};

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let number = Operand::new(FLOATS).group(1).rank(2, u32::MAX);
    let row = |default_axis: i64| {
        kernel(
            "DFT",
            move |call| Settings::new(call, default_axis),
            |cpu, settings, operands| {
                let dtype = operands.call().input(0)?.dtype();
                dispatch!(dtype, floating_and_half + bf16, T => transform::<T>(cpu, settings, operands))
            },
        )
        .outputs([number.named("output")])
    };
    let input = number.named("input");
    let axis =
        Operand::new(LENGTHS).named("axis").rank(0, 1).on(MemoryKind::HOST).flags(OperandFlags::OPTIONAL);
    vec![
        row(1).since(17).until(19).inputs([input, optional_length("dft_length")]),
        row(-2).since(20).inputs([input, optional_length("dft_length"), axis]),
    ]
}

struct Settings {
    axis: Option<i64>,
    default_axis: i64,
    is_inverse: bool,
    is_onesided: bool,
}

impl Settings {
    fn new(call: &Call<'_>, default_axis: i64) -> Result<Self> {
        let is_set = |name| call.int(name).map(|value| value.unwrap_or(0) != 0);
        let (is_inverse, is_onesided) = (is_set("inverse")?, is_set("onesided")?);
        Ok(Self { axis: call.int("axis")?, default_axis, is_inverse, is_onesided })
    }
}

/// The one integer of an operand that may be left out.
pub(super) fn integer(operands: &Operands<'_, '_>, index: usize) -> Result<Option<i64>> {
    let Some(input) = operands.call().optional_input(index)? else { return Ok(None) };
    let found = match input.dtype() {
        oarlock_sdk::Dtype::I32 => {
            operands.read::<i32>(index)?.iter().map(|value| i64::from(*value)).collect()
        }
        _ => operands.read::<i64>(index)?.to_vec(),
    };
    match found[..] {
        [found] => Ok(Some(found)),
        _ => Err(Error::invalid_argument(format!("expected one integer as input {index}, found {found:?}"))),
    }
}

fn transform<T: Real>(cpu: &Cpu, settings: &Settings, operands: &Operands<'_, '_>) -> Result<()> {
    let call = operands.call();
    let (input, output) = (call.input(0)?, call.output(0)?);
    let dims = input.dims();
    let axis = integer(operands, 2)?.or(settings.axis).unwrap_or(settings.default_axis);
    let Some((parts, outer)) = dims.split_last() else {
        return Err(Error::invalid_argument("expected two dimensions or more, found a scalar"));
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
    let default = if is_real_output { (given - 1).saturating_mul(2) } else { given };
    let length = integer(operands, 1)?.unwrap_or(default);
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
    let (from, to) = (Axis::new(dims, counted)?, Axis::new(&expected, counted)?);
    let (input, output) = (operands.read::<T>(0)?, operands.write::<T>(0)?);
    if output.is_empty() {
        return Ok(());
    }
    let job = Job {
        fourier: Fourier::new(length as usize)?,
        parts: *parts as usize,
        from,
        to,
        is_inverse: settings.is_inverse,
        is_half: is_real_output,
    };
    if is_real_output {
        job.run::<T, 1>(cpu, input, output.as_chunks_mut().0);
    } else {
        job.run::<T, 2>(cpu, input, output.as_chunks_mut().0);
    }
    Ok(())
}

/// Transforms of all lines along an axis.
struct Job {
    fourier: Fourier,
    /// Elements of a number of the input.
    parts: usize,
    from: Axis,
    to: Axis,
    is_inverse: bool,
    /// Whether the input is the first half of spectra whose other half mirrors it.
    is_half: bool,
}

impl Job {
    fn run<T: Real, const PARTS: usize>(&self, cpu: &Cpu, input: &[T], output: &mut [[T; PARTS]]) {
        let length = self.fourier.length();
        let inner = self.from.inner / self.parts;
        let read = self.from.length.min(if self.is_half { length / 2 + 1 } else { length });
        let lines = self.to.outer * inner;
        let outputs = Lines::new(output, self.to.length, inner);
        in_parallel(cpu, lines, grain(length * 16), outputs, |_, mut outputs| {
            let (mut numbers, mut room) = (Vec::new(), Vec::new());
            for (line, _) in outputs.groups(1) {
                let start = (line / inner * self.from.length * inner + line % inner) * self.parts;
                numbers.clear();
                numbers.resize(length, Complex::default());
                // Lines without elements begin nowhere, and are all zeros.
                let elements = input.get(start..).unwrap_or_default();
                let elements = elements.chunks(self.parts).step_by(inner).take(read);
                for (number, parts) in numbers.iter_mut().zip(elements) {
                    let part = |part: usize| parts.get(part).map_or(0.0, |part: &T| part.float().to_f64());
                    *number = Complex::new(part(0), part(1));
                }
                if self.is_half {
                    mirror(&mut numbers);
                }
                if self.is_inverse {
                    self.fourier.backwards(&mut numbers, &mut room);
                } else {
                    self.fourier.forwards(&mut numbers, &mut room);
                }
                for (place, number) in numbers[..self.to.length].iter().enumerate() {
                    let parts = [number.re, number.im].map(|part| T::of_float(T::Float::of(part)));
                    outputs.across(line, 1, place)[0].copy_from_slice(&parts[..PARTS]);
                }
            }
        });
    }
}

/// Completes the spectrum of a real signal, of which the first half is there.
fn mirror(numbers: &mut [Complex<f64>]) {
    let length = numbers.len();
    for index in 0..=length / 2 {
        let other = (length - index) % length;
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

    use crate::kernels::rows::checking::{check, refusal};
    use crate::testing::{Array, Attribute};

    #[test]
    fn half_a_spectrum_becomes_the_signal_it_came_from() {
        let signal = Array::of(&[1, 5, 1], &[1f32, 2., -3., 0.5, 4.]);
        let onesided = [("onesided", Attribute::Int(1))];
        let spectrum: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[1, 3, 2]))];
        let inputs = [Some(&signal), None, None];
        let found = crate::testing::run("DFT", 20, &onesided, &inputs, &spectrum).unwrap();
        let both = [("onesided", Attribute::Int(1)), ("inverse", Attribute::Int(1))];
        let length = Array::of(&[], &[5i64]);
        check("DFT", 20, &both, &[found[0].as_ref(), Some(&length), None], &[signal]);
    }

    #[test]
    fn signals_are_cut_or_filled_up_to_the_length_of_the_transform() {
        let signal = Array::of(&[1, 3, 1], &[1f64, 2., 3.]);
        for (length, expected) in
            [(2i64, vec![3f64, 0., -1., 0.]), (4, vec![6., 0., -2., -2., 2., 0., -2., 2.])]
        {
            let expected = Array::of(&[1, length, 2], &expected);
            let length = Array::of(&[1], &[length]);
            check("DFT", 17, &[], &[Some(&signal), Some(&length)], &[expected]);
        }
    }

    #[test]
    fn a_signal_without_elements_is_filled_with_zeros() {
        let (signal, length) = (Array::of::<f64>(&[0, 2, 2], &[]), Array::of(&[], &[3i64]));
        let axis = Array::of(&[], &[0i64]);
        let zeros = Array::of(&[3, 2, 2], &[0f64; 12]);
        check("DFT", 20, &[], &[Some(&signal), Some(&length), Some(&axis)], &[zeros]);
    }

    #[test]
    fn the_axis_of_the_parts_and_hostile_lengths_are_refused() {
        let signal = Array::of(&[1, 3, 1], &[1f64, 2., 3.]);
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F64, &[1, 3, 2]))];
        for axis in [2, -1, i64::MIN] {
            let axis = Array::of(&[], &[axis]);
            let message = refusal("DFT", 20, &[], &[Some(&signal), None, Some(&axis)], &outputs);
            assert!(message.contains("an axis before the last"), "{message}");
        }
        for length in [0, -1, i64::MAX] {
            let length = Array::of(&[], &[length]);
            refusal("DFT", 20, &[], &[Some(&signal), Some(&length), None], &outputs);
        }
    }
}
