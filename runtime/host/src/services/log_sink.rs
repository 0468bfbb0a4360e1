//! Who hears what plugins have to say.

use super::LogLevel;

/// Receives what plugins have to say.
pub trait LogSink: Send + Sync {
    /// Takes one message. It may come from any thread.
    fn log(&self, plugin: &str, level: LogLevel, message: &str);

    /// Takes what a layer that the user asked for says at the level `info`, such as where it wrote. Who shows only warnings
    /// otherwise should show this too.
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
