//! Panics of plugin code. A plugin prints nothing (rule R-4), so the location of a panic goes into the error instead.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// True while a panic on this thread would be caught and reported as an error.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
    /// The source location of the last panic on this thread.
    static PANIC_LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps panics that become errors from being printed. Only shared objects call this, since each has its own panic hook: a plugin
/// that is linked into a program must not touch the program's hook.
#[doc(hidden)]
pub fn silence_caught_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if IS_CAUGHT.get() {
                PANIC_LOCATION.set(info.location().map(ToString::to_string));
            } else {
                usual(info);
            }
        }));
    });
}

/// Runs a function and converts a panic into a message.
#[inline]
pub(crate) fn catch_panic<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    let outer = IS_CAUGHT.replace(true);
    // Only state of the plugin can be inconsistent after the panic, and the host learns of it: the error has the code `fatal`.
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    IS_CAUGHT.set(outer);
    result.map_err(|panic| panic_message(&*panic))
}

#[cold]
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let place = PANIC_LOCATION.take().map(|place| format!(" at {place}")).unwrap_or_default();
    format!("the plugin panicked{place}: {}", panic_text(panic))
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
