//! Detects a program started without standard output, as with `>&-`.
//!
//! Before `main` runs, the standard library opens `/dev/null` for each missing standard stream, so that other files do not
//! get its number. After that a closed stream looks like output thrown away on purpose, so the check has to run earlier.

#![expect(unsafe_code, reason = "what runs before `main` has to be put into a section by hand")]

use std::sync::atomic::{AtomicBool, Ordering};

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the loader calls the function pointers in this section one after the other before `main`. This one needs nothing
// that is initialized later: it makes one system call and one store.
#[unsafe(link_section = ".init_array")]
#[used]
static PROBE_ON_LOAD: extern "C" fn() = probe_standard_output;

extern "C" fn probe_standard_output() {
    let found = rustix::io::fcntl_getfd(rustix::stdio::stdout());
    IS_CLOSED.store(found == Err(rustix::io::Errno::BADF), Ordering::Relaxed);
}

/// True if the program was started without standard output.
pub(crate) fn is_output_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}
