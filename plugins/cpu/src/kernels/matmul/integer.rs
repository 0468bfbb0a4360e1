//! `MatMulInteger` and `QLinearMatMul`: eight-bit matrices with zero points, summed in 32 bits as in
//! [`crate::kernels::quantized`].

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_sdk::{
    Call, Dtype, DtypeSet, Kernel, KernelFlags, Operand, OperandFlags, Result, Tensor, dispatch, dtype_set,
    ensure,
};

use super::quantised::{BYTES, Requantised, floats, integers};
use super::shape::{Shape, count};
use super::too_small;
use crate::device::Cpu;
use crate::gemm::{Finish, Finished, Parts, Scratch, Sizes};
use crate::kernels::channels_last::expect_prepared;
use crate::kernels::conv::window::MOST;
use crate::kernels::quantized::layer::bytes;
use crate::kernels::quantized::packed::Panels;
use crate::kernels::quantized::sums::{Operands, Sums};

/// What scales may be.
const SCALES: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32]);

pub(super) fn kernels() -> [Kernel<Cpu>; 2] {
    let byte = Operand::new(BYTES);
    let zero = byte.flags(OperandFlags::OPTIONAL);
    let integer = row("MatMulInteger", 1, matmul_integer)
        .inputs([
            byte.named("A").group(1),
            byte.named("B").group(2),
            zero.named("a_zero_point").group(1),
            zero.named("b_zero_point").group(2),
        ])
        .outputs([Operand::new(DtypeSet::I32).named("Y")]);
    let scale = Operand::new(SCALES);
    let linear = row("QLinearMatMul", 3, qlinear_matmul)
        .inputs([
            byte.named("a").group(1),
            scale.named("a_scale"),
            byte.named("a_zero_point").group(1),
            byte.named("b").group(2),
            scale.named("b_scale"),
            byte.named("b_zero_point").group(2),
            scale.named("y_scale"),
            byte.named("y_zero_point").group(3),
        ])
        .outputs([byte.named("y").group(3)]);
    [integer, linear]
}

type Run = fn(&Products, &Cpu, &Call<'_>) -> Result<()>;

/// A row whose matrices are the first operand and the one at a place.
fn row(op: &str, b: usize, run: Run) -> Kernel<Cpu> {
    Kernel::prepared(op, move |cpu: &Cpu, call| {
        let products = Products::new(cpu, call, b)?.ready(cpu, call)?;
        Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| run(&products, cpu, call)))
    })
    .since(10)
    .workspace(move |cpu, call| Ok(Products::new(cpu, call, b)?.sums.scratch_size() as u64))
    .flags(KernelFlags::DETERMINISTIC)
}

fn matmul_integer(products: &Products, cpu: &Cpu, call: &Call<'_>) -> Result<()> {
    let zero = |index| call.optional_input(index)?.map_or(Ok(vec![0]), |zero| integers(&zero));
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let y = unsafe { call.output(0)?.elements_mut::<i32>() }?;
    products.multiply(cpu, call, [&zero(2)?, &zero(3)?], y, None)
}

fn qlinear_matmul(products: &Products, cpu: &Cpu, call: &Call<'_>) -> Result<()> {
    let scales = |index| floats(&call.input(index)?);
    let zero = |index| integers(&call.input(index)?);
    let (a_scale, b_scale, y_scale, y_zero) = (scales(1)?, scales(4)?, scales(6)?, zero(7)?);
    let sizes = products.shape.sizes;
    let rows = sizes.items.saturating_mul(sizes.rows);
    let per_row = |name: &str, found: usize| {
        ensure!(
            found > 0 && rows.is_multiple_of(found),
            invalid_argument,
            "expected one value of `{name}` or one for each of {} rows, found {found}",
            sizes.rows
        );
        Ok(())
    };
    per_row("a_scale", a_scale.len())?;
    per_row("y_scale", y_scale.len())?;
    per_row("y_zero_point", y_zero.len())?;
    let columns = sizes.items.saturating_mul(sizes.columns);
    ensure!(
        [1, sizes.columns, columns].contains(&b_scale.len()),
        invalid_argument,
        "expected one value of `b_scale` or one for each of {} columns, found {}",
        sizes.columns,
        b_scale.len()
    );
    let y = call.output(0)?;
    dispatch!(y.dtype(), integral, T => {
        // SAFETY: the device's memory is the host's, and the call vouches for its operands.
        let output = unsafe { y.elements_mut::<T>() }?;
        let (mut sums, output) = (vec![0; output.len()], Parts::new(output));
        let finish: &Finish<'_, i32> = &|mut part| {
            let (item, columns) = (part.item, part.columns.clone());
            for (row, numbers) in part.each_row() {
                let row = item * sizes.rows + row;
                let start = row * sizes.columns;
                // SAFETY: each element of the output is finished once, by one thread.
                let elements = unsafe { output.part(start + columns.start..start + columns.end) };
                let zero = y_zero[row % y_zero.len()];
                let factor = a_scale[row % a_scale.len()] / y_scale[row % y_scale.len()];
                for ((column, number), element) in columns.clone().zip(numbers).zip(elements) {
                    let scale = factor * b_scale[(item * sizes.columns + column) % b_scale.len()];
                    *element = T::requantised(*number, scale, zero);
                }
            }
        };
        products.multiply(cpu, call, [&zero(2)?, &zero(5)?], &mut sums, Some(finish))
    })
}

/// The products of a call, as far as they follow from its shapes and constants.
struct Products {
    shape: Shape,
    sums: Sums,
    /// The place of B.
    b: usize,
    /// How many rows a matrix of A has.
    rows: usize,
    dims: [Vec<i64>; 2],
    packed: Option<Arc<Panels>>,
}

impl Products {
    fn new(cpu: &Cpu, call: &Call<'_>, place: usize) -> Result<Self> {
        let (a, b, y) = (call.input(0)?, call.input(place)?, call.output(0)?);
        let shape = Shape::new(a.dims(), b.dims())?;
        ensure!(
            shape.output == y.dims(),
            invalid_argument,
            "expected an output of shape {:?}, found {:?}",
            shape.output,
            y.dims()
        );
        // There may be many rows of nothing.
        let Sizes { items, rows, columns, depth } = shape.sizes;
        let [rows, depth, columns] = [rows, depth, columns].map(|size| if items == 0 { 0 } else { size });
        let fits = |size: usize| size as u64 <= MOST.cast_unsigned();
        ensure!(
            fits(rows) && fits(columns) && fits(depth),
            unimplemented,
            "expected matrices of at most {MOST} rows and columns, found {rows} by {depth} and {depth} by {columns}"
        );
        let sums = Sums::of_rows(cpu, [rows, depth, columns], [a.dtype(), b.dtype()]);
        let rows = if a.dims().len() < 2 { 1 } else { count(&a.dims()[a.dims().len() - 2..][..1])? };
        let dims = [a.dims().to_vec(), b.dims().to_vec()];
        Ok(Self { shape, sums, b: place, rows, dims, packed: None })
    }

    /// Makes everything ready that is constant.
    fn ready(mut self, cpu: &Cpu, call: &Call<'_>) -> Result<Self> {
        let b = call.input(self.b)?;
        let is_packed = b.is_constant() && self.shape.right.len() == 1 && self.shape.sizes.items > 0;
        self.packed = is_packed.then(|| self.sums.pack_constant(cpu, &b)).transpose()?;
        super::describe(cpu, call, is_packed);
        Ok(self)
    }

    /// Computes the products. Zero points are one, one for each row of A or column of B, or one for each of every matrix.
    fn multiply(
        &self,
        cpu: &Cpu,
        call: &Call<'_>,
        [a_zeros, b_zeros]: [&[i32]; 2],
        y: &mut [i32],
        finish: Option<&Finish<'_, i32>>,
    ) -> Result<()> {
        let (a, b) = (call.input(0)?, call.input(self.b)?);
        expect_prepared(self.dims == [a.dims(), b.dims()])?;
        let Sizes { items, rows, columns, depth } = self.shape.sizes;
        let of_all = |operand: &Tensor<'_>| Ok(operand.element_count()? / depth.max(1));
        let fits = |zeros: &[i32], lanes: usize, all: usize| {
            !zeros.is_empty() && [1, lanes, all].contains(&zeros.len())
        };
        ensure!(
            fits(a_zeros, self.rows, of_all(&a)?) && fits(b_zeros, columns.max(1), of_all(&b)?),
            invalid_argument,
            "expected one zero point or one for each of {} rows and {columns} columns, found {} and {}",
            self.rows,
            a_zeros.len(),
            b_zeros.len()
        );
        // SAFETY: the device's memory is the host's, and the call vouches for its operands.
        let (a, b) = unsafe { (bytes(&a)?, bytes(&b)?) };
        // As many as there are rows or columns, from the first of a matrix on.
        let from = |zeros: &[i32], first: usize, count: usize| -> Vec<i32> {
            if zeros.len() == 1 {
                zeros.to_vec()
            } else {
                (first..first + count).map(|at| zeros[at % zeros.len()]).collect()
            }
        };
        let mut scratch = Scratch::of(call);
        let mut now: Option<(usize, Panels)> = None;
        for (item, y) in y.chunks_exact_mut((rows * columns).max(1)).take(items).enumerate() {
            let left = self.shape.left[if self.shape.left.len() == 1 { 0 } else { item }];
            let right = self.shape.right[if self.shape.right.len() == 1 { 0 } else { item }];
            let images = a.get(left..left + rows * depth).ok_or_else(too_small)?;
            let weights = if let Some(packed) = &self.packed {
                &**packed
            } else {
                let matrix = b.get(right..right + depth * columns).ok_or_else(too_small)?;
                if now.as_ref().is_none_or(|(packed, _)| *packed != right) {
                    now = Some((right, self.sums.pack(cpu, matrix)));
                }
                let Some((_, panels)) = &now else { unreachable!("the matrix was packed just now") };
                panels
            };
            let operands = Operands {
                images,
                image_zeros: &from(a_zeros, left / depth.max(1), rows),
                weights,
                weight_zeros: &from(b_zeros, right / depth.max(1), columns),
                bias: None,
            };
            let of_item = |mut part: Finished<'_, i32>| {
                part.item = item;
                if let Some(finish) = finish {
                    finish(part);
                }
            };
            self.sums.compute(cpu, &operands, y, finish.is_some().then_some(&of_item), &mut scratch);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::testing::{Array, run};

    #[test]
    fn zero_points_are_taken_off_before_multiplying() {
        let a = Array::of(&[2, 3], &[11u8, 7, 3, 10, 6, 2]);
        let b = Array::of(&[3, 2], &[1u8, 4, 2, 5, 3, 6]);
        let (a_zero, b_zero) = (Array::of(&[], &[12u8]), Array::of(&[2], &[0u8, 1]));
        let inputs = [Some(&a), Some(&b), Some(&a_zero), Some(&b_zero)];
        let results = run("MatMulInteger", 10, &[], &inputs, &[Some((Dtype::I32, &[2, 2]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<i32>(), [-38, -68, -44, -80]);
    }

    #[test]
    fn results_are_scaled_rounded_and_kept_in_range() {
        let a = Array::of(&[1, 2], &[130u8, 126]);
        let b = Array::of(&[2, 3], &[1i8, 100, -100, 0, 0, 0]);
        let (half, one) = (Array::of(&[1], &[0.75f32]), Array::of(&[1], &[1f32]));
        let (a_zero, b_zero, y_zero) =
            (Array::of(&[1], &[128u8]), Array::of(&[1], &[0i8]), Array::of(&[1], &[-1i8]));
        let inputs = [&a, &half, &a_zero, &b, &one, &b_zero, &one, &y_zero].map(Some);
        let results = run("QLinearMatMul", 10, &[], &inputs, &[Some((Dtype::I8, &[1, 3]))]).unwrap();
        // 2 × 1 × 0.75 = 1.5, which is rounded to the even 2.
        assert_eq!(results[0].as_ref().unwrap().values::<i8>(), [1, 127, -128]);
    }

    #[test]
    fn a_wrong_number_of_zero_points_is_refused() {
        let (a, zero) = (Array::of(&[2, 2], &[1u8; 4]), Array::of(&[3], &[1u8; 3]));
        let inputs = [Some(&a), Some(&a), Some(&zero)];
        let message = run("MatMulInteger", 10, &[], &inputs, &[Some((Dtype::I32, &[2, 2]))]).unwrap_err();
        assert!(message.contains("2 rows"), "{message}");
    }
}
