//! `MatMulInteger` and `QLinearMatMul`: 8-bit matrices with zero points, summed in 32 bits as in [`oarlock_cpu_nhwc::quantized`].

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::quantized_operand::{BYTE_DTYPES, RequantizedInteger, read_integers, read_scales};
use oarlock_cpu_base::window::MAX_SIZE;
use oarlock_cpu_gemm::{DisjointSlice, GemmEpilogue, GemmShape, OutputBlock, ScratchBuffer};
use oarlock_cpu_nhwc::channels_last::expect_prepared;
use oarlock_cpu_nhwc::quantized::byte_operands::tensor_bytes;
use oarlock_cpu_nhwc::quantized::integer_sums::{IntegerSumOperands, IntegerSums};
use oarlock_cpu_nhwc::quantized::quantized_panels::QuantizedPanels;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, TensorView,
    dispatch, dtype_set, ensure,
};

use super::matmul_shape::{BatchedMatmulShape, element_count};
use super::operand_size_error;

const SCALE_DTYPES: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32]);

pub(super) fn integer_matmul_kernels() -> [Kernel<Cpu>; 2] {
    let byte = OperandSpec::new(BYTE_DTYPES);
    let zero = byte.with_flags(OperandFlags::OPTIONAL);
    let integer = integer_matmul_kernel("MatMulInteger", 1, matmul_integer)
        .with_inputs([
            byte.with_name("A").with_dtype_group(1),
            byte.with_name("B").with_dtype_group(2),
            zero.with_name("a_zero_point").with_dtype_group(1),
            zero.with_name("b_zero_point").with_dtype_group(2),
        ])
        .with_outputs([OperandSpec::new(DtypeSet::I32).with_name("Y")]);
    let scale = OperandSpec::new(SCALE_DTYPES);
    let linear = integer_matmul_kernel("QLinearMatMul", 3, qlinear_matmul)
        .with_inputs([
            byte.with_name("a").with_dtype_group(1),
            scale.with_name("a_scale"),
            byte.with_name("a_zero_point").with_dtype_group(1),
            byte.with_name("b").with_dtype_group(2),
            scale.with_name("b_scale"),
            byte.with_name("b_zero_point").with_dtype_group(2),
            scale.with_name("y_scale"),
            byte.with_name("y_zero_point").with_dtype_group(3),
        ])
        .with_outputs([byte.with_name("y").with_dtype_group(3)]);
    [integer, linear]
}

type IntegerMatmulRun = fn(&IntegerMatmul, &Cpu, &KernelCall<'_>) -> Result<()>;

/// A kernel whose matrices are operand 0 and the operand at index `b`.
fn integer_matmul_kernel(op: &str, b: usize, run: IntegerMatmulRun) -> Kernel<Cpu> {
    Kernel::new_prepared(op, move |cpu: &Cpu, call| {
        let products = IntegerMatmul::new(cpu, call, b)?.prepare_constants(cpu, call)?;
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| run(&products, cpu, call)))
    })
    .since_version(10)
    .with_workspace(move |cpu, call| Ok(IntegerMatmul::new(cpu, call, b)?.sums.scratch_size() as u64))
    .with_flags(KernelFlags::DETERMINISTIC)
}

fn matmul_integer(products: &IntegerMatmul, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
    let zero = |index| call.optional_input(index)?.map_or(Ok(vec![0]), |zero| read_integers(&zero));
    // SAFETY: device memory is host memory, and the call guarantees its operands.
    let y = unsafe { call.output(0)?.elements_mut::<i32>() }?;
    products.multiply_integers(cpu, call, [&zero(2)?, &zero(3)?], y, None)
}

fn qlinear_matmul(products: &IntegerMatmul, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
    let scales = |index| read_scales(&call.input(index)?);
    let zero = |index| read_integers(&call.input(index)?);
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
    // The values repeat over the rows: one for all, one per row of a matrix, or one per row of all matrices.
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
        // SAFETY: device memory is host memory, and the call guarantees its operands.
        let output = unsafe { y.elements_mut::<T>() }?;
        let (mut sums, output) = (vec![0; output.len()], DisjointSlice::new(output));
        let epilogue: &GemmEpilogue<'_, i32> = &|mut part| {
            let (item, columns) = (part.item, part.columns.clone());
            for (row, numbers) in part.rows_mut() {
                let row = item * sizes.rows + row;
                let start = row * sizes.columns;
                // SAFETY: each element of the output is finished once, by one thread.
                let elements = unsafe { output.range_mut(start + columns.start..start + columns.end) };
                let zero = y_zero[row % y_zero.len()];
                let (a_scale, y_scale) = (a_scale[row % a_scale.len()], y_scale[row % y_scale.len()]);
                for ((column, number), element) in columns.clone().zip(numbers).zip(elements) {
                    // In the order of ONNX, since another rounds differently at ties.
                    let scale = a_scale * b_scale[(item * sizes.columns + column) % b_scale.len()] / y_scale;
                    *element = T::requantize_sum(*number, scale, zero);
                }
            }
        };
        products.multiply_integers(cpu, call, [&zero(2)?, &zero(5)?], &mut sums, Some(epilogue))
    })
}

/// Everything that is derived from the shapes and constants of a call.
struct IntegerMatmul {
    shape: BatchedMatmulShape,
    sums: IntegerSums,
    /// The index of the operand B.
    b: usize,
    /// The rows of a matrix of A.
    rows: usize,
    dims: [Vec<i64>; 2],
    packed: Option<Arc<QuantizedPanels>>,
}

impl IntegerMatmul {
    fn new(cpu: &Cpu, call: &KernelCall<'_>, place: usize) -> Result<Self> {
        let (a, b, y) = (call.input(0)?, call.input(place)?, call.output(0)?);
        let shape = BatchedMatmulShape::new(a.dims(), b.dims())?;
        ensure!(
            shape.output == y.dims(),
            invalid_argument,
            "expected an output of shape {:?}, found {:?}",
            shape.output,
            y.dims()
        );
        // Without products, the sizes do not matter, but might be too large for a plan.
        let GemmShape { items, rows, columns, depth } = shape.sizes;
        let [rows, depth, columns] = [rows, depth, columns].map(|size| if items == 0 { 0 } else { size });
        let fits = |size: usize| size as u64 <= MAX_SIZE.cast_unsigned();
        ensure!(
            fits(rows) && fits(columns) && fits(depth),
            unimplemented,
            "expected matrices of at most {MAX_SIZE} rows and columns, found {rows} by {depth} and {depth} by {columns}"
        );
        let sums = IntegerSums::for_matmul(cpu, [rows, depth, columns], [a.dtype(), b.dtype()]);
        // Zero points refer to the rows of one matrix; the product may contain the rows of several.
        let rows = if a.dims().len() < 2 { 1 } else { element_count(&a.dims()[a.dims().len() - 2..][..1])? };
        let dims = [a.dims().to_vec(), b.dims().to_vec()];
        Ok(Self { shape, sums, b: place, rows, dims, packed: None })
    }

    /// Packs B if it is constant.
    fn prepare_constants(mut self, cpu: &Cpu, call: &KernelCall<'_>) -> Result<Self> {
        let b = call.input(self.b)?;
        // Only a matrix that all products share is packed in advance.
        let is_packed = b.is_constant() && self.shape.right.len() == 1 && self.shape.sizes.items > 0;
        self.packed = is_packed.then(|| self.sums.pack_constant(cpu, &b)).transpose()?;
        super::describe_product(cpu, call, is_packed);
        Ok(self)
    }

    /// Computes the products. There is one zero point; or one per row of A and column of B; or one of these for each matrix.
    fn multiply_integers(
        &self,
        cpu: &Cpu,
        call: &KernelCall<'_>,
        [a_zeros, b_zeros]: [&[i32]; 2],
        y: &mut [i32],
        epilogue: Option<&GemmEpilogue<'_, i32>>,
    ) -> Result<()> {
        let (a, b) = (call.input(0)?, call.input(self.b)?);
        expect_prepared(self.dims == [a.dims(), b.dims()])?;
        let GemmShape { items, rows, columns, depth } = self.shape.sizes;
        let of_all = |operand: &TensorView<'_>| Ok(operand.element_count()? / depth.max(1));
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
        // SAFETY: device memory is host memory, and the call guarantees its operands.
        let (a, b) = unsafe { (tensor_bytes(&a)?, tensor_bytes(&b)?) };
        // The zero points of one matrix, starting at its first row or column.
        let from = |zeros: &[i32], first: usize, count: usize| -> Vec<i32> {
            if zeros.len() == 1 {
                zeros.to_vec()
            } else {
                // Zero points repeat with the matrices of a broadcast operand.
                (first..first + count).map(|at| zeros[at % zeros.len()]).collect()
            }
        };
        let mut scratch = ScratchBuffer::from_call(call);
        // The panels of the last matrix, with its offset, for the case that B is not constant.
        let mut now: Option<(usize, QuantizedPanels)> = None;
        for (item, y) in y.chunks_exact_mut((rows * columns).max(1)).take(items).enumerate() {
            let left = self.shape.left[if self.shape.left.len() == 1 { 0 } else { item }];
            let right = self.shape.right[if self.shape.right.len() == 1 { 0 } else { item }];
            let images = a.get(left..left + rows * depth).ok_or_else(operand_size_error)?;
            let weights = if let Some(packed) = &self.packed {
                &**packed
            } else {
                let matrix = b.get(right..right + depth * columns).ok_or_else(operand_size_error)?;
                // Consecutive products often share a matrix.
                if now.as_ref().is_none_or(|(packed, _)| *packed != right) {
                    now = Some((right, self.sums.pack_weights(cpu, matrix)));
                }
                let Some((_, panels)) = &now else { unreachable!("the matrix was packed just now") };
                panels
            };
            let operands = IntegerSumOperands {
                images,
                image_zeros: &from(a_zeros, left / depth.max(1), rows),
                weights,
                weight_zeros: &from(b_zeros, right / depth.max(1), columns),
                bias: None,
            };
            let of_item = |mut part: OutputBlock<'_, i32>| {
                // Each product is computed separately, so its block always states item 0.
                part.item = item;
                if let Some(epilogue) = epilogue {
                    epilogue(part);
                }
            };
            self.sums.compute(cpu, &operands, y, epilogue.is_some().then_some(&of_item), &mut scratch);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::TestArray;

    #[test]
    fn zero_points_are_taken_off_before_multiplying() {
        let a = TestArray::from_values(&[2, 3], &[11u8, 7, 3, 10, 6, 2]);
        let b = TestArray::from_values(&[3, 2], &[1u8, 4, 2, 5, 3, 6]);
        let (a_zero, b_zero) =
            (TestArray::from_values(&[], &[12u8]), TestArray::from_values(&[2], &[0u8, 1]));
        let inputs = [Some(&a), Some(&b), Some(&a_zero), Some(&b_zero)];
        let results =
            KERNELS.run_kernel("MatMulInteger", 10, &[], &inputs, &[Some((Dtype::I32, &[2, 2]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<i32>(), [-38, -68, -44, -80]);
    }

    #[test]
    fn results_are_scaled_rounded_and_kept_in_range() {
        let a = TestArray::from_values(&[1, 2], &[130u8, 126]);
        let b = TestArray::from_values(&[2, 3], &[1i8, 100, -100, 0, 0, 0]);
        let (half, one) = (TestArray::from_values(&[1], &[0.75f32]), TestArray::from_values(&[1], &[1f32]));
        let (a_zero, b_zero, y_zero) = (
            TestArray::from_values(&[1], &[128u8]),
            TestArray::from_values(&[1], &[0i8]),
            TestArray::from_values(&[1], &[-1i8]),
        );
        let inputs = [&a, &half, &a_zero, &b, &one, &b_zero, &one, &y_zero].map(Some);
        let results =
            KERNELS.run_kernel("QLinearMatMul", 10, &[], &inputs, &[Some((Dtype::I8, &[1, 3]))]).unwrap();
        // 2 × 1 × 0.75 = 1.5, which rounds to even: 2.
        assert_eq!(results[0].as_ref().unwrap().values::<i8>(), [1, 127, -128]);
    }

    #[test]
    fn a_wrong_number_of_zero_points_is_refused() {
        let (a, zero) = (TestArray::from_values(&[2, 2], &[1u8; 4]), TestArray::from_values(&[3], &[1u8; 3]));
        let inputs = [Some(&a), Some(&a), Some(&zero)];
        let message = KERNELS
            .run_kernel("MatMulInteger", 10, &[], &inputs, &[Some((Dtype::I32, &[2, 2]))])
            .unwrap_err();
        assert!(message.contains("2 rows"), "{message}");
    }
}
