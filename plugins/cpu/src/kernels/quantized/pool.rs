//! The row of `oarlock.MaxPool` for bytes: the greatest of some numbers has the same place among them whatever their scale.

#![expect(
    unsafe_code,
    reason = "operands are memory that the call vouches for, and threads write parts of one output"
)]

use std::ops::Range;
use std::sync::Arc;

use oarlock_sdk::{Call, Dtype, Kernel, KernelFlags, Operand, Result};

use super::layer::{bytes, bytes_mut};
use super::vector::TURNED;
use crate::device::Cpu;
use crate::gemm::{Parts, Team};
use crate::isa::{Target, Vectorized};
use crate::kernels::channels_last::depthwise::steps_inside;
use crate::kernels::channels_last::expect_prepared;
use crate::kernels::channels_last::geometry::Geometry;
use crate::kernels::conv::window::Settings;
use crate::kernels::matmul::quantised::BYTES;

/// Elements that are worth waking another thread.
const WORK_OF_A_THREAD: usize = 1 << 17;

pub(super) fn kernel() -> Kernel<Cpu> {
    let image = Operand::new(BYTES).group(1).rank(3, 4);
    Kernel::prepared("MaxPool", |_: &Cpu, call| {
        let geometry = geometry(call)?;
        let dims = [call.input(0)?.dims().to_vec(), call.output(0)?.dims().to_vec()];
        Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| {
            let (x, y) = (call.input(0)?, call.output(0)?);
            expect_prepared(x.dims() == dims[0] && y.dims() == dims[1])?;
            let turned = if x.dtype() == Dtype::I8 { TURNED } else { 0 };
            // SAFETY: the device's memory is the host's, and the call vouches for its operands.
            let (x, y) = unsafe { (bytes(&x)?, bytes_mut(&y)?) };
            compute(cpu, &geometry, turned, x, y);
            Ok(())
        }))
    })
    .domain("oarlock")
    .supports(|_, call| geometry(call).map(drop))
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([image.named("X")])
    .outputs([image.named("Y")])
}

fn geometry(call: &Call<'_>) -> Result<Geometry> {
    Geometry::of_pooling(&Settings::new(call)?, call.input(0)?.dims(), call.output(0)?.dims())
}

fn compute(team: &dyn Team, geometry: &Geometry, turned: u8, x: &[u8], y: &mut [u8]) {
    let rows = geometry.images * geometry.down.output;
    let row_size = geometry.along.output * geometry.channels;
    if y.is_empty() {
        return;
    }
    let work = row_size.saturating_mul(geometry.taps()).saturating_mul(rows);
    let threads = team.worker_count().min(work / WORK_OF_A_THREAD).max(1);
    let share = rows.div_ceil(if threads == 1 { 1 } else { 4 * threads }).max(1);
    let y = Parts::new(y);
    team.each(rows.div_ceil(share), &|piece| {
        let rows = piece * share..rows.min((piece + 1) * share);
        // SAFETY: no two pieces have rows in common.
        let y = unsafe { y.part(rows.start * row_size..rows.end * row_size) };
        team.isa().vectorize(Rows { geometry, turned, x, rows, y });
    });
}

/// Some rows of the output.
struct Rows<'a> {
    geometry: &'a Geometry,
    /// What is turned in each byte so that it is unsigned.
    turned: u8,
    x: &'a [u8],
    rows: Range<usize>,
    y: &'a mut [u8],
}

/// Channels that are compared at a time.
const AT_ONCE: usize = 64;

impl Vectorized for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(self) {
        let Geometry { channels, down, along, .. } = *self.geometry;
        for (row, output) in self.rows.zip(self.y.chunks_exact_mut(along.output * channels)) {
            let (image, window) = (row / down.output, row % down.output);
            let lines = steps_inside(&down, window);
            for (pixel, output) in output.chunks_exact_mut(channels).enumerate() {
                let steps = steps_inside(&along, pixel);
                for (block, output) in output.chunks_mut(AT_ONCE).enumerate() {
                    let mut greatest = [0; AT_ONCE];
                    for line in lines.clone() {
                        for step in steps.clone() {
                            let down = window * down.stride + line * down.dilation - down.pad.0;
                            let along_line = pixel * along.stride + step * along.dilation - along.pad.0;
                            let line = image * self.geometry.down.input + down;
                            let place = (line * along.input + along_line) * channels + block * AT_ONCE;
                            let inputs = &self.x[place..][..output.len()];
                            match inputs.first_chunk::<AT_ONCE>() {
                                Some(inputs) => greater(&mut greatest, inputs, self.turned),
                                None => greater(&mut greatest[..inputs.len()], inputs, self.turned),
                            }
                        }
                    }
                    for (output, greatest) in output.iter_mut().zip(greatest) {
                        *output = greatest ^ self.turned;
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn greater(greatest: &mut [u8], inputs: &[u8], turned: u8) {
    for (greatest, input) in greatest.iter_mut().zip(inputs) {
        *greatest = (*greatest).max(input ^ turned);
    }
}
