//! How much a model may become more than its file, so that a small file stays a small model.

use oarlock_core::{Error, Result};
use prost::Message as _;

use super::messages::NodeProto;

/// The most nodes that functions may become.
const MOST_NODES: u64 = 200_000;
/// The most bytes of messages that functions may become.
const MOST_BYTES: u64 = 64 << 20;
/// The most bytes that sparse tensors may become, beside those that are no larger than `DENSE` times their values.
const MOST_ZEROS: u64 = 256 << 20;
/// How much larger than its values a tensor may be to count as dense.
const DENSE: u64 = 64;

/// What is left.
pub(super) struct Budget {
    nodes: u64,
    bytes: u64,
    zeros: u64,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { nodes: MOST_NODES, bytes: MOST_BYTES, zeros: MOST_ZEROS }
    }

    /// Takes one more node of a function.
    pub(super) fn inline(&mut self, node: &NodeProto) -> Result<()> {
        // Parts of the file are shared, not copied.
        let shared = node.attribute.iter().filter_map(|attribute| attribute.t.as_ref()?.raw_data.as_ref());
        let shared: usize = shared.map(|bytes| bytes.len()).sum();
        let bytes = node.encoded_len().saturating_sub(shared) as u64;
        match (self.nodes.checked_sub(1), self.bytes.checked_sub(bytes)) {
            (Some(nodes), Some(bytes)) => (self.nodes, self.bytes) = (nodes, bytes),
            _ => {
                return Err(Error::resource_exhausted(format!(
                    "expected functions that become at most {MOST_NODES} nodes of {MOST_BYTES} bytes, found more"
                )));
            }
        }
        Ok(())
    }

    /// Takes the nodes that an op becomes which is written as others.
    pub(super) fn lower(&mut self, nodes: usize) -> Result<()> {
        self.nodes = self.nodes.checked_sub(nodes as u64).ok_or_else(|| {
            Error::resource_exhausted(format!(
                "expected functions and ops of other domains that become at most {MOST_NODES} nodes, found more"
            ))
        })?;
        Ok(())
    }

    /// Takes the bytes that a sparse tensor becomes.
    pub(super) fn densify(&mut self, size: u64, values: usize) -> Result<()> {
        if size <= (values as u64).saturating_mul(DENSE) {
            return Ok(());
        }
        self.zeros = self.zeros.checked_sub(size).ok_or_else(|| {
            Error::resource_exhausted(format!(
                "expected sparse tensors that become at most {MOST_ZEROS} bytes, found one of {size} with {values} bytes of \
                 values"
            ))
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_become_so_many_nodes_and_no_more() {
        let mut budget = Budget::new();
        let node = NodeProto::default();
        (0..MOST_NODES).for_each(|_| budget.inline(&node).unwrap());
        assert!(budget.inline(&node).unwrap_err().message().contains("at most 200000 nodes"));
    }

    #[test]
    fn nodes_that_ops_become_are_counted_with_those_of_functions() {
        let mut budget = Budget::new();
        budget.lower(MOST_NODES as usize).unwrap();
        assert!(budget.inline(&NodeProto::default()).is_err());
        assert!(budget.lower(1).unwrap_err().message().contains("at most 200000 nodes"));
    }

    #[test]
    fn zeros_are_counted_together_but_not_those_of_tensors_that_are_nearly_dense() {
        let mut budget = Budget::new();
        budget.densify(MOST_ZEROS, 1).unwrap();
        assert!(budget.densify(MOST_ZEROS, 1).is_err());
        budget.densify(MOST_ZEROS, MOST_ZEROS as usize / 2).unwrap();
    }
}
