//! `MatMulInteger` and `QLinearMatMul`: eight-bit matrices with zero points, summed in 32 bits.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use oarlock_sdk::{
    Call, Dtype, DtypeSet, Error, Kernel, KernelFlags, Operand, OperandFlags, Result, dispatch, dtype_set,
    ensure,
};

use super::quantised::{BYTES, Requantised, floats, integers, widened};
use super::shape::{Shape, count};
use super::too_small;
use crate::device::Cpu;
use crate::gemm::{Finish, Matrix, Parts, Product, Scratch, Side};

/// What scales may be.
const SCALES: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32]);

pub(super) fn kernels() -> [Kernel<Cpu>; 2] {
    let byte = Operand::new(BYTES);
    let zero = byte.flags(OperandFlags::OPTIONAL);
    let integer = Kernel::new("MatMulInteger", matmul_integer)
        .since(10)
        .flags(KernelFlags::DETERMINISTIC)
        .inputs([
            byte.named("A").group(1),
            byte.named("B").group(2),
            zero.named("a_zero_point").group(1),
            zero.named("b_zero_point").group(2),
        ])
        .outputs([Operand::new(DtypeSet::I32).named("Y")]);
    let scale = Operand::new(SCALES);
    let linear = Kernel::new("QLinearMatMul", qlinear_matmul)
        .since(10)
        .flags(KernelFlags::DETERMINISTIC)
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

fn matmul_integer(cpu: &Cpu, call: &Call<'_>) -> Result<()> {
    let zero = |index| call.optional_input(index)?.map_or(Ok(vec![0]), |zero| integers(&zero));
    let widened = Widened::new(call, (0, &zero(2)?), (1, &zero(3)?))?;
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let y = unsafe { call.output(0)?.elements_mut::<i32>() }?;
    widened.multiply(cpu, call, Some(y), None)
}

fn qlinear_matmul(cpu: &Cpu, call: &Call<'_>) -> Result<()> {
    let scales = |index| floats(&call.input(index)?);
    let zero = |index| integers(&call.input(index)?);
    let widened = Widened::new(call, (0, &zero(2)?), (3, &zero(5)?))?;
    let (a_scale, b_scale, y_scale, y_zero) = (scales(1)?, scales(4)?, scales(6)?, zero(7)?);
    let sizes = widened.shape.sizes;
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
        // SAFETY: as above.
        let output = Parts::new(unsafe { y.elements_mut::<T>() }?);
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
        widened.multiply(cpu, call, None, Some(finish))
    })
}

/// Two operands with their zero points taken off.
struct Widened {
    shape: Shape,
    a: Vec<i32>,
    b: Vec<i32>,
}

impl Widened {
    /// The operands are given by their places in the call, with their zero points: one, one for each row of A or column of
    /// B, or one for each of every matrix.
    fn new(call: &Call<'_>, a: (usize, &[i32]), b: (usize, &[i32])) -> Result<Self> {
        let ((a, a_zero), (b, b_zero)) = ((call.input(a.0)?, a.1), (call.input(b.0)?, b.1));
        let shape = Shape::new(a.dims(), b.dims())?;
        let y = call.output(0)?;
        ensure!(
            shape.output == y.dims(),
            invalid_argument,
            "expected an output of shape {:?}, found {:?}",
            shape.output,
            y.dims()
        );
        let depth = shape.sizes.depth.max(1);
        let rows = if a.dims().len() < 2 { 1 } else { count(&a.dims()[a.dims().len() - 2..][..1])? };
        let columns = shape.sizes.columns.max(1);
        let fits = |zero: &[i32], lanes: usize, all: usize| {
            zero.len() == 1 || zero.len() == lanes || zero.len() == all
        };
        let (of_a, of_b) = (a.element_count()? / depth, b.element_count()? / depth);
        ensure!(
            fits(a_zero, rows, of_a)
                && fits(b_zero, columns, of_b)
                && !a_zero.is_empty()
                && !b_zero.is_empty(),
            invalid_argument,
            "expected one zero point or one for each of {rows} rows and {columns} columns, found {} and {}",
            a_zero.len(),
            b_zero.len()
        );
        let a = widened(&a, |index| a_zero[index / depth % a_zero.len()])?;
        let b = widened(&b, |index| {
            b_zero[(index / (depth * columns) * columns + index % columns) % b_zero.len()]
        })?;
        Ok(Self { shape, a, b })
    }

    fn multiply(
        self,
        cpu: &Cpu,
        call: &Call<'_>,
        output: Option<&mut [i32]>,
        finish: Option<&Finish<'_, i32>>,
    ) -> Result<()> {
        let Shape { sizes, left, right, .. } = self.shape;
        let left = Matrix::new(&self.a, left, (sizes.rows, sizes.depth), (sizes.depth, 1));
        let right = Matrix::new(&self.b, right, (sizes.columns, 1), (sizes.depth, sizes.columns));
        let (left, right): (Matrix<'_, i32>, Matrix<'_, i32>) =
            left.zip(right).ok_or_else(|| -> Error { too_small() })?;
        let (left, right) = (Side::Operand(&left), Side::Operand(&right));
        Product { sizes, left, right, output, finish }.compute(cpu, &mut Scratch::of(call));
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
