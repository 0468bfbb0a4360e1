//! `ConvInteger` and `QLinearConv`: 8-bit images and weights with zero points, summed in 32 bits.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::quantized_operand::{
    BYTE_DTYPES, RequantizedInteger, read_integers, read_scales, subtract_zero_points,
};
use oarlock_cpu_base::window::WindowAttributes;
use oarlock_cpu_gemm::{BatchedGemm, DisjointSlice, GemmEpilogue, GemmOperand, OutputBlock, ScratchBuffer};
use oarlock_cpu_nhwc::channels_last::expect_prepared;
use oarlock_cpu_nhwc::channels_last::geometry::NhwcGeometry;
use oarlock_cpu_nhwc::quantized::byte_operands::tensor_bytes;
use oarlock_cpu_nhwc::quantized::integer_sums::{IntegerSumOperands, IntegerSums};
use oarlock_cpu_nhwc::quantized::quantized_panels::QuantizedPanels;
use oarlock_sdk::{
    DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, TensorView, dispatch,
    ensure,
};

use super::conv_shape::ConvShape;

type PreparedIntegerConv = dyn Fn(&Cpu, &KernelCall<'_>) -> Result<()> + Send + Sync;

/// The minimum number of outputs per group for the NHWC algorithm. With fewer, most lanes of a vector would be empty.
const FEW_OUTPUTS: usize = 4;

struct IntegerConvPlan {
    settings: WindowAttributes,
    groups: i64,
    /// The shapes of images, weights and output.
    dims: [Vec<i64>; 3],
    /// The NHWC algorithm, if groups have enough outputs, with packed weights if these are constant.
    sums: Option<(IntegerSums, Option<Arc<QuantizedPanels>>)>,
}

pub(super) fn integer_conv_kernels() -> [Kernel<Cpu>; 2] {
    let byte = OperandSpec::new(BYTE_DTYPES);
    let zero = byte.with_flags(OperandFlags::OPTIONAL);
    let images = byte.with_rank(3, u32::MAX);
    let integer = Kernel::new_prepared("ConvInteger", |cpu: &Cpu, call| {
        prepare_integer_conv(cpu, call, 1, conv_integer)
    })
    .since_version(10)
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([
        images.with_name("x").with_dtype_group(1),
        images.with_name("w").with_dtype_group(2),
        zero.with_name("x_zero_point").with_dtype_group(1),
        zero.with_name("w_zero_point").with_dtype_group(2),
    ])
    .with_outputs([OperandSpec::new(DtypeSet::I32).with_name("y")]);
    let scale = OperandSpec::new(DtypeSet::F32);
    let linear = Kernel::new_prepared("QLinearConv", |cpu: &Cpu, call| {
        prepare_integer_conv(cpu, call, 3, qlinear_conv)
    })
    .since_version(10)
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([
        images.with_name("x").with_dtype_group(1),
        scale.with_name("x_scale"),
        byte.with_name("x_zero_point").with_dtype_group(1),
        images.with_name("w").with_dtype_group(2),
        scale.with_name("w_scale"),
        byte.with_name("w_zero_point").with_dtype_group(2),
        scale.with_name("y_scale"),
        byte.with_name("y_zero_point").with_dtype_group(3),
        OperandSpec::new(DtypeSet::I32).with_name("B").with_rank(1, 1).with_flags(OperandFlags::OPTIONAL),
    ])
    .with_outputs([byte.with_name("y").with_dtype_group(3)]);
    [integer, linear]
}

/// Prepares a call whose weights are the operand at index `place`.
fn prepare_integer_conv(
    cpu: &Cpu,
    call: &KernelCall<'_>,
    place: usize,
    run: fn(&Cpu, &KernelCall<'_>, &IntegerConvPlan) -> Result<()>,
) -> Result<Arc<PreparedIntegerConv>> {
    let (settings, groups) = (WindowAttributes::new(call)?, call.int_attribute("group")?.unwrap_or(1));
    let (x, w, y) = (call.input(0)?, call.input(place)?, call.output(0)?);
    // Shapes in NHWC order.
    let last = |dims: &[i64]| match dims {
        [images, channels, spatial @ ..] => [&[*images], spatial, &[*channels]].concat(),
        _ => Vec::new(),
    };
    let geometry =
        NhwcGeometry::for_convolution(&settings, groups, &last(x.dims()), w.dims(), &last(y.dims()));
    let geometry = geometry.ok().filter(|geometry| geometry.outputs_per_group() >= FEW_OUTPUTS);
    let sums = match geometry {
        None => None,
        Some(geometry) => {
            let sums = IntegerSums::for_images(cpu, geometry, [x.dtype(), w.dtype()]);
            // Weights that are not constant are packed in each run.
            let packed = w.is_constant().then(|| sums.pack_constant(cpu, &w)).transpose()?;
            Some((sums, packed))
        }
    };
    let dims = [x.dims(), w.dims(), y.dims()].map(<[i64]>::to_vec);
    let plan = IntegerConvPlan { settings, groups, dims, sums };
    Ok(Arc::new(move |cpu, call| run(cpu, call, &plan)))
}

fn conv_integer(cpu: &Cpu, call: &KernelCall<'_>, plan: &IntegerConvPlan) -> Result<()> {
    let (x, w, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    expect_prepared(plan.dims == [x.dims(), w.dims(), y.dims()])?;
    let layer = ConvShape::new(&plan.settings, plan.groups, x.dims(), w.dims(), y.dims())?;
    let zero = |index| call.optional_input(index)?.map_or(Ok(vec![0]), |zero| read_integers(&zero));
    // SAFETY: device memory is host memory, and the call guarantees its operands.
    let y = unsafe { y.elements_mut::<i32>() }?;
    convolve_integers(cpu, call, (plan, &layer), (&x, &zero(2)?), (&w, &zero(3)?), Some(y), None)
}

fn qlinear_conv(cpu: &Cpu, call: &KernelCall<'_>, plan: &IntegerConvPlan) -> Result<()> {
    let (x, w, y) = (call.input(0)?, call.input(3)?, call.output(0)?);
    expect_prepared(plan.dims == [x.dims(), w.dims(), y.dims()])?;
    let layer = ConvShape::new(&plan.settings, plan.groups, x.dims(), w.dims(), y.dims())?;
    let (x_scale, y_scale) =
        (single_value(read_scales(&call.input(1)?)?)?, single_value(read_scales(&call.input(6)?)?)?);
    let (w_scale, y_zero) = (read_scales(&call.input(4)?)?, single_value(read_integers(&call.input(7)?)?)?);
    let bias = call.optional_input(8)?.map(|bias| read_integers(&bias)).transpose()?;
    let outputs = layer.groups * layer.rows;
    ensure!(
        (w_scale.len() == 1 || w_scale.len() == outputs)
            && bias.as_ref().is_none_or(|bias| bias.len() == outputs),
        invalid_argument,
        "expected one `w_scale` or {outputs} and {outputs} biases or none, found {} and {:?}",
        w_scale.len(),
        bias.map(|bias| bias.len())
    );
    let columns = layer.window.output_count();
    dispatch!(y.dtype(), integral, T => {
        // SAFETY: as above.
        let y = DisjointSlice::new(unsafe { y.elements_mut::<T>() }?);
        let epilogue: &GemmEpilogue<'_, i32> = &|mut part| {
            let (item, columns_of_part) = (part.item, part.columns.clone());
            for (row, numbers) in part.rows_mut() {
                let output = item % layer.groups * layer.rows + row;
                let start = (item * layer.rows + row) * columns;
                // SAFETY: each element of the output is finished once, by one thread.
                let elements = unsafe { y.range_mut(start + columns_of_part.start..start + columns_of_part.end) };
                // In the order of the op's definition: another order would round differently.
                let scale = x_scale * w_scale[output % w_scale.len()] / y_scale;
                let bias = bias.as_ref().map_or(0, |bias| bias[output]);
                for (element, number) in elements.iter_mut().zip(numbers) {
                    *element = T::requantize_sum(number.wrapping_add(bias), scale, y_zero);
                }
            }
        };
        let zeros = (read_integers(&call.input(2)?)?, read_integers(&call.input(5)?)?);
        convolve_integers(cpu, call, (plan, &layer), (&x, &zeros.0), (&w, &zeros.1), None, Some(epilogue))
    })
}

/// The value of a single-element operand.
fn single_value<T: Copy>(values: Vec<T>) -> Result<T> {
    ensure!(
        values.len() == 1,
        invalid_argument,
        "expected a scale or zero point of one value, found {}",
        values.len()
    );
    Ok(values[0])
}

/// Convolves images and weights, each with its zero points: one, or for weights one per output channel.
fn convolve_integers(
    cpu: &Cpu,
    call: &KernelCall<'_>,
    (plan, layer): (&IntegerConvPlan, &ConvShape),
    (x, x_zero): (&TensorView<'_>, &[i32]),
    (w, w_zero): (&TensorView<'_>, &[i32]),
    output: Option<&mut [i32]>,
    epilogue: Option<&GemmEpilogue<'_, i32>>,
) -> Result<()> {
    let (outputs, depth) = (layer.groups * layer.rows, layer.depth());
    ensure!(
        x_zero.len() == 1 && (w_zero.len() == 1 || w_zero.len() == outputs),
        invalid_argument,
        "expected one zero point of images and one or {outputs} of weights, found {} and {}",
        x_zero.len(),
        w_zero.len()
    );
    if layer.gemm_shape().items * layer.rows * layer.window.output_count() == 0 {
        return Ok(());
    }
    if let Some((sums, packed)) = &plan.sums {
        // SAFETY: device memory is host memory, and the call guarantees its operands.
        let (x, w) = unsafe { (tensor_bytes(x)?, tensor_bytes(w)?) };
        let now;
        let weights = match packed {
            Some(packed) => &**packed,
            None => {
                now = sums.pack_weights(cpu, w);
                &now
            }
        };
        let zeros = (x_zero, w_zero);
        return convolve_by_sums(
            cpu,
            layer,
            (sums, weights),
            (x, zeros),
            output,
            epilogue,
            &mut ScratchBuffer::from_call(call),
        );
    }
    // With few outputs per group, as in depthwise convolutions, the general product multiplies 32-bit integers, from which zero
    // points were subtracted.
    let x = subtract_zero_points(x, |_| x_zero[0])?;
    let w = subtract_zero_points(w, |index| w_zero[index / depth % w_zero.len()])?;
    let (left, right) = (layer.weights_operand(&w)?, layer.images_operand(&x, cpu.isa())?);
    let (left, right) = (GemmOperand::Operand(&left), GemmOperand::Operand(&*right));
    let sizes = layer.gemm_shape();
    BatchedGemm { sizes, left, right, output, epilogue }.compute(cpu, &mut ScratchBuffer::from_call(call));
    Ok(())
}

/// Convolves NHWC images and transposes the results.
fn convolve_by_sums(
    cpu: &Cpu,
    layer: &ConvShape,
    (sums, weights): (&IntegerSums, &QuantizedPanels),
    (x, (x_zero, w_zero)): (&[u8], (&[i32], &[i32])),
    output: Option<&mut [i32]>,
    epilogue: Option<&GemmEpilogue<'_, i32>>,
    scratch: &mut ScratchBuffer<'_>,
) -> Result<()> {
    let (channels, outputs, pixels) =
        (layer.groups * layer.channels, layer.groups * layer.rows, layer.window.output_count());
    let mut images = vec![0; x.len()];
    let inputs = (x.len() / layer.images.max(1)).max(1);
    for (image, from) in images.chunks_exact_mut(inputs).zip(x.chunks_exact(inputs)) {
        // Transposed to NHWC, in which the channels of a sum are contiguous, as the instructions that multiply four bytes need
        // them.
        transpose_blocks(from, (channels, inputs / channels.max(1)), image);
    }
    let operands = IntegerSumOperands {
        images: &images,
        image_zeros: x_zero,
        weights,
        weight_zeros: w_zero,
        bias: None,
    };
    // Sums are computed in NHWC first: an epilogue of the product would see the wrong layout.
    let mut result = vec![0; layer.images * pixels * outputs];
    sums.compute(cpu, &operands, &mut result, None, scratch);
    // The epilogue needs NCHW sums. `ConvInteger` writes them to its output; `QLinearConv` needs a buffer.
    let mut own = Vec::new();
    let y = match output {
        Some(y) => y,
        None => {
            own.resize(result.len(), 0);
            &mut own[..]
        }
    };
    for (image, from) in y.chunks_exact_mut(pixels * outputs).zip(result.chunks_exact(pixels * outputs)) {
        transpose_blocks(from, (pixels, outputs), image);
    }
    let Some(epilogue) = epilogue else { return Ok(()) };
    for (item, part) in y.chunks_exact_mut(layer.rows * pixels).enumerate() {
        // SAFETY: the rows follow each other, and nothing else accesses them.
        epilogue(unsafe { OutputBlock::new(item, 0..layer.rows, 0..pixels, part.as_mut_ptr(), pixels) });
    }
    Ok(())
}

/// Rows and columns that are transposed at a time, so that a block stays in L1.
const TRANSPOSE_BLOCK: usize = 32;

/// Transposes a matrix block by block.
fn transpose_blocks<T: Copy>(from: &[T], (rows, columns): (usize, usize), to: &mut [T]) {
    for (first_row, first_column) in (0..rows)
        .step_by(TRANSPOSE_BLOCK)
        .flat_map(|row| (0..columns).step_by(TRANSPOSE_BLOCK).map(move |column| (row, column)))
    {
        for column in first_column..columns.min(first_column + TRANSPOSE_BLOCK) {
            for row in first_row..rows.min(first_row + TRANSPOSE_BLOCK) {
                to[column * rows + row] = from[row * columns + column];
            }
        }
    }
}
