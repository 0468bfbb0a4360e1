//! The receiver of log messages from plugins.

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

/// A [`LogSink`] that drops every message.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentLogSink;

impl LogSink for SilentLogSink {
    fn log(&self, _plugin: &str, _level: LogLevel, _message: &str) {}
}
