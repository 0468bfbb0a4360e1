//! 8-bit convolutions and products whose zero points are only known at run time and whose sums stay 32-bit integers.
//!
//! If x are the inputs under a window, w the weights of an output, and zx and zw their zero points, a sum is
//!
//! ```text
//! Σ (x - zx) (w - zw)  =  Σ x w  -  zx Σ w  -  zw Σ (x - zx)
//! ```
//!
//! The micro-kernels compute the first term. The second is the initial value of their sums, because packing computes Σ w. The
//! third, which is 0 if weights have no zero point, is subtracted while the sums are in L1.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::ops::Range;
use std::sync::Arc;

use oarlock_cpu_base::constant_cache::{self, ConstantCache};
use oarlock_cpu_base::isa::{Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::{GemmEpilogue, OutputBlock, ScratchBuffer};
use oarlock_sdk::{Dtype, Result, TensorView};

use super::byte_operands::{QuantizedImages, tensor_bytes};
use super::dense::{QuantizedDenseConv, QuantizedOutput};
use super::quantized_panels::{QuantizedPanels, WeightOrder, WeightSource};
use super::tile::QuantizedMicroKernels;
use super::window_sums::sum_windows;
use crate::channels_last::geometry::NhwcGeometry;
use oarlock_cpu_base::simd::SIGN_BIT;

pub struct IntegerSums {
    geometry: NhwcGeometry,
    dense: QuantizedDenseConv,
    order: WeightOrder,
    /// True if images are signed, and if weights are.
    signed: [bool; 2],
}

/// The operands of a call. Zero points have the value that they have in their own dtype.
pub struct IntegerSumOperands<'a> {
    pub images: &'a [u8],
    /// One zero point or, for a product, one per row.
    pub image_zeros: &'a [i32],
    pub weights: &'a QuantizedPanels,
    /// One zero point, or one per output.
    pub weight_zeros: &'a [i32],
    /// Added to the sums of each output.
    pub bias: Option<&'a [i32]>,
}

/// Everything that packed weights depend on besides the weights: the instruction set, the order of the given weights, signedness,
/// and the numbers of groups, channels per group, outputs, taps per line, taps in all, and taps and inputs as they are read.
type IntegerWeightsKey = (Isa, WeightOrder, bool, [usize; 7]);

static PACKED_PANELS: ConstantCache<IntegerWeightsKey, QuantizedPanels> = ConstantCache::new();

/// The change of a number when its sign bit is flipped.
fn sign_flip_offset(is_sign_flipped: bool) -> i32 {
    if is_sign_flipped { SIGN_BIT.into() } else { 0 }
}

impl IntegerSums {
    fn new(team: &dyn ThreadTeam, geometry: NhwcGeometry, order: WeightOrder, dtypes: [Dtype; 2]) -> Self {
        let dense = QuantizedDenseConv::new(team, &geometry);
        Self { geometry, dense, order, signed: dtypes.map(|dtype| dtype == Dtype::I8) }
    }

    /// Sums of NHWC images and weights of these dtypes.
    pub fn for_images(team: &dyn ThreadTeam, geometry: NhwcGeometry, dtypes: [Dtype; 2]) -> Self {
        Self::new(team, geometry, WeightOrder::OutputsFirst, dtypes)
    }

    /// Sums of rows and a matrix whose columns are the outputs.
    pub fn for_matmul(team: &dyn ThreadTeam, [rows, depth, columns]: [usize; 3], dtypes: [Dtype; 2]) -> Self {
        Self::new(team, NhwcGeometry::for_matmul(rows, depth, columns), WeightOrder::OutputsLast, dtypes)
    }

    pub fn geometry(&self) -> &NhwcGeometry {
        &self.geometry
    }

    pub fn scratch_size(&self) -> usize {
        if self.is_empty() { 0 } else { self.dense.scratch_size() }
    }

    fn is_empty(&self) -> bool {
        self.geometry.output_pixels() * self.geometry.outputs == 0
    }

    pub fn pack_weights(&self, team: &dyn ThreadTeam, bytes: &[u8]) -> QuantizedPanels {
        // The instructions multiply unsigned inputs with signed weights.
        let sign_flip = if self.signed[1] { 0 } else { SIGN_BIT };
        self.dense.pack_weights(team, WeightSource { bytes, order: self.order, sign_flip })
    }

    /// Packs constant weights once, for all calls that use the same layout.
    pub fn pack_constant(
        &self,
        team: &dyn ThreadTeam,
        weights: &TensorView<'_>,
    ) -> Result<Arc<QuantizedPanels>> {
        self.pack_part(team, weights, 0..1)
    }

    /// Packs one of several equal parts of an operand: `start` of the range is the index, and `end` the count. A constant is packed
    /// once; other weights are packed for this call only.
    pub fn pack_part(
        &self,
        team: &dyn ThreadTeam,
        weights: &TensorView<'_>,
        Range { start: part, end: parts }: Range<usize>,
    ) -> Result<Arc<QuantizedPanels>> {
        let NhwcGeometry { outputs, groups, horizontal, .. } = self.geometry;
        let (depth, (taps, steps)) = (self.geometry.channels_per_group(), self.dense.tap_shape());
        let sizes = [groups, depth, outputs, horizontal.kernel, self.geometry.tap_count(), taps, steps];
        let key = (team.isa(), self.order, self.signed[1], sizes);
        // A constant is identified by its range of memory, since its bytes never change.
        let (address, size) = constant_cache::constant_range(weights);
        let size = size / parts;
        let pack = || {
            // SAFETY: device memory is host memory, and the call guarantees its operands.
            let bytes = unsafe { tensor_bytes(weights) }?;
            Ok(self.pack_weights(team, &bytes[part * size..][..size]))
        };
        if !weights.is_constant() {
            return pack().map(Arc::new);
        }
        PACKED_PANELS.get_or_make_at((address + part * size, size), key, pack)
    }

    /// Computes the sums. `finish` may convert each block in place once it is complete.
    pub fn compute(
        &self,
        team: &dyn ThreadTeam,
        operands: &IntegerSumOperands<'_>,
        y: &mut [i32],
        epilogue: Option<&GemmEpilogue<'_, i32>>,
        scratch: &mut ScratchBuffer<'_>,
    ) {
        if self.is_empty() {
            return;
        }
        let NhwcGeometry { groups, outputs, vertical, horizontal, channels, .. } = self.geometry;
        let [is_signed, has_signed_weights] = self.signed;
        let &IntegerSumOperands { images, image_zeros, weights, weight_zeros, bias } = operands;
        assert!(
            y.len() == self.geometry.output_pixels() * outputs
                && images.len() == self.geometry.images * vertical.input * horizontal.input * channels
                && weights.sums.len() == outputs
                && [1, self.geometry.output_pixels()].contains(&image_zeros.len())
                && [1, outputs].contains(&weight_zeros.len()),
            "operands of the sizes of the sums"
        );
        let read = |zeros: &[i32], added: i32| -> Vec<i32> {
            zeros.iter().map(|zero| zero.wrapping_add(added)).collect()
        };
        // Flipping the sign bit adds 128 to a number, so its zero point must move with it. Weights are flipped in the other
        // direction: unsigned ones become signed.
        let zeros = read(image_zeros, sign_flip_offset(is_signed));
        let weight_zeros = read(weight_zeros, -sign_flip_offset(!has_signed_weights));
        let own = self.geometry.outputs_per_group();
        let kernels = QuantizedMicroKernels::for_isa(team.isa());
        let zeros_as_read: Vec<i32> =
            image_zeros.iter().map(|zero| kernels.zero_as_read(*zero, is_signed)).collect();
        let padded = own.next_multiple_of(kernels.panel_format.lanes);
        let mut starts = vec![0; groups * padded];
        // With a zero point per row, the second term depends on the row and is subtracted at the end.
        let zero = if let [zero] = zeros_as_read[..] { zero } else { 0 };
        for (group, starts) in starts.chunks_exact_mut(padded).enumerate() {
            for (start, sum) in starts.iter_mut().zip(&weights.sums[group * own..][..own]) {
                // Wrapping arithmetic: sums are modulo 2³², so an intermediate may overflow and the result is still right.
                *start = sum.wrapping_mul(zero).wrapping_neg();
            }
            for (start, bias) in
                starts.iter_mut().zip(bias.iter().flat_map(|bias| &bias[group * own..][..own]))
            {
                *start = start.wrapping_add(*bias);
            }
        }
        // Summing windows reads all images once more, which symmetric weights, the usual kind, do not need.
        let windows = if weight_zeros.iter().all(|zero| *zero == 0) {
            Vec::new()
        } else {
            sum_windows(team, &self.geometry, images, is_signed, &zeros)
        };
        let rest = ZeroPointCorrection {
            windows: &windows,
            weight_zeros: &weight_zeros,
            zeros: if zeros_as_read.len() == 1 { &[] } else { &zeros_as_read },
            sums: &weights.sums,
            groups,
            outputs: own,
        };
        let isa = team.isa();
        let finish_rest = |mut part: OutputBlock<'_, i32>| {
            isa.vectorize(CorrectedBlock { rest: &rest, part: part.reborrow() });
            if let Some(epilogue) = epilogue {
                epilogue(part);
            }
        };
        // Without a correction, the epilogue of the caller is called directly.
        let has_rest = !rest.windows.is_empty() || !rest.zeros.is_empty();
        let epilogue = if has_rest { Some(&finish_rest as &GemmEpilogue<'_, i32>) } else { epilogue };
        let images = QuantizedImages { x: images, is_signed, zero: image_zeros[0] as u8 };
        self.dense.compute(team, &images, (weights, &starts), QuantizedOutput::Sums(epilogue, y), scratch);
    }
}

/// The terms to subtract from the sums of the micro-kernels.
struct ZeroPointCorrection<'a> {
    /// For each pixel and group, the sum of the inputs minus their zero point; empty if weights have no zero point.
    windows: &'a [i32],
    weight_zeros: &'a [i32],
    /// The zero points of rows, if each row has one, and the sum of each output's weights.
    zeros: &'a [i32],
    sums: &'a [i32],
    groups: usize,
    outputs: usize,
}

struct CorrectedBlock<'a> {
    rest: &'a ZeroPointCorrection<'a>,
    part: OutputBlock<'a, i32>,
}

impl SimdTask for CorrectedBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { rest, mut part } = self;
        let columns = part.columns.clone();
        // A block never spans two groups, because groups have separate panels.
        let group = columns.start / rest.outputs;
        for (row, sums) in part.rows_mut() {
            if let Some(zero) = rest.zeros.get(row) {
                for (sum, of_weights) in sums.iter_mut().zip(&rest.sums[columns.clone()]) {
                    *sum = sum.wrapping_sub(of_weights.wrapping_mul(*zero));
                }
            }
            let Some(window) = rest.windows.get(row * rest.groups + group) else { continue };
            if let [zero] = rest.weight_zeros {
                let taken = zero.wrapping_mul(*window);
                sums.iter_mut().for_each(|sum| *sum = sum.wrapping_sub(taken));
            } else {
                for (sum, zero) in sums.iter_mut().zip(&rest.weight_zeros[columns.clone()]) {
                    *sum = sum.wrapping_sub(zero.wrapping_mul(*window));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
