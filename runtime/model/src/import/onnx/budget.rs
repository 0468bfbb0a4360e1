//! Limits how much larger than its file a model may become.

use oarlock_core::{Error, Result};
use prost::Message as _;

use super::messages::NodeProto;

/// Limit on nodes from inlined functions and lowered ops.
const MAX_INLINED_NODES: u64 = 200_000;
/// Limit on encoded bytes of nodes from inlined functions.
const MAX_INLINED_BYTES: u64 = 64 << 20;
/// Limit on bytes of densified sparse tensors, not counting those at most [`DENSE_FACTOR`] times as large as their values.
const MAX_DENSIFIED_BYTES: u64 = 256 << 20;
/// Up to this expansion, a densified tensor is free.
const DENSE_FACTOR: u64 = 64;

/// The remaining budget of an import.
pub(super) struct ImportBudget {
    nodes: u64,
    bytes: u64,
    zeros: u64,
}

impl ImportBudget {
    pub(super) fn new() -> Self {
        Self { nodes: MAX_INLINED_NODES, bytes: MAX_INLINED_BYTES, zeros: MAX_DENSIFIED_BYTES }
    }

    /// Spends a node of an inlined function.
    pub(super) fn spend_inlined_node(&mut self, node: &NodeProto) -> Result<()> {
        // Raw tensor data is shared with the file, not copied.
        let shared = node.attribute.iter().filter_map(|attribute| attribute.t.as_ref()?.raw_data.as_ref());
        let shared: usize = shared.map(|bytes| bytes.len()).sum();
        let bytes = node.encoded_len().saturating_sub(shared) as u64;
        match (self.nodes.checked_sub(1), self.bytes.checked_sub(bytes)) {
            (Some(nodes), Some(bytes)) => (self.nodes, self.bytes) = (nodes, bytes),
            _ => {
                return Err(Error::resource_exhausted(format!(
                    "expected functions that become at most {MAX_INLINED_NODES} nodes of {MAX_INLINED_BYTES} bytes, found more"
                )));
            }
        }
        Ok(())
    }

    /// Spends the nodes that an op was lowered to.
    pub(super) fn spend_lowered_nodes(&mut self, nodes: usize) -> Result<()> {
        self.nodes = self.nodes.checked_sub(nodes as u64).ok_or_else(|| {
            Error::resource_exhausted(format!(
                "expected functions and ops of other domains that become at most {MAX_INLINED_NODES} nodes, found more"
            ))
        })?;
        Ok(())
    }

    /// Spends the bytes of a densified tensor.
    pub(super) fn spend_dense_bytes(&mut self, size: u64, values: usize) -> Result<()> {
        if size <= (values as u64).saturating_mul(DENSE_FACTOR) {
            return Ok(());
        }
        self.zeros = self.zeros.checked_sub(size).ok_or_else(|| {
            Error::resource_exhausted(format!(
                "expected sparse tensors that become at most {MAX_DENSIFIED_BYTES} bytes, found one of {size} with {values} bytes of \
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
        let mut budget = ImportBudget::new();
        let node = NodeProto::default();
        (0..MAX_INLINED_NODES).for_each(|_| budget.spend_inlined_node(&node).unwrap());
        assert!(budget.spend_inlined_node(&node).unwrap_err().message().contains("at most 200000 nodes"));
    }

    #[test]
    fn nodes_that_ops_become_are_counted_with_those_of_functions() {
        let mut budget = ImportBudget::new();
        budget.spend_lowered_nodes(MAX_INLINED_NODES as usize).unwrap();
        assert!(budget.spend_inlined_node(&NodeProto::default()).is_err());
        assert!(budget.spend_lowered_nodes(1).unwrap_err().message().contains("at most 200000 nodes"));
    }

    #[test]
    fn zeros_are_counted_together_but_not_those_of_tensors_that_are_nearly_dense() {
        let mut budget = ImportBudget::new();
        budget.spend_dense_bytes(MAX_DENSIFIED_BYTES, 1).unwrap();
        assert!(budget.spend_dense_bytes(MAX_DENSIFIED_BYTES, 1).is_err());
        budget.spend_dense_bytes(MAX_DENSIFIED_BYTES, MAX_DENSIFIED_BYTES as usize / 2).unwrap();
    }
}
