//! Loops over rows, windows and blocks of channels, for vectors of three widths.

#![expect(
    unsafe_code,
    reason = "pixels, weights and results are reached through pointers, with instructions a machine may lack"
)]

mod byte_vectors;

use std::ptr;

use oarlock_cpu_base::isa::Isa;

use super::{InterleavedFormat, InterleavedJob, MAX_QUADS, QUAD};
#[cfg(x86_vectors)]
use byte_vectors::{AvxVnniXmm, AvxVnniYmm, VnniXmm, VnniYmm, VnniZmm, WidenedYmm};
use byte_vectors::{ByteVector, WidenedXmm};

/// The vectors of an instruction set: the widest, and two for the channels that are left. Two may be the same.
trait ByteVectorSet {
    type Wide: ByteVector;
    type Middle: ByteVector;
    type Narrow: ByteVector;

    const FORMAT: InterleavedFormat = InterleavedFormat {
        blocks: [Self::Wide::COUNT, Self::Middle::COUNT, Self::Narrow::COUNT],
        factor_bytes: Self::Wide::FACTOR_BYTES,
    };
}

#[cfg(x86_vectors)]
enum Avx512VnniSet {}

#[cfg(x86_vectors)]
impl ByteVectorSet for Avx512VnniSet {
    type Wide = VnniZmm;
    type Middle = VnniYmm;
    type Narrow = VnniXmm;
}

#[cfg(x86_vectors)]
enum AvxVnniSet {}

#[cfg(x86_vectors)]
impl ByteVectorSet for AvxVnniSet {
    type Wide = AvxVnniYmm;
    type Middle = AvxVnniYmm;
    type Narrow = AvxVnniXmm;
}

#[cfg(x86_vectors)]
enum Avx2Set {}

#[cfg(x86_vectors)]
impl ByteVectorSet for Avx2Set {
    type Wide = WidenedYmm;
    type Middle = WidenedYmm;
    type Narrow = WidenedXmm;
}

enum Sse41Set {}

impl ByteVectorSet for Sse41Set {
    type Wide = WidenedXmm;
    type Middle = WidenedXmm;
    type Narrow = WidenedXmm;
}

#[cfg(x86_vectors)]
fn has_avx512_vnni(isa: Isa) -> bool {
    isa >= Isa::Avx512 && is_x86_feature_detected!("avx512vnni")
}

/// The format of an instruction set, if it has instructions for it.
pub(super) fn format(isa: Isa) -> Option<InterleavedFormat> {
    match isa {
        #[cfg(x86_vectors)]
        _ if has_avx512_vnni(isa) => Some(Avx512VnniSet::FORMAT),
        #[cfg(x86_vectors)]
        Isa::AvxVnni => Some(AvxVnniSet::FORMAT),
        #[cfg(x86_vectors)]
        Isa::Avx2 | Isa::Avx512 | Isa::Amx => Some(Avx2Set::FORMAT),
        Isa::Sse41 => Some(Sse41Set::FORMAT),
        _ => None,
    }
}

/// # Safety
///
/// The operands have the sizes of the convolution.
pub(super) unsafe fn compute_rows(job: InterleavedJob<'_>, is_signed: bool) {
    // SAFETY: guaranteed by the caller; a machine has the instructions of an `Isa`, and there are jobs only for those with a format.
    unsafe {
        match job.depthwise.isa {
            #[cfg(x86_vectors)]
            isa if has_avx512_vnni(isa) => compute_rows_avx512_vnni(job, is_signed),
            #[cfg(x86_vectors)]
            Isa::AvxVnni => compute_rows_avx_vnni(job, is_signed),
            #[cfg(x86_vectors)]
            Isa::Avx2 | Isa::Avx512 | Isa::Amx => compute_rows_avx2(job, is_signed),
            _ => compute_rows_sse41(job, is_signed),
        }
    }
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn compute_rows_avx512_vnni(job: InterleavedJob<'_>, is_signed: bool) {
    // SAFETY: guaranteed by the caller.
    unsafe { dispatch_rows::<Avx512VnniSet>(job, is_signed) };
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma,avxvnni")]
unsafe fn compute_rows_avx_vnni(job: InterleavedJob<'_>, is_signed: bool) {
    // SAFETY: guaranteed by the caller.
    unsafe { dispatch_rows::<AvxVnniSet>(job, is_signed) };
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma")]
unsafe fn compute_rows_avx2(job: InterleavedJob<'_>, is_signed: bool) {
    // SAFETY: guaranteed by the caller.
    unsafe { dispatch_rows::<Avx2Set>(job, is_signed) };
}

#[target_feature(enable = "sse4.1,ssse3")]
unsafe fn compute_rows_sse41(job: InterleavedJob<'_>, is_signed: bool) {
    // SAFETY: guaranteed by the caller.
    unsafe { dispatch_rows::<Sse41Set>(job, is_signed) };
}

#[inline(always)]
unsafe fn dispatch_rows<S: ByteVectorSet>(job: InterleavedJob<'_>, is_signed: bool) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match (is_signed, job.depthwise.windows) {
            (false, 1) => run_rows::<S, false, 1>(job),
            (false, _) => run_rows::<S, false, 2>(job),
            (true, 1) => run_rows::<S, true, 1>(job),
            (true, _) => run_rows::<S, true, 2>(job),
        }
    }
}

#[inline(always)]
unsafe fn run_rows<S: ByteVectorSet, const SIGNED: bool, const WINDOWS: usize>(job: InterleavedJob<'_>) {
    let (channels, width) = (job.geometry.channels, job.geometry.horizontal.output);
    let mut pixels = [[ptr::null::<u8>(); QUAD]; MAX_QUADS];
    let pixels = &mut pixels[..job.depthwise.quads];
    let mut steps = [[0; QUAD]; MAX_QUADS];
    let steps = &mut steps[..job.depthwise.quads];
    let mut lines = [ptr::null(); MAX_QUADS];
    let lines = &mut lines[..job.geometry.vertical.kernel];
    let first = job.y.as_mut_ptr();
    // SAFETY: guaranteed by the caller: pixels lie in the image or are padding, and results lie in the rows.
    unsafe {
        let endings = (
            S::Wide::load_epilogue(job.operands.requantize),
            S::Middle::load_epilogue(job.operands.requantize),
            S::Narrow::load_epilogue(job.operands.requantize),
        );
        for (line, row) in job.rows.clone().enumerate() {
            job.fill_line_pointers(row, lines);
            let mut were_inside = false;
            for column in (0..width).step_by(WINDOWS) {
                let are_inside = job.are_inside(column);
                // From one window inside the image to the next, every pointer moves by a constant, so no border checks are needed.
                if were_inside && are_inside {
                    for (pixel, step) in pixels.as_flattened_mut().iter_mut().zip(steps.as_flattened()) {
                        *pixel = pixel.wrapping_add(*step);
                    }
                } else {
                    job.fill_pixel_pointers(lines, column, pixels, steps);
                }
                were_inside = are_inside;
                let place = first.add((line * width + column) * channels);
                let count = WINDOWS.min(width - column);
                let windows = InterleavedWindows { job: &job, pixels, place, count };
                let mut channel = 0;
                while channel + S::Wide::COUNT <= channels {
                    windows.compute_block::<S::Wide, SIGNED, false, WINDOWS>(channel, endings.0);
                    channel += S::Wide::COUNT;
                }
                if channel + S::Middle::COUNT <= channels {
                    windows.compute_block::<S::Middle, SIGNED, false, WINDOWS>(channel, endings.1);
                    channel += S::Middle::COUNT;
                }
                if channel + S::Narrow::COUNT <= channels {
                    windows.compute_block::<S::Narrow, SIGNED, false, WINDOWS>(channel, endings.2);
                    channel += S::Narrow::COUNT;
                }
                if channel < channels {
                    windows.compute_block::<S::Narrow, SIGNED, true, WINDOWS>(channel, endings.2);
                }
            }
        }
    }
}

/// Adjacent windows.
struct InterleavedWindows<'a> {
    job: &'a InterleavedJob<'a>,
    pixels: &'a [[*const u8; QUAD]],
    /// The address of the first window's results, and the number of windows: the last window of a row may be single.
    place: *mut u8,
    count: usize,
}

impl InterleavedWindows<'_> {
    /// Computes a block of channels, or the last, partial one.
    #[inline(always)]
    unsafe fn compute_block<V: ByteVector, const SIGNED: bool, const SOME: bool, const WINDOWS: usize>(
        &self,
        channel: usize,
        epilogue: V::Epilogue,
    ) {
        let operands = self.job.operands;
        let channels = self.job.geometry.channels;
        let left = channels - channel;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let starts = operands.starts.as_ptr().add(channel);
            let mut start = [V::load(starts.cast()); QUAD];
            for (index, start) in start.iter_mut().enumerate() {
                *start = V::load(starts.add(index * (V::COUNT / QUAD)).cast());
            }
            let mut sums = [start; WINDOWS];
            let of_channel = self.job.depthwise.bytes_of_channel();
            let mut weights = operands.weights.bytes.as_ptr().add(channel * of_channel);
            for pixels in self.pixels {
                let mut inputs = [start[0]; QUAD];
                for (input, pixel) in inputs.iter_mut().zip(pixels) {
                    let place = pixel.add(channel);
                    *input = if SOME { V::load_partial(place, left) } else { V::load(place) };
                    if SIGNED {
                        *input = input.to_unsigned();
                    }
                }
                let mut factors = [start[0].to_factors(); QUAD];
                for (factors, inputs) in factors.iter_mut().zip(V::interleave_pixels(inputs)) {
                    *factors = inputs.to_factors();
                }
                for sums in &mut sums {
                    for (sum, factors) in sums.iter_mut().zip(factors) {
                        *sum = sum.add_products(factors, weights);
                        weights = weights.add(V::COUNT * V::FACTOR_BYTES);
                    }
                }
            }
            let factors = operands.factors.as_ptr().add(channel);
            for (window, sums) in sums.into_iter().enumerate().take(self.count) {
                let results = V::requantize_sums(sums, factors, epilogue);
                let place = self.place.add(window * channels + channel);
                if SOME {
                    results.store_partial(place, left);
                } else {
                    results.store(place);
                }
            }
        }
    }
}
