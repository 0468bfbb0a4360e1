//! `BlockMatMul` of the domain `oarlock`: few rows times weights of four or eight bits in blocks.
//!
//! Made floats first, the weights would be written and read again at many times their size, so they are read as they are: the integers of a block become
//! floats in registers, are multiplied and summed there, and the sum is multiplied by the scale of the block. Two integers of
//! four bits share a byte, so the elements of A at even and at odd places are put apart first, once for all columns.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::array::from_fn;
use std::marker::PhantomData;
use std::sync::Arc;

use oarlock_sdk::{
    Call, Dtype, DtypeSet, Kernel, KernelFlags, Operand, OperandFlags, Result, dtype_set, ensure,
};

use crate::device::Cpu;
use crate::gemm::{FEW, Scratch};
use crate::isa::{Target, Vectorized};
use crate::kernels::rows::grain;
use crate::kernels::rows::parts::{Rows, in_parallel};

const INTEGERS: DtypeSet = dtype_set(&[Dtype::I4, Dtype::U4, Dtype::I8, Dtype::U8]);
/// How many bytes are worked on at once.
const LANES: usize = 16;

pub(super) fn kernel() -> Kernel<Cpu> {
    let [floats, weights] = [Operand::new(DtypeSet::F32), Operand::new(INTEGERS).group(1)];
    let optional = weights.flags(OperandFlags::OPTIONAL);
    Kernel::prepared("BlockMatMul", |cpu: &Cpu, call| {
        let sizes = Sizes::new(call)?;
        call.describe(&format!("weights read as they are, in one pass, {}", cpu.isa().without_tiles()));
        Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| sizes.run(cpu, call)))
    })
    .domain("oarlock")
    .supports(|_, call| Sizes::new(call).map(drop))
    .workspace(|_, call| Ok((Sizes::new(call)?.scratch() * size_of::<f32>() + 64) as u64))
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([
        floats.named("A").rank(1, u32::MAX),
        weights.named("W").rank(2, 2),
        floats.named("scale").rank(2, 2),
        optional.named("zero").rank(2, 2),
    ])
    .outputs([floats.named("Y")])
}

/// What the shapes of a call say.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sizes {
    rows: usize,
    columns: usize,
    depth: usize,
    block: usize,
    dtype: Dtype,
}

impl Sizes {
    fn new(call: &Call<'_>) -> Result<Self> {
        let (a, w, scale) = (call.input(0)?.dims(), call.input(1)?, call.input(2)?.dims());
        let block = usize::try_from(call.int("block_size")?.unwrap_or(0)).unwrap_or(0);
        let ([rows @ .., depth], [columns, length]) = (a, w.dims()) else {
            return Err(oarlock_sdk::Error::invalid_argument("expected rows and a matrix, found others"));
        };
        let count = rows.iter().try_fold(1i64, |count, rows| count.checked_mul(*rows)).unwrap_or(i64::MAX);
        ensure!(
            depth == length,
            invalid_argument,
            "expected weights of {depth} elements a row, found {length}"
        );
        ensure!(
            (1..=FEW as i64).contains(&count) && *columns > 0,
            unimplemented,
            "expected 1 to {FEW} rows and some columns, found {count} and {columns}"
        );
        let sizes = Self {
            rows: count as usize,
            columns: *columns as usize,
            depth: *depth as usize,
            block,
            dtype: w.dtype(),
        };
        let step = LANES * sizes.in_a_byte();
        ensure!(
            block > 0 && block.is_multiple_of(step) && sizes.depth.is_multiple_of(block) && *depth > 0,
            unimplemented,
            "expected whole blocks of a multiple of {step} elements, found blocks of {block} in rows of {depth}"
        );
        let expected = [*columns, depth / block as i64];
        let zero = call.optional_input(3)?;
        ensure!(
            scale == expected && zero.is_none_or(|zero| zero.dims() == expected),
            invalid_argument,
            "expected scales and zero points of shape {expected:?}, found {scale:?} and {:?}",
            zero.map(|zero| zero.dims())
        );
        Ok(sizes)
    }

    /// How many integers share a byte.
    fn in_a_byte(&self) -> usize {
        if [Dtype::I4, Dtype::U4].contains(&self.dtype) { 2 } else { 1 }
    }

    /// How many floats the rows take where they are put apart.
    fn scratch(&self) -> usize {
        if self.in_a_byte() == 2 { self.rows * self.depth } else { 0 }
    }

    fn run(&self, cpu: &Cpu, call: &Call<'_>) -> Result<()> {
        let found = Self::new(call)?;
        ensure!(
            found == *self,
            invalid_argument,
            "expected operands of the shapes that were prepared for, found others"
        );
        let bytes = |index: usize| -> Result<Option<&[u8]>> {
            let Some(operand) = call.optional_input(index)? else { return Ok(None) };
            let (block, offset) = operand.place();
            let address = block.0.wrapping_add(offset) as *const u8;
            // SAFETY: the device's memory is the host's, and the call vouches for its operands.
            Ok(Some(unsafe { std::slice::from_raw_parts(address, operand.size_in_bytes() as usize) }))
        };
        let blocks = self.columns * self.depth / self.block;
        let (weights, zeros) = (bytes(1)?.unwrap_or_default(), bytes(3)?);
        // SAFETY: as above.
        let (a, scales, y) = unsafe {
            (
                call.input(0)?.elements::<f32>()?,
                call.input(2)?.elements::<f32>()?,
                call.output(0)?.elements_mut::<f32>()?,
            )
        };
        let shared = self.in_a_byte();
        ensure!(
            weights.len() == self.columns * self.depth / shared
                && scales.len() == blocks
                && zeros.is_none_or(|zeros| zeros.len() == blocks.div_ceil(shared))
                && a.len() == self.rows * self.depth
                && y.len() == self.rows * self.columns,
            invalid_argument,
            "expected operands as large as their shapes say, found others"
        );
        let mut scratch = Scratch::of(call);
        let a = if shared == 2 { self.put_apart(a, scratch.elements(self.scratch())) } else { a };
        let matrix = Matrix { sizes: *self, weights, scales, zeros };
        let multiply = match self.dtype {
            Dtype::U4 => Matrix::multiply::<Halves>,
            Dtype::I4 => Matrix::multiply::<SignedHalves>,
            Dtype::U8 => Matrix::multiply::<Bytes>,
            _ => Matrix::multiply::<SignedBytes>,
        };
        for (row, y) in a.chunks_exact(self.depth).zip(y.chunks_exact_mut(self.columns)) {
            multiply(matrix, cpu, row, y);
        }
        Ok(())
    }

    /// For each byte of lanes the elements that its low halves are multiplied with, and then those of the high ones.
    fn put_apart<'s>(&self, a: &[f32], apart: &'s mut [f32]) -> &'s [f32] {
        for (from, to) in a.chunks_exact(2 * LANES).zip(apart.chunks_exact_mut(2 * LANES)) {
            for (lane, pair) in from.chunks_exact(2).enumerate() {
                (to[lane], to[LANES + lane]) = (pair[0], pair[1]);
            }
        }
        apart
    }
}

/// What bytes stand for.
trait Integers: Sync {
    /// How many integers share a byte.
    const SHARED: usize;

    /// One integer of each byte: the lower ones, or the higher ones.
    fn numbers(bytes: &[u8; LANES], place: usize) -> [f32; LANES];

    /// The integer at an index.
    fn at(bytes: &[u8], index: usize) -> f32;
}

struct Halves;
struct SignedHalves;
struct Bytes;
struct SignedBytes;

impl Integers for Halves {
    const SHARED: usize = 2;

    #[inline(always)]
    fn numbers(bytes: &[u8; LANES], place: usize) -> [f32; LANES] {
        bytes.map(|byte| (i32::from(byte) >> (4 * place) & 15) as f32)
    }

    #[inline(always)]
    fn at(bytes: &[u8], index: usize) -> f32 {
        f32::from(bytes[index / 2] >> (index % 2 * 4) & 15)
    }
}

impl Integers for SignedHalves {
    const SHARED: usize = 2;

    #[inline(always)]
    fn numbers(bytes: &[u8; LANES], place: usize) -> [f32; LANES] {
        bytes.map(|byte| (i32::from(byte) << (28 - 4 * place) >> 28) as f32)
    }

    #[inline(always)]
    fn at(bytes: &[u8], index: usize) -> f32 {
        (i32::from(bytes[index / 2]) << (28 - index % 2 * 4) >> 28) as f32
    }
}

impl Integers for Bytes {
    const SHARED: usize = 1;

    #[inline(always)]
    fn numbers(bytes: &[u8; LANES], _place: usize) -> [f32; LANES] {
        bytes.map(f32::from)
    }

    #[inline(always)]
    fn at(bytes: &[u8], index: usize) -> f32 {
        f32::from(bytes[index])
    }
}

impl Integers for SignedBytes {
    const SHARED: usize = 1;

    #[inline(always)]
    fn numbers(bytes: &[u8; LANES], _place: usize) -> [f32; LANES] {
        bytes.map(|byte| f32::from(byte.cast_signed()))
    }

    #[inline(always)]
    fn at(bytes: &[u8], index: usize) -> f32 {
        f32::from(bytes[index].cast_signed())
    }
}

/// Weights with their scales.
#[derive(Clone, Copy)]
struct Matrix<'a> {
    sizes: Sizes,
    weights: &'a [u8],
    scales: &'a [f32],
    zeros: Option<&'a [u8]>,
}

impl Matrix<'_> {
    /// Multiplies a row, whose elements are put apart, with all columns.
    fn multiply<I: Integers>(self, cpu: &Cpu, row: &[f32], y: &mut [f32]) {
        in_parallel(cpu, self.sizes.columns, grain(self.sizes.depth), Rows::new(y, 1), |first, y| {
            cpu.isa().vectorize(Part { matrix: self, row, first, y, integers: PhantomData::<I> });
        });
    }
}

/// Some columns of a row of the output, from one on.
struct Part<'a, 'b, I> {
    matrix: Matrix<'a>,
    row: &'a [f32],
    first: usize,
    y: &'b mut [f32],
    integers: PhantomData<I>,
}

impl<I: Integers> Vectorized for Part<'_, '_, I> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(self) {
        let Matrix { sizes: Sizes { depth, block, .. }, weights, scales, zeros } = self.matrix;
        let (blocks, width) = (depth / block, depth / I::SHARED);
        let row = self.row.as_chunks::<LANES>().0;
        for (column, y) in (self.first..).zip(self.y) {
            let bytes = weights[column * width..][..width].as_chunks::<LANES>().0;
            let parts = bytes.chunks_exact(block / I::SHARED / LANES).zip(row.chunks_exact(block / LANES));
            let places = (column * blocks..).zip(&scales[column * blocks..]);
            let mut sums = [0f32; LANES];
            for ((place, scale), (bytes, row)) in places.zip(parts) {
                let zero = zeros.map_or(0.0, |zeros| I::at(zeros, place));
                let mut own = [0f32; LANES];
                for (bytes, row) in bytes.iter().zip(row.chunks_exact(I::SHARED)) {
                    for (place, row) in row.iter().enumerate() {
                        let weights = I::numbers(bytes, place);
                        own = from_fn(|lane| plus_product::<T>(weights[lane] - zero, row[lane], own[lane]));
                    }
                }
                sums = from_fn(|lane| plus_product::<T>(own[lane], *scale, sums[lane]));
            }
            // One after the other: added in pairs, the compiler would keep pairs in its vectors all the way up to here.
            *y = sums.iter().sum();
        }
    }
}

#[inline(always)]
fn plus_product<T: Target>(one: f32, other: f32, sum: f32) -> f32 {
    if T::HAS_FMA { one.mul_add(other, sum) } else { one * other + sum }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::testing::{Array, Attribute, run, run_with_isa};

    fn packed(dtype: Dtype, dims: &[i64], factor: i64) -> (Vec<f32>, Array) {
        let low = if dtype == Dtype::I4 || dtype == Dtype::I8 { -8 } else { 0 };
        let count: i64 = dims.iter().product();
        let values: Vec<i32> = (0..count).map(|x| (x * factor % 16 + low) as i32).collect();
        let made = run("Cast", 21, &[], &[Some(&Array::of(dims, &values))], &[Some((dtype, dims))]);
        let array = made.expect("integers").into_iter().next().flatten().expect("an output");
        (values.iter().map(|value| *value as f32).collect(), array)
    }

    #[test]
    fn few_rows_times_blocks_are_the_products_of_what_the_blocks_stand_for() {
        for (dtype, rows, columns, depth, block) in [
            (Dtype::U4, 1, 5, 64, 32),
            (Dtype::I4, 3, 4, 128, 64),
            (Dtype::U8, 2, 7, 48, 16),
            (Dtype::I8, 4, 33, 32, 32),
        ] {
            let blocks = depth / block;
            let (weights, w) = packed(dtype, &[columns, depth], 7);
            let (zeros, zero) = packed(dtype, &[columns, blocks], 5);
            let a: Vec<f32> = (0..rows * depth).map(|x| ((x * 37 % 101) as f32 - 50.0) / 64.0).collect();
            let scales: Vec<f32> = (0..columns * blocks).map(|x| (x % 9) as f32 * 0.25 - 1.0).collect();
            let (left, scale) = (Array::of(&[rows, depth], &a), Array::of(&[columns, blocks], &scales));
            for with_zero in [true, false] {
                let inputs = [Some(&left), Some(&w), Some(&scale), with_zero.then_some(&zero)];
                let inputs = &inputs[..if with_zero { 4 } else { 3 }];
                let attributes = [("block_size", Attribute::Int(block))];
                for isa in ["scalar", "avx2", "avx512"] {
                    let output = [Some((Dtype::F32, &[rows, columns][..]))];
                    let made = run_with_isa(isa, "oarlock:BlockMatMul", 1, &attributes, inputs, &output);
                    let made = made.expect("a product").into_iter().next().flatten().expect("an output");
                    for (index, found) in made.values::<f32>().into_iter().enumerate() {
                        let (row, column) = (index / columns as usize, index % columns as usize);
                        let expected: f64 = (0..depth as usize)
                            .map(|at| {
                                let place = column * blocks as usize + at / block as usize;
                                let zero = if with_zero { zeros[place] } else { 0.0 };
                                let weight = (weights[column * depth as usize + at] - zero) * scales[place];
                                f64::from(a[row * depth as usize + at]) * f64::from(weight)
                            })
                            .sum();
                        let near = 1e-5 * depth as f64 * 16.0;
                        assert!(
                            (f64::from(found) - expected).abs() < near,
                            "{dtype:?} {isa} {index}: {found} for {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn many_rows_and_odd_blocks_are_left_to_others() {
        let refusal = |rows: i64, block: i64| {
            let (w, scale) = (
                packed(Dtype::U4, &[4, 64], 7).1,
                Array::of(&[4, 64 / block], &vec![1f32; (256 / block) as usize]),
            );
            let a = Array::of(&[rows, 64], &vec![1f32; (rows * 64) as usize]);
            let inputs = [Some(&a), Some(&w), Some(&scale)];
            let output = [Some((Dtype::F32, &[rows, 4][..]))];
            run("oarlock:BlockMatMul", 1, &[("block_size", Attribute::Int(block))], &inputs, &output).err()
        };
        assert_eq!(refusal(4, 32), None);
        assert!(refusal(5, 32).is_some_and(|message| message.contains("1 to 4 rows")));
        assert!(refusal(1, 16).is_some_and(|message| message.contains("multiple of 32")));
    }
}
