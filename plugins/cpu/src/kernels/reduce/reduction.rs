//! What reductions do with elements: how one is added to a partial result, and how two of these are joined. What becomes of the
//! last is in [`super::finish`], so that reductions that differ in their end alone, such as sum and mean, are compiled once.

use oarlock_sdk::{Dtype, Element};

use crate::isa::Baseline;
use crate::kernels::rows::bundle::Bundle;
use crate::kernels::rows::fold::{fold_lanes, joined};
use crate::kernels::rows::number::{Exact, Float, Number};

/// One kind of reduction. Partial results are joined in an order that only the shape decides.
pub(crate) trait Reduction<T>: Copy + Send + Sync + 'static {
    /// A result of some elements.
    type Partial: Copy + Send + Sync;
    /// The result of no elements.
    const NONE: Self::Partial;
    /// Whether it is compiled for each instruction set. Reductions that no model has are not: the plugin would be larger by what
    /// nobody waits for.
    const IS_VECTORIZED: bool;

    fn add(partial: Self::Partial, element: T) -> Self::Partial;
    fn join(left: Self::Partial, right: Self::Partial) -> Self::Partial;
    /// A result as an element.
    fn element(partial: Self::Partial) -> T;

    /// The result of each of some lines.
    #[inline(always)]
    fn of_lines<const LINES: usize>(lines: Bundle<'_, T, LINES>) -> [Self::Partial; LINES]
    where
        T: Copy,
    {
        lines.fold(Self::NONE, |partial, element, _| Self::add(partial, element), Self::join)
    }

    /// The result of elements that lie in one piece.
    #[inline(always)]
    fn of_slice(elements: &[T]) -> Self::Partial
    where
        T: Copy,
    {
        let [partial] = Self::of_lines(Bundle::of_line(elements));
        partial
    }
}

const fn is_float<T: Element>() -> bool {
    matches!(T::DTYPE, Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64)
}

/// The extreme of a slice, or what is not a number in it, which `join` keeps.
#[inline(always)]
fn extreme<T: Number>(
    elements: &[T],
    none: T::Exact,
    join: impl Fn(T::Exact, T::Exact) -> T::Exact,
    is_beyond: impl Fn(&T::Exact, &T::Exact) -> bool,
) -> T::Exact {
    let add = |partial, element: T| join(partial, element.exact());
    let Some(lanes) = fold_lanes::<true, _, _>(elements, none, add, &join) else {
        return elements.iter().fold(none, |found, element| add(found, *element));
    };
    // The sum is no number where a lane is none. Where it is not so for that reason, time is all that is lost.
    if joined(lanes, T::Exact::plus).is_unordered() {
        lanes.into_iter().fold(none, &join)
    } else {
        joined(lanes, |a, b| if is_beyond(&a, &b) { a } else { b })
    }
}

macro_rules! exact_reductions {
    ($($(#[$docs:meta])* $name:ident: $none:ident, $join:ident $(by $is_beyond:ident)?, $prepare:expr;)*) => {
        $(
            $(#[$docs])*
            #[derive(Clone, Copy)]
            pub(crate) struct $name;

            impl<T: Number> Reduction<T> for $name {
                type Partial = T::Exact;
                const NONE: T::Exact = T::Exact::$none;
                const IS_VECTORIZED: bool = !matches!(T::DTYPE, Dtype::U32 | Dtype::U64);

                #[inline(always)]
                fn add(partial: T::Exact, element: T) -> T::Exact {
                    partial.$join($prepare(element.exact()))
                }
                #[inline(always)]
                fn join(left: T::Exact, right: T::Exact) -> T::Exact {
                    left.$join(right)
                }
                #[inline(always)]
                fn element(partial: T::Exact) -> T {
                    T::of_exact(partial)
                }
                $(
                    #[inline(always)]
                    fn of_slice(elements: &[T]) -> T::Exact {
                        extreme(elements, T::Exact::$none, T::Exact::$join, T::Exact::$is_beyond)
                    }
                )?
            }
        )*
    };
}

exact_reductions! {
    /// The sum.
    Sum: ZERO, plus, |x| x;
    /// The product.
    Product: ONE, times, |x| x;
    /// The greatest element.
    Maximum: LOWEST, maximum by gt, |x| x;
    /// The least element.
    Minimum: GREATEST, minimum by lt, |x| x;
    /// The sum of magnitudes.
    L1: ZERO, plus, Exact::magnitude;
    /// The sum of squares.
    SumSquare: ZERO, plus, |x: T::Exact| x.times(x);
}

/// Reductions of integers whose results are floats. Those of floats are the exact ones.
macro_rules! float_reductions {
    ($($(#[$docs:meta])* $name:ident: $prepare:expr;)*) => {
        $(
            $(#[$docs])*
            #[derive(Clone, Copy)]
            pub(crate) struct $name;

            impl<T: Number> Reduction<T> for $name {
                type Partial = T::Float;
                const NONE: T::Float = T::Float::ZERO;
                const IS_VECTORIZED: bool = false;

                #[inline(always)]
                fn add(partial: T::Float, element: T) -> T::Float {
                    partial + $prepare(element.float())
                }
                #[inline(always)]
                fn join(left: T::Float, right: T::Float) -> T::Float {
                    left + right
                }
                #[inline(always)]
                fn element(partial: T::Float) -> T {
                    T::of_float(partial)
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

/// The logarithm of the sum of exponentials, which are taken of distances to the greatest element, so that they stay
/// within the range of the type.
#[derive(Clone, Copy)]
pub(crate) struct LogSumExp;

/// The greatest element and the sum of the exponentials of the distances to it.
#[derive(Clone, Copy)]
pub(crate) struct Exponentials<F> {
    greatest: F,
    sum: F,
}

impl<F: Float> Exponentials<F> {
    /// The sum as if another element were the greatest.
    #[inline(always)]
    fn relative_to(self, greatest: F) -> F {
        self.sum * (self.greatest.finite_or_zero() - greatest.finite_or_zero()).exponential::<Baseline>()
    }
}

impl<T: Number> Reduction<T> for LogSumExp {
    type Partial = Exponentials<T::Float>;
    const NONE: Self::Partial = Exponentials { greatest: T::Float::LOWEST, sum: T::Float::ZERO };
    const IS_VECTORIZED: bool = is_float::<T>();

    #[inline(always)]
    fn add(partial: Self::Partial, element: T) -> Self::Partial {
        let element = element.float();
        let greatest = partial.greatest.maximum(element);
        let share = (element - greatest.finite_or_zero()).exponential::<Baseline>();
        Exponentials { greatest, sum: Self::rescaled(partial, greatest) + share }
    }
    #[inline(always)]
    fn join(left: Self::Partial, right: Self::Partial) -> Self::Partial {
        let greatest = left.greatest.maximum(right.greatest);
        Exponentials { greatest, sum: Self::rescaled(left, greatest) + Self::rescaled(right, greatest) }
    }
    #[inline(always)]
    fn element(partial: Self::Partial) -> T {
        T::of_float(partial.greatest.finite_or_zero() + partial.sum.logarithm())
    }
    #[inline(always)]
    fn of_lines<const LINES: usize>(lines: Bundle<'_, T, LINES>) -> [Self::Partial; LINES] {
        let maximum = |a: T::Float, b: T::Float| a.maximum(b);
        let greatest = lines.fold(T::Float::LOWEST, |a, b, _| maximum(a, b.float()), maximum);
        let mut shifts = greatest;
        for shift in &mut shifts {
            *shift = shift.finite_or_zero();
        }
        let sums = lines.sum(
            #[inline(always)]
            |element, line| (element.float() - shifts[line]).exponential::<Baseline>(),
        );
        std::array::from_fn(|line| Exponentials { greatest: greatest[line], sum: sums[line] })
    }
}

impl LogSumExp {
    /// A sum of nothing stays nothing, whatever it was relative to.
    #[inline(always)]
    fn rescaled<F: Float>(partial: Exponentials<F>, greatest: F) -> F {
        if partial.sum == F::ZERO { F::ZERO } else { partial.relative_to(greatest) }
    }
}
