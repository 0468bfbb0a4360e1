//! The fast Fourier transform of any length, in 64 bits.
//!
//! A length is split into two factors of about the same size, and the numbers are seen as a matrix: its columns are transformed,
//! multiplied by twiddle factors and written as rows; then the former rows are transformed, both times many columns at once. If a
//! prime factor of the length is large, the transform is written as a convolution instead (Bluestein's algorithm), which a longer
//! transform without large primes computes.

use std::f64::consts::PI;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::GRAIN;
use oarlock_cpu_base::rows::output_parts::{
    AxisLines, AxisLinesPart, OutputBlocks, OutputRows, parallel_for_parts,
};
use oarlock_cpu_base::rows::scratch::{try_filled_vec, try_reserve_vec};
use oarlock_sdk::{Complex, Result};

use super::column_transform::{ColumnTransform, ComplexLanes, FFT_LANES, LARGEST_FACTOR};

pub(super) type ComplexF64 = Complex<f64>;

/// A forward transform of a length.
pub(super) struct FourierTransform {
    length: usize,
    method: FourierMethod,
}

enum FourierMethod {
    Matrix(FactoredTransform),
    Convolution(Box<BluesteinTransform>),
}

/// A transform of an awkward length, by way of a longer one.
struct BluesteinTransform {
    longer: FourierTransform,
    /// exp(-πi k² / length)
    chirp: Vec<ComplexF64>,
    /// The transform of the convolution's kernel.
    kernel: Vec<ComplexF64>,
}

impl FourierTransform {
    /// A transform of a length of at most 2^62.
    pub(super) fn new(cpu: &Cpu, length: usize) -> Result<Self> {
        let factors = prime_factors(length);
        let is_awkward = factors.iter().any(|factor| *factor > LARGEST_FACTOR);
        let method = if is_awkward {
            FourierMethod::Convolution(Box::new(BluesteinTransform::new(cpu, length)?))
        } else {
            FourierMethod::Matrix(FactoredTransform::new(&factors)?)
        };
        Ok(Self { length, method })
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Transforms numbers in place. `room` is scratch memory.
    pub(super) fn transform_forward(
        &self,
        cpu: &Cpu,
        numbers: &mut [ComplexF64],
        room: &mut Vec<ComplexF64>,
    ) -> Result<()> {
        assert_eq!(numbers.len(), self.length, "as many numbers as the transform is for");
        match &self.method {
            FourierMethod::Matrix(matrix) => matrix.transform(cpu, numbers, room),
            FourierMethod::Convolution(convolution) => convolution.transform(cpu, numbers, room),
        }
    }
}

/// Two factors of a length, and the twiddle factors between them.
struct FactoredTransform {
    columns: ColumnTransform,
    rows: ColumnTransform,
    /// The twiddle factors of the lanes of a block in each row, relative to the first lane.
    turns: Vec<ComplexLanes>,
    roots: RootsOfUnity,
}

impl FactoredTransform {
    fn new(factors: &[usize]) -> Result<Self> {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        // The largest factors come first, each on the smaller side, so that both sides end up about as large.
        for factor in factors.iter().rev() {
            let (first_length, second_length): (usize, usize) =
                (first.iter().product(), second.iter().product());
            if first_length <= second_length { first.push(*factor) } else { second.push(*factor) }
        }
        let (columns, rows) = (ColumnTransform::new(&first), ColumnTransform::new(&second));
        let length = columns.length() * rows.length();
        let roots = RootsOfUnity::new(length)?;
        let mut turns = try_filled_vec(ComplexLanes::default(), columns.length())?;
        for (row, turns) in turns.iter_mut().enumerate() {
            for lane in 0..FFT_LANES {
                let root = roots.root_power(row * lane % length.max(1));
                (turns.re[lane], turns.im[lane]) = (root.re, root.im);
            }
        }
        Ok(Self { columns, rows, turns, roots })
    }

    fn transform(&self, cpu: &Cpu, numbers: &mut [ComplexF64], room: &mut Vec<ComplexF64>) -> Result<()> {
        // Both factors are about √length, so a block of eight columns stays in the cache over all passes, even if the numbers do
        // not.
        let (height, width) = (self.columns.length(), self.rows.length());
        if room.len() != numbers.len() {
            *room = try_filled_vec(ComplexF64::default(), numbers.len())?;
        }
        let grain = (GRAIN / (FFT_LANES * height.max(width))).max(1);
        // Each column becomes a row of the transpose.
        let blocks = OutputBlocks { parts: OutputRows::new(room, height), count: width, size: FFT_LANES };
        parallel_for_parts(cpu, width.div_ceil(FFT_LANES), grain, blocks, |block, turned| {
            self.transform_columns(cpu, block * FFT_LANES, numbers, turned);
        });
        let blocks =
            OutputBlocks { parts: AxisLines::new(numbers, width, height), count: height, size: FFT_LANES };
        parallel_for_parts(cpu, height.div_ceil(FFT_LANES), grain, blocks, |_, mut lines| {
            self.transform_rows(cpu, room, &mut lines);
        });
        Ok(())
    }

    /// Transforms columns from `first` on, multiplies each number by its twiddle factor, and writes each column as a row.
    fn transform_columns(&self, cpu: &Cpu, first: usize, numbers: &[ComplexF64], turned: &mut [ComplexF64]) {
        let (height, width) = (self.columns.length(), self.rows.length());
        let mut rows = vec![ComplexLanes::default(); 2 * height];
        let (rows, room) = rows.split_at_mut(height);
        for (block, turned) in turned.chunks_mut(FFT_LANES * height).enumerate() {
            let first = first + block * FFT_LANES;
            let count = turned.len() / height;
            for (row, numbers) in rows.iter_mut().zip(numbers.chunks_exact(width)) {
                load_lanes(row, &numbers[first..][..count]);
            }
            // A column before the width times a row before the height is a turn below a whole one.
            let turn = |bin: usize| self.roots.root_power(first * bin);
            let done = self.columns.transform(cpu.isa(), rows, room, &self.turns, &turn);
            for (lane, turned) in turned.chunks_exact_mut(height).enumerate() {
                for (number, row) in turned.iter_mut().zip(&*done) {
                    *number = Complex::new(row.re[lane], row.im[lane]);
                }
            }
        }
    }

    /// Transforms the former rows, which are the columns of the transpose.
    fn transform_rows(&self, cpu: &Cpu, turned: &[ComplexF64], lines: &mut AxisLinesPart<'_, ComplexF64>) {
        let (height, width) = (self.columns.length(), self.rows.length());
        let mut rows = vec![ComplexLanes::default(); 2 * width];
        let (rows, room) = rows.split_at_mut(width);
        for (first, count) in lines.line_groups(FFT_LANES) {
            for (row, numbers) in rows.iter_mut().zip(turned.chunks_exact(height)) {
                load_lanes(row, &numbers[first..][..count]);
            }
            // Without `turns` no factor is asked for.
            let done = self.rows.transform(cpu.isa(), rows, room, &[], &|_| ComplexF64::default());
            for (bin, row) in done.iter().enumerate() {
                let numbers = lines.lines_at(first, count, bin);
                for (lane, number) in numbers.iter_mut().enumerate() {
                    *number = Complex::new(row.re[lane], row.im[lane]);
                }
            }
        }
    }
}

/// Loads numbers into the first lanes of a row.
#[inline(always)]
fn load_lanes(row: &mut ComplexLanes, numbers: &[ComplexF64]) {
    for (lane, number) in numbers.iter().enumerate() {
        (row.re[lane], row.im[lane]) = (number.re, number.im);
    }
}

impl BluesteinTransform {
    fn new(cpu: &Cpu, length: usize) -> Result<Self> {
        // A convolution that does not wrap around needs one number less than twice the length. A power of two has the smallest
        // factors.
        let longer = FourierTransform::new(cpu, (2 * length).next_power_of_two())?;
        // The square is reduced modulo the period first, while it is still an exact integer.
        let turn = |index: usize| (index as u128 * index as u128 % (2 * length as u128)) as usize;
        let mut chirp: Vec<ComplexF64> = try_reserve_vec(length)?;
        chirp.extend((0..length).map(|index| root_of_unity(turn(index), 2 * length)));
        let mut kernel = try_filled_vec(ComplexF64::default(), longer.length)?;
        for (index, number) in chirp.iter().enumerate() {
            kernel[index] = number.conj();
            // The kernel is the same on both sides of 0, and negative places wrap around.
            kernel[(longer.length - index) % longer.length] = number.conj();
        }
        longer.transform_forward(cpu, &mut kernel, &mut Vec::new())?;
        // The kernel takes the division of the inverse transform, so that no pass over the results is needed for it.
        let scale = 1.0 / longer.length as f64;
        kernel.iter_mut().for_each(|number| *number *= scale);
        Ok(Self { longer, chirp, kernel })
    }

    /// The inverse of the longer transform is the transform of numbers with swapped components.
    fn transform(&self, cpu: &Cpu, numbers: &mut [ComplexF64], room: &mut Vec<ComplexF64>) -> Result<()> {
        let mut padded = try_filled_vec(ComplexF64::default(), self.longer.length)?;
        for ((padded, number), chirp) in padded.iter_mut().zip(&*numbers).zip(&self.chirp) {
            *padded = number * chirp;
        }
        self.longer.transform_forward(cpu, &mut padded, room)?;
        for (number, kernel) in padded.iter_mut().zip(&self.kernel) {
            *number = swap_components(*number * kernel);
        }
        self.longer.transform_forward(cpu, &mut padded, room)?;
        for ((number, padded), chirp) in numbers.iter_mut().zip(&padded).zip(&self.chirp) {
            *number = swap_components(*padded) * chirp;
        }
        Ok(())
    }
}

/// Swaps the components of a number. The transform of such numbers, with its components swapped, is the inverse of the transform,
/// times the length.
#[inline(always)]
pub(super) fn swap_components(number: ComplexF64) -> ComplexF64 {
    Complex::new(number.im, number.re)
}

/// The powers of a root of unity, as products of two, so that about 2 · √length are stored instead of all.
pub(super) struct RootsOfUnity {
    length: usize,
    low_bits: u32,
    /// The powers below a power of two.
    low: Vec<ComplexF64>,
    /// The powers that are multiples of that.
    high: Vec<ComplexF64>,
}

impl RootsOfUnity {
    pub(super) fn new(length: usize) -> Result<Self> {
        let low_bits = (usize::BITS - length.leading_zeros()).div_ceil(2);
        let low = 1usize << low_bits;
        let mut roots =
            Self { length, low_bits, low: try_reserve_vec(low)?, high: try_reserve_vec(length / low + 1)? };
        roots.low.extend((0..low).map(|turn| root_of_unity(turn, length)));
        roots.high.extend((0..=length / low).map(|turn| root_of_unity(turn * low, length)));
        Ok(roots)
    }

    /// The power `turn`, which is below the length.
    #[inline(always)]
    pub(super) fn root_power(&self, turn: usize) -> ComplexF64 {
        debug_assert!(turn < self.length.max(1), "a turn below a whole one");
        // The number of low powers is a power of two.
        self.high[turn >> self.low_bits] * self.low[turn & (self.low.len() - 1)]
    }
}

/// exp(-2πi · `turn` / `parts`).
pub(super) fn root_of_unity(turn: usize, parts: usize) -> ComplexF64 {
    // Relative to the nearest quarter turn, where the angle is small and quarters are exact.
    let eighths = (8 * (turn as u128 % parts as u128) / parts as u128) as usize;
    let quarters = eighths.div_ceil(2);
    // The difference is taken in integers, which do not round.
    let rest = (4 * (turn % parts) as i128 - (quarters * parts) as i128) as f64;
    let angle = PI / 2.0 * (rest / parts as f64);
    let (sine, cosine) = angle.sin_cos();
    match quarters % 4 {
        0 => Complex::new(cosine, -sine),
        1 => Complex::new(-sine, -cosine),
        2 => Complex::new(-cosine, sine),
        _ => Complex::new(sine, cosine),
    }
}

fn prime_factors(mut length: usize) -> Vec<usize> {
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

    #[test]
    fn turns_by_quarters_are_exact() {
        let quarters = [(1.0, 0.0), (0.0, -1.0), (-1.0, 0.0), (0.0, 1.0)];
        for (quarter, (re, im)) in quarters.into_iter().enumerate() {
            let found = root_of_unity(3 * quarter, 12);
            assert_eq!((found.re, found.im), (re, im), "{quarter}");
        }
    }
}
