//! Passes over an image, each of which resizes one axis by weighting elements.

use std::borrow::Cow;

use oarlock_cpu_base::compute_element::ComputeFloat;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::for_parallel_pieces;
use oarlock_sdk::{Element, bf16, f16};

use super::super::shape;
use super::taps::ResizeTaps;

/// An element type, and the type in which it is weighted. Integers saturate, and lose their fraction, except fractions that come
/// from the rounding of the weights.
pub(super) trait ResizeSample: Element {
    type ComputeType: ComputeFloat;

    fn widen(self) -> Self::ComputeType;
    fn narrow(value: Self::ComputeType) -> Self;

    /// Converts elements to the type in which they are weighted.
    fn widen_slice(elements: &[Self]) -> Cow<'_, [Self::ComputeType]> {
        Cow::Owned(elements.iter().map(|element| element.widen()).collect())
    }

    /// The output itself, if it has the type in which elements are weighted.
    fn as_compute_mut(_: &mut [Self]) -> Option<&mut [Self::ComputeType]> {
        None
    }
}

macro_rules! weighed_as_they_are {
    ($($number:ty)*) => {
        $(impl ResizeSample for $number {
            type ComputeType = Self;

            #[inline(always)]
            fn widen(self) -> Self {
                self
            }

            #[inline(always)]
            fn narrow(value: Self) -> Self {
                value
            }

            fn widen_slice(elements: &[Self]) -> Cow<'_, [Self]> {
                Cow::Borrowed(elements)
            }

            fn as_compute_mut(output: &mut [Self]) -> Option<&mut [Self]> {
                Some(output)
            }
        })*
    };
}

macro_rules! narrow_floats {
    ($($number:ident)*) => {
        $(impl ResizeSample for $number {
            type ComputeType = f32;

            #[inline(always)]
            fn widen(self) -> f32 {
                self.to_f32()
            }

            #[inline(always)]
            fn narrow(value: f32) -> Self {
                Self::from_f32(value)
            }
        })*
    };
}

macro_rules! integers {
    ($($number:ty)*) => {
        $(impl ResizeSample for $number {
            // An `f32` has too few digits for integers of 32 bits.
            type ComputeType = f64;

            fn widen(self) -> f64 {
                self as f64
            }

            fn narrow(value: f64) -> Self {
                round_or_truncate(value) as Self
            }
        })*
    };
}

weighed_as_they_are!(f32 f64);
narrow_floats!(f16 bf16);
integers!(i8 u8 i16 u16 i32 u32 i64 u64);

fn round_or_truncate(value: f64) -> f64 {
    // Weights such as 1/3 are rounded, so a sum that should be 3 may be just below it, and truncate to 2.
    let nearest = value.round();
    if (nearest - value).abs() < 1e-6 { nearest } else { value.trunc() }
}

/// The taps of all elements of a resized axis, the same number for each, side by side.
pub(super) struct TapTable<C> {
    taps: Vec<(usize, C)>,
    per_element: usize,
    length: usize,
}

impl<C: ComputeFloat> TapTable<C> {
    /// Elements outside of a crop, which are filled later, have weights of 0.
    pub(super) fn new(taps: &ResizeTaps) -> Self {
        // At least one, as chunks of 0 would panic.
        let per_element = taps.iter().flatten().map(Vec::len).max().unwrap_or(0).max(1);
        let mut all = Vec::with_capacity(taps.len() * per_element);
        for taps in taps {
            let taps = taps.as_deref().unwrap_or_default();
            all.extend(taps.iter().map(|(at, weight)| (*at, C::from_f64(*weight))));
            // Taps with weight 0 repeat an element that is read anyway: another one could be NaN, and 0 · NaN is NaN.
            let filler = taps.first().map_or(0, |(at, _)| *at);
            all.resize(all.len() + per_element - taps.len(), (filler, C::ZERO));
        }
        Self { taps: all, per_element, length: taps.len() }
    }

    pub(super) fn resize_axis(&self, cpu: &Cpu, image: &[C], dims: &[usize], axis: usize, out: &mut [C]) {
        let (_, length, inner) = shape::split_at_axis(dims, axis);
        // Along the last axis each element has taps of its own. Along any other, a row of elements shares
        // them.
        if inner == 1 {
            for_parallel_pieces(cpu, out, self.length, |begin, out| {
                let image = &image[begin * length..];
                match self.per_element {
                    // Linear interpolation has 2 taps, and cubic interpolation 4.
                    2 => self.resize_rows(self.taps.as_chunks::<2>().0.iter(), image, length, out),
                    4 => self.resize_rows(self.taps.as_chunks::<4>().0.iter(), image, length, out),
                    count => self.resize_rows(self.taps.chunks_exact(count), image, length, out),
                }
            });
            return;
        }
        for_parallel_pieces(cpu, out, inner, |begin, out| {
            for (row, out) in out.chunks_mut(inner).enumerate() {
                let (outer, index) = ((begin + row) / self.length, (begin + row) % self.length);
                let taps = &self.taps[index * self.per_element..][..self.per_element];
                let line = |at: usize| &image[(outer * length + at) * inner..][..inner];
                // Two taps, as of linear interpolation, take one pass over the output instead of three.
                if let [(first, one), (second, other)] = *taps {
                    for ((out, first), second) in out.iter_mut().zip(line(first)).zip(line(second)) {
                        *out = *first * one + *second * other;
                    }
                    continue;
                }
                // Tap by tap over the whole row, so that memory is read in order and each pass is vector code.
                out.fill(C::default());
                for (at, weight) in taps {
                    out.iter_mut().zip(line(*at)).for_each(|(sum, value)| *sum = *sum + *value * *weight);
                }
            }
        });
    }
    /// Resizes rows of contiguous elements. If the number of taps is a constant, the inner loop is unrolled.
    fn resize_rows<'t, T: IntoIterator<Item = &'t (usize, C)>>(
        &self,
        taps: impl Iterator<Item = T> + Clone,
        image: &[C],
        length: usize,
        out: &mut [C],
    ) where
        C: 't,
    {
        for (row, out) in image.chunks_exact(length).zip(out.chunks_exact_mut(self.length)) {
            for (out, taps) in out.iter_mut().zip(taps.clone()) {
                *out = taps.into_iter().fold(C::default(), |sum, (at, weight)| sum + row[*at] * *weight);
            }
        }
    }
}
