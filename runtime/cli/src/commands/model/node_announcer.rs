//! Tells the watching process which node is about to be readied or run, so that a kernel that ends the process is named.
//!
//! It costs a system call for each node, so it is on in the first run and off in those that are measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oarlock_core::Runtime;
use oarlock_engine::{NodeEvent, NodeListener, NodeRun};

use crate::render::plugin_with_file;
use crate::watched_child;

pub(super) struct NodeAnnouncer {
    runtime: Arc<Runtime>,
    is_on: Arc<AtomicBool>,
}

impl NodeAnnouncer {
    pub(super) fn new(runtime: &Arc<Runtime>) -> Self {
        Self { runtime: runtime.clone(), is_on: Arc::default() }
    }

    /// Listens only if somebody watches.
    pub(super) fn listener(&self) -> NodeListener {
        if !watched_child::is_watched() {
            return NodeListener::default();
        }
        let (runtime, is_on) = (self.runtime.clone(), self.is_on.clone());
        NodeListener::new(move |event| {
            if is_on.load(Ordering::Relaxed) {
                watched_child::send_status(&describe_event(event, &runtime));
            }
        })
    }

    /// Announces nodes while `work` lasts.
    pub(super) fn announce_during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.is_on.store(true, Ordering::Relaxed);
        let result = work();
        self.is_on.store(false, Ordering::Relaxed);
        result
    }
}

/// Completes "while …".
fn describe_event(event: &NodeEvent<'_>, runtime: &Runtime) -> String {
    let NodeEvent { node, run } = event;
    let name = if node.name.is_empty() { String::new() } else { format!(" (`{}`)", node.name) };
    let node = format!("the node `{}`{name}", node.op);
    let Some(NodeRun { device, kernel }) = run else { return format!("{node} was readied") };
    let plugin = kernel.and_then(|kernel| runtime.host().plugin(kernel.plugin_name()));
    match plugin {
        Some(plugin) => format!("{node} ran on `{device}` with a kernel of {}", plugin_with_file(plugin)),
        None => format!("{node} ran on `{device}`"),
    }
}
