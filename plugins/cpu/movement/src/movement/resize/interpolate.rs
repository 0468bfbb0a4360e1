//! Passes over an image, each of which resizes one axis by weighting elements.

use std::borrow::Cow;

use oarlock_cpu_base::compute_element::ComputeFloat;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::for_parallel_pieces;
use oarlock_cpu_base::with_isa;
use oarlock_sdk::{Element, PluginError, Result, bf16, f16};

use super::super::shape;
use super::taps::ResizeTaps;

/// An element type, and the type in which it is weighted. Integers saturate, and lose their fraction, except fractions that come
/// from the rounding of the weights.
pub(super) trait ResizeSample: Element {
    type ComputeType: ComputeSample;

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

/// A type in which elements are weighted: it is its own.
pub(super) trait ComputeSample: ComputeFloat + ResizeSample<ComputeType = Self> {}

macro_rules! weighed_as_they_are {
    ($($number:ty)*) => {
        $(impl ComputeSample for $number {}

        impl ResizeSample for $number {
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

            #[inline(always)]
            fn widen(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            fn narrow(value: f64) -> Self {
                round_or_truncate(value) as Self
            }
        })*
    };
}

weighed_as_they_are!(f32 f64);
narrow_floats!(f16 bf16);
integers!(i8 u8 i16 u16 i32 u32 i64 u64);

#[inline(always)]
fn round_or_truncate(value: f64) -> f64 {
    // Weights such as 1/3 are rounded, so a sum that should be 3 may be just below it, and truncate to 2.
    let nearest = value.round_ties_even();
    if (nearest - value).abs() < 1e-6 { nearest } else { value.trunc() }
}

/// The taps of all elements of a resized axis, the same number for each, side by side.
pub(super) struct TapTable<C> {
    taps: Vec<(u32, C)>,
    per_element: usize,
    length: usize,
}

impl<C: ComputeSample> TapTable<C> {
    /// Elements outside of a crop, which are filled later, have weights of 0.
    pub(super) fn new(taps: &ResizeTaps) -> Result<Self> {
        // At least one, as chunks of 0 would panic.
        let per_element = taps.iter().flatten().map(Vec::len).max().unwrap_or(0).max(1);
        let mut all = Vec::with_capacity(taps.len() * per_element);
        let index = |at: usize| {
            u32::try_from(at).map_err(|_| {
                PluginError::unimplemented("expected an axis of less than 2³² elements, found a longer one")
            })
        };
        for taps in taps {
            let taps = taps.as_deref().unwrap_or_default();
            for (at, weight) in taps {
                all.push((index(*at)?, C::from_f64(*weight)));
            }
            // Taps with weight 0 repeat an element that is read anyway: another one could be NaN, and 0 · NaN is NaN.
            let filler = taps.first().map_or(Ok(0), |(at, _)| index(*at))?;
            all.resize(all.len() + per_element - taps.len(), (filler, C::ZERO));
        }
        Ok(Self { taps: all, per_element, length: taps.len() })
    }

    pub(super) fn resize_axis(&self, cpu: &Cpu, image: &[C], dims: &[usize], axis: usize, out: &mut [C]) {
        let (_, length, inner) = shape::split_at_axis(dims, axis);
        // Along the last axis each element has taps of its own. Along any other, a row of elements shares
        // them.
        let width = if inner == 1 { self.length } else { inner };
        for_parallel_pieces(cpu, out, width, |begin, out| {
            with_isa!(cpu.isa(), || {
                let rows = out.chunks_exact_mut(width).enumerate();
                if inner == 1 {
                    let lines = image[begin * length..].chunks_exact(length);
                    rows.zip(lines).for_each(|((_, out), line)| self.weigh_elements(line, out));
                } else {
                    rows.for_each(|(row, out)| {
                        let (outer, index) = ((begin + row) / self.length, (begin + row) % self.length);
                        self.weigh_rows(index, &image[outer * length * inner..], out);
                    });
                }
            });
        });
    }

    /// Weights rows, the taps of one element: each result is as long as a row.
    #[inline(always)]
    fn weigh_rows<T: ResizeSample<ComputeType = C>>(&self, index: usize, image: &[T], out: &mut [C]) {
        let taps = &self.taps[index * self.per_element..][..self.per_element];
        let width = out.len();
        let line = |at: u32| &image[at as usize * width..][..width];
        // Two taps, as of linear interpolation, take one pass over the output instead of two.
        if let [(first, one), (second, other)] = *taps {
            for ((out, first), second) in out.iter_mut().zip(line(first)).zip(line(second)) {
                *out = first.widen() * one + second.widen() * other;
            }
            return;
        }
        // Tap by tap over the whole row, so that memory is read in order and each pass is vector code.
        out.fill(C::default());
        for (at, weight) in taps {
            for (sum, value) in out.iter_mut().zip(line(*at)) {
                *sum = *sum + value.widen() * *weight;
            }
        }
    }

    /// Weights the elements of one line.
    #[inline(always)]
    fn weigh_elements<T: ResizeSample<ComputeType = C>>(&self, line: &[C], out: &mut [T]) {
        match self.per_element {
            // Linear interpolation has 2 taps, and cubic interpolation 4. Their number is a constant, so that loops are unrolled.
            2 => weigh_all(self.taps.as_chunks::<2>().0.iter(), line, out),
            4 => weigh_all(self.taps.as_chunks::<4>().0.iter(), line, out),
            count => weigh_all(self.taps.chunks_exact(count), line, out),
        }
    }
}

#[inline(always)]
fn weigh_all<'t, T: ResizeSample, E: IntoIterator<Item = &'t (u32, T::ComputeType)>>(
    taps: impl Iterator<Item = E>,
    line: &[T::ComputeType],
    out: &mut [T],
) where
    T::ComputeType: 't,
{
    for (out, taps) in out.iter_mut().zip(taps) {
        let sum = T::ComputeType::default();
        *out = T::narrow(taps.into_iter().fold(sum, |sum, (at, weight)| sum + line[*at as usize] * *weight));
    }
}

/// Resizes planes along both axes in one pass: what is between the two stays in L1.
pub(super) struct PlaneResize<C> {
    pub(super) rows: TapTable<C>,
    pub(super) columns: TapTable<C>,
    /// The dimensions of a plane before.
    pub(super) height: usize,
    pub(super) width: usize,
}

impl<C: ComputeSample> PlaneResize<C> {
    pub(super) fn resize_planes<T: ResizeSample<ComputeType = C>>(
        &self,
        cpu: &Cpu,
        planes: &[T],
        out: &mut [T],
    ) {
        let (length, plane) = (self.rows.length, self.height * self.width);
        for_parallel_pieces(cpu, out, self.columns.length, |begin, out| {
            let mut line = vec![C::default(); self.width];
            with_isa!(cpu.isa(), || {
                for (row, out) in out.chunks_exact_mut(self.columns.length).enumerate() {
                    let (outer, index) = ((begin + row) / length, (begin + row) % length);
                    self.rows.weigh_rows(index, &planes[outer * plane..][..plane], &mut line);
                    self.columns.weigh_elements(&line, out);
                }
            });
        });
    }
}
