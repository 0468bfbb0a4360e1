//! The kernel `oarlock.MaxPool` for bytes: quantization is monotonic, so the maximum needs no scale.

#![expect(
    unsafe_code,
    reason = "operands are memory that the call vouches for, and threads write parts of one output"
)]

use std::ops::Range;
use std::sync::Arc;

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::quantized_operand::BYTE_DTYPES;
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_base::window::WindowAttributes;
use oarlock_cpu_gemm::DisjointSlice;
use oarlock_sdk::{Dtype, Kernel, KernelCall, KernelFlags, OperandSpec, Result};

use super::byte_operands::{tensor_bytes, tensor_bytes_mut};
use crate::channels_last::depthwise::steps_inside;
use crate::channels_last::expect_prepared;
use crate::channels_last::geometry::NhwcGeometry;
use oarlock_cpu_base::simd::SIGN_BIT;

/// Elements that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 17;

pub(super) fn quantized_max_pool_kernel() -> Kernel<Cpu> {
    let image = OperandSpec::new(BYTE_DTYPES).with_dtype_group(1).with_rank(3, 4);
    Kernel::new_prepared("MaxPool", |_: &Cpu, call| {
        let geometry = pool_geometry(call)?;
        let dims = [call.input(0)?.dims().to_vec(), call.output(0)?.dims().to_vec()];
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
            let (x, y) = (call.input(0)?, call.output(0)?);
            expect_prepared(x.dims() == dims[0] && y.dims() == dims[1])?;
            let sign_flip = if x.dtype() == Dtype::I8 { SIGN_BIT } else { 0 };
            // SAFETY: device memory is host memory, and the call guarantees its operands.
            let (x, y) = unsafe { (tensor_bytes(&x)?, tensor_bytes_mut(&y)?) };
            compute_max_pool(cpu, &geometry, sign_flip, x, y);
            Ok(())
        }))
    })
    .with_domain(OARLOCK_DOMAIN)
    .with_support_check(|_, call| pool_geometry(call).map(drop))
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([image.with_name("X")])
    .with_outputs([image.with_name("Y")])
}

fn pool_geometry(call: &KernelCall<'_>) -> Result<NhwcGeometry> {
    NhwcGeometry::for_pooling(&WindowAttributes::new(call)?, call.input(0)?.dims(), call.output(0)?.dims())
}

fn compute_max_pool(team: &dyn ThreadTeam, geometry: &NhwcGeometry, sign_flip: u8, x: &[u8], y: &mut [u8]) {
    let rows = geometry.images * geometry.vertical.output;
    let row_size = geometry.horizontal.output * geometry.channels;
    if y.is_empty() {
        return;
    }
    let work = row_size.saturating_mul(geometry.tap_count()).saturating_mul(rows);
    let threads = team.worker_count().min(work / MIN_WORK_PER_THREAD).max(1);
    let share = rows.div_ceil(if threads == 1 { 1 } else { 4 * threads }).max(1);
    let y = DisjointSlice::new(y);
    team.parallel_for_each(rows.div_ceil(share), &|piece| {
        let rows = piece * share..rows.min((piece + 1) * share);
        // SAFETY: no two pieces share rows.
        let y = unsafe { y.range_mut(rows.start * row_size..rows.end * row_size) };
        team.isa().vectorize(QuantizedPoolRows { geometry, sign_flip, x, rows, y });
    });
}

struct QuantizedPoolRows<'a> {
    geometry: &'a NhwcGeometry,
    /// The bits to flip in each byte to make it unsigned.
    sign_flip: u8,
    x: &'a [u8],
    rows: Range<usize>,
    y: &'a mut [u8],
}

/// Channels that are compared at a time: a zmm or two ymm of bytes.
const CHANNELS_AT_ONCE: usize = 64;

impl SimdTask for QuantizedPoolRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let NhwcGeometry { channels, vertical, horizontal, .. } = *self.geometry;
        for (row, output) in self.rows.zip(self.y.chunks_exact_mut(horizontal.output * channels)) {
            let (image, window) = (row / vertical.output, row % vertical.output);
            let lines = steps_inside(&vertical, window);
            for (pixel, output) in output.chunks_exact_mut(channels).enumerate() {
                let steps = steps_inside(&horizontal, pixel);
                for (block, output) in output.chunks_mut(CHANNELS_AT_ONCE).enumerate() {
                    // The least byte, which is the result of a window that is entirely in the padding.
                    let mut greatest = [0; CHANNELS_AT_ONCE];
                    for line in lines.clone() {
                        for step in steps.clone() {
                            let vertical =
                                window * vertical.stride + line * vertical.dilation - vertical.pad.0;
                            let along_line =
                                pixel * horizontal.stride + step * horizontal.dilation - horizontal.pad.0;
                            let line = image * self.geometry.vertical.input + vertical;
                            let place =
                                (line * horizontal.input + along_line) * channels + block * CHANNELS_AT_ONCE;
                            let inputs = &self.x[place..][..output.len()];
                            // With a constant count this compiles to whole vectors; only the last block of channels may have fewer.
                            match inputs.first_chunk::<CHANNELS_AT_ONCE>() {
                                Some(inputs) => max_bytes(&mut greatest, inputs, self.sign_flip),
                                None => max_bytes(&mut greatest[..inputs.len()], inputs, self.sign_flip),
                            }
                        }
                    }
                    for (output, greatest) in output.iter_mut().zip(greatest) {
                        *output = greatest ^ self.sign_flip;
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn max_bytes(greatest: &mut [u8], inputs: &[u8], sign_flip: u8) {
    for (greatest, input) in greatest.iter_mut().zip(inputs) {
        *greatest = (*greatest).max(input ^ sign_flip);
    }
}
