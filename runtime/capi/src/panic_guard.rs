//! Catches panics at the boundary of every exported function.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use oarlock_core::{Error, Result};

use crate::c_types::{Code, Dtype, Kind, SupportLevel};
use crate::error::ErrorHandle;

/// Conversion from the result of an implementation to that of the exported function.
pub(crate) trait ExportedReturn: Sized {
    /// Result of the implementation.
    type Output;

    fn from_output(given: Self::Output) -> Self;

    /// The value to return after a panic.
    fn from_panic(panic: &(dyn Any + Send)) -> Self;
}

/// Runs a function and catches panics. Handles stay consistent after a panic: the crates below keep their state so, or guard
/// it with locks that do not poison.
pub(crate) fn catch_panics<T: ExportedReturn>(work: impl FnOnce() -> T::Output) -> T {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(given) => T::from_output(given),
        Err(panic) => T::from_panic(&*panic),
    }
}

impl ExportedReturn for *mut ErrorHandle {
    type Output = Result<()>;

    #[inline]
    fn from_output(given: Result<()>) -> Self {
        match given {
            Ok(()) => ptr::null_mut(),
            Err(error) => ErrorHandle::allocate_handle(&error),
        }
    }

    fn from_panic(panic: &(dyn Any + Send)) -> Self {
        let message = panic.downcast_ref::<&str>().copied();
        let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = message.unwrap_or("a panic that says nothing");
        let error = Error::fatal(format!("expected the call to end, found a mistake in Oarlock: {message}"));
        ErrorHandle::allocate_handle(&error.with_advice("please report it, with the message"))
    }
}

/// After a panic, these types return the value that means nothing.
macro_rules! values {
    ($($kind:ty => $nothing:expr),* $(,)?) => {
        $(impl ExportedReturn for $kind {
            type Output = Self;

            #[inline]
            fn from_output(given: Self) -> Self {
                given
            }

            fn from_panic(_panic: &(dyn Any + Send)) -> Self {
                $nothing
            }
        })*
    };
}

values! {
    () => (), u32 => 0, u64 => 0, i64 => -1, Code => Code(0), Dtype => Dtype(0), Kind => Kind(0),
    SupportLevel => SupportLevel(0),
}

impl<T> ExportedReturn for *const T {
    type Output = Self;

    #[inline]
    fn from_output(given: Self) -> Self {
        given
    }

    fn from_panic(_panic: &(dyn Any + Send)) -> Self {
        ptr::null()
    }
}

#[cfg(test)]
mod tests {
    #![expect(unsafe_code, reason = "an error is given back as C does it")]

    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_what_it_said() {
        let error: *mut ErrorHandle = catch_panics(|| panic!("a number of {}", 3));
        // SAFETY: the error was just allocated and is freed once.
        let error = unsafe { Box::from_raw(error) };
        let message = error.message().to_str().unwrap();
        assert!(message.contains("a number of 3"), "{message}");
    }

    #[test]
    fn a_panic_of_a_function_that_cannot_fail_is_its_nothing() {
        assert_eq!(catch_panics::<i64>(|| panic!("none")), -1);
        assert!(catch_panics::<*const u8>(|| panic!("none")).is_null());
    }
}
