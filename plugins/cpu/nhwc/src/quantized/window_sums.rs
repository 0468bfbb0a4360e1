//! Sums the inputs under each window, over all channels of a group.
//!
//! Channels are summed first, then adjacent pixels, then lines, so that each input is read once instead of once per window that
//! contains it.

#![expect(unsafe_code, reason = "threads write parts of one vector")]

use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_base::window::WindowAxis;
use oarlock_cpu_gemm::DisjointSlice;

use crate::channels_last::geometry::NhwcGeometry;
use oarlock_cpu_base::simd::SIGN_BIT;

/// Bytes that are worth a separate task.
const BYTES_PER_TASK: usize = 1 << 16;

/// Computes the sum of the inputs minus their zero points, for each output pixel and group. There is one zero point or, for a
/// product, one per row. Signed inputs are treated as unsigned, with the sign bit flipped.
pub(super) fn sum_windows(
    team: &dyn ThreadTeam,
    geometry: &NhwcGeometry,
    images: &[u8],
    is_signed: bool,
    zeros: &[i32],
) -> Vec<i32> {
    let NhwcGeometry { groups, vertical, horizontal, .. } = *geometry;
    let depth = geometry.channels_per_group();
    let pixels = geometry.images * vertical.input * horizontal.input;
    let mut sums = vec![0; pixels * groups];
    let share = (BYTES_PER_TASK / depth.max(1)).max(1);
    let (written, sign_flip) = (DisjointSlice::new(&mut sums), if is_signed { SIGN_BIT } else { 0 });
    team.parallel_for_each((pixels * groups).div_ceil(share), &|task| {
        let part = task * share..(pixels * groups).min((task + 1) * share);
        // SAFETY: no two tasks share elements.
        let sums = unsafe { written.range_mut(part.clone()) };
        let images = &images[part.start * depth..part.end * depth];
        team.isa().vectorize(ChannelSums { images, depth, sign_flip, zeros, first: part.start, sums });
    });
    if geometry.is_pointwise() {
        return sums;
    }
    let mut beside = vec![0; geometry.images * vertical.input * horizontal.output * groups];
    let lines = beside.chunks_exact_mut((horizontal.output * groups).max(1));
    for (line, from) in lines.zip(sums.chunks_exact((horizontal.input * groups).max(1))) {
        add_window_steps(&horizontal, groups, from, line);
    }
    let row = horizontal.output * groups;
    let mut result = vec![0; geometry.output_pixels() * groups];
    let (images, from) =
        (result.chunks_exact_mut((vertical.output * row).max(1)), (vertical.input * row).max(1));
    for (image, from) in images.zip(beside.chunks_exact(from)) {
        add_window_steps(&vertical, row, from, image);
    }
    result
}

/// Adds the elements under each step to each window along an axis; a position has `size` elements.
fn add_window_steps(axis: &WindowAxis, size: usize, from: &[i32], windows: &mut [i32]) {
    for step in 0..axis.kernel {
        for (window, sums) in windows.chunks_exact_mut(size).enumerate() {
            // Padding is the zero point, which is subtracted from the sums, so it adds nothing.
            let Some(place) = axis.input_position(window, step) else { continue };
            for (sum, addend) in sums.iter_mut().zip(&from[place * size..][..size]) {
                *sum = sum.wrapping_add(*addend);
            }
        }
    }
}

struct ChannelSums<'a> {
    images: &'a [u8],
    depth: usize,
    sign_flip: u8,
    zeros: &'a [i32],
    /// The index of the first sum's pixel.
    first: usize,
    sums: &'a mut [i32],
}

impl SimdTask for ChannelSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { images, depth, sign_flip, zeros, first, sums } = self;
        for (pixel, sum) in sums.iter_mut().enumerate() {
            let channels = &images[pixel * depth..][..depth];
            let all: u32 = channels.iter().map(|byte| u32::from(byte ^ sign_flip)).fold(0, u32::wrapping_add);
            let zero = zeros[if zeros.len() == 1 { 0 } else { first + pixel }];
            *sum = (all as i32).wrapping_sub(zero.wrapping_mul(depth as i32));
        }
    }
}
