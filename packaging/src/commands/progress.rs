//! Progress of long work: a bar on a terminal, one line per step otherwise.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Reports progress on stderr, so that stdout stays machine-readable.
pub(crate) struct ProgressReporter {
    bar: Option<ProgressBar>,
}

impl ProgressReporter {
    pub(crate) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("[{elapsed_precise}] {bar:24} {pos}/{len} {wide_msg}");
            let bar = ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { bar }
    }

    /// Starts one of several stages, each with its own steps.
    pub(crate) fn begin_stage(&self, number: usize, all: usize, text: &str) {
        let line = format!("{number} of {all}: {text}");
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    /// Starts the next step, after `done` of `all`.
    pub(crate) fn begin_step(&self, done: usize, all: usize, text: &str) {
        self.count_step(done, all, text);
        if self.bar.is_none() {
            eprintln!("[{}/{all}] {text}", done + 1);
        }
    }

    /// Describes current work of unknown length.
    pub(crate) fn note_activity(&self, text: &str) {
        self.show_message(text);
        if self.bar.is_none() {
            eprintln!("{text}");
        }
    }

    /// Like [`note_activity`](Self::note_activity), but on a terminal only.
    pub(crate) fn show_message(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(text.to_owned());
        }
    }

    /// Like [`begin_step`](Self::begin_step), for steps too short for a line each.
    pub(crate) fn count_step(&self, done: usize, all: usize, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
            bar.set_message(text.to_owned());
        }
    }
}

impl Drop for ProgressReporter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
