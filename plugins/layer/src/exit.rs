//! Ends the work of layers when the process ends: a program that keeps its runtime until then, such as a Python interpreter, never
//! unwraps its tables.

#![expect(unsafe_code, reason = "the C library is asked to call a function")]

use std::sync::{Arc, Mutex, Once, PoisonError, Weak};

/// What is to be ended with the process.
pub(crate) trait EndedAtExit: Send + Sync {
    fn end_at_exit(&self);
}

/// The work that this process has not ended.
static OPEN_WORK: Mutex<Vec<Weak<dyn EndedAtExit>>> = Mutex::new(Vec::new());

/// Registers work to be ended with the process, if it still exists.
pub(crate) fn end_at_exit(work: &Arc<impl EndedAtExit + 'static>) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the function lives as long as this library, and the C library calls it before that ends. If there is no memory
        // to register it, it is never called, which loses the end of the work.
        unsafe { libc::atexit(end_all_work) };
    });
    let work: Weak<dyn EndedAtExit> = Arc::downgrade(&(Arc::clone(work) as Arc<dyn EndedAtExit>));
    let mut open = OPEN_WORK.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|work| work.strong_count() > 0);
    open.push(work);
}

extern "C" fn end_all_work() {
    let open = std::mem::take(&mut *OPEN_WORK.lock().unwrap_or_else(PoisonError::into_inner));
    for work in open.iter().filter_map(Weak::upgrade) {
        work.end_at_exit();
    }
}
