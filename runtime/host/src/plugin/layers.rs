//! Puts layers between the host and a plugin: each wraps the tables of the next in its own.
//!
//! Without layers, there is no cost at run time: the host calls the plugin's own functions.

#![expect(unsafe_code, reason = "tables are handed to a layer as pointers")]

use std::any::Any;
use std::ffi::c_void;
use std::path::Path;
use std::sync::Arc;

use oarlock_abi as abi;

use crate::foreign_struct::{ForeignStruct, RuleBreach};
use crate::services::errors::PluginFailure;
use crate::{LoadedPlugin, PluginPhase};

/// One table as wrapped by one layer. Dropping this frees the wrapper.
pub(crate) struct LayerWrapper {
    layer: Arc<LoadedPlugin>,
    kind: abi::TableKind,
    context: *mut c_void,
    table: *mut c_void,
    /// The wrapped table, to which the layer holds a pointer.
    _next: Box<dyn Any>,
}

// SAFETY: the pointers are the layer's own, whose functions may be called on any thread (rule T-1).
unsafe impl Send for LayerWrapper {}
// SAFETY: as above; shared references give access to nothing mutable.
unsafe impl Sync for LayerWrapper {}

impl LayerWrapper {
    /// The file of the layer; `None` if it is linked into the program.
    pub(crate) fn layer_file(&self) -> Option<&Path> {
        self.layer.library.as_ref().map(|_| self.layer.file())
    }

    pub(crate) fn layer_name(&self) -> &str {
        &self.layer.info().name
    }
}

impl Drop for LayerWrapper {
    fn drop(&mut self) {
        if let Some(calls) = &self.layer.calls.layer {
            let _unwrapping = self.layer.begin_phase(PluginPhase::Unwrap);
            // SAFETY: the layer returned both, and the owner of the wrapper has stopped using them.
            if let Err(failure) = unsafe { calls.unwrap(self.kind, self.context, self.table) } {
                self.layer.log_warning(&format!("a wrapper was not freed: {failure}"));
            }
        }
    }
}

/// The layers to wrap around one plugin, and the outcome.
pub(crate) struct LayerChain<'a> {
    /// The outermost layer first.
    pub(crate) layers: &'a [Arc<LoadedPlugin>],
    /// The name of the wrapped plugin.
    pub(crate) plugin: &'a str,
    pub(crate) wrappers: Vec<LayerWrapper>,
    /// Notes for the user about layers that did not work.
    pub(crate) notes: Vec<String>,
}

impl LayerChain<'_> {
    /// Wraps a table in all layers, the innermost first; `check` validates and copies what a layer returns.
    ///
    /// A layer that fails is skipped with a note: an observer's failure must not become the program's failure.
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
            let wrapping = layer.begin_phase(PluginPhase::Wrap);
            // SAFETY: the context and the table below it are alive, and the wrapper keeps the table.
            let wrapped = unsafe { calls.wrap(kind, self.plugin, context, address) };
            drop(wrapping);
            if wrapped.as_ref().is_ok_and(|wrapped| *wrapped == (context, address)) {
                // The layer does not wrap this kind of table, so there is nothing to free.
                continue;
            }
            let checked = wrapped.map_err(|failure: PluginFailure| failure.to_string()).and_then(|wrapped| {
                if wrapped.1.is_null() {
                    return Err("expected the wrapped table, found a null pointer".to_owned());
                }
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
