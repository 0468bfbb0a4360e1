//! Says which node is about to be readied or run, for whoever wants to know if the process ends there.

use std::fmt;
use std::sync::Arc;

use oarlock_core::Device;
use oarlock_core::registry::KernelEntry;

use crate::graph::Node;

/// A node that the engine is about to work on.
#[derive(Clone, Copy)]
pub struct NodeEvent<'a> {
    /// The node.
    pub node: &'a Node,
    /// Where it runs and with which kernel; `None` while kernels are asked for it.
    pub run: Option<NodeRun<'a>>,
}

/// Where and how a node runs.
#[derive(Clone, Copy)]
pub struct NodeRun<'a> {
    /// The device.
    pub device: &'a Device,
    /// The kernel; `None` if the node takes none, or if the kernel depends on values.
    pub kernel: Option<&'a KernelEntry>,
}

/// Callback for nodes.
#[derive(Clone, Default)]
pub struct NodeListener(Option<Arc<NodeCallback>>);

type NodeCallback = dyn Fn(&NodeEvent<'_>) + Send + Sync;

impl NodeListener {
    /// Calls `listener` before each node is readied, and in each run before it is run.
    pub fn new(listener: impl Fn(&NodeEvent<'_>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    #[inline]
    pub(crate) fn report_node<'a>(&self, event: impl FnOnce() -> NodeEvent<'a>) {
        if let Some(listener) = &self.0 {
            listener(&event());
        }
    }
}

impl fmt::Debug for NodeListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "NodeListener(a function)" } else { "NodeListener(none)" })
    }
}
