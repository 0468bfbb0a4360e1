//! Fourier transforms of eight columns that lie side by side, of a length without large primes. With eight lanes, every step is
//! the same arithmetic on vectors, however small or odd the length is.
//!
//! Each pass takes one factor off the length and writes where the next pass reads in order (Stockham's algorithm), so no
//! reordering is needed at the end.

use std::array::from_fn;

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::with_isa;

use super::roots_of_unity::{ComplexF64, root_of_unity};

/// Columns that are transformed at once: 8 `f64` are one zmm or two ymm registers.
pub(super) const FFT_LANES: usize = 8;

/// The largest factor of a length; Bluestein's algorithm handles lengths with larger primes.
pub(super) const LARGEST_FACTOR: usize = 31;

/// A row of the columns. Real and imaginary parts are apart, so that complex arithmetic needs no shuffles.
#[derive(Clone, Copy, Default)]
pub(super) struct ComplexLanes {
    pub(super) re: [f64; FFT_LANES],
    pub(super) im: [f64; FFT_LANES],
}

impl ComplexLanes {
    #[inline(always)]
    pub(super) fn times_number(self, number: ComplexF64) -> Self {
        Self {
            re: from_fn(|lane| self.re[lane] * number.re - self.im[lane] * number.im),
            im: from_fn(|lane| self.re[lane] * number.im + self.im[lane] * number.re),
        }
    }

    #[inline(always)]
    pub(super) fn times_lanes(self, other: &Self) -> Self {
        Self {
            re: from_fn(|lane| self.re[lane] * other.re[lane] - self.im[lane] * other.im[lane]),
            im: from_fn(|lane| self.re[lane] * other.im[lane] + self.im[lane] * other.re[lane]),
        }
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self {
            re: from_fn(|lane| self.re[lane] + other.re[lane]),
            im: from_fn(|lane| self.im[lane] + other.im[lane]),
        }
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        Self {
            re: from_fn(|lane| self.re[lane] - other.re[lane]),
            im: from_fn(|lane| self.im[lane] - other.im[lane]),
        }
    }

    /// `self` + `other` · `some`.
    #[inline(always)]
    fn plus_scaled(self, other: Self, some: f64) -> Self {
        Self {
            re: from_fn(|lane| self.re[lane] + other.re[lane] * some),
            im: from_fn(|lane| self.im[lane] + other.im[lane] * some),
        }
    }

    /// Times -i: rotated by a quarter turn to the right.
    #[inline(always)]
    fn times_minus_i(self) -> Self {
        Self { re: self.im, im: self.re.map(|part| -part) }
    }
}

/// A forward transform of columns of one length.
pub(super) struct ColumnTransform {
    factors: Vec<usize>,
    /// The powers of the root of unity.
    roots: Vec<ComplexF64>,
}

impl ColumnTransform {
    /// A transform of a length with these factors, none above [`LARGEST_FACTOR`].
    pub(super) fn new(factors: &[usize]) -> Self {
        let length: usize = factors.iter().product();
        // Two factors of 2 become one of 4: half as many passes over memory.
        let pairs = factors.iter().filter(|factor| **factor == 2).count();
        let others = factors.iter().copied().filter(|factor| *factor != 2);
        let fours = std::iter::repeat_n(4, pairs / 2);
        let factors = others.chain(fours).chain((pairs % 2 == 1).then_some(2)).collect();
        Self { factors, roots: (0..length).map(|turn| root_of_unity(turn, length)).collect() }
    }

    pub(super) fn length(&self) -> usize {
        self.roots.len()
    }

    /// Transforms rows, with scratch room for as many, and returns the results. Each row of them is multiplied by a row of
    /// `turns`, if there are any, and by one factor for all lanes.
    pub(super) fn transform<'a>(
        &self,
        isa: Isa,
        rows: &'a mut [ComplexLanes],
        room: &'a mut [ComplexLanes],
        turns: &[ComplexLanes],
        turn: &dyn Fn(usize) -> ComplexF64,
    ) -> &'a mut [ComplexLanes] {
        with_isa!(isa, || {
            let (mut from, mut to) = (&mut *rows, &mut *room);
            // The number of rows between those of one of the remaining transforms.
            let mut step = 1;
            for factor in &self.factors {
                match factor {
                    2 => self.radix_two(step, from, to),
                    4 => self.radix_four(step, from, to),
                    _ => self.radix_odd(*factor, step, from, to),
                }
                step *= factor;
                (from, to) = (to, from);
            }
            // Without `turns` nothing is multiplied, since the shorter side ends the loop.
            for (bin, (row, turns)) in from.iter_mut().zip(turns).enumerate() {
                *row = row.times_lanes(turns).times_number(turn(bin));
            }
        });
        // Each pass swaps the two sides, so the number of passes says where the results are.
        if self.factors.len().is_multiple_of(2) { rows } else { room }
    }

    #[inline(always)]
    fn radix_two(&self, step: usize, from: &[ComplexLanes], to: &mut [ComplexLanes]) {
        let (first, second) = from.split_at(from.len() / 2);
        for (part, to) in to.chunks_exact_mut(2 * step).enumerate() {
            // One root for `step` rows, so that the inner loop loads no factors.
            let root = self.roots[part * step];
            let (sums, differences) = to.split_at_mut(step);
            let (first, second) = (&first[part * step..][..step], &second[part * step..][..step]);
            for at in 0..step {
                let (first, second) = (first[at], second[at]);
                sums[at] = first.plus(second);
                differences[at] = first.minus(second).times_number(root);
            }
        }
    }

    #[inline(always)]
    fn radix_four(&self, step: usize, from: &[ComplexLanes], to: &mut [ComplexLanes]) {
        let quarter = from.len() / 4;
        for (part, to) in to.chunks_exact_mut(4 * step).enumerate() {
            // `part * step` is below a quarter of the length, so three times as much is still a valid index.
            let roots = [1, 2, 3].map(|power| self.roots[power * part * step]);
            let (first, rest) = to.split_at_mut(step);
            let (second, rest) = rest.split_at_mut(step);
            let (third, fourth) = rest.split_at_mut(step);
            let rows: [&[ComplexLanes]; 4] = from_fn(|which| &from[which * quarter + part * step..][..step]);
            for at in 0..step {
                let [a, b, c, d] = [rows[0][at], rows[1][at], rows[2][at], rows[3][at]];
                let (even, odd) = (a.plus(c), b.plus(d));
                let (other, turned) = (a.minus(c), b.minus(d).times_minus_i());
                first[at] = even.plus(odd);
                second[at] = other.plus(turned).times_number(roots[0]);
                third[at] = even.minus(odd).times_number(roots[1]);
                fourth[at] = other.minus(turned).times_number(roots[2]);
            }
        }
    }

    /// Terms that are equally far from both ends go together: their sum with a cosine, and their difference with a sine, which
    /// halves the multiplications.
    #[inline(always)]
    fn radix_odd(&self, factor: usize, step: usize, from: &[ComplexLanes], to: &mut [ComplexLanes]) {
        let (length, half) = (self.length(), factor / 2);
        let root = |turn: usize| self.roots[turn % factor * (length / factor)];
        let (mut sums, mut differences) =
            ([ComplexLanes::default(); LARGEST_FACTOR / 2], [ComplexLanes::default(); LARGEST_FACTOR / 2]);
        let part_rows = from.len() / factor;
        for (part, to) in to.chunks_exact_mut(factor * step).enumerate() {
            for at in 0..step {
                let row = |which: usize| from[which * part_rows + part * step + at];
                let first = row(0);
                let mut all = first;
                for which in 0..half {
                    let (one, other) = (row(which + 1), row(factor - 1 - which));
                    sums[which] = one.plus(other);
                    differences[which] = one.minus(other);
                    all = all.plus(sums[which]);
                }
                to[at] = all;
                for bin in 1..=half {
                    let (mut even, mut odd) = (first, ComplexLanes::default());
                    for which in 0..half {
                        let root = root((which + 1) * bin);
                        even = even.plus_scaled(sums[which], root.re);
                        odd = odd.plus_scaled(differences[which], -root.im);
                    }
                    let odd = odd.times_minus_i();
                    // `part * step` is below the length divided by the factor, and `bin` below the factor.
                    let power = |bin: usize| self.roots[part * step * bin];
                    to[bin * step + at] = even.plus(odd).times_number(power(bin));
                    to[(factor - bin) * step + at] = even.minus(odd).times_number(power(factor - bin));
                }
            }
        }
    }
}
