//! What a program does that a host has started as its child.

use std::path::Path;
use std::process::ExitCode;

use crate::PluginAdapter;
use crate::isolation::child::{is_wanted, serve_parent};
use crate::probe::child::probe_plugin_file;

/// Implements the hidden command of a program that offers a [`ProbeCommand`](crate::ProbeCommand): probes the plugin at `path`, or
/// serves it to the parent, who isolates it. The parent says which through standard input.
pub fn probe_child_main(path: &Path, adapters: &[PluginAdapter]) -> ExitCode {
    if is_wanted() { serve_parent(path, adapters) } else { probe_plugin_file(path, adapters) }
}
