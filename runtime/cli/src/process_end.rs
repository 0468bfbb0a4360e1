//! Ends a watched command without running what plugins left behind for the end of the process.
//!
//! Destructors and functions registered with `atexit` could crash, hang or choose another exit code. By now all output is written,
//! and all plugins were shut down in order.

#![expect(
    unsafe_code,
    reason = "the C library is asked to write its buffers, and the process to end at once"
)]

use crate::watched_child::{self, ChildMessage};

pub(crate) fn end_without_handlers(is_success: bool) -> ! {
    // SAFETY: a null pointer means all streams. What plugins printed through the C library is still in its buffers.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    watched_child::send_message(&ChildMessage::Done);
    // SAFETY: nothing has to be done any more: the command writes through no buffer of its own.
    unsafe { libc::_exit(i32::from(!is_success)) }
}
