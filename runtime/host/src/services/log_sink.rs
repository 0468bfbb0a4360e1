//! The receiver of log messages from plugins.

use std::io::Write as _;

use super::LogLevel;

/// Receives log messages from plugins.
pub trait LogSink: Send + Sync {
    /// Receives one message. May be called on any thread.
    fn log(&self, plugin: &str, level: LogLevel, message: &str);

    /// Receives a message at level `info` from a layer that the user requested, such as the location of its output. Sinks that
    /// otherwise show only warnings should show these messages too.
    fn log_layer_note(&self, layer: &str, message: &str) {
        self.log(layer, LogLevel::INFO, message);
    }
}

/// A [`LogSink`] that drops every message of plugins. Notes of layers go to standard error: only a user who asked for a layer gets
/// them, and they say where its file is.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentLogSink;

impl LogSink for SilentLogSink {
    fn log(&self, _plugin: &str, _level: LogLevel, _message: &str) {}

    fn log_layer_note(&self, layer: &str, message: &str) {
        // Without standard error there is no way to report.
        _ = writeln!(std::io::stderr(), "note: `{layer}`: {message}");
    }
}
