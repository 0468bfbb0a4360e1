//! Closes files when the process ends: a program that keeps its runtime until then, as an interpreter of Python does, takes
//! no wrapper away.

#![expect(unsafe_code, reason = "the C library is asked to call a function")]

use std::sync::{Arc, Mutex, Once, PoisonError, Weak};

use crate::recorder::TraceRecorder;

/// The recorders of this process.
static OPEN_RECORDERS: Mutex<Vec<Weak<TraceRecorder>>> = Mutex::new(Vec::new());

/// Has a recorder closed when the process ends, if it is still there.
pub(crate) fn close_at_exit(recorder: &Arc<TraceRecorder>) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the function lives as long as this library, before whose end the C library calls it. Without memory for
        // the request it is never called, which loses the end of a trace.
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
