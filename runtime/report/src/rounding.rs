//! How much of a plan is rounded.

use std::collections::BTreeMap;

use oarlock_core::{Device, Runtime};
use oarlock_engine::{ExecutionPlan, PrecisionMode, RoundingReport};
use serde::Serialize;

use crate::text::format_count;

/// How much of a plan is rounded.
#[derive(Serialize)]
pub struct RoundingExtent {
    /// The mode.
    pub precision: &'static str,
    /// Convolutions and products that round their factors.
    pub rounded: usize,
    /// The number of exact ones, by reason.
    pub exact: BTreeMap<String, usize>,
}

impl RoundingExtent {
    /// `None` if the precision is that of `f32`. `device` is that of the inputs.
    pub fn from_plan(
        plan: &ExecutionPlan,
        precision: PrecisionMode,
        runtime: &Runtime,
        device: &Device,
    ) -> Option<Self> {
        if precision == PrecisionMode::F32 {
            return None;
        }
        let RoundingReport { rounded, whole } = RoundingReport::from_plan(plan, runtime, device);
        let mut exact = BTreeMap::new();
        whole.into_iter().for_each(|reason| *exact.entry(reason).or_default() += 1);
        Some(Self { precision: precision.name(), rounded, exact })
    }

    /// One sentence about what is rounded, and one for each reason why something is not.
    pub fn to_sentences(&self) -> Vec<String> {
        let Self { precision, rounded, exact } = self;
        let all = format_count(
            rounded + exact.values().sum::<usize>(),
            "product or convolution",
            "products and convolutions",
        );
        let extent = format!("{precision} in {rounded} of {all} of f32");
        let exact = exact.iter().map(|(reason, count)| format!("not in {count}: {reason}"));
        std::iter::once(extent).chain(exact).collect()
    }
}
