//! Buffers calls, writes them out as trace events, and finally reports where the file is.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use oarlock_layer::{LayerCall, LayerHost, SlotDescription};
use oarlock_sdk::{LogLevel, PluginError, Result, abi};

/// Words recorded per call, at most.
const MAX_CALL_VALUES: usize = 8;

/// Events buffered before they are written out.
const BUFFERED_EVENTS: usize = 4096;

/// Age at which buffered events are written out with the next call, so that a killed process loses little.
const MAX_BUFFER_NANOSECONDS: u64 = 1_000_000_000;

struct TraceEvent {
    slot: &'static SlotDescription,
    label: Arc<str>,
    start: u64,
    end: u64,
    values: [u64; MAX_CALL_VALUES],
    thread: u32,
    failed: bool,
}

/// Records calls and writes them into a file in the format of Chrome's trace viewer.
pub(crate) struct TraceRecorder {
    host: LayerHost,
    begin: Instant,
    notes: Mutex<TraceBuffer>,
    /// Absolute, so that a change of the working directory does not matter.
    path: PathBuf,
}

struct TraceBuffer {
    pending: Vec<TraceEvent>,
    file: BufWriter<File>,
    /// Time of the last write.
    written: u64,
    /// Number of events in the file.
    count: u64,
    /// True once nothing more is written: the file is complete, or writing failed.
    is_closed: bool,
}

impl TraceRecorder {
    pub(crate) fn create_recorder(path: &Path, host: LayerHost) -> Result<Self> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let refuse = |error: std::io::Error| {
            PluginError::external(format!(
                "expected to write the trace to `{}`, found: {error}",
                path.display()
            ))
        };
        let mut file = BufWriter::new(File::create(&path).map_err(refuse)?);
        file.write_all(b"[\n").map_err(refuse)?;
        let notes = TraceBuffer {
            pending: Vec::with_capacity(BUFFERED_EVENTS),
            file,
            written: 0,
            count: 0,
            is_closed: false,
        };
        Ok(Self { host, begin: Instant::now(), notes: Mutex::new(notes), path })
    }

    /// Nanoseconds since the recording began.
    pub(crate) fn elapsed_nanoseconds(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    pub(crate) fn record_call(
        &self,
        call: &LayerCall<'_>,
        label: &Arc<str>,
        start: u64,
        failure: abi::Error,
    ) {
        let end = self.elapsed_nanoseconds();
        let mut values = [0; MAX_CALL_VALUES];
        let count = call.words().len().min(MAX_CALL_VALUES);
        values[..count].copy_from_slice(&call.words()[..count]);
        let thread = thread_number();
        let note = TraceEvent {
            slot: call.description(),
            label: Arc::clone(label),
            start,
            end,
            values,
            thread,
            failed: failure.is_some(),
        };
        let mut notes = self.lock_buffer();
        notes.pending.push(note);
        if notes.pending.len() == BUFFERED_EVENTS
            || end.saturating_sub(notes.written) >= MAX_BUFFER_NANOSECONDS
        {
            notes.written = end;
            self.flush_buffer(&mut notes);
        }
    }

    fn lock_buffer(&self) -> MutexGuard<'_, TraceBuffer> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flush_buffer(&self, notes: &mut TraceBuffer) {
        if let Err(error) = notes.write_events() {
            self.host.log(LogLevel::WARNING, &self.write_failure_message(notes, &error));
        }
    }

    fn write_failure_message(&self, notes: &TraceBuffer, error: &std::io::Error) -> String {
        let (path, calls) = (self.path.display(), count_calls(notes.count));
        format!("expected to write the trace to `{path}`, found: {error}; it ends after {calls}")
    }

    /// Completes the file and reports the outcome, unless an earlier failure was already reported.
    pub(crate) fn close_file(&self, tell: &dyn Fn(LogLevel, &str)) {
        let mut notes = self.lock_buffer();
        match notes.finish_file() {
            Ok(false) => {}
            Ok(true) => {
                tell(LogLevel::INFO, &format!("{} in `{}`", count_calls(notes.count), self.path.display()));
            }
            Err(error) => tell(LogLevel::WARNING, &self.write_failure_message(&notes, &error)),
        }
    }
}

impl TraceBuffer {
    fn write_events(&mut self) -> std::io::Result<()> {
        let Self { pending, file, count, is_closed, .. } = self;
        let noted = pending.len() as u64;
        let mut pending = pending.drain(..);
        if *is_closed {
            return Ok(());
        }
        let written = pending.try_for_each(|note| write_event(file, &note)).and_then(|()| file.flush());
        *is_closed = written.is_err();
        *count += if *is_closed { 0 } else { noted };
        written
    }

    /// Writes the remaining events and the end of the file; false if that was done before.
    fn finish_file(&mut self) -> std::io::Result<bool> {
        self.write_events()?;
        if std::mem::replace(&mut self.is_closed, true) {
            return Ok(false);
        }
        // The last event has no trailing comma, so the file is valid JSON.
        let end = format!(
            "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":\"oarlock\"}}}}\n]\n",
            std::process::id()
        );
        self.file.write_all(end.as_bytes())?;
        self.file.flush()?;
        Ok(true)
    }
}

fn count_calls(count: u64) -> String {
    format!("{count} {}", if count == 1 { "call" } else { "calls" })
}

fn write_event(file: &mut impl std::io::Write, note: &TraceEvent) -> std::io::Result<()> {
    let TraceEvent { slot, label, start, end, values, thread, failed } = note;
    let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1000.0;
    write!(
        file,
        "{{\"ph\":\"X\",\"name\":\"{}.{}\",\"cat\":{label:?},\"pid\":{},\"tid\":{thread},\"ts\":{:.3},\"dur\":{:.3},\"args\":{{\"to\":{label:?}",
        slot.table,
        slot.name,
        std::process::id(),
        microseconds(*start),
        microseconds(end - start),
    )?;
    // Addresses are not written: they mean nothing after the call.
    for (parameter, value) in slot.parameters.iter().zip(values).filter(|(word, _)| word.kind.is_plain()) {
        write!(file, ",\"{}\":{value}", parameter.name)?;
    }
    writeln!(file, ",\"failed\":{failed}}}}},")
}

/// A small number for the calling thread; thread ids of the system are large and get reused.
fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local!(static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}
