//! Chooses the algorithm of a convolution.

use std::borrow::Cow;
use std::sync::Arc;

use oarlock_cpu_base::constant_cache::ConstantCache;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::subnormals::flush_subnormal_weights;
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::{AlignedBuffer, ScratchBuffer};
use oarlock_sdk::{Dtype, Result, ensure};

use super::bf16_images::Bf16Images;
use super::dense::{ConvPrecision, DenseConv};
use super::depthwise;
use super::epilogue::ConvEpilogue;
use super::geometry::NhwcGeometry;
use super::pixel_vectors::PixelVectorConv;
use super::weight_panels::{OriginalWeights, WeightPanels};
use super::winograd::{WinogradConv, WinogradTileSize};

/// A convolution of known geometry with its algorithm.
pub(super) struct NhwcConv {
    geometry: NhwcGeometry,
    algorithm: ConvAlgorithm,
    paired: Bf16Images,
}

pub(super) enum ConvAlgorithm {
    Dense(DenseConv),
    Depthwise,
    PixelVectors(PixelVectorConv),
    Winograd(WinogradConv),
}

pub(super) enum PackedConvWeights {
    Panels(WeightPanels),
    Channels(AlignedBuffer<f32>),
    Steps(AlignedBuffer<f32>),
}

/// Everything that packed weights depend on besides the weights themselves: layout, instruction set, dtype, and the numbers of
/// channels per group, outputs, groups and taps.
type ConvWeightsKey = (ConvWeightsLayout, Isa, u32, [usize; 4]);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ConvWeightsLayout {
    Panels(ConvPrecision),
    Channels,
    Steps,
    Transformed(WinogradTileSize),
}

static PACKED_WEIGHTS: ConstantCache<ConvWeightsKey, PackedConvWeights> = ConstantCache::new();

impl NhwcConv {
    pub(super) fn new(team: &dyn ThreadTeam, geometry: &NhwcGeometry) -> Self {
        // Depthwise first: if each output has its own channel, a matrix product would have nothing to reuse.
        let algorithm = if geometry.is_depthwise() {
            ConvAlgorithm::Depthwise
        } else if let Some(pixels) = PixelVectorConv::if_profitable(team, geometry) {
            ConvAlgorithm::PixelVectors(pixels)
        } else if let Some(outputs) = WinogradTileSize::profitable_size(geometry) {
            ConvAlgorithm::Winograd(WinogradConv::new(team, geometry, outputs))
        } else {
            ConvAlgorithm::Dense(DenseConv::new(team, geometry, ConvPrecision::F32))
        };
        Self::with_algorithm(algorithm, geometry)
    }

    /// A convolution with products in bf16, or an error with the reason why that is not supported.
    pub(super) fn new_bf16(
        team: &dyn ThreadTeam,
        geometry: &NhwcGeometry,
        paired: Bf16Images,
    ) -> Result<Self> {
        ensure!(
            team.isa().has_bf16(),
            unimplemented,
            "expected a processor with AVX512-BF16 or the BF16 of ARM for convolutions in bf16, found one without"
        );
        ensure!(
            !geometry.is_depthwise(),
            unimplemented,
            "expected a convolution that is not depthwise for products in bf16, found a depthwise one"
        );
        // A pair of bf16 occupies one `f32`; with an odd number of channels, a pair would span two pixels or groups.
        let whole_pairs = |channels: usize, are_paired: bool| !are_paired || channels.is_multiple_of(2);
        ensure!(
            whole_pairs(geometry.channels_per_group(), paired.input)
                && whole_pairs(geometry.outputs_per_group(), paired.output || paired.residual),
            unimplemented,
            "expected even numbers of channels in each group for images in bf16, found {} and {}",
            geometry.channels_per_group(),
            geometry.outputs_per_group()
        );
        let dense = DenseConv::new_bf16(team, geometry, paired);
        Ok(Self { paired, ..Self::with_algorithm(ConvAlgorithm::Dense(dense), geometry) })
    }

    /// A depthwise convolution of images that are all in bf16, or an error with the reason why that is not supported.
    pub(super) fn new_bf16_depthwise(team: &dyn ThreadTeam, geometry: &NhwcGeometry) -> Result<Self> {
        ensure!(
            team.isa().has_bf16(),
            unimplemented,
            "expected a processor with AVX512-BF16 or the BF16 of ARM for images in bf16, found one without"
        );
        ensure!(
            geometry.is_depthwise() && geometry.channels.is_multiple_of(2),
            unimplemented,
            "expected a depthwise convolution of an even number of channels, or one with precision bf16, for images in \
             bf16, found neither"
        );
        // A depthwise convolution multiplies in f32; all it gains from bf16 is half the memory traffic.
        let paired = Bf16Images { input: true, residual: true, output: true };
        Ok(Self { paired, ..Self::with_algorithm(ConvAlgorithm::Depthwise, geometry) })
    }

    /// Uses a given algorithm, which must support the geometry.
    pub(super) fn with_algorithm(algorithm: ConvAlgorithm, geometry: &NhwcGeometry) -> Self {
        Self { geometry: geometry.clone(), algorithm, paired: Bf16Images::NONE }
    }

    pub(super) fn output_channels(&self) -> usize {
        self.geometry.outputs
    }

    /// The algorithm and the instruction set, as reports show them.
    pub(super) fn description(&self, team: &dyn ThreadTeam) -> String {
        let isa = team.isa();
        let algorithm = match &self.algorithm {
            ConvAlgorithm::Dense(dense) if dense.precision() == ConvPrecision::Bf16 => {
                return format!("indirect GEMM in bf16, {isa}");
            }
            ConvAlgorithm::Dense(_) => "indirect GEMM",
            ConvAlgorithm::Depthwise => "depthwise",
            ConvAlgorithm::PixelVectors(_) => "vectors of pixels",
            ConvAlgorithm::Winograd(winograd) => winograd.tile_size().name(),
        };
        // AMX multiplies bf16 and bytes, but not `f32`.
        format!("{algorithm}, {}", isa.without_amx())
    }

    /// True if a run may need the weights as they were given.
    pub(super) fn reads_original_weights(&self) -> bool {
        matches!(self.algorithm, ConvAlgorithm::Winograd(_))
    }

    fn weights_layout(&self) -> ConvWeightsLayout {
        match &self.algorithm {
            ConvAlgorithm::Dense(dense) => ConvWeightsLayout::Panels(dense.precision()),
            ConvAlgorithm::Depthwise => ConvWeightsLayout::Channels,
            ConvAlgorithm::PixelVectors(_) => ConvWeightsLayout::Steps,
            ConvAlgorithm::Winograd(winograd) => ConvWeightsLayout::Transformed(winograd.tile_size()),
        }
    }

    pub(super) fn scratch_size(&self) -> usize {
        // Up to 64 bytes are lost to aligning the scratch memory to a cache line.
        self.scratch_elements() * size_of::<f32>() + 64
    }

    fn scratch_elements(&self) -> usize {
        if self.geometry.output_pixels() * self.geometry.outputs == 0 {
            return 0;
        }
        match &self.algorithm {
            ConvAlgorithm::Dense(dense) => dense.scratch_size(),
            ConvAlgorithm::Winograd(winograd) => winograd.scratch_size(),
            ConvAlgorithm::Depthwise => 0,
            ConvAlgorithm::PixelVectors(pixels) => pixels.scratch_size(),
        }
    }

    pub(super) fn pack_weights(&self, team: &dyn ThreadTeam, weights: &[f32]) -> PackedConvWeights {
        match &self.algorithm {
            ConvAlgorithm::Dense(dense) => PackedConvWeights::Panels(dense.pack_weights(team, weights)),
            ConvAlgorithm::Winograd(winograd) => {
                PackedConvWeights::Panels(winograd.pack_weights(team, weights))
            }
            ConvAlgorithm::Depthwise => {
                let mut packed = depthwise::pack_depthwise(&self.geometry, weights);
                flush_subnormal_weights(team.isa(), &mut packed);
                PackedConvWeights::Channels(packed)
            }
            ConvAlgorithm::PixelVectors(pixels) => {
                let mut packed = pixels.pack_weights(weights);
                flush_subnormal_weights(team.isa(), &mut packed);
                PackedConvWeights::Steps(packed)
            }
        }
    }

    /// Packs constant weights once, for all calls that use them.
    pub(super) fn pack_shared_weights<'a>(
        &self,
        team: &dyn ThreadTeam,
        place: (usize, usize),
        dtype: Dtype,
        weights: impl FnOnce() -> Result<Cow<'a, [f32]>>,
    ) -> Result<Arc<PackedConvWeights>> {
        let NhwcGeometry { outputs, groups, .. } = self.geometry;
        let sizes = [self.geometry.channels_per_group(), outputs, groups, self.geometry.tap_count()];
        // Sessions that share weights also share the packed weights, if the layout is the same.
        let key = (self.weights_layout(), team.isa(), dtype.0, sizes);
        PACKED_WEIGHTS.get_or_make_at(place, key, || Ok(self.pack_weights(team, &weights()?)))
    }

    /// Runs the convolution. `given` provides the original weights, for outputs that cannot be computed from packed ones.
    pub(super) fn compute(
        &self,
        team: &dyn ThreadTeam,
        (x, weights, given): (&[f32], &PackedConvWeights, OriginalWeights<'_>),
        epilogue: &ConvEpilogue<'_>,
        y: &mut [f32],
        scratch: &mut ScratchBuffer<'_>,
    ) {
        if y.is_empty() {
            return;
        }
        let scratch = scratch.allocate_elements(self.scratch_elements());
        match (&self.algorithm, weights) {
            (ConvAlgorithm::Dense(dense), PackedConvWeights::Panels(weights)) => {
                dense.compute(team, (x, weights), epilogue, y, scratch);
            }
            (ConvAlgorithm::Winograd(winograd), PackedConvWeights::Panels(weights)) => {
                winograd.compute(team, (x, weights, given), epilogue, y, scratch);
            }
            (ConvAlgorithm::Depthwise, PackedConvWeights::Channels(weights)) => {
                depthwise::compute_depthwise(
                    team,
                    &self.geometry,
                    (x, weights),
                    epilogue,
                    y,
                    self.paired.input,
                );
            }
            (ConvAlgorithm::PixelVectors(pixels), PackedConvWeights::Steps(weights)) => {
                pixels.compute(team, (x, weights), epilogue, y, scratch);
            }
            _ => unreachable!("weights are packed for the way in which they are used"),
        }
    }
}
