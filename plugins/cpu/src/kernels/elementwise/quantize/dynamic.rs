//! `DynamicQuantizeLinear`: the scale is made of the smallest and the largest element.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::{Mutex, PoisonError};

use oarlock_sdk::{Call, Dtype, DtypeSet, Kernel, Operand, Result, ensure};

use super::super::inner::Loop;
use super::super::number::Number;
use super::super::pass::{self, Pass};
use super::super::plan::Shape;
use super::super::port::Port;
use super::super::row::prepared;
use super::Quantize;
use crate::device::Cpu;
use crate::isa::{Target, Vectorized};

/// Elements that are worth a thread.
const GRAIN: usize = 8192;

/// The smallest and the largest of some elements and 0.
struct Range<'a>(&'a [f32]);

impl Vectorized for Range<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn run<T: Target>(self) -> (f32, f32) {
        const LANES: usize = 32;
        let (mut low, mut high) = ([0f32; LANES], [0f32; LANES]);
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                low[lane] = chunk[lane].smaller(low[lane]);
                high[lane] = chunk[lane].larger(high[lane]);
            }
        }
        let low = low.iter().chain(rest).fold(0f32, |low, x| x.smaller(low));
        let high = high.iter().chain(rest).fold(0f32, |high, x| x.larger(high));
        (low, high)
    }
}

fn range(cpu: &Cpu, elements: &[f32]) -> (f32, f32) {
    let range = Mutex::new((0f32, 0f32));
    cpu.parallel_for(elements.len(), GRAIN, |begin, end| {
        let (low, high) = cpu.isa().vectorize(Range(&elements[begin..end]));
        let mut range = range.lock().unwrap_or_else(PoisonError::into_inner);
        *range = (low.smaller(range.0), high.larger(range.1));
    });
    range.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn run(pass: &Pass, cpu: &Cpu, call: &Call<'_>) -> Result<()> {
    let (x, y, scale_output, zero_output) =
        (call.input(0)?, call.output(0)?, call.output(1)?, call.output(2)?);
    // SAFETY: the device's memory is the host's, and the call vouches for its operands, which no two share.
    let (elements, scale_to, zero_to) = unsafe {
        (x.elements::<f32>()?, scale_output.elements_mut::<f32>()?, zero_output.elements_mut::<u8>()?)
    };
    ensure!(
        scale_to.len() == 1 && zero_to.len() == 1,
        invalid_argument,
        "expected one scale and one zero point, found room for {} and {}",
        scale_to.len(),
        zero_to.len()
    );
    let (low, high) = range(cpu, elements);
    let scale = (high - low) / 255.0;
    let zero = if scale == 0.0 { 0.0 } else { (-low / scale).clamp(0.0, 255.0).round_ties_even() };
    (scale_to[0], zero_to[0]) = (scale, zero as u8);
    // All elements are 0 where the scale is, and any other scale will do.
    let scale = if scale == 0.0 { 1.0 } else { scale };
    let single = |value: &f32| pass::Operand {
        shape: Shape { dims: &[], strides: &[] },
        address: (&raw const *value) as usize,
        size: size_of::<f32>(),
    };
    let inputs = [pass::Operand::of(&x, &pass.inputs()[0])?, single(&scale), single(&zero)];
    pass.run_over(cpu, &inputs, pass::Operand::of(&y, pass.output())?)
}

/// The row of `DynamicQuantizeLinear`.
pub(super) fn kernel() -> Kernel<Cpu> {
    prepared("DynamicQuantizeLinear", 11, |_| {
        let inputs = [Port::direct(Dtype::F32); 3];
        let pass =
            Pass::new(Loop(Quantize { low: 0.0, high: 255.0 }), inputs, Port::output(Dtype::U8, Dtype::F32)?);
        Ok(move |cpu: &Cpu, call: &Call<'_>| run(&pass, cpu, call))
    })
    .inputs([Operand::new(DtypeSet::F32).named("x")])
    .outputs([
        Operand::new(DtypeSet::U8).named("y"),
        Operand::new(DtypeSet::F32).named("y_scale"),
        Operand::new(DtypeSet::U8).named("y_zero_point"),
    ])
}
