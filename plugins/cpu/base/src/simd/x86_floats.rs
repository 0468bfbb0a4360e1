//! Vectors of floats of all instruction sets of x86, which differ in their intrinsics alone.

/// Implements [`FloatVector`] with intrinsics.
macro_rules! float_vector {
    ($name:ident, $vector:ident of $element:ident, $count:literal, $splat:ident, $load:ident, $store:ident, $add:ident, $sub:ident, $mul:ident,
     $div:ident, $has_fma:literal, $multiply_add:ident, $max:ident, $min:ident, $is_zero:expr, $load_some:expr, $store_some:expr) => {
        impl $crate::simd::FloatVector<$element> for $name {
            const LANES: usize = $count;
            const HAS_FMA: bool = $has_fma;

            #[inline(always)]
            unsafe fn splat(value: $element) -> Self {
                // SAFETY: the caller guarantees the instructions.
                Self(unsafe { $splat(value) })
            }

            #[inline(always)]
            unsafe fn load(place: *const $element) -> Self {
                // SAFETY: the caller guarantees the instructions and the lanes.
                Self(unsafe { $load(place) })
            }

            #[inline(always)]
            unsafe fn load_partial(place: *const $element, count: usize) -> Self {
                // SAFETY: as above.
                Self(unsafe { $load_some(place, count) })
            }

            #[inline(always)]
            unsafe fn store(self, place: *mut $element) {
                // SAFETY: as above.
                unsafe { $store(place, self.0) };
            }

            #[inline(always)]
            unsafe fn store_partial(self, place: *mut $element, count: usize) {
                // SAFETY: as above.
                unsafe { $store_some(place, count, self.0) };
            }

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: a vector exists only if the machine has the instructions.
                Self(unsafe { $add(self.0, other.0) })
            }

            #[inline(always)]
            fn subtract(self, other: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $sub(self.0, other.0) })
            }

            #[inline(always)]
            fn multiply(self, other: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $mul(self.0, other.0) })
            }

            #[inline(always)]
            fn divide(self, other: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $div(self.0, other.0) })
            }

            #[inline(always)]
            fn add_product(self, left: Self, right: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $multiply_add(left.0, right.0, self.0) })
            }

            // `max` and `min` instructions return their second operand if the two do not compare, so `self` comes second.
            #[inline(always)]
            fn max(self, low: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $max(low.0, self.0) })
            }

            #[inline(always)]
            fn min(self, high: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $min(high.0, self.0) })
            }

            #[inline(always)]
            fn is_finite(self) -> bool {
                // `x - x` is 0 for finite `x` and NaN otherwise.
                // SAFETY: as above.
                unsafe { $is_zero($sub(self.0, self.0)) }
            }
        }
    };
}

pub(super) use float_vector;
