//! `MaxPool`, with the indices of the maxima if requested.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::window::{WindowAttributes, WindowAxis};
use oarlock_cpu_gemm::DisjointSlice;
use oarlock_sdk::{
    Dtype, DtypeSet, Element, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, bf16,
    dispatch, dtype_set, ensure, f16,
};

use super::PoolShape;
use super::window_reduce::{AxisCoverage, WindowReduction, advance_index, reduce_windows};

const MAX_POOL_DTYPES: DtypeSet =
    dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64, Dtype::I8, Dtype::U8]);

pub(super) fn max_pool_kernel() -> Kernel<Cpu> {
    let image = OperandSpec::new(MAX_POOL_DTYPES).with_dtype_group(1).with_rank(3, u32::MAX);
    Kernel::new_prepared("MaxPool", |_: &Cpu, call| {
        let settings = WindowAttributes::new(call)?;
        let column_major = call.int_attribute("storage_order")?.unwrap_or(0) != 0;
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
            let pool = PoolShape::new(&settings, call)?;
            check_indices(call)?;
            dispatch!(call.output(0)?.dtype(), floating_and_half + bf16 + i8 + u8, T => {
                run_max_pool::<T>(cpu, call, &pool, column_major)
            })
        }))
    })
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([image.with_name("X")])
    .with_outputs([
        image.with_name("Y"),
        OperandSpec::new(DtypeSet::I64).with_name("Indices").with_flags(OperandFlags::OPTIONAL),
    ])
}

/// An element with an order.
pub(super) trait OrderedElement: Element + PartialOrd {
    /// The lowest value.
    const LOWEST: Self;

    /// The greater of the two; NaN is ignored on the right. Branch-free, so that loops vectorize.
    fn greater(self, other: Self) -> Self;
}

macro_rules! ordered {
    ($($element:ty: $lowest:expr, $greater:expr;)*) => {
        $(impl OrderedElement for $element {
            const LOWEST: Self = $lowest;

            #[inline(always)]
            fn greater(self, other: Self) -> Self {
                $greater(self, other)
            }
        })*
    };
}

ordered! {
    // A moved NaN would be a large number, so it must be excluded.
    f16: f16::NEG_INFINITY, |a: f16, b: f16| {
        if is_number(b) & (to_ordered(b) > to_ordered(a)) { b } else { a }
    };
    bf16: bf16::NEG_INFINITY, |a: bf16, b: bf16| if b.to_f32() > a.to_f32() { b } else { a };
    // Not a comparison: of many, the compiler makes masks in scalar code.
    f32: f32::NEG_INFINITY, f32::max;
    f64: f64::NEG_INFINITY, f64::max;
    i8: i8::MIN, Ord::max;
    u8: u8::MIN, Ord::max;
}

#[inline(always)]
fn is_number(half: f16) -> bool {
    half.to_bits() & 0x7fff <= f16::INFINITY.to_bits()
}

/// Moves the fields of an `f16` into those of an `f32`. The value changes but the order does not, and it is much cheaper than a
/// conversion.
#[inline(always)]
fn to_ordered(half: f16) -> f32 {
    let (sign, magnitude) = (u32::from(half.to_bits() & 0x8000), u32::from(half.to_bits() & 0x7fff));
    f32::from_bits(sign << 16 | magnitude << 13)
}

/// The maximum. NaN is ignored, since it is not greater than anything.
pub(super) struct MaxReduction;

impl<E: OrderedElement> WindowReduction<E> for MaxReduction {
    type Accumulator = E;

    const IS_VECTORIZED: bool = !matches!(E::DTYPE, Dtype::F64);

    #[inline(always)]
    fn initial_accumulator(&self) -> E {
        E::LOWEST
    }

    #[inline(always)]
    fn accumulate_element(&self, sum: E, element: E) -> E {
        sum.greater(element)
    }

    #[inline(always)]
    fn merge_accumulators(&self, left: E, right: E) -> E {
        self.accumulate_element(left, right)
    }

    #[inline(always)]
    fn finish_window(&self, sum: E, _count: usize) -> E {
        sum
    }
}

/// Checks that indices, if they are wanted, have the shape of the maxima.
fn check_indices(call: &KernelCall<'_>) -> Result<()> {
    let y = call.output(0)?;
    if let Some(indices) = call.optional_output(1)? {
        ensure!(
            indices.dims() == y.dims(),
            invalid_argument,
            "expected indices of the shape of the output, {:?}, found {:?}",
            y.dims(),
            indices.dims()
        );
    }
    Ok(())
}

fn run_max_pool<E: OrderedElement>(
    cpu: &Cpu,
    call: &KernelCall<'_>,
    pool: &PoolShape,
    column_major: bool,
) -> Result<()> {
    let (x, y, indices) = (call.input(0)?, call.output(0)?, call.optional_output(1)?);
    // SAFETY: device memory is host memory, and the call guarantees its operands.
    let (x, y) = unsafe { (x.elements::<E>()?, y.elements_mut::<E>()?) };
    match indices {
        Some(indices) => {
            // SAFETY: as above.
            let indices = unsafe { indices.elements_mut() }?;
            max_pool_with_indices(cpu, pool, column_major, x, y, indices);
        }
        // Without indices, the order of comparisons does not matter, so windows can share reduced columns.
        None => reduce_windows(cpu, pool, false, x, y, &MaxReduction),
    }
    Ok(())
}

fn max_pool_with_indices<E: OrderedElement>(
    cpu: &Cpu,
    pool: &PoolShape,
    column_major: bool,
    x: &[E],
    y: &mut [E],
    indices: &mut [i64],
) {
    let (inputs, outputs) = (pool.window.input_count(), pool.window.output_count());
    if y.is_empty() {
        return;
    }
    let (y, indices) = (DisjointSlice::new(y), DisjointSlice::new(indices));
    let under: Vec<_> = pool.window.axes.iter().map(|axis| AxisCoverage::of_windows(axis, false)).collect();
    // The index is that of the first maximum in row-major order, so windows are scanned one by one.
    cpu.parallel_for(pool.planes, 1, |begin, end| {
        for plane in begin..end {
            let mut windows = WindowScan::new(&pool.window.axes, &under);
            let range = plane * outputs..(plane + 1) * outputs;
            // SAFETY: no two planes overlap, and each is one thread's.
            let (y, indices) = unsafe { (y.range_mut(range.clone()), indices.range_mut(range)) };
            let x = &x[plane * inputs..][..inputs];
            for (y, index) in y.iter_mut().zip(indices) {
                let (greatest, at) = windows.next_maximum(x);
                let at = if column_major { windows.column_major_index(at) } else { at };
                (*y, *index) = (greatest, (plane * inputs + at) as i64);
            }
        }
    });
}

/// Finds the maxima of the windows of a plane, one window after the other.
struct WindowScan<'a> {
    axes: &'a [WindowAxis],
    /// For each axis, the coverage of each window.
    under: &'a [Vec<AxisCoverage>],
    /// The position of the next window, and one of its steps along the axes but the last.
    place: Vec<usize>,
    step: Vec<usize>,
}

impl<'a> WindowScan<'a> {
    fn new(axes: &'a [WindowAxis], under: &'a [Vec<AxisCoverage>]) -> Self {
        Self { axes, under, place: vec![0; axes.len()], step: vec![0; axes.len().saturating_sub(1)] }
    }

    /// The maximum of the next window, and the index of the first element that has it. If all are NaN, it is the index of the first
    /// one.
    fn next_maximum<E: OrderedElement>(&mut self, x: &[E]) -> (E, usize) {
        let Self { axes, under, place, step } = self;
        let (mut greatest, mut at, mut first) = (E::LOWEST, None, None);
        let mut covered = under.iter().zip(&*place).map(|(under, place)| &under[*place]);
        if let (Some((line, outer)), Some(along)) = (axes.split_last(), covered.next_back()) {
            // Steps outside of the input are no steps, as a window may be far larger than the input.
            for _ in 0..covered.clone().map(|under| under.steps).product() {
                let positions = outer.iter().zip(covered.clone()).zip(&*step);
                let row = positions.fold(0, |row, ((axis, under), step)| {
                    row * axis.input + under.first + step * axis.dilation
                });
                let begin = row * line.input + along.first;
                for index in (begin..).step_by(line.dilation).take(along.steps) {
                    let element = x[index];
                    first = first.or(Some(index));
                    // The first number may equal the initial value.
                    if element > greatest || at.is_none() && element >= greatest {
                        (greatest, at) = (element, Some(index));
                    }
                }
                advance_index(step, covered.clone().map(|under| under.steps));
            }
        }
        advance_index(place, axes.iter().map(|axis| axis.output));
        (greatest, at.or(first).unwrap_or(0))
    }

    /// The index in column-major order, in which the first axis is the fastest, for one in row-major order.
    fn column_major_index(&self, mut index: usize) -> usize {
        // At least 1: windows may lie in the padding of an axis without elements.
        let sizes = self.axes.iter().map(|axis| axis.input.max(1));
        let mut stride: usize = sizes.clone().product();
        sizes.rev().fold(0, |turned, size| {
            stride /= size;
            let position = index % size;
            index /= size;
            turned + position * stride
        })
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    fn counting_array(dims: &[i64]) -> TestArray {
        let count = dims.iter().product::<i64>();
        TestArray::from_values(dims, &(1..=count).map(|value| value as f32).collect::<Vec<_>>())
    }

    #[test]
    fn maxima_come_with_their_places_in_either_order() {
        let x = counting_array(&[1, 1, 3, 4]);
        for (order, expected) in [(0, [5i64, 7, 9, 11]), (1, [4, 10, 5, 11])] {
            let attributes = [
                ("kernel_shape", TestAttribute::Ints(&[2, 2])),
                ("strides", TestAttribute::Ints(&[1, 2])),
                ("storage_order", TestAttribute::Int(order)),
            ];
            let outputs = [Some((Dtype::F32, &[1, 1, 2, 2][..])), Some((Dtype::I64, &[1, 1, 2, 2]))];
            let results = KERNELS.run_kernel("MaxPool", 12, &attributes, &[Some(&x)], &outputs).unwrap();
            assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [6., 8., 10., 12.]);
            assert_eq!(results[1].as_ref().unwrap().values::<i64>(), expected);
        }
    }

    #[test]
    fn what_is_not_a_number_is_passed_over_with_and_without_places() {
        let (nan, low) = (f32::NAN, f32::NEG_INFINITY);
        let x = TestArray::from_values(&[1, 1, 9], &[nan, 1.0, 2.0, nan, -3.0, nan, nan, low, low]);
        let attributes = [("kernel_shape", TestAttribute::Ints(&[2]))];
        let dims = &[1, 1, 8][..];
        let (values, places) = (Some((Dtype::F32, dims)), Some((Dtype::I64, dims)));
        for outputs in [&[values][..], &[values, places]] {
            let results = KERNELS.run_kernel("MaxPool", 12, &attributes, &[Some(&x)], outputs).unwrap();
            let expected = [1.0, 2.0, 2.0, -3.0, -3.0, low, low, low];
            assert_eq!(results[0].as_ref().unwrap().values::<f32>(), expected);
            if let Some(Some(found)) = results.get(1) {
                assert_eq!(found.values::<i64>(), [1, 2, 2, 4, 4, 5, 7, 7]);
            }
        }
    }

    #[test]
    fn padding_is_lower_than_any_element() {
        let x = TestArray::from_values(&[1, 1, 2], &[-5f32, -7.]);
        let attributes =
            [("kernel_shape", TestAttribute::Ints(&[2])), ("pads", TestAttribute::Ints(&[1, 1]))];
        let results = KERNELS
            .run_kernel("MaxPool", 12, &attributes, &[Some(&x)], &[Some((Dtype::F32, &[1, 1, 3]))])
            .unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [-5., -5., -7.]);
    }

    #[test]
    fn a_last_window_that_does_not_fit_is_kept_on_request() {
        let x = counting_array(&[1, 1, 5]);
        let attributes = [
            ("kernel_shape", TestAttribute::Ints(&[2])),
            ("strides", TestAttribute::Ints(&[2])),
            ("ceil_mode", TestAttribute::Int(1)),
        ];
        let results = KERNELS
            .run_kernel("MaxPool", 12, &attributes, &[Some(&x)], &[Some((Dtype::F32, &[1, 1, 3]))])
            .unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [2., 4., 5.]);
        let message = KERNELS
            .run_kernel("MaxPool", 12, &attributes[..2], &[Some(&x)], &[Some((Dtype::F32, &[1, 1, 3]))])
            .unwrap_err();
        assert!(message.contains("size 2"), "{message}");
    }

    #[test]
    fn hostile_attributes_are_refused() {
        let x = counting_array(&[1, 1, 5]);
        for (name, value) in [
            ("strides", TestAttribute::Ints(&[0])),
            ("strides", TestAttribute::Ints(&[1, 1])),
            ("dilations", TestAttribute::Ints(&[i64::MAX])),
            ("pads", TestAttribute::Ints(&[-1, 0])),
            ("auto_pad", TestAttribute::Text("MIDDLE")),
        ] {
            let attributes = [("kernel_shape", TestAttribute::Ints(&[2])), (name, value)];
            let message = KERNELS
                .run_kernel("MaxPool", 12, &attributes, &[Some(&x)], &[Some((Dtype::F32, &[1, 1, 4]))])
                .unwrap_err();
            assert!(message.contains("expected"), "{message}");
        }
    }
}
