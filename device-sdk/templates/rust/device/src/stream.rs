//! Streams and events. A stream is a thread that does its work in order.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use oarlock_sdk::{Event, PluginError, Result, Stream};

/// Work gets the state of its stream: a failure stays there until a synchronization reports it
///
type Work = Box<dyn FnOnce(&mut Result<()>) + Send>;

/// One recording of an event, set once the stream is past it. An event that was never recorded has
/// happened.
pub type Recording = Arc<OnceLock<Result<()>>>;

/// Handles count from 1: 0 is the synchronous queue, whose calls finish before they return.
#[derive(Default)]
pub struct StreamTable(Mutex<Handles>);

#[derive(Default)]
struct Handles {
    last: u64,
    streams: HashMap<u64, (Sender<Work>, JoinHandle<()>)>,
    events: HashMap<u64, Recording>,
}

fn dead_handle() -> PluginError {
    PluginError::invalid_argument("expected a stream or event that is alive, found none")
}

impl StreamTable {
    fn handles(&self) -> MutexGuard<'_, Handles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn create_stream(&self) -> Result<Stream> {
        let (sender, receiver) = channel::<Work>();
        let thread = thread::Builder::new().spawn(move || {
            let mut state = Ok(());
            receiver.into_iter().for_each(|work| work(&mut state));
        });
        let refuse = |error| PluginError::resource_exhausted(format!("expected a thread: {error}"));
        let thread = thread.map_err(refuse)?;
        let mut handles = self.handles();
        handles.last += 1;
        let stream = handles.last;
        handles.streams.insert(stream, (sender, thread));
        Ok(Stream(stream))
    }

    /// Waits for the work in the stream: its thread ends when the queue is closed and empty.
    pub fn destroy_stream(&self, stream: Stream) -> Result<()> {
        let removed = self.handles().streams.remove(&stream.0);
        let (sender, thread) = removed.ok_or_else(dead_handle)?;
        drop(sender);
        thread.join().map_err(|_| PluginError::fatal("expected the stream to end, found a panic"))
    }

    /// Adds work that happens in any case and sees whether the stream has failed.
    pub fn notify(&self, stream: Stream, work: impl FnOnce(&mut Result<()>) + Send + 'static) -> Result<()> {
        if stream.0 == 0 {
            thread::spawn(move || work(&mut Ok(())));
            return Ok(());
        }
        let handles = self.handles();
        let (sender, _) = handles.streams.get(&stream.0).ok_or_else(dead_handle)?;
        sender.send(Box::new(work)).map_err(|_| dead_handle())
    }

    /// Adds work that an earlier failure cancels. A panic ends here and becomes an error.
    pub fn launch(&self, stream: Stream, work: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
        if stream.0 == 0 {
            return work();
        }
        self.notify(stream, move |state| {
            if state.is_ok() {
                *state = catch_unwind(AssertUnwindSafe(work))
                    .unwrap_or_else(|_| Err(PluginError::fatal("expected no panic in a stream")));
            }
        })
    }

    pub fn synchronize(&self, stream: Stream) -> Result<()> {
        let end = Recording::default();
        let reached = Arc::clone(&end);
        self.notify(stream, move |state| _ = reached.set(std::mem::replace(state, Ok(()))))?;
        end.wait().clone()
    }

    /// Waits for all streams, and reports the first failure.
    pub fn synchronize_all(&self) -> Result<()> {
        let streams: Vec<u64> = self.handles().streams.keys().copied().collect();
        streams.into_iter().fold(Ok(()), |first, stream| first.and(self.synchronize(Stream(stream))))
    }

    pub fn create_event(&self) -> Event {
        let mut handles = self.handles();
        handles.last += 1;
        let event = handles.last;
        handles.events.insert(event, Arc::new(OnceLock::from(Ok(()))));
        Event(event)
    }

    /// Work that waits for the event keeps its recording.
    pub fn destroy_event(&self, event: Event) -> Result<()> {
        self.handles().events.remove(&event.0).map(drop).ok_or_else(dead_handle)
    }

    pub fn recording(&self, event: Event) -> Result<Recording> {
        self.handles().events.get(&event.0).cloned().ok_or_else(dead_handle)
    }

    pub fn record(&self, stream: Stream, event: Event) -> Result<()> {
        let reached = Recording::default();
        *self.handles().events.get_mut(&event.0).ok_or_else(dead_handle)? = Arc::clone(&reached);
        self.notify(stream, move |state| _ = reached.set(state.clone()))
    }
}
