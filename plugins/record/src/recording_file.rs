//! The file of a recording: frames are buffered, written now and then, and end at a limit.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oarlock_sdk::{PluginError, Result};

use crate::frame_writer::{FILE_MAGIC, encode_frame, encode_run_frame};
use crate::recording_frames::RecordingFrame;

/// Bytes that are buffered before they are written.
const BUFFERED_BYTES: usize = 128 << 10;

/// Age at which buffered frames are written with the next one, so that a killed process loses little.
const MAX_BUFFER_AGE: Duration = Duration::from_secs(1);

/// How many calls pass until the age is looked at.
const CALLS_PER_LOOK: u64 = 64;

/// A recording that is being written.
pub(crate) struct RecordingFile {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
    written_at: Instant,
    bytes: u64,
    limit: u64,
    calls: u64,
    lost_calls: u64,
    failure: Option<std::io::Error>,
}

impl RecordingFile {
    pub(crate) fn create_recording(path: &Path, limit: u64) -> Result<Self> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let refuse = |error: std::io::Error| {
            PluginError::external(format!(
                "expected to write the recording to `{}`, found: {error}",
                path.display()
            ))
        };
        let mut file = File::create(&path).map_err(refuse)?;
        file.write_all(&FILE_MAGIC).map_err(refuse)?;
        Ok(Self {
            file,
            path,
            buffer: Vec::with_capacity(BUFFERED_BYTES),
            written_at: Instant::now(),
            bytes: FILE_MAGIC.len() as u64,
            limit,
            calls: 0,
            lost_calls: 0,
            failure: None,
        })
    }

    /// True once nothing more is written.
    pub(crate) fn is_full(&self) -> bool {
        self.failure.is_some() || self.bytes >= self.limit
    }

    pub(crate) fn count_lost_call(&mut self) {
        self.lost_calls += 1;
    }

    pub(crate) fn add_frame(&mut self, frame: &RecordingFrame) {
        let is_call = matches!(frame, RecordingFrame::Call(_));
        if self.is_full() {
            self.lost_calls += u64::from(is_call);
            return;
        }
        let before = self.buffer.len();
        encode_frame(&mut self.buffer, frame);
        self.end_frame(before, is_call);
    }

    /// Adds the frame of a kernel's run, whose part is encoded already.
    pub(crate) fn add_run(&mut self, head: (u32, u16, u32, bool), words: &[u64], kernel_part: &[u8]) {
        if self.is_full() {
            self.lost_calls += 1;
            return;
        }
        let before = self.buffer.len();
        encode_run_frame(&mut self.buffer, head, words, kernel_part);
        self.end_frame(before, true);
    }

    fn end_frame(&mut self, before: usize, is_call: bool) {
        self.bytes += (self.buffer.len() - before) as u64;
        self.calls += u64::from(is_call);
        // The clock is read only now and then: reading it takes as long as recording a small call.
        let is_time =
            self.calls.is_multiple_of(CALLS_PER_LOOK) && self.written_at.elapsed() >= MAX_BUFFER_AGE;
        if self.buffer.len() >= BUFFERED_BYTES || is_time {
            self.write_buffer();
        }
    }

    fn write_buffer(&mut self) {
        self.written_at = Instant::now();
        if let Err(error) = self.file.write_all(&self.buffer) {
            self.failure = Some(error);
        }
        self.buffer.clear();
    }

    /// Writes the rest, and says what is in the file; `Err` if something is missing there.
    pub(crate) fn finish_recording(&mut self) -> std::result::Result<String, String> {
        if self.failure.is_none() {
            self.write_buffer();
        }
        let path = self.path.display();
        let calls = count_calls(self.calls);
        match &self.failure {
            Some(error) => Err(format!("expected to write the recording to `{path}`, found: {error}")),
            None if self.lost_calls > 0 => Err(format!(
                "{calls} in `{path}`, which has reached its limit of {} bytes; {} more are lost",
                self.limit, self.lost_calls
            )),
            None => Ok(format!("{calls} in `{path}`")),
        }
    }
}

fn count_calls(count: u64) -> String {
    format!("{count} {}", if count == 1 { "call" } else { "calls" })
}
