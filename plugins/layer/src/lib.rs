//! What all layers share: a plugin whose table wraps the tables of other plugins, and hands every call to a [`LayerWork`].
//!
//! A layer implements [`LayerWork`] and calls [`export_layer!`]. A call reaches it as a [`LayerCall`]: the description of its slot
//! and its arguments as words. The descriptions and the functions that make words of arguments are generated from the contract, so
//! a slot that is new in the contract reaches every layer.

mod active_work;
mod call;
mod contract_names;
mod exit;
mod generated;
mod layer_host;
mod plugin;
mod slot;
mod word;
mod work;
mod wrapped_table;

pub use call::LayerCall;
pub use contract_names::{ContractSlot, HandleKind};
pub use generated::SLOTS;
pub use layer_host::{ErrorFacts, LayerHost};
pub use plugin::query_layer;
pub use slot::{ParameterDescription, ParameterKind, SlotDescription};
pub use word::{pointer_word, word_const_pointer, word_pointer};
pub use work::{LayerTarget, LayerWork, TargetTable};

#[doc(hidden)]
pub use oarlock_sdk::{abi, silence_caught_panics};

/// The entry points of a layer: `QUERY` for programs that link it, and the exported function of a shared object.
#[macro_export]
macro_rules! export_layer {
    ($work:ty) => {
        /// Entry point for programs that link the plugin statically.
        pub const QUERY: $crate::abi::PluginQuery = $crate::query_layer::<$work>;

        /// The entry point of this plugin: tells a host the plugin's identity and table.
        ///
        /// # Safety
        ///
        /// Both structs are as the contract describes them, and the host outlives the plugin.
        #[cfg(feature = "shared-object")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn oarlock_plugin_query(
            host: *const $crate::abi::Host,
            plugin: *mut $crate::abi::Plugin,
        ) -> $crate::abi::Error {
            $crate::silence_caught_panics();
            // SAFETY: the host vouches for both structs.
            unsafe { $crate::query_layer::<$work>(host, plugin) }
        }
    };
}
