//! Closes trace files when the process ends: a program that keeps its runtime until then, such as a Python interpreter, never
//! unwraps its tables.

#![expect(unsafe_code, reason = "the C library is asked to call a function")]

use std::sync::{Arc, Mutex, Once, PoisonError, Weak};

use crate::recorder::TraceRecorder;

/// The recorders of this process.
static OPEN_RECORDERS: Mutex<Vec<Weak<TraceRecorder>>> = Mutex::new(Vec::new());

/// Registers a recorder to be closed at the end of the process, if it still exists.
pub(crate) fn close_at_exit(recorder: &Arc<TraceRecorder>) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the function lives as long as this library, and the C library calls it before that ends. If there is no memory
        // to register it, it is never called, which loses the end of a trace.
        unsafe { libc::atexit(close_all_recorders) };
    });
    let mut open = OPEN_RECORDERS.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|recorder| recorder.strong_count() > 0);
    open.push(Arc::downgrade(recorder));
}

extern "C" fn close_all_recorders() {
    let open = std::mem::take(&mut *OPEN_RECORDERS.lock().unwrap_or_else(PoisonError::into_inner));
    for recorder in open.iter().filter_map(Weak::upgrade) {
        recorder.close_at_exit();
    }
}
