//! `MaxUnpool`: puts elements back where `MaxPool` found them, and zeros everywhere else.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::window::{MAX_SIZE, unravel_index};
use oarlock_sdk::{
    DtypeSet, Element, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, PluginError, Result,
    dispatch, ensure,
};

use super::FLOATS;

pub(super) fn max_unpool_kernel() -> Kernel<Cpu> {
    let image = OperandSpec::new(FLOATS).with_dtype_group(1).with_rank(3, u32::MAX);
    Kernel::new(
        "MaxUnpool",
        |_: &Cpu, call| dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => run_max_unpool::<T>(call)),
    )
    .since_version(9)
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([
        image.with_name("X"),
        OperandSpec::new(DtypeSet::I64).with_name("I").with_rank(3, u32::MAX),
        OperandSpec::new(DtypeSet::I64).with_name("output_shape").with_rank(1, 1).with_flags(OperandFlags::OPTIONAL),
    ])
    .with_outputs([image.with_name("output")])
}

/// The shape to which the indices refer: the smallest image that pools to this input.
fn pooled_shape(call: &KernelCall<'_>, x: &[i64]) -> Result<Vec<usize>> {
    let rank = x.len().saturating_sub(2);
    let list = |name: &str, count: usize, least: i64, default: i64| -> Result<Vec<i64>> {
        let values = call.ints_attribute(name)?.map_or_else(|| vec![default; count], <[i64]>::to_vec);
        ensure!(
            values.len() == count && values.iter().all(|value| (least..=MAX_SIZE).contains(value)),
            invalid_argument,
            "expected `{name}` of {count} values between {least} and {MAX_SIZE}, found {values:?}"
        );
        Ok(values)
    };
    let kernel = list("kernel_shape", rank, 1, 0)?;
    let (strides, pads) = (list("strides", rank, 1, 1)?, list("pads", 2 * rank, 0, 0)?);
    let mut shape = Vec::with_capacity(x.len());
    for (axis, dim) in x.iter().enumerate() {
        let size = match axis.checked_sub(2) {
            None => *dim,
            Some(axis) => {
                // The smallest size with this many windows.
                let windows = (dim - 1).checked_mul(strides[axis]);
                windows.map_or(-1, |windows| windows + kernel[axis] - pads[axis] - pads[rank + axis])
            }
        };
        let size = usize::try_from(size).map_err(|_| {
            PluginError::invalid_argument(format!(
                "expected windows that lie in an image, found shape {x:?} of maxima"
            ))
        })?;
        shape.push(size);
    }
    Ok(shape)
}

/// Finds the places in the output to which indices refer.
struct UnpoolPlaces {
    /// The shape of the pooled image, to which indices refer, and the number of its elements.
    pooled: Vec<usize>,
    count: usize,
    output: Vec<usize>,
}

impl UnpoolPlaces {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let (x, indices, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
        let pooled = pooled_shape(call, x.dims())?;
        ensure!(
            indices.dims() == x.dims() && y.dims().len() == x.dims().len(),
            invalid_argument,
            "expected indices of the shape {:?} and an output of as many dimensions, found {:?} and {:?}",
            x.dims(),
            indices.dims(),
            y.dims()
        );
        let count = pooled.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
        let count = count
            .ok_or_else(|| PluginError::resource_exhausted("expected an image that fits into memory"))?;
        Ok(Self { pooled, count, output: y.dims().iter().map(|dim| *dim as usize).collect() })
    }

    /// The place in the output for an index. `position` has room for one of the pooled image.
    fn place_of(&self, index: i64, position: &mut [usize]) -> Result<usize> {
        let Self { pooled, count, output } = self;
        // Indices are data: an unchecked one would write outside the output.
        let known = usize::try_from(index).ok().filter(|index| index < count);
        let index = known.ok_or_else(|| {
            PluginError::out_of_range(format!(
                "expected indices below {count}, the size of an image of {pooled:?}, found {index}"
            ))
        })?;
        // The index refers to the pooled image, whose sizes may differ from the output's, so it is converted by position.
        unravel_index(index, pooled.iter().copied(), position);
        // The output may be larger than the pooled image; positions stay the same.
        let inside = position.iter().zip(output).all(|(place, size)| place < size);
        ensure!(
            inside,
            out_of_range,
            "expected an output that has the place {position:?}, found shape {output:?}"
        );
        Ok(position.iter().zip(output).fold(0, |target, (place, size)| target * size + place))
    }
}

fn run_max_unpool<E: Element + Default>(call: &KernelCall<'_>) -> Result<()> {
    let places = UnpoolPlaces::new(call)?;
    let (x, indices, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    // SAFETY: device memory is host memory, and the call guarantees its operands.
    let (x, indices, y) = unsafe { (x.elements::<E>()?, indices.elements::<i64>()?, y.elements_mut::<E>()?) };
    // Elements that were not a maximum are 0.
    y.fill(E::default());
    let mut position = vec![0; places.pooled.len()];
    // Indices into an image of the output's shape are places already.
    let same_shape = places.pooled == places.output;
    for (value, index) in x.iter().zip(indices) {
        let place = usize::try_from(*index).ok().filter(|place| same_shape && *place < y.len());
        y[place.map_or_else(|| places.place_of(*index, &mut position), Ok)?] = *value;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn maxima_go_back_to_their_places() {
        let x = TestArray::from_values(&[1, 1, 2, 2], &[1f32, 2., 3., 4.]);
        let indices = TestArray::from_values(&[1, 1, 2, 2], &[5i64, 7, 13, 15]);
        let attributes =
            [("kernel_shape", TestAttribute::Ints(&[2, 2])), ("strides", TestAttribute::Ints(&[2, 2]))];
        let shape = TestArray::from_values(&[4], &[1i64, 1, 5, 5]);
        let inputs = [Some(&x), Some(&indices), Some(&shape)];
        let results = KERNELS
            .run_kernel("MaxUnpool", 11, &attributes, &inputs, &[Some((Dtype::F32, &[1, 1, 5, 5]))])
            .unwrap();
        let mut expected = [0f32; 25];
        (expected[6], expected[8], expected[16], expected[18]) = (1., 2., 3., 4.);
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), expected);
    }

    #[test]
    fn a_place_outside_of_the_image_is_refused() {
        let (x, indices) =
            (TestArray::from_values(&[1, 1, 1], &[1f32]), TestArray::from_values(&[1, 1, 1], &[2i64]));
        let attributes = [("kernel_shape", TestAttribute::Ints(&[2]))];
        let inputs = [Some(&x), Some(&indices)];
        let message = KERNELS
            .run_kernel("MaxUnpool", 11, &attributes, &inputs, &[Some((Dtype::F32, &[1, 1, 2]))])
            .unwrap_err();
        assert!(message.contains("below 2"), "{message}");
    }
}
