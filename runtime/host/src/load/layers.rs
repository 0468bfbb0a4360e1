//! Puts layers between the host and a plugin: each wraps the tables of the next in its own.
//!
//! With no layer there is nothing here at run time: the callers of the host hold the plugin's own functions.

#![expect(unsafe_code, reason = "tables are handed to a layer as pointers")]

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

use oarlock_abi as abi;

use crate::LoadedPlugin;
use crate::load::foreign_struct::{ForeignStruct, RuleBreach};
use crate::services::errors::PluginFailure;

/// What one layer made of one table, for as long as it is used.
pub(crate) struct LayerWrapper {
    layer: Arc<LoadedPlugin>,
    kind: abi::TableKind,
    context: *mut c_void,
    table: *mut c_void,
    /// The table below, to which the layer holds a pointer.
    _next: Box<dyn Any>,
}

// SAFETY: the pointers are the layer's own, whose functions may be called on any thread (rule T-1).
unsafe impl Send for LayerWrapper {}
// SAFETY: as above; nothing is done through a shared reference.
unsafe impl Sync for LayerWrapper {}

impl LayerWrapper {
    pub(crate) fn layer_name(&self) -> &str {
        &self.layer.info().name
    }
}

impl Drop for LayerWrapper {
    fn drop(&mut self) {
        if let Some(calls) = &self.layer.calls.layer {
            // SAFETY: both are what the layer handed out, and whoever holds the wrapper has stopped using them.
            if let Err(failure) = unsafe { calls.unwrap(self.kind, self.context, self.table) } {
                self.layer.log_warning(&format!("a wrapper was not freed: {failure}"));
            }
        }
    }
}

/// The layers around one plugin, and what became of it.
pub(crate) struct LayerChain<'a> {
    /// The outermost first.
    pub(crate) layers: &'a [Arc<LoadedPlugin>],
    /// The plugin that is wrapped.
    pub(crate) plugin: &'a str,
    pub(crate) wrappers: Vec<LayerWrapper>,
    /// What the user should know of layers that did not work.
    pub(crate) notes: Vec<String>,
}

impl LayerChain<'_> {
    /// Wraps a table, the innermost layer first; `check` copies what a layer hands back.
    ///
    /// A layer that fails is left out, and said: what a user watches must not be lost with the watcher.
    pub(crate) fn wrap_table<T: ForeignStruct + 'static>(
        &mut self,
        kind: abi::TableKind,
        context: *mut c_void,
        table: T,
        check: impl Fn(*const T) -> Result<T, RuleBreach>,
    ) -> (*mut c_void, T) {
        let (mut context, mut table) = (context, table);
        for layer in self.layers.iter().rev() {
            let Some(calls) = &layer.calls.layer else { continue };
            let next = Box::new(table);
            let address = (&raw const *next).cast_mut().cast();
            // SAFETY: the context and the table below it are alive, and the wrapper keeps the table.
            let wrapped = unsafe { calls.wrap(kind, self.plugin, context, address) };
            if wrapped.as_ref().is_ok_and(|wrapped| *wrapped == (context, address)) {
                // The layer does not care for this kind, and made nothing that would have to be freed.
                continue;
            }
            let checked = wrapped.map_err(|failure: PluginFailure| failure.to_string()).and_then(|wrapped| {
                let wrapper = LayerWrapper {
                    layer: layer.clone(),
                    kind,
                    context: wrapped.0,
                    table: wrapped.1,
                    _next: next,
                };
                let copy = check(wrapped.1.cast_const().cast());
                let copy = copy.map_err(|breach| {
                    let RuleBreach { rule, expected, found } = breach;
                    format!("expected {expected}, found {found} (rule {rule})")
                });
                copy.map(|copy| (wrapper, copy))
            });
            match checked {
                Ok((wrapper, copy)) => {
                    context = wrapper.context;
                    table = copy;
                    self.wrappers.push(wrapper);
                }
                Err(problem) => {
                    let name = &layer.info().name;
                    self.notes.push(format!("the layer `{name}` is left out of `{}`: {problem}", T::NAME));
                }
            }
        }
        (context, table)
    }
}
