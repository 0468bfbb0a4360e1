//! Plugins for other programs: the interpreter and the probe that it starts know the same ones.

use oarlock_host::PluginAdapter;

/// What makes plugins for other programs usable.
pub(crate) const ADAPTERS: &[PluginAdapter] =
    &[PluginAdapter { entry: oarlock_plugin_paddle::ENTRY, query: oarlock_plugin_paddle::query }];
