//! Whether the program was started without a standard output, as `>&-` does it.
//!
//! By the time `main` begins, the standard library has put `/dev/null` in the place of every standard stream that is not
//! there, so that files do not take their numbers. That cannot be told apart from output that is thrown away on purpose, so
//! somebody has to look before.

#![expect(unsafe_code, reason = "what runs before `main` has to be put into a section by hand")]

use std::sync::atomic::{AtomicBool, Ordering};

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the section holds pointers to functions that the loader calls, one after the other, before `main`. What this one
// calls needs nothing that is made ready later: it is one system call and one store.
#[unsafe(link_section = ".init_array")]
#[used]
static PROBE_ON_LOAD: extern "C" fn() = probe_standard_output;

extern "C" fn probe_standard_output() {
    let found = rustix::io::fcntl_getfd(rustix::stdio::stdout());
    IS_CLOSED.store(found == Err(rustix::io::Errno::BADF), Ordering::Relaxed);
}

/// Whether there was no standard output when the program was started.
pub(crate) fn is_output_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}
