//! What reductions do with elements: how one is added to a partial result, and how two of these are joined. The last step is in
//! [`super::finalize`], so that reductions that differ in it alone, such as sum and mean, are compiled once.

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::compute_element::{ComputeElement, ComputeFloat};
use oarlock_cpu_base::isa::BaselineTarget;
use oarlock_cpu_base::rows::fold::{fold_lanes, join_lanes};
use oarlock_cpu_base::rows::line_bundle::LineBundle;
use oarlock_sdk::{Dtype, Element};

/// One kind of reduction. Partial results are joined in an order that only the shape decides.
pub(crate) trait Reducer<T>: Copy + Send + Sync + 'static {
    type Partial: Copy + Send + Sync;
    /// The result of no elements.
    const NONE: Self::Partial;
    /// True if it is compiled for each instruction set. Reductions that models do not use are not: they would only make the
    /// plugin larger.
    const IS_VECTORIZED: bool;

    fn add_element(partial: Self::Partial, element: T) -> Self::Partial;
    fn join_partials(left: Self::Partial, right: Self::Partial) -> Self::Partial;
    fn to_element(partial: Self::Partial) -> T;

    #[inline(always)]
    fn reduce_lines<const LINES: usize>(lines: LineBundle<'_, T, LINES>) -> [Self::Partial; LINES]
    where
        T: Copy,
    {
        lines.fold_lines(
            Self::NONE,
            |partial, element, _| Self::add_element(partial, element),
            Self::join_partials,
        )
    }

    #[inline(always)]
    fn reduce_slice(elements: &[T]) -> Self::Partial
    where
        T: Copy,
    {
        let [partial] = Self::reduce_lines(LineBundle::from_line(elements));
        partial
    }
}

/// Runs a body for the instruction sets of the level, if the reduction is compiled for each of them.
macro_rules! with_isa_of {
    ($reduction:ty, $isa:expr, || $body:expr) => {
        if const { <$reduction as Reducer<T>>::IS_VECTORIZED } {
            oarlock_cpu_base::with_avx!($isa, || $body)
        } else {
            $body
        }
    };
}
pub(super) use with_isa_of;

const fn is_float<T: Element>() -> bool {
    matches!(T::DTYPE, Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64)
}

/// True for element types that models reduce.
const fn is_common<T: Element>() -> bool {
    !matches!(T::DTYPE, Dtype::I16 | Dtype::U16 | Dtype::U32 | Dtype::U64)
}

/// The extreme of a slice; a NaN wins, which `join` keeps.
#[inline(always)]
fn slice_extreme<T: ComputeElement>(
    elements: &[T],
    none: T::Accumulator,
    join: impl Fn(T::Accumulator, T::Accumulator) -> T::Accumulator,
    is_beyond: impl Fn(&T::Accumulator, &T::Accumulator) -> bool,
) -> T::Accumulator {
    // An extreme does not change if an element counts twice, so the last lanes may overlap those before.
    let add = |partial, element: T| join(partial, element.to_accumulator());
    let Some(lanes) = fold_lanes::<true, _, _>(elements, none, add, &join) else {
        return elements.iter().fold(none, |found, element| add(found, *element));
    };
    // The sum is NaN if a lane is. It may also be NaN for another reason, such as opposite infinities, which only costs time.
    if join_lanes(lanes, T::Accumulator::plus).is_nan() {
        lanes.into_iter().fold(none, &join)
    } else {
        // Without NaN a plain comparison joins lanes.
        join_lanes(lanes, |a, b| if is_beyond(&a, &b) { a } else { b })
    }
}

macro_rules! exact_reductions {
    ($($(#[$docs:meta])* $name:ident: $none:ident, $join:ident $(by $is_beyond:ident)?, $prepare:expr, vectors: $is_vectorized:expr;)*) => {
        $(
            $(#[$docs])*
            #[derive(Clone, Copy)]
            pub(crate) struct $name;

            impl<T: ComputeElement> Reducer<T> for $name {
                type Partial = T::Accumulator;
                const NONE: T::Accumulator = T::Accumulator::$none;
                const IS_VECTORIZED: bool = $is_vectorized;

                #[inline(always)]
                fn add_element(partial: T::Accumulator, element: T) -> T::Accumulator {
                    partial.$join($prepare(element.to_accumulator()))
                }
                #[inline(always)]
                fn join_partials(left: T::Accumulator, right: T::Accumulator) -> T::Accumulator {
                    left.$join(right)
                }
                #[inline(always)]
                fn to_element(partial: T::Accumulator) -> T {
                    T::from_accumulator(partial)
                }
                $(
                    #[inline(always)]
                    fn reduce_slice(elements: &[T]) -> T::Accumulator {
                        slice_extreme(elements, T::Accumulator::$none, T::Accumulator::$join, T::Accumulator::$is_beyond)
                    }
                )?
            }
        )*
    };
}

exact_reductions! {
    Sum: ZERO, plus, |x| x, vectors: is_common::<T>();
    Product: ONE, times, |x| x, vectors: is_float::<T>();
    Maximum: LOWEST, maximum by gt, |x| x, vectors: is_common::<T>();
    Minimum: GREATEST, minimum by lt, |x| x, vectors: is_common::<T>();
    L1: ZERO, plus, ArithmeticElement::magnitude, vectors: is_float::<T>();
    SumSquare: ZERO, plus, |x: T::Accumulator| x.times(x), vectors: is_float::<T>();
}

/// Reductions of integers with float results. Floats use the exact ones.
macro_rules! float_reductions {
    ($($(#[$docs:meta])* $name:ident: $prepare:expr;)*) => {
        $(
            $(#[$docs])*
            #[derive(Clone, Copy)]
            pub(crate) struct $name;

            impl<T: ComputeElement> Reducer<T> for $name {
                type Partial = T::Float;
                const NONE: T::Float = T::Float::ZERO;
                const IS_VECTORIZED: bool = false;

                #[inline(always)]
                fn add_element(partial: T::Float, element: T) -> T::Float {
                    partial + $prepare(element.to_float())
                }
                #[inline(always)]
                fn join_partials(left: T::Float, right: T::Float) -> T::Float {
                    left + right
                }
                #[inline(always)]
                fn to_element(partial: T::Float) -> T {
                    T::from_float(partial)
                }
            }
        )*
    };
}

float_reductions! {
    /// The sum, as a float.
    FloatSum: |x| x;
    /// The sum of squares, as a float.
    FloatSumSquare: |x: T::Float| x * x;
}

/// The logarithm of the sum of exponentials, taken relative to the largest element so that none overflows.
#[derive(Clone, Copy)]
pub(crate) struct LogSumExp;

/// The largest element, and the sum of the exponentials of the distances to it.
#[derive(Clone, Copy)]
pub(crate) struct ExponentialSum<F> {
    greatest: F,
    sum: F,
}

impl<F: ComputeFloat> ExponentialSum<F> {
    /// The sum relative to another largest element.
    #[inline(always)]
    fn relative_to(self, greatest: F) -> F {
        // Infinities count as 0, because their difference would be NaN.
        self.sum
            * (self.greatest.finite_or_zero() - greatest.finite_or_zero()).exponential::<BaselineTarget>()
    }
}

impl<T: ComputeElement> Reducer<T> for LogSumExp {
    type Partial = ExponentialSum<T::Float>;
    const NONE: Self::Partial = ExponentialSum { greatest: T::Float::LOWEST, sum: T::Float::ZERO };
    const IS_VECTORIZED: bool = is_float::<T>();

    #[inline(always)]
    fn add_element(partial: Self::Partial, element: T) -> Self::Partial {
        let element = element.to_float();
        let greatest = partial.greatest.maximum(element);
        let share = (element - greatest.finite_or_zero()).exponential::<BaselineTarget>();
        ExponentialSum { greatest, sum: Self::rescale_sum(partial, greatest) + share }
    }
    #[inline(always)]
    fn join_partials(left: Self::Partial, right: Self::Partial) -> Self::Partial {
        let greatest = left.greatest.maximum(right.greatest);
        ExponentialSum {
            greatest,
            sum: Self::rescale_sum(left, greatest) + Self::rescale_sum(right, greatest),
        }
    }
    #[inline(always)]
    fn to_element(partial: Self::Partial) -> T {
        T::from_float(partial.greatest.finite_or_zero() + partial.sum.logarithm())
    }
    #[inline(always)]
    fn reduce_lines<const LINES: usize>(lines: LineBundle<'_, T, LINES>) -> [Self::Partial; LINES] {
        // Two passes: once the maximum is known, each element takes one exponential and no sum is rescaled on the way.
        let maximum = |a: T::Float, b: T::Float| a.maximum(b);
        let greatest = lines.fold_lines(T::Float::LOWEST, |a, b, _| maximum(a, b.to_float()), maximum);
        let mut shifts = greatest;
        for shift in &mut shifts {
            *shift = shift.finite_or_zero();
        }
        let sums = lines.sum_lines(
            #[inline(always)]
            |element, line| (element.to_float() - shifts[line]).exponential::<BaselineTarget>(),
        );
        std::array::from_fn(|line| ExponentialSum { greatest: greatest[line], sum: sums[line] })
    }
}

impl LogSumExp {
    /// An empty sum stays 0, whatever it was relative to.
    #[inline(always)]
    fn rescale_sum<F: ComputeFloat>(partial: ExponentialSum<F>, greatest: F) -> F {
        // The exponential may be infinite here, and 0 times infinity is NaN.
        if partial.sum == F::ZERO { F::ZERO } else { partial.relative_to(greatest) }
    }
}
