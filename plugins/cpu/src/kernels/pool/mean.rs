//! `AveragePool` and `LpPool`.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_sdk::{Call, Element, Kernel, KernelFlags, Operand, Result, bf16, dispatch, ensure, f16};

use super::fold::{Fold, fold};
use super::{FLOATS, Pool};
use crate::device::Cpu;
use crate::kernels::conv::window::Settings;

pub(super) fn kernels() -> [Kernel<Cpu>; 2] {
    let image = Operand::new(FLOATS).group(1).rank(3, u32::MAX);
    let average = Kernel::prepared("AveragePool", |_: &Cpu, call| {
        let settings = Settings::new(call)?;
        let with_padding = call.int("count_include_pad")?.unwrap_or(0) != 0;
        Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| {
            dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => {
                pool::<T, _>(cpu, call, &settings, with_padding, &Mean)
            })
        }))
    });
    let norm = Kernel::prepared("LpPool", |_: &Cpu, call| {
        let (settings, norm) = (Settings::new(call)?, Norm::new(call)?);
        Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| {
            dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => {
                pool::<T, _>(cpu, call, &settings, false, &norm)
            })
        }))
    })
    .since(2);
    [average, norm].map(|kernel| {
        kernel.flags(KernelFlags::DETERMINISTIC).inputs([image.named("X")]).outputs([image.named("Y")])
    })
}

/// An element that can be averaged, in the type in which that is done.
pub(super) trait Averaged: Element {
    type Wide: Wide;

    fn widened(self) -> Self::Wide;

    fn narrowed(wide: Self::Wide) -> Self;
}

/// What averages are computed in.
pub(super) trait Wide:
    Copy + Default + Send + Sync + std::ops::Add<Output = Self> + std::ops::Mul<Output = Self>
{
    fn divided(self, count: usize) -> Self;

    fn abs(self) -> Self;

    /// The power of a whole number.
    fn powi(self, exponent: i32) -> Self;

    /// The root of a whole number.
    fn root(self, degree: i32) -> Self;
}

macro_rules! wide {
    ($($float:ident)*) => {
        $(impl Wide for $float {
            #[inline(always)]
            fn divided(self, count: usize) -> Self {
                self / count.max(1) as $float
            }

            #[inline(always)]
            fn abs(self) -> Self {
                $float::abs(self)
            }

            #[inline(always)]
            fn powi(self, exponent: i32) -> Self {
                $float::powi(self, exponent)
            }

            #[inline(always)]
            fn root(self, degree: i32) -> Self {
                match degree {
                    1 => self,
                    2 => self.sqrt(),
                    _ => self.powf(1.0 / degree as $float),
                }
            }
        })*
    };
}

macro_rules! averaged {
    ($($element:ty => $wide:ty: $narrow:expr),*) => {
        $(impl Averaged for $element {
            type Wide = $wide;

            #[inline(always)]
            fn widened(self) -> $wide {
                self.into()
            }

            #[inline(always)]
            fn narrowed(wide: $wide) -> Self {
                $narrow(wide)
            }
        })*
    };
}

wide!(f32 f64);
averaged!(f32 => f32: |wide| wide, f64 => f64: |wide| wide, f16 => f32: f16::from_f32, bf16 => f32: bf16::from_f32);

/// The mean of the elements that count.
pub(super) struct Mean;

impl<E: Averaged> Fold<E> for Mean {
    type Sum = E::Wide;

    #[inline(always)]
    fn start(&self) -> E::Wide {
        E::Wide::default()
    }

    #[inline(always)]
    fn add(&self, sum: E::Wide, element: E) -> E::Wide {
        sum + element.widened()
    }

    #[inline(always)]
    fn join(&self, left: E::Wide, right: E::Wide) -> E::Wide {
        left + right
    }

    #[inline(always)]
    fn finish(&self, sum: E::Wide, count: usize) -> E {
        E::narrowed(sum.divided(count))
    }
}

/// The norm of some degree: the root of the sum of the powers.
pub(super) struct Norm {
    degree: i32,
}

impl Norm {
    pub(super) fn new(call: &Call<'_>) -> Result<Self> {
        let degree = call.int("p")?.unwrap_or(2);
        ensure!(
            (1..=1024).contains(&degree),
            invalid_argument,
            "expected `p` between 1 and 1024, found {degree}"
        );
        Ok(Self { degree: degree as i32 })
    }
}

impl<E: Averaged> Fold<E> for Norm {
    type Sum = E::Wide;

    #[inline(always)]
    fn start(&self) -> E::Wide {
        E::Wide::default()
    }

    #[inline(always)]
    fn add(&self, sum: E::Wide, element: E) -> E::Wide {
        let element = element.widened().abs();
        sum + if self.degree == 2 { element * element } else { element.powi(self.degree) }
    }

    #[inline(always)]
    fn join(&self, left: E::Wide, right: E::Wide) -> E::Wide {
        left + right
    }

    #[inline(always)]
    fn finish(&self, sum: E::Wide, _count: usize) -> E {
        E::narrowed(sum.root(self.degree))
    }
}

fn pool<E: Averaged, F: Fold<E>>(
    cpu: &Cpu,
    call: &Call<'_>,
    settings: &Settings,
    with_padding: bool,
    how: &F,
) -> Result<()> {
    let (x, y) = (call.input(0)?, call.output(0)?);
    let pool = Pool::new(settings, x.dims(), y.dims())?;
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let (x, y) = unsafe { (x.elements::<E>()?, y.elements_mut::<E>()?) };
    fold(cpu, &pool, with_padding, x, y, how);
    Ok(())
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::testing::{Array, Attribute, run};

    #[test]
    fn padding_counts_only_on_request() {
        let x = Array::of(&[1, 1, 3], &[3f32, 6., 9.]);
        for (include, expected) in [(0, [4.5f32, 7.5]), (1, [3.0, 5.0])] {
            let attributes = [
                ("kernel_shape", Attribute::Ints(&[3])),
                ("strides", Attribute::Ints(&[2])),
                ("pads", Attribute::Ints(&[1, 1])),
                ("count_include_pad", Attribute::Int(include)),
            ];
            let results =
                run("AveragePool", 19, &attributes, &[Some(&x)], &[Some((Dtype::F32, &[1, 1, 2]))]).unwrap();
            assert_eq!(results[0].as_ref().unwrap().values::<f32>(), expected);
        }
    }

    #[test]
    fn a_window_past_the_padding_does_not_count_what_is_there() {
        let x = Array::of(&[1, 1, 4], &[1f32, 2., 3., 4.]);
        let attributes = [
            ("kernel_shape", Attribute::Ints(&[3])),
            ("strides", Attribute::Ints(&[2])),
            ("ceil_mode", Attribute::Int(1)),
            ("count_include_pad", Attribute::Int(1)),
        ];
        let results =
            run("AveragePool", 19, &attributes, &[Some(&x)], &[Some((Dtype::F32, &[1, 1, 2]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [2., 3.5]);
    }

    #[test]
    fn a_norm_is_the_root_of_the_sum_of_powers() {
        let x = Array::of(&[1, 1, 3], &[3f32, -4., 0.]);
        let attributes = [("kernel_shape", Attribute::Ints(&[2])), ("p", Attribute::Int(2))];
        let results = run("LpPool", 18, &attributes, &[Some(&x)], &[Some((Dtype::F32, &[1, 1, 2]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [5., 4.]);
    }
}
