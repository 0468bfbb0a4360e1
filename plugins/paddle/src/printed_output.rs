//! Keeps what a custom device prints while it starts out of the data that a program writes to standard output.
//!
//! The interface has no log, so many custom devices greet on standard output. Whatever any thread writes there meanwhile goes to
//! standard error too; plugins start before a program writes data.

#![expect(unsafe_code, reason = "only calls of the C library can redirect the output of a whole process")]

use std::sync::{Mutex, PoisonError};

/// Puts standard output back when dropped.
struct RedirectedOutput(Option<libc::c_int>);

impl RedirectedOutput {
    fn redirect_output() -> Self {
        flush_output();
        // SAFETY: the calls take descriptors by number and touch no memory.
        unsafe {
            let saved = libc::fcntl(libc::STDOUT_FILENO, libc::F_DUPFD_CLOEXEC, 3);
            if saved < 0 {
                return Self(None);
            }
            libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO);
            Self(Some(saved))
        }
    }
}

impl Drop for RedirectedOutput {
    fn drop(&mut self) {
        let Some(saved) = self.0 else { return };
        // What the custom device wrote is still in the buffer of the C library.
        flush_output();
        // SAFETY: as above; the descriptor is this struct's own.
        unsafe {
            libc::dup2(saved, libc::STDOUT_FILENO);
            libc::close(saved);
        }
    }
}

fn flush_output() {
    // SAFETY: null stands for all streams of the C library.
    unsafe { libc::fflush(core::ptr::null_mut()) };
}

/// Runs `work` while standard output leads to standard error.
pub(crate) fn with_prints_on_stderr<T>(work: impl FnOnce() -> T) -> T {
    /// Two redirections at a time would save each other's.
    static REDIRECTING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = REDIRECTING.lock().unwrap_or_else(PoisonError::into_inner);
    let _redirected = RedirectedOutput::redirect_output();
    work()
}
