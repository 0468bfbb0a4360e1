//! Which way a convolution is computed.

use std::borrow::Cow;
use std::sync::Arc;

use oarlock_sdk::{Dtype, Result, ensure};

use super::dense::{Dense, Factors, Paired};
use super::depthwise;
use super::finish::Finish;
use super::geometry::Geometry;
use super::weights::{GivenWeights, Panels};
use super::winograd::{Outputs, Winograd};
use crate::constants::Constants;
use crate::gemm::{Aligned, Scratch, Team};
use crate::isa::Isa;

/// A convolution of known sizes.
pub(super) struct Convolution {
    geometry: Geometry,
    way: Way,
    paired: Paired,
}

/// How it is computed.
pub(super) enum Way {
    Dense(Dense),
    Depthwise,
    Winograd(Winograd),
}

/// Weights in the order in which they are read.
pub(super) enum Packed {
    Panels(Panels),
    Channels(Aligned<f32>),
}

/// What packed weights depend on beside the weights: the way, the instruction set, what dtype they are given in, and the
/// channels of a group, the outputs, the groups and the taps.
type Key = (Form, Isa, u32, [usize; 4]);

/// What packed weights look like.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Panels(Factors),
    Channels,
    Transformed(Outputs),
}

static PACKED: Constants<Key, Packed> = Constants::new();

impl Convolution {
    pub(super) fn new(team: &dyn Team, geometry: &Geometry) -> Self {
        let way = if geometry.is_depthwise() {
            Way::Depthwise
        } else if let Some(outputs) = Outputs::that_pay(geometry) {
            Way::Winograd(Winograd::new(team, geometry, outputs))
        } else {
            Way::Dense(Dense::new(team, geometry, Factors::Whole))
        };
        Self::by(way, geometry)
    }

    /// One whose products are of numbers in bf16, as its images may be, or why there is none.
    pub(super) fn rounded(team: &dyn Team, geometry: &Geometry, paired: Paired) -> Result<Self> {
        ensure!(
            team.isa().has_bf16(),
            unimplemented,
            "expected a processor with AVX512-BF16 for convolutions in bf16, found one without"
        );
        ensure!(
            !geometry.is_depthwise(),
            unimplemented,
            "expected a convolution of several channels at a time for bf16, found one of each for itself"
        );
        let whole_pairs = |channels: usize, are_paired: bool| !are_paired || channels.is_multiple_of(2);
        ensure!(
            whole_pairs(geometry.channels_of_group(), paired.input)
                && whole_pairs(geometry.outputs_of_group(), paired.output || paired.residual),
            unimplemented,
            "expected even numbers of channels in each group for images in bf16, found {} and {}",
            geometry.channels_of_group(),
            geometry.outputs_of_group()
        );
        let dense = Dense::of_pairs(team, geometry, paired);
        Ok(Self { paired, ..Self::by(Way::Dense(dense), geometry) })
    }

    /// One that computes each channel for itself, of images that are all in bf16, or why there is none.
    pub(super) fn of_rounded_images(team: &dyn Team, geometry: &Geometry) -> Result<Self> {
        ensure!(
            team.isa().has_bf16(),
            unimplemented,
            "expected a processor with AVX512-BF16 for images in bf16, found one without"
        );
        ensure!(
            geometry.is_depthwise() && geometry.channels.is_multiple_of(2),
            unimplemented,
            "expected a convolution that may round for images in bf16, or one of each of an even number of channels for \
             itself, found neither"
        );
        let paired = Paired { input: true, residual: true, output: true };
        Ok(Self { paired, ..Self::by(Way::Depthwise, geometry) })
    }

    /// Computed in a given way, which must be for this geometry.
    pub(super) fn by(way: Way, geometry: &Geometry) -> Self {
        Self { geometry: geometry.clone(), way, paired: Paired::NONE }
    }

    /// How many channels the output has.
    pub(super) fn outputs(&self) -> usize {
        self.geometry.outputs
    }

    /// How it is computed, for people.
    pub(super) fn description(&self, team: &dyn Team) -> String {
        let isa = team.isa();
        let way = match &self.way {
            Way::Dense(dense) if dense.factors() == Factors::Rounded => {
                return format!("indirect GEMM in bf16, {isa}");
            }
            Way::Dense(_) => "indirect GEMM",
            Way::Depthwise => "depthwise",
            Way::Winograd(winograd) => winograd.outputs().name(),
        };
        format!("{way}, {}", isa.without_tiles())
    }

    fn form(&self) -> Form {
        match &self.way {
            Way::Dense(dense) => Form::Panels(dense.factors()),
            Way::Depthwise => Form::Channels,
            Way::Winograd(winograd) => Form::Transformed(winograd.outputs()),
        }
    }

    /// How many bytes of scratch memory it takes.
    pub(super) fn scratch_size(&self) -> usize {
        // Scratch memory begins at the next line.
        self.scratch_elements() * size_of::<f32>() + 64
    }

    fn scratch_elements(&self) -> usize {
        if self.geometry.pixels() * self.geometry.outputs == 0 {
            return 0;
        }
        match &self.way {
            Way::Dense(dense) => dense.scratch_size(),
            Way::Winograd(winograd) => winograd.scratch_size(),
            Way::Depthwise => 0,
        }
    }

    /// Puts weights into the order in which they are read.
    pub(super) fn pack(&self, team: &dyn Team, weights: &[f32]) -> Packed {
        match &self.way {
            Way::Dense(dense) => Packed::Panels(dense.pack(team, weights)),
            Way::Winograd(winograd) => Packed::Panels(winograd.pack(team, weights)),
            Way::Depthwise => Packed::Channels(depthwise::pack(&self.geometry, weights)),
        }
    }

    /// The same for weights that are constant, which are packed once for all who use them.
    pub(super) fn pack_shared<'a>(
        &self,
        team: &dyn Team,
        place: (usize, usize),
        dtype: Dtype,
        weights: impl FnOnce() -> Result<Cow<'a, [f32]>>,
    ) -> Result<Arc<Packed>> {
        let Geometry { outputs, groups, .. } = self.geometry;
        let sizes = [self.geometry.channels_of_group(), outputs, groups, self.geometry.taps()];
        let key = (self.form(), team.isa(), dtype.0, sizes);
        PACKED.get_or_make_at(place, key, || Ok(self.pack(team, &weights()?)))
    }

    /// Computes it, with the weights packed, and as they are given for what the packed ones cannot do.
    pub(super) fn compute(
        &self,
        team: &dyn Team,
        (x, weights, given): (&[f32], &Packed, GivenWeights<'_>),
        finish: &Finish<'_>,
        y: &mut [f32],
        scratch: &mut Scratch<'_>,
    ) {
        if y.is_empty() {
            return;
        }
        let scratch = scratch.elements(self.scratch_elements());
        match (&self.way, weights) {
            (Way::Dense(dense), Packed::Panels(weights)) => {
                dense.compute(team, (x, weights), finish, y, scratch);
            }
            (Way::Winograd(winograd), Packed::Panels(weights)) => {
                winograd.compute(team, (x, weights, given), finish, y, scratch);
            }
            (Way::Depthwise, Packed::Channels(weights)) => {
                depthwise::compute(team, &self.geometry, (x, weights), finish, y, self.paired.input);
            }
            _ => unreachable!("weights are packed for the way in which they are used"),
        }
    }
}
