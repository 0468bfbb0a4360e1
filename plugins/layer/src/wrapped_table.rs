//! A wrapper around a table of another plugin.

use core::ffi::c_void;
use std::sync::Arc;

use oarlock_sdk::{PluginError, abi, guard_call};

use crate::active_work::ActiveWork;
use crate::call::LayerCall;
use crate::slot::SlotDescription;
use crate::work::LayerWork;

/// A table or kernel of another plugin, with what is needed to forward calls and to do the layer's work.
pub(crate) struct WrappedTable<W: LayerWork, T> {
    /// The context for the next table's functions.
    pub(crate) context: *mut c_void,
    /// The next table, as far as its author's version of the contract went.
    pub(crate) next: T,
    pub(crate) active: Arc<ActiveWork<W>>,
    pub(crate) target: W::Target,
}

impl<W: LayerWork, T> WrappedTable<W, T> {
    /// Lets the layer do a call. A panic of the layer ends here, as an error.
    pub(crate) fn around_call(
        &self,
        description: &'static SlotDescription,
        words: &[u64],
        next: &dyn Fn(&[u64]) -> abi::Error,
    ) -> abi::Error {
        let call = LayerCall { description, words, next };
        let mut failure = abi::Error::NONE;
        let panic = guard_call(&self.active.host, || {
            failure = self.active.work.around_call(&self.target, call);
            Ok(())
        });
        if panic.is_some() { panic } else { failure }
    }

    /// A slot that is empty below is empty here too, so only a caller that breaks the contract gets here.
    #[cold]
    pub(crate) fn missing_slot(&self, slot: &SlotDescription) -> abi::Error {
        self.active.host.report_error(&PluginError::unimplemented(format!(
            "expected a slot that is filled, found `{}` empty",
            slot.full_name()
        )))
    }
}
