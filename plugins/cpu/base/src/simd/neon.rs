//! Vectors of NEON, which every 64-bit ARM processor has.

use std::arch::aarch64::*;

use super::float_vector::{F32Vector, FloatVector};

/// Four `f32`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct NeonF32Vector(pub float32x4_t);

/// Two `f64`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct NeonF64Vector(pub float64x2_t);

/// Implements [`FloatVector`] with intrinsics.
macro_rules! intrinsics {
    (
        $name:ident of $element:ident, $count:literal, $splat:ident $load:ident $store:ident $add:ident $sub:ident $mul:ident $div:ident
        $fused:ident $greater:ident $less:ident $select:ident $is_zero:expr, $load_some:expr, $store_some:expr
    ) => {
        impl FloatVector<$element> for $name {
            const LANES: usize = $count;
            const HAS_FMA: bool = true;

            #[inline(always)]
            unsafe fn splat(value: $element) -> Self {
                // SAFETY: every processor of the architecture has the instructions, here and below.
                Self(unsafe { $splat(value) })
            }

            #[inline(always)]
            unsafe fn load(place: *const $element) -> Self {
                // SAFETY: the caller guarantees the lanes.
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
                // SAFETY: the instructions are there.
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
                Self(unsafe { $fused(self.0, left.0, right.0) })
            }

            // The instructions for maximum and minimum return NaN if either operand is, so this compares and selects.
            #[inline(always)]
            fn max(self, low: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $select($greater(low.0, self.0), low.0, self.0) })
            }

            #[inline(always)]
            fn min(self, high: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $select($less(high.0, self.0), high.0, self.0) })
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

intrinsics!(
    NeonF32Vector of f32, 4,
    vdupq_n_f32 vld1q_f32 vst1q_f32 vaddq_f32 vsubq_f32 vmulq_f32 vdivq_f32
    vfmaq_f32 vcgtq_f32 vcltq_f32 vbslq_f32
    |vector| vminvq_u32(vceqzq_f32(vector)) != 0,
    |place, count| match count {
        0 => vdupq_n_f32(0.0),
        1 => vld1q_lane_f32::<0>(place, vdupq_n_f32(0.0)),
        2 => vcombine_f32(vld1_f32(place), vdup_n_f32(0.0)),
        3 => vld1q_lane_f32::<2>(place.add(2), vcombine_f32(vld1_f32(place), vdup_n_f32(0.0))),
        _ => vld1q_f32(place),
    },
    |place: *mut f32, count, vector| match count {
        0 => {}
        1 => vst1q_lane_f32::<0>(place, vector),
        2 => vst1_f32(place, vget_low_f32(vector)),
        3 => {
            vst1_f32(place, vget_low_f32(vector));
            vst1q_lane_f32::<2>(place.add(2), vector);
        }
        _ => vst1q_f32(place, vector),
    }
);

intrinsics!(
    NeonF64Vector of f64, 2,
    vdupq_n_f64 vld1q_f64 vst1q_f64 vaddq_f64 vsubq_f64 vmulq_f64 vdivq_f64
    vfmaq_f64 vcgtq_f64 vcltq_f64 vbslq_f64
    |vector| vminvq_u32(vreinterpretq_u32_u64(vceqzq_f64(vector))) != 0,
    |place, count| match count {
        0 => vdupq_n_f64(0.0),
        1 => vld1q_lane_f64::<0>(place, vdupq_n_f64(0.0)),
        _ => vld1q_f64(place),
    },
    |place: *mut f64, count, vector| match count {
        0 => {}
        1 => vst1q_lane_f64::<0>(place, vector),
        _ => vst1q_f64(place, vector),
    }
);

impl F32Vector for NeonF32Vector {
    #[inline(always)]
    unsafe fn load_bf16(place: *const u16, count: usize) -> Self {
        // SAFETY: the caller guarantees `count` numbers.
        unsafe {
            let numbers = match count {
                4.. => vld1_u16(place),
                _ => {
                    let mut lanes = [0; 4];
                    for (lane, number) in lanes.iter_mut().enumerate().take(count) {
                        *number = *place.add(lane);
                    }
                    vld1_u16(lanes.as_ptr())
                }
            };
            Self(vreinterpretq_f32_u32(vshll_n_u16::<16>(numbers)))
        }
    }
}

/// A vector whose products may take one factor from a lane of a register, so that one load provides several factors.
pub trait LaneProducts<T>: FloatVector<T> {
    /// `self + left * right[lane]`, rounded once. The lane has to be a constant for the compiler.
    fn add_product_of_lane(self, left: Self, right: Self, lane: usize) -> Self;
}

impl LaneProducts<f32> for NeonF32Vector {
    #[inline(always)]
    fn add_product_of_lane(self, left: Self, right: Self, lane: usize) -> Self {
        // SAFETY: every processor of the architecture has the instructions.
        Self(unsafe {
            match lane {
                0 => vfmaq_laneq_f32::<0>(self.0, left.0, right.0),
                1 => vfmaq_laneq_f32::<1>(self.0, left.0, right.0),
                2 => vfmaq_laneq_f32::<2>(self.0, left.0, right.0),
                _ => vfmaq_laneq_f32::<3>(self.0, left.0, right.0),
            }
        })
    }
}

impl LaneProducts<f64> for NeonF64Vector {
    #[inline(always)]
    fn add_product_of_lane(self, left: Self, right: Self, lane: usize) -> Self {
        // SAFETY: as above.
        Self(unsafe {
            match lane {
                0 => vfmaq_laneq_f64::<0>(self.0, left.0, right.0),
                _ => vfmaq_laneq_f64::<1>(self.0, left.0, right.0),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes_of(vector: NeonF32Vector) -> [f32; 4] {
        let mut lanes = [0.0; 4];
        // SAFETY: there is room for all lanes.
        unsafe { vector.store(lanes.as_mut_ptr()) };
        lanes
    }

    #[test]
    fn only_the_first_lanes_are_read_and_written() {
        let (numbers, doubles) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0]);
        for count in 0..=4 {
            let mut written = [-1.0; 4];
            // SAFETY: there are four numbers, and room for four.
            let loaded = unsafe {
                NeonF32Vector::load(numbers.as_ptr()).store_partial(written.as_mut_ptr(), count);
                lanes_of(NeonF32Vector::load_partial(numbers.as_ptr(), count))
            };
            let of_count = |other: f32| -> Vec<f32> {
                (0..4).map(|lane| if lane < count { numbers[lane] } else { other }).collect()
            };
            assert_eq!((loaded.to_vec(), written.to_vec()), (of_count(0.0), of_count(-1.0)));
        }
        for count in 0..=2 {
            let mut written = [-1.0; 2];
            // SAFETY: there are two numbers, and room for two.
            unsafe {
                NeonF64Vector::load_partial(doubles.as_ptr(), count)
                    .store_partial(written.as_mut_ptr(), count)
            };
            assert_eq!(written[..count], doubles[..count]);
            assert!(written[count..].iter().all(|number| *number == -1.0));
        }
    }

    #[test]
    fn nan_stays_where_it_is_compared_and_is_not_finite() {
        // SAFETY: every processor of the architecture has the instructions.
        let [nan, one] = [f32::NAN, 1.0].map(|value| unsafe { NeonF32Vector::splat(value) });
        assert!(lanes_of(nan.max(one)).into_iter().chain(lanes_of(nan.min(one))).all(f32::is_nan));
        assert_eq!((lanes_of(one.max(nan)), lanes_of(one.min(nan))), ([1.0; 4], [1.0; 4]));
        assert!(one.is_finite() && !nan.is_finite() && !one.divide(one.subtract(one)).is_finite());
    }
}
