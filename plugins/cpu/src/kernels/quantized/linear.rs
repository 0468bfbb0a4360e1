//! A row of `QuantizeLinear` for what most quantised models ask for: floats to bytes, with one scale for all. It rounds to
//! bytes at once, and is taken before the general one, which makes whole floats first.

#![expect(
    unsafe_code,
    reason = "operands are memory that the call vouches for, and threads write parts of one output"
)]

use oarlock_sdk::{Call, Dtype, DtypeSet, Kernel, KernelFlags, Operand, OperandFlags, Result, ensure};

use super::finish::{WHOLE, bounded, range};
use super::layer::{bytes, bytes_mut};
use crate::device::Cpu;
use crate::gemm::{Parts, Team};
use crate::isa::{Target, Vectorized};
use crate::kernels::matmul::quantised::BYTES;

/// Elements that are worth waking another thread, and those of a piece.
const WORK_OF_A_THREAD: usize = 1 << 15;
const PIECE: usize = 1 << 14;

pub(super) fn kernel() -> Kernel<Cpu> {
    let byte = Operand::new(BYTES).group(2);
    Kernel::new("QuantizeLinear", run)
        .since(10)
        .score(110)
        .supports(|_, call| check(call))
        .flags(KernelFlags::DETERMINISTIC)
        .inputs([
            Operand::new(DtypeSet::F32).named("x"),
            Operand::new(DtypeSet::F32).named("y_scale"),
            byte.named("y_zero_point").flags(OperandFlags::OPTIONAL),
        ])
        .outputs([byte.named("y")])
}

fn check(call: &Call<'_>) -> Result<()> {
    let (x, scale, zero) = (call.input(0)?, call.input(1)?, call.optional_input(2)?);
    let zero_count = zero.map_or(Ok(1), |zero| zero.element_count())?;
    ensure!(
        scale.element_count()? == 1 && zero_count == 1 && call.int("block_size")?.unwrap_or(0) == 0,
        unimplemented,
        "expected one scale and one zero point, found more"
    );
    ensure!(
        x.dims() == call.output(0)?.dims(),
        invalid_argument,
        "expected an output of shape {:?}, found {:?}",
        x.dims(),
        call.output(0)?.dims()
    );
    Ok(())
}

fn run(cpu: &Cpu, call: &Call<'_>) -> Result<()> {
    check(call)?;
    let (x, scale, zero, y) = (call.input(0)?, call.input(1)?, call.optional_input(2)?, call.output(0)?);
    let dtype = y.dtype();
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let (x, scale, zero, y) = unsafe {
        let zero = zero.as_ref().map(|zero| bytes(zero)).transpose()?;
        (x.elements::<f32>()?, scale.elements::<f32>()?, zero.map_or(0, |zero| zero[0]), bytes_mut(&y)?)
    };
    let number = i64::from(if dtype == Dtype::I8 { i32::from(zero.cast_signed()) } else { i32::from(zero) });
    let (least, most) = range(dtype);
    let bounds = [least - number, most - number].map(|bound| bound as f32);
    quantize(cpu, x, (scale[0], zero), bounds, y);
    Ok(())
}

/// Makes bytes of floats, which are kept within bounds less the zero point.
pub(crate) fn quantize(cpu: &Cpu, x: &[f32], (scale, zero): (f32, u8), bounds: [f32; 2], y: &mut [u8]) {
    assert_eq!(x.len(), y.len(), "a byte for each float");
    let count = x.len();
    let pieces =
        if cpu.worker_count() > 1 && count >= 2 * WORK_OF_A_THREAD { count.div_ceil(PIECE) } else { 1 };
    let (share, y) = (count.div_ceil(pieces), Parts::new(y));
    Team::each(cpu, pieces, &|piece| {
        let part = (piece * share).min(count)..((piece + 1) * share).min(count);
        // SAFETY: no two pieces have elements in common.
        let y = unsafe { y.part(part.clone()) };
        cpu.isa().vectorize(Work { x: &x[part], scale, zero, bounds, y });
    });
}

struct Work<'a> {
    x: &'a [f32],
    scale: f32,
    zero: u8,
    bounds: [f32; 2],
    y: &'a mut [u8],
}

impl Vectorized for Work<'_> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(self) {
        let Self { x, scale, zero, bounds, y } = self;
        for (x, y) in x.iter().zip(y) {
            let step = x / scale;
            let whole = (bounded(step, bounds) + WHOLE).to_bits() as u8;
            // What is no number becomes 0, as where floats are cut off to integers.
            *y = if step.is_nan() { 0 } else { whole.wrapping_add(zero) };
        }
    }
}
