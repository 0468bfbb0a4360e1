//! The passes over an image in which each axis is resized by weighing elements.

use oarlock_sdk::{Element, bf16, f16};

use super::super::operand::in_pieces;
use super::super::shape;
use super::taps::Taps;
use crate::device::Cpu;
use crate::kernels::rows::number::Float;

/// What can be weighed, and what it is weighed in. For integers, results beyond their range become its ends, and fractions are
/// cut off, other than those that stand for the rounding of the weights.
pub(super) trait Sample: Element {
    type Weighed: Float;

    fn widen(self) -> Self::Weighed;
    fn narrow(value: Self::Weighed) -> Self;
}

macro_rules! floats {
    ($($number:ty => $weighed:ty: $widen:expr, $narrow:expr;)*) => {
        $(impl Sample for $number {
            type Weighed = $weighed;

            #[inline(always)]
            fn widen(self) -> $weighed {
                $widen(self)
            }

            #[inline(always)]
            fn narrow(value: $weighed) -> Self {
                $narrow(value)
            }
        })*
    };
}

macro_rules! integers {
    ($($number:ty)*) => {
        $(impl Sample for $number {
            type Weighed = f64;

            fn widen(self) -> f64 {
                self as f64
            }

            fn narrow(value: f64) -> Self {
                whole(value) as Self
            }
        })*
    };
}

floats! {
    f32 => f32: std::convert::identity, std::convert::identity;
    f64 => f64: std::convert::identity, std::convert::identity;
    f16 => f32: f16::to_f32, f16::from_f32;
    bf16 => f32: bf16::to_f32, bf16::from_f32;
}
integers!(i8 u8 i16 u16 i32 u32 i64 u64);

fn whole(value: f64) -> f64 {
    let nearest = value.round();
    if (nearest - value).abs() < 1e-6 { nearest } else { value.trunc() }
}

/// The elements that make each of a resized axis, as many for each, side by side.
pub(super) struct Table<C> {
    taps: Vec<(usize, C)>,
    per_element: usize,
    length: usize,
}

impl<C: Float> Table<C> {
    /// Elements outside of a crop, which are filled later, are made of nothing.
    pub(super) fn new(taps: &Taps) -> Self {
        let per_element = taps.iter().flatten().map(Vec::len).max().unwrap_or(0).max(1);
        let mut all = Vec::with_capacity(taps.len() * per_element);
        for taps in taps {
            let taps = taps.as_deref().unwrap_or_default();
            all.extend(taps.iter().map(|(at, weight)| (*at, C::of(*weight))));
            // What counts nothing is read where something else is, so that it cannot be what is not a number.
            let filler = taps.first().map_or(0, |(at, _)| *at);
            all.resize(all.len() + per_element - taps.len(), (filler, C::ZERO));
        }
        Self { taps: all, per_element, length: taps.len() }
    }

    /// Resizes one axis of an image.
    pub(super) fn resize(&self, cpu: &Cpu, image: &[C], dims: &[usize], axis: usize, out: &mut [C]) {
        let (_, length, inner) = shape::around(dims, axis);
        if inner == 1 {
            in_pieces(cpu, out, self.length, |begin, out| {
                for (row, out) in out.chunks_mut(self.length).enumerate() {
                    let row = &image[(begin + row) * length..][..length];
                    for (out, taps) in out.iter_mut().zip(self.taps.chunks(self.per_element)) {
                        *out = taps.iter().fold(C::default(), |sum, (at, weight)| sum + row[*at] * *weight);
                    }
                }
            });
            return;
        }
        in_pieces(cpu, out, inner, |begin, out| {
            for (row, out) in out.chunks_mut(inner).enumerate() {
                let (outer, index) = ((begin + row) / self.length, (begin + row) % self.length);
                let taps = &self.taps[index * self.per_element..][..self.per_element];
                let line = |at: usize| &image[(outer * length + at) * inner..][..inner];
                if let [(first, one), (second, other)] = *taps {
                    for ((out, first), second) in out.iter_mut().zip(line(first)).zip(line(second)) {
                        *out = *first * one + *second * other;
                    }
                    continue;
                }
                out.fill(C::default());
                for (at, weight) in taps {
                    out.iter_mut().zip(line(*at)).for_each(|(sum, value)| *sum = *sum + *value * *weight);
                }
            }
        });
    }
}
