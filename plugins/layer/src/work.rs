//! What a layer does with the calls that pass through it.

#![expect(unsafe_code, reason = "the name of a kernel is text of another plugin")]

use oarlock_sdk::{LogLevel, Result, abi};

use crate::call::LayerCall;
use crate::layer_host::LayerHost;

/// A table, or a kernel, that a layer is asked to wrap.
#[derive(Clone, Copy, Debug)]
pub struct LayerTarget<'a> {
    /// The name of the plugin.
    pub plugin: &'a str,
    /// Which of its tables.
    pub table: TargetTable<'a>,
}

/// One table, or one kernel of the table of kernels.
#[derive(Clone, Copy, Debug)]
pub enum TargetTable<'a> {
    /// The table of devices.
    Core(&'a abi::CoreTable),
    /// The table of streams and events.
    Async(&'a abi::AsyncTable),
    /// A kernel.
    Kernel(&'a abi::Kernel),
}

impl TargetTable<'_> {
    /// The op of a kernel; `None` for a table.
    pub fn op_name(&self) -> Option<&str> {
        let Self::Kernel(kernel) = self else { return None };
        // SAFETY: the name of a kernel lives as long as its plugin, which outlives its wrappers.
        Some(unsafe { kernel.op.text() }.unwrap_or("?"))
    }
}

/// The work of a layer. There is one while any table is wrapped.
pub trait LayerWork: Send + Sync + Sized + 'static {
    /// The name of the layer.
    const NAME: &'static str;
    /// The version of the layer.
    const VERSION: &'static str;

    /// What the layer keeps for each table and each kernel that it wraps.
    type Target: Send + Sync + 'static;

    /// Begins: reads the options, opens files.
    fn start_work(host: LayerHost) -> Result<Self>;

    /// Prepares for the calls of one more table or kernel.
    fn wrap_target(&self, target: LayerTarget<'_>) -> Result<Self::Target>;

    /// Does a call: usually forwards it, and looks at it before and after. Returns the error of the call.
    fn around_call(&self, target: &Self::Target, call: LayerCall<'_>) -> abi::Error;

    /// Ends, and reports the outcome. Called when the last wrapper is freed, or when the process ends before that.
    fn finish_work(&self, tell: &dyn Fn(LogLevel, &str));
}
