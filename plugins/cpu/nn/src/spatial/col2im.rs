//! `Col2Im`: assembles images from blocks; elements of overlapping blocks are added.

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::window::WindowAxis;
use oarlock_cpu_gemm::{StoredElement, as_computed};
use oarlock_sdk::shape::element_count;
use oarlock_sdk::{DtypeSet, Kernel, MemoryKind, OperandSpec, PluginError, Result, dispatch, ensure, family};

use super::block_settings::{BlockSettings, MAX_SIZE};
use crate::conv::col2im::Col2ImFold;

const COL2IM_DTYPES: DtypeSet = family::FLOATING_AND_INTEGRAL
    .union(DtypeSet::F16)
    .union(DtypeSet::BF16)
    .union(DtypeSet::U16)
    .union(DtypeSet::U32)
    .union(DtypeSet::U64);

pub(super) fn col2im_kernels() -> Vec<Kernel<Cpu>> {
    let number = OperandSpec::new(COL2IM_DTYPES).with_dtype_group(1);
    let shape = OperandSpec::new(DtypeSet::I64).with_rank(1, 1).in_memory(MemoryKind::HOST);
    let kernel = operand_kernel("Col2Im", BlockSettings::new, |cpu, settings, operands| {
        let (dtype, layout) = (operands.call().input(0)?.dtype(), BlockLayout::new(settings, operands)?);
        dispatch!(dtype, floating_and_integral + f16 + bf16 + u16 + u32 + u64, T => {
            add_blocks::<T>(cpu, &layout, operands)
        })
    });
    vec![
        kernel
            .since_version(18)
            .with_inputs([
                number.with_name("input").with_rank(3, 3),
                shape.with_name("image_shape"),
                shape.with_name("block_shape"),
            ])
            .with_outputs([number.with_name("output")]),
    ]
}

/// The blocks of an image.
struct BlockLayout {
    axes: Vec<WindowAxis>,
    /// The number of elements of an image.
    image_size: usize,
    /// The number of elements of all blocks of an image.
    column_count: usize,
    block_size: usize,
}

impl BlockLayout {
    fn new(settings: &BlockSettings, operands: &KernelOperands<'_, '_>) -> Result<Self> {
        let call = operands.call();
        let (input, output) = (call.input(0)?, call.output(0)?);
        let (image, block) = (operands.read_input::<i64>(1)?, operands.read_input::<i64>(2)?);
        let [strides, dilations, pads] = settings.for_axes(image.len())?;
        // `image_shape` and `block_shape` are data, so they may have any values.
        let sizes_fit = image.len() == block.len()
            && !image.is_empty()
            && image.iter().all(|size| (0..=MAX_SIZE).contains(size))
            && block.iter().all(|size| (1..=MAX_SIZE).contains(size));
        ensure!(
            sizes_fit,
            invalid_argument,
            "expected as many sizes of blocks as of images, found {image:?} and {block:?}"
        );
        let mut axes = Vec::new();
        for axis in 0..image.len() {
            let padded = image[axis] + pads[axis] + pads[axis + image.len()];
            let extent = (block[axis] - 1).saturating_mul(dilations[axis]).saturating_add(1);
            ensure!(
                // If no block fits, the division below would round towards 0, to one block.
                extent <= padded,
                invalid_argument,
                "expected blocks of at most {padded} elements along axis {axis}, found {extent}"
            );
            axes.push(WindowAxis {
                input: image[axis] as usize,
                output: ((padded - extent) / strides[axis] + 1) as usize,
                kernel: block[axis] as usize,
                stride: strides[axis] as usize,
                dilation: dilations[axis] as usize,
                pad: (pads[axis] as usize, pads[axis + image.len()] as usize),
            });
        }
        let (image_size, block_size) = (element_count(image)?, element_count(block)?);
        let places = element_count(&axes.iter().map(|axis| axis.output as i64).collect::<Vec<_>>())?;
        let &[images, rows, _] = input.dims() else {
            return Err(PluginError::invalid_argument(format!(
                "expected three dimensions, found {:?}",
                input.dims()
            )));
        };
        // Rounded down; the check of `input` below rejects a remainder.
        let channels = rows / block_size as i64;
        operands.expect_dims(&input, "input", &[images, channels * block_size as i64, places as i64])?;
        operands.expect_dims(&output, "output", &[&[images, channels], image].concat())?;
        Ok(Self { axes, image_size, column_count: block_size.saturating_mul(places), block_size })
    }
}

fn add_blocks<E: StoredElement>(
    cpu: &Cpu,
    layout: &BlockLayout,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let BlockLayout { axes, image_size, column_count, block_size } = layout;
    let (input, output) = (operands.read_input::<E>(0)?, operands.write_output::<E>(0)?);
    if output.is_empty() {
        return Ok(());
    }
    // One item per channel of an image: blocks overlap only within a channel, so channels are independent.
    let (count, grain) = (output.len() / image_size, grain_for(*column_count));
    parallel_for_parts(cpu, count, grain, OutputRows::new(output, *image_size), |first, output| {
        // In the type of sums, because many blocks may overlap: 16-bit floats would round after each addition.
        let mut sums = vec![E::ComputeType::ZERO; *image_size];
        let mut widened = Vec::new();
        for (index, output) in output.chunks_mut(*image_size).enumerate() {
            let columns = &input[(first + index) * column_count..][..*column_count];
            let columns = as_computed(columns).unwrap_or_else(|| {
                widened.clear();
                widened.extend(columns.iter().map(|element| element.convert()));
                &widened
            });
            sums.fill(E::ComputeType::ZERO);
            Col2ImFold { axes, steps: 0..*block_size, columns, image: &mut sums }.add_to_image(cpu.isa());
            output.iter_mut().zip(&sums).for_each(|(output, sum)| *output = E::from_computed(*sum));
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn elements_of_blocks_that_overlap_are_added() {
        let input = TestArray::from_values(&[1, 2, 2], &[1i32, 2, 10, 20]);
        let (image, block) = (TestArray::from_values(&[1], &[3i64]), TestArray::from_values(&[1], &[2i64]));
        let inputs = [Some(&input), Some(&image), Some(&block)];
        KERNELS.check_kernel("Col2Im", 18, &[], &inputs, &[TestArray::from_values(&[1, 1, 3], &[1, 12, 20])]);
    }

    /// Checks blocks with this size, stride, dilation and padding along the last of three axes of an image.
    fn check_col2im([size, block, stride, dilation, before, after]: [usize; 6]) {
        let (image, block) = ([3usize, 6, size], [2usize, 1, block]);
        let (strides, dilations) = ([1usize, 2, stride], [2usize, 1, dilation]);
        let pads = [1usize, 0, before, 0, 1, after];
        let places = [2usize, 4, (size + before + after - (block[2] - 1) * dilation - 1) / stride + 1];
        let (rows, columns) = (2 * block.iter().product::<usize>(), places.iter().product::<usize>());
        let values: Vec<i64> = (0..rows * columns).map(|at| (at * 37 % 101) as i64).collect();
        let mut sums = vec![0i64; 2 * image.iter().product::<usize>()];
        for (at, value) in values.iter().enumerate() {
            let (mut row, mut place) = (at / columns, at % columns);
            let (mut target, mut pitch, mut is_inside) = (0, 1, true);
            for axis in (0..3).rev() {
                let along = row % block[axis] * dilations[axis] + place % places[axis] * strides[axis];
                is_inside &= (pads[axis]..pads[axis] + image[axis]).contains(&along);
                target += along.saturating_sub(pads[axis]) * pitch;
                (row, place, pitch) = (row / block[axis], place / places[axis], pitch * image[axis]);
            }
            if is_inside {
                sums[target + row * pitch] += value;
            }
        }
        let list = |list: &[usize]| list.iter().map(|item| *item as i64).collect::<Vec<_>>();
        let (strides, dilations, pads) = (list(&strides), list(&dilations), list(&pads));
        let attributes = [
            ("strides", TestAttribute::Ints(&strides)),
            ("dilations", TestAttribute::Ints(&dilations)),
            ("pads", TestAttribute::Ints(&pads)),
        ];
        let input = TestArray::from_values(&[1, rows as i64, columns as i64], &values);
        let inputs =
            [input, TestArray::from_values(&[3], &list(&image)), TestArray::from_values(&[3], &list(&block))];
        let inputs = [Some(&inputs[0]), Some(&inputs[1]), Some(&inputs[2])];
        KERNELS.check_kernel(
            "Col2Im",
            18,
            &attributes,
            &inputs,
            &[TestArray::from_values(&[1, 2, 3, 6, size as i64], &sums)],
        );
    }

    #[test]
    fn blocks_lie_where_strides_dilations_and_pads_put_them() {
        for size in [1, 2, 5, 16, 41] {
            for block in 1..6 {
                for (stride, dilation) in [(1, 1), (2, 1), (2, 2), (3, 1)] {
                    for (before, after) in [(0, 0), (2, 0), (1, 3), (4, 4)] {
                        if (block - 1) * dilation < size + before + after {
                            check_col2im([size, block, stride, dilation, before, after]);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn hostile_sizes_are_refused() {
        let input = TestArray::from_values(&[1, 2, 2], &[1i32, 2, 10, 20]);
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::I32, &[1, 1, 3]))];
        for (image, block, strides) in
            [(3, 0, 1), (3, i64::MAX, 1), (i64::MAX, 2, 1), (3, 2, 0), (3, 2, i64::MIN)]
        {
            let (image, block) =
                (TestArray::from_values(&[1], &[image]), TestArray::from_values(&[1], &[block]));
            let strides = [strides];
            let attributes = [("strides", TestAttribute::Ints(&strides))];
            KERNELS.refusal_message(
                "Col2Im",
                18,
                &attributes,
                &[Some(&input), Some(&image), Some(&block)],
                &outputs,
            );
        }
    }
}
