//! The fast Fourier transform of any length, in 64 bits.
//!
//! A length is taken apart into its factors. Where a prime among them is large, the transform is written as a convolution
//! instead (Bluestein's algorithm), which a transform of a longer length without large primes does.

use std::f64::consts::PI;

use oarlock_sdk::{Complex, Result};

use crate::kernels::rows::room::{filled, room_for};

type Number = Complex<f64>;

/// Primes up to this one are summed up directly.
const LARGEST_FACTOR: usize = 31;

/// A transform of a length, forwards.
pub(super) struct Fourier {
    length: usize,
    /// The powers of the root of unity.
    roots: Vec<Number>,
    way: Way,
}

enum Way {
    Factors(Vec<usize>),
    Convolution(Box<Convolution>),
}

/// What the transform of an awkward length needs of a longer one.
struct Convolution {
    longer: Fourier,
    /// exp(-πi k² / length)
    chirp: Vec<Number>,
    /// The transform of what is convolved with.
    kernel: Vec<Number>,
}

impl Fourier {
    /// The transform of a length that is at most 2^62.
    pub(super) fn new(length: usize) -> Result<Self> {
        let factors = factors(length);
        if factors.iter().any(|factor| *factor > LARGEST_FACTOR) {
            let convolution = Box::new(Convolution::new(length)?);
            return Ok(Self { length, roots: Vec::new(), way: Way::Convolution(convolution) });
        }
        let mut roots = room_for(length)?;
        roots.extend((0..length).map(|index| at_angle(-2.0 * PI * index as f64 / length as f64)));
        Ok(Self { length, roots, way: Way::Factors(factors) })
    }

    /// How many numbers are transformed.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Transforms as many numbers as the length says. `room` is scratch memory.
    pub(super) fn forwards(&self, numbers: &mut [Number], room: &mut Vec<Number>) {
        assert_eq!(numbers.len(), self.length, "as many numbers as the transform is for");
        match &self.way {
            Way::Factors(factors) => {
                room.clear();
                room.extend_from_slice(numbers);
                self.split(factors, 1, room, numbers);
            }
            Way::Convolution(convolution) => convolution.transform(numbers, room),
        }
    }

    /// The inverse of [`Fourier::forwards`], with the factor 1 / length.
    pub(super) fn backwards(&self, numbers: &mut [Number], room: &mut Vec<Number>) {
        numbers.iter_mut().for_each(|number| *number = number.conj());
        self.forwards(numbers, room);
        let scale = 1.0 / self.length.max(1) as f64;
        numbers.iter_mut().for_each(|number| *number = number.conj() * scale);
    }

    /// Transforms every `step`-th number of the input: by the first factor into shorter transforms, which are then combined.
    fn split(&self, factors: &[usize], step: usize, input: &[Number], out: &mut [Number]) {
        let Some((factor, rest)) = factors.split_first() else {
            if let (Some(out), Some(number)) = (out.first_mut(), input.first()) {
                *out = *number;
            }
            return;
        };
        let part = out.len() / factor;
        for (index, out) in out.chunks_mut(part).enumerate() {
            self.split(rest, step * factor, &input[index * step..], out);
        }
        if *factor == 2 {
            let (first, second) = out.split_at_mut(part);
            for (index, (first, second)) in first.iter_mut().zip(second).enumerate() {
                let turned = *second * self.roots[index * step];
                (*first, *second) = (*first + turned, *first - turned);
            }
            return;
        }
        let mut terms = [Number::default(); LARGEST_FACTOR];
        for index in 0..part {
            for (which, term) in terms[..*factor].iter_mut().enumerate() {
                *term = out[which * part + index] * self.roots[which * index * step];
            }
            for which in 0..*factor {
                let turn = which * part * step;
                let turned = |(at, term): (usize, &Number)| term * self.roots[at * turn % self.length];
                out[which * part + index] = terms[..*factor].iter().enumerate().map(turned).sum();
            }
        }
    }
}

impl Convolution {
    fn new(length: usize) -> Result<Self> {
        let longer = Fourier::new((2 * length).next_power_of_two())?;
        // The square is taken modulo the period first, where it is still exact.
        let turn = |index: usize| (index as u128 * index as u128 % (2 * length as u128)) as f64;
        let mut chirp: Vec<Number> = room_for(length)?;
        chirp.extend((0..length).map(|index| at_angle(-PI * turn(index) / length as f64)));
        let mut kernel = filled(Number::default(), longer.length)?;
        for (index, number) in chirp.iter().enumerate() {
            kernel[index] = number.conj();
            kernel[(longer.length - index) % longer.length] = number.conj();
        }
        longer.forwards(&mut kernel, &mut Vec::new());
        Ok(Self { longer, chirp, kernel })
    }

    fn transform(&self, numbers: &mut [Number], room: &mut Vec<Number>) {
        let mut padded = vec![Number::default(); self.longer.length];
        for ((padded, number), chirp) in padded.iter_mut().zip(&*numbers).zip(&self.chirp) {
            *padded = number * chirp;
        }
        self.longer.forwards(&mut padded, room);
        padded.iter_mut().zip(&self.kernel).for_each(|(number, kernel)| *number *= kernel);
        self.longer.backwards(&mut padded, room);
        for ((number, padded), chirp) in numbers.iter_mut().zip(&padded).zip(&self.chirp) {
            *number = padded * chirp;
        }
    }
}

/// The number of size 1 at an angle.
fn at_angle(angle: f64) -> Number {
    Complex::new(angle.cos(), angle.sin())
}

/// The prime factors of a length.
fn factors(mut length: usize) -> Vec<usize> {
    let mut factors = Vec::new();
    let mut factor = 2;
    while length > 1 {
        if length.is_multiple_of(factor) {
            factors.push(factor);
            length /= factor;
        } else if factor * factor > length {
            factor = length;
        } else {
            factor += 1;
        }
    }
    factors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direct(numbers: &[Number]) -> Vec<Number> {
        let length = numbers.len();
        let root = |turn: usize| at_angle(-2.0 * PI * (turn % length) as f64 / length as f64);
        let sum = |bin: usize| numbers.iter().enumerate().map(|(at, number)| number * root(at * bin)).sum();
        (0..length).map(sum).collect()
    }

    #[test]
    fn transforms_of_all_lengths_are_the_sums_they_stand_for() {
        for length in (1..70).chain([97, 128, 210, 331, 400, 1009]) {
            let numbers: Vec<Number> = (0..length)
                .map(|index| Complex::new((index as f64).sin(), (index * index % 7) as f64))
                .collect();
            let fourier = Fourier::new(length).unwrap();
            let mut found = numbers.clone();
            let mut room = Vec::new();
            fourier.forwards(&mut found, &mut room);
            let is_close = |(a, b): (&Number, &Number)| (a - b).norm_sqr() < 1e-16 * (length * length) as f64;
            assert!(found.iter().zip(&direct(&numbers)).all(is_close), "{length}");
            fourier.backwards(&mut found, &mut room);
            assert!(found.iter().zip(&numbers).all(is_close), "{length} and back");
        }
    }
}
