//! Keeps notes of calls and writes them out as trace events, and says at its end where they are.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use oarlock_sdk::{Error, Host, LogLevel, Result, abi};

/// The most numbers a note keeps of one call.
const VALUES: usize = 8;

/// How many notes are kept before they are written out.
const CHUNK: usize = 4096;

/// After how many nanoseconds notes are written out with the next call: who is killed loses little.
const LONGEST: u64 = 1_000_000_000;

/// A place calls go through: what it is called and what its numbers are called.
pub(crate) struct CallSite {
    pub(crate) name: &'static str,
    pub(crate) arguments: &'static [&'static str],
}

struct Note {
    site: &'static CallSite,
    label: Arc<str>,
    start: u64,
    end: u64,
    values: [u64; VALUES],
    thread: u32,
    failed: bool,
}

/// Notes calls, and writes the notes into a file in the format of Chrome's trace viewer.
pub(crate) struct Recorder {
    host: Host,
    begin: Instant,
    /// Whose file it is.
    process: u32,
    notes: Mutex<Notes>,
    /// The file, wherever the process goes.
    path: PathBuf,
}

struct Notes {
    pending: Vec<Note>,
    file: BufWriter<File>,
    /// When notes were written out last.
    written: u64,
    /// How many are in the file.
    count: u64,
    /// Nothing more is written: the file is whole, or there was an error.
    is_closed: bool,
}

impl Recorder {
    pub(crate) fn create(path: &Path, host: Host) -> Result<Arc<Self>> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let refuse = |error: std::io::Error| {
            Error::external(format!("expected to write the trace to `{}`, found: {error}", path.display()))
        };
        let mut file = BufWriter::new(File::create(&path).map_err(refuse)?);
        file.write_all(b"[\n").map_err(refuse)?;
        let notes =
            Notes { pending: Vec::with_capacity(CHUNK), file, written: 0, count: 0, is_closed: false };
        let made = Arc::new(Self {
            host,
            begin: Instant::now(),
            process: std::process::id(),
            notes: Mutex::new(notes),
            path,
        });
        crate::exit::close_at_exit(&made);
        Ok(made)
    }

    /// Nanoseconds since the recording began.
    pub(crate) fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    pub(crate) fn note(
        &self,
        site: &'static CallSite,
        label: &Arc<str>,
        start: u64,
        values: &[u64],
        failure: abi::Error,
    ) {
        let end = self.now();
        let mut kept = [0; VALUES];
        let count = values.len().min(VALUES);
        kept[..count].copy_from_slice(&values[..count]);
        let thread = thread_number();
        let note = Note {
            site,
            label: Arc::clone(label),
            start,
            end,
            values: kept,
            thread,
            failed: failure.is_some(),
        };
        let mut notes = self.notes();
        notes.pending.push(note);
        if notes.pending.len() == CHUNK || end.saturating_sub(notes.written) >= LONGEST {
            notes.written = end;
            self.write_out(&mut notes);
        }
    }

    pub(crate) fn unavailable(&self, site: &CallSite) -> abi::Error {
        self.host.error(&Error::unimplemented(format!(
            "expected a slot that is filled, found `{}` empty",
            site.name
        )))
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_out(&self, notes: &mut Notes) {
        if let Err(error) = notes.write_out() {
            self.host.log(LogLevel::WARNING, &self.failure(notes, &error));
        }
    }

    fn failure(&self, notes: &Notes, error: &std::io::Error) -> String {
        let (path, calls) = (self.path.display(), calls(notes.count));
        format!("expected to write the trace to `{path}`, found: {error}; it ends after {calls}")
    }

    /// Makes the file whole, and tells how that went, unless it was told before that it is not.
    fn close(&self, tell: impl FnOnce(LogLevel, &str)) {
        let mut notes = self.notes();
        match notes.close() {
            Ok(false) => {}
            Ok(true) => {
                tell(LogLevel::INFO, &format!("{} in `{}`", calls(notes.count), self.path.display()));
            }
            Err(error) => tell(LogLevel::WARNING, &self.failure(&notes, &error)),
        }
    }

    /// Makes the file whole when the process ends: what is noted afterwards is lost. The host may be past telling anything
    /// by now, so it is told on the standard error. In a child that was forked it does nothing, for the file is its parent's.
    pub(crate) fn close_at_exit(&self) {
        if self.process == std::process::id() {
            self.close(|level, told| {
                let word = if level == LogLevel::INFO { "note" } else { "warning" };
                // Where there is no standard error nobody can be told.
                _ = writeln!(std::io::stderr(), "{word}: `trace`: {told}");
            });
        }
    }
}

impl Notes {
    fn write_out(&mut self) -> std::io::Result<()> {
        let Self { pending, file, count, is_closed, .. } = self;
        let noted = pending.len() as u64;
        let mut pending = pending.drain(..);
        if *is_closed {
            return Ok(());
        }
        let written = pending.try_for_each(|note| write_note(file, &note)).and_then(|()| file.flush());
        *is_closed = written.is_err();
        *count += if *is_closed { 0 } else { noted };
        written
    }

    /// Writes out what is left, and the end; says whether it did, as opposed to before.
    fn close(&mut self) -> std::io::Result<bool> {
        self.write_out()?;
        if std::mem::replace(&mut self.is_closed, true) {
            return Ok(false);
        }
        // The last event carries no comma, so the file is whole JSON.
        let end = format!(
            "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":\"oarlock\"}}}}\n]\n",
            std::process::id()
        );
        self.file.write_all(end.as_bytes())?;
        self.file.flush()?;
        Ok(true)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.close(|level, told| self.host.log(level, told));
    }
}

fn calls(count: u64) -> String {
    format!("{count} {}", if count == 1 { "call" } else { "calls" })
}

fn write_note(file: &mut impl std::io::Write, note: &Note) -> std::io::Result<()> {
    let Note { site, label, start, end, values, thread, failed } = note;
    let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1000.0;
    write!(
        file,
        "{{\"ph\":\"X\",\"name\":\"{}\",\"cat\":{label:?},\"pid\":{},\"tid\":{thread},\"ts\":{:.3},\"dur\":{:.3},\"args\":{{\"to\":{label:?}",
        site.name,
        std::process::id(),
        microseconds(*start),
        microseconds(end - start),
    )?;
    for (name, value) in site.arguments.iter().zip(values) {
        write!(file, ",\"{name}\":{value}")?;
    }
    writeln!(file, ",\"failed\":{failed}}}}},")
}

/// A small number for the calling thread; the numbers that the system gives are large and come back.
fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local!(static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}
