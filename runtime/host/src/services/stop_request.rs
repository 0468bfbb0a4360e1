//! Whether the caller of the work on this thread wants it to stop.

use std::cell::Cell;
use std::ptr;

use super::errors::PluginFailure;

/// Asks the caller; an error stops the work.
pub type StopQuestion<'a> = dyn Fn() -> Result<(), PluginFailure> + 'a;

thread_local! {
    /// The question of the innermost [`with_stop_check`] on this thread.
    static QUESTION: Cell<Option<ptr::NonNull<StopQuestion<'static>>>> = const { Cell::new(None) };
}

/// Runs `work`. While it runs, kernels on this thread that ask whether they are to stop get the answer of `ask`. A kernel that
/// stops returns that error, which `work` sees.
pub fn with_stop_check<R>(ask: &StopQuestion<'_>, work: impl FnOnce() -> R) -> R {
    /// Puts the outer question back, also if the work panics.
    struct OuterQuestion(Option<ptr::NonNull<StopQuestion<'static>>>);
    impl Drop for OuterQuestion {
        fn drop(&mut self) {
            QUESTION.set(self.0);
        }
    }
    let question = ptr::NonNull::from(ask);
    // SAFETY: the cast changes the lifetime alone, and `OuterQuestion` takes the pointer back before that lifetime ends.
    let question: ptr::NonNull<StopQuestion<'static>> = unsafe { std::mem::transmute(question) };
    let _outer = OuterQuestion(QUESTION.replace(Some(question)));
    work()
}

/// The answer for work on this thread: success if nobody is to be asked.
pub(super) fn check_stop() -> Result<(), PluginFailure> {
    let Some(question) = QUESTION.get() else { return Ok(()) };
    // SAFETY: the question is there as long as `with_stop_check` runs, which sets and takes back the pointer on this thread.
    let ask = unsafe { question.as_ref() };
    ask()
}

#[cfg(test)]
mod tests {
    use super::super::errors::Code;
    use super::*;

    #[test]
    fn the_innermost_question_of_a_thread_is_asked() {
        let refuse = |why: &'static str| move || Err(PluginFailure::new("test", Code::UNAVAILABLE, why));
        let reason = || check_stop().err().map(|failure| failure.message.clone());
        assert_eq!(reason(), None);
        with_stop_check(&refuse("outer"), || {
            with_stop_check(&|| Ok(()), || assert_eq!(reason(), None));
            assert_eq!(reason().as_deref(), Some("outer"));
            std::thread::scope(|scope| _ = scope.spawn(|| assert_eq!(reason(), None)));
            let panicked = std::panic::catch_unwind(|| {
                with_stop_check(&refuse("inner"), || std::panic::resume_unwind(Box::new("stopped")))
            });
            assert!(panicked.is_err());
            assert_eq!(reason().as_deref(), Some("outer"));
        });
        assert_eq!(reason(), None);
    }
}
