//! One rule of shape inference: the ops and versions that it is for, and its function.

use super::context::InferenceContext;
use super::output::InferredOutput;
use crate::Result;
use crate::schema::OARLOCK_DOMAIN;

/// The last version of rules that are still current.
pub(super) const LATEST: u32 = u32::MAX;

/// One row of a table: the rule for some ops in a range of versions.
pub(crate) struct InferenceRule {
    pub(super) domain: &'static str,
    /// Names, separated by spaces.
    pub(super) ops: &'static str,
    pub(super) first: u32,
    pub(super) last: u32,
    /// Inputs whose elements the output shapes depend on.
    pub(crate) values: &'static [usize],
    pub(super) infer: InferFunction,
}

pub(super) type InferFunction = fn(&InferenceContext<'_>) -> Result<Vec<InferredOutput>>;

/// A row for ops of ONNX in the versions from `first` to `last`.
pub(super) const fn rule(
    ops: &'static str,
    first: u32,
    last: u32,
    values: &'static [usize],
    infer: InferFunction,
) -> InferenceRule {
    InferenceRule { domain: "", ops, first, last, values, infer }
}

impl InferenceRule {
    /// Moves the row to another domain.
    pub(super) const fn in_domain(self, domain: &'static str) -> Self {
        Self { domain, ..self }
    }

    pub(super) const fn in_oarlock_domain(self) -> Self {
        self.in_domain(OARLOCK_DOMAIN)
    }
}
