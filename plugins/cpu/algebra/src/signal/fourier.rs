//! The fast Fourier transform of any length, in 64 bits.
//!
//! A length is split into two factors of about the same size, and the numbers are seen as a matrix: its columns are transformed,
//! multiplied by twiddle factors and written as rows; then the former rows are transformed, both times many columns at once. If a
//! prime factor of the length is large, the transform is written as a convolution instead (Bluestein's algorithm), which a longer
//! transform without large primes computes.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::GRAIN;
use oarlock_cpu_base::rows::output_parts::{
    AxisLines, AxisLinesPart, OutputBlocks, OutputRows, parallel_for_parts,
};
use oarlock_cpu_base::rows::scratch::{try_filled_vec, try_reserve_vec};
use oarlock_sdk::Result;

use super::column_transform::{ColumnTransform, ComplexLanes, FFT_LANES, LARGEST_FACTOR};
use super::roots_of_unity::{ComplexF64, RootsOfUnity, root_of_unity, swap_components};

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
    twiddles: Vec<ComplexLanes>,
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
        let mut twiddles = try_filled_vec(ComplexLanes::default(), columns.length())?;
        for (row, twiddles) in twiddles.iter_mut().enumerate() {
            for lane in 0..FFT_LANES {
                let root = roots.root_power(row * lane % length.max(1));
                (twiddles.re[lane], twiddles.im[lane]) = (root.re, root.im);
            }
        }
        Ok(Self { columns, rows, twiddles, roots })
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
        parallel_for_parts(cpu, width.div_ceil(FFT_LANES), grain, blocks, |block, transposed| {
            self.transform_columns(cpu, block * FFT_LANES, numbers, transposed);
        });
        let blocks =
            OutputBlocks { parts: AxisLines::new(numbers, width, height), count: height, size: FFT_LANES };
        parallel_for_parts(cpu, height.div_ceil(FFT_LANES), grain, blocks, |_, mut lines| {
            self.transform_rows(cpu, room, &mut lines);
        });
        Ok(())
    }

    /// Transforms columns from `first` on, multiplies each number by its twiddle factor, and writes each column as a row.
    fn transform_columns(
        &self,
        cpu: &Cpu,
        first: usize,
        numbers: &[ComplexF64],
        transposed: &mut [ComplexF64],
    ) {
        let (height, width) = (self.columns.length(), self.rows.length());
        let mut rows = vec![ComplexLanes::default(); 2 * height];
        let (rows, room) = rows.split_at_mut(height);
        for (block, transposed) in transposed.chunks_mut(FFT_LANES * height).enumerate() {
            let first = first + block * FFT_LANES;
            let count = transposed.len() / height;
            for (row, numbers) in rows.iter_mut().zip(numbers.chunks_exact(width)) {
                load_lanes(row, &numbers[first..][..count]);
            }
            // A column before the width times a row before the height is a turn below a whole one.
            let turn = |bin: usize| self.roots.root_power(first * bin);
            let done = self.columns.transform(cpu.isa(), rows, room, &self.twiddles, &turn);
            for (lane, transposed) in transposed.chunks_exact_mut(height).enumerate() {
                for (number, row) in transposed.iter_mut().zip(&*done) {
                    *number = ComplexF64::new(row.re[lane], row.im[lane]);
                }
            }
        }
    }

    /// Transforms the former rows, which are the columns of the transpose.
    fn transform_rows(
        &self,
        cpu: &Cpu,
        transposed: &[ComplexF64],
        lines: &mut AxisLinesPart<'_, ComplexF64>,
    ) {
        let (height, width) = (self.columns.length(), self.rows.length());
        let mut rows = vec![ComplexLanes::default(); 2 * width];
        let (rows, room) = rows.split_at_mut(width);
        for (first, count) in lines.line_groups(FFT_LANES) {
            for (row, numbers) in rows.iter_mut().zip(transposed.chunks_exact(height)) {
                load_lanes(row, &numbers[first..][..count]);
            }
            // Without `twiddles` no factor is asked for.
            let done = self.rows.transform(cpu.isa(), rows, room, &[], &|_| ComplexF64::default());
            for (bin, row) in done.iter().enumerate() {
                let numbers = lines.lines_at(first, count, bin);
                for (lane, number) in numbers.iter_mut().enumerate() {
                    *number = ComplexF64::new(row.re[lane], row.im[lane]);
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
