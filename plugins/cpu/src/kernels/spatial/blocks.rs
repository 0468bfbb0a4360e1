//! `Col2Im`: images put together of blocks that overlap, whose elements are added up.

use oarlock_sdk::{DtypeSet, Error, Kernel, MemoryKind, Operand, Result, dispatch, ensure, family};

use super::window::{MOST, Settings};
use crate::device::Cpu;
use crate::kernels::rows::axis::count;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Exact, Number};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Rows, in_parallel};

const NUMBERS: DtypeSet = family::FLOATING_AND_INTEGRAL
    .union(DtypeSet::F16)
    .union(DtypeSet::BF16)
    .union(DtypeSet::U16)
    .union(DtypeSet::U32)
    .union(DtypeSet::U64);

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let number = Operand::new(NUMBERS).group(1);
    let shape = Operand::new(DtypeSet::I64).rank(1, 1).on(MemoryKind::HOST);
    let kernel = kernel("Col2Im", Settings::new, |cpu, settings, operands| {
        let dtype = operands.call().input(0)?.dtype();
        dispatch!(dtype, floating_and_integral + f16 + bf16 + u16 + u32 + u64, T => {
            put_together::<T>(cpu, settings, operands)
        })
    });
    vec![
        kernel
            .since(18)
            .inputs([
                number.named("input").rank(3, 3),
                shape.named("image_shape"),
                shape.named("block_shape"),
            ])
            .outputs([number.named("output")]),
    ]
}

/// One axis of images and blocks.
struct Axis {
    image: i64,
    block: i64,
    /// How many places of the block there are.
    places: i64,
    stride: i64,
    dilation: i64,
    pad: i64,
}

fn put_together<T: Number>(cpu: &Cpu, settings: &Settings, operands: &Operands<'_, '_>) -> Result<()> {
    let call = operands.call();
    let (input, output) = (call.input(0)?, call.output(0)?);
    let (image, block) = (operands.read::<i64>(1)?, operands.read::<i64>(2)?);
    let [strides, dilations, pads] = settings.of_axes(image.len())?;
    let sizes_fit = image.len() == block.len()
        && !image.is_empty()
        && image.iter().all(|size| (0..=MOST).contains(size))
        && block.iter().all(|size| (1..=MOST).contains(size));
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
            extent <= padded,
            invalid_argument,
            "expected blocks of at most {padded} elements along axis {axis}, found {extent}"
        );
        axes.push(Axis {
            image: image[axis],
            block: block[axis],
            places: (padded - extent) / strides[axis] + 1,
            stride: strides[axis],
            dilation: dilations[axis],
            pad: pads[axis],
        });
    }
    let (image_size, block_size) = (count(image)?, count(block)?);
    let places = count(&axes.iter().map(|axis| axis.places).collect::<Vec<_>>())?;
    let &[images, rows, _] = input.dims() else {
        return Err(Error::invalid_argument(format!("expected three dimensions, found {:?}", input.dims())));
    };
    let channels = rows / block_size as i64;
    operands.expect_dims(&input, "input", &[images, channels * block_size as i64, places as i64])?;
    operands.expect_dims(&output, "output", &[&[images, channels], image].concat())?;
    let (input, output) = (operands.read::<T>(0)?, operands.write::<T>(0)?);
    if output.is_empty() {
        return Ok(());
    }
    let count = output.len() / image_size;
    in_parallel(cpu, count, grain(block_size * places), Rows::new(output, image_size), |first, output| {
        let mut sums = vec![T::Exact::ZERO; image_size];
        for (index, output) in output.chunks_mut(image_size).enumerate() {
            let columns = &input[(first + index) * block_size * places..][..block_size * places];
            sums.fill(T::Exact::ZERO);
            for (offset, column) in columns.chunks(places).enumerate() {
                add_column(&axes, offset, column, &mut sums);
            }
            output.iter_mut().zip(&sums).for_each(|(output, sum)| *output = T::of_exact(*sum));
        }
    });
    Ok(())
}

/// Adds the elements at one offset in all blocks.
fn add_column<T: Number>(axes: &[Axis], offset: usize, column: &[T], sums: &mut [T::Exact]) {
    let mut starts = vec![0; axes.len()];
    let mut rest = offset as i64;
    for (start, axis) in starts.iter_mut().zip(axes).rev() {
        *start = rest % axis.block * axis.dilation - axis.pad;
        rest /= axis.block;
    }
    let mut place = vec![0; axes.len()];
    for element in column {
        let at = axes.iter().zip(&starts).zip(&place).try_fold(0, |at, ((axis, start), place)| {
            let along = start + place * axis.stride;
            (0..axis.image).contains(&along).then(|| at * axis.image + along)
        });
        if let Some(at) = at {
            let sum = &mut sums[at as usize];
            *sum = sum.plus(element.exact());
        }
        for (place, axis) in place.iter_mut().zip(axes).rev() {
            *place += 1;
            if *place < axis.places {
                break;
            }
            *place = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::kernels::rows::checking::{check, refusal};
    use crate::testing::{Array, Attribute};

    #[test]
    fn elements_of_blocks_that_overlap_are_added() {
        let input = Array::of(&[1, 2, 2], &[1i32, 2, 10, 20]);
        let (image, block) = (Array::of(&[1], &[3i64]), Array::of(&[1], &[2i64]));
        let inputs = [Some(&input), Some(&image), Some(&block)];
        check("Col2Im", 18, &[], &inputs, &[Array::of(&[1, 1, 3], &[1, 12, 20])]);
    }

    #[test]
    fn hostile_sizes_are_refused() {
        let input = Array::of(&[1, 2, 2], &[1i32, 2, 10, 20]);
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::I32, &[1, 1, 3]))];
        for (image, block, strides) in
            [(3, 0, 1), (3, i64::MAX, 1), (i64::MAX, 2, 1), (3, 2, 0), (3, 2, i64::MIN)]
        {
            let (image, block) = (Array::of(&[1], &[image]), Array::of(&[1], &[block]));
            let strides = [strides];
            let attributes = [("strides", Attribute::Ints(&strides))];
            refusal("Col2Im", 18, &attributes, &[Some(&input), Some(&image), Some(&block)], &outputs);
        }
    }
}
