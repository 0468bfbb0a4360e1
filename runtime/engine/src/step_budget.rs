//! Limits the work of a run. A few bytes of a model are enough for an endless loop.

use std::cell::Cell;

use oarlock_core::{Error, Result};

/// Steps that a run may still take, those in subgraphs included.
pub(crate) struct StepBudget {
    limit: Option<u64>,
    left: Cell<u64>,
}

impl StepBudget {
    /// The budget of a new run; without a limit it is practically unlimited.
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self { limit, left: Cell::new(limit.unwrap_or(u64::MAX)) }
    }

    /// Spends the steps of a graph that is about to run. An empty graph costs one step, because a loop may run it forever.
    #[inline]
    pub(crate) fn spend(&self, steps: usize) -> Result<()> {
        let Some(left) = self.left.get().checked_sub(steps.max(1) as u64) else {
            return Err(self.exhausted_error());
        };
        self.left.set(left);
        Ok(())
    }

    #[cold]
    fn exhausted_error(&self) -> Error {
        let limit = self.limit.unwrap_or(u64::MAX);
        Error::resource_exhausted(format!(
            "expected a run of at most {limit} steps, as the flag `run_steps_limit` says, found one that takes more"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_without_steps_counts_as_one() {
        let allowance = StepBudget::new(Some(5));
        allowance.spend(4).unwrap();
        allowance.spend(0).unwrap();
        assert!(allowance.spend(0).unwrap_err().to_string().contains("at most 5 steps"));
        StepBudget::new(None).spend(usize::MAX).unwrap();
    }
}
