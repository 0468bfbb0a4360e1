//! Progress while files of models are read.

use std::cell::RefCell;

/// Called with the bytes that were read, and with those of all files that were opened so far.
type ReadListener<'a> = dyn Fn(u64, u64) + 'a;

struct ReadProgress {
    listener: Box<ReadListener<'static>>,
    read: u64,
    all: u64,
}

thread_local! {
    /// The innermost [`with_read_progress`] on this thread.
    static PROGRESS: RefCell<Option<ReadProgress>> = const { RefCell::new(None) };
}

/// Runs `read`, and calls `listener` after each part of a file that `read` reads on this thread, and at the end.
pub fn with_read_progress<R>(listener: impl Fn(u64, u64) + 'static, read: impl FnOnce() -> R) -> R {
    /// Puts the outer listener back, also after a panic.
    struct OuterProgress(Option<ReadProgress>);
    impl Drop for OuterProgress {
        fn drop(&mut self) {
            PROGRESS.replace(self.0.take());
        }
    }
    let _outer =
        OuterProgress(PROGRESS.replace(Some(ReadProgress { listener: Box::new(listener), read: 0, all: 0 })));
    let result = read();
    add_read(u64::MAX);
    result
}

/// Counts the bytes of a file that was opened.
pub(super) fn add_file(size: u64) {
    PROGRESS.with_borrow_mut(|progress| {
        if let Some(progress) = progress {
            progress.all += size;
        }
    });
}

/// Counts bytes that were read.
pub(super) fn add_read(size: u64) {
    // The listener is called outside of the cell, so it may read files.
    let Some(mut progress) = PROGRESS.take() else { return };
    progress.read = progress.read.saturating_add(size).min(progress.all);
    (progress.listener)(progress.read, progress.all);
    PROGRESS.replace(Some(progress));
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn a_listener_hears_of_the_files_that_are_read_while_it_listens() {
        let heard = Rc::new(Cell::new((0, 0)));
        let listener = heard.clone();
        with_read_progress(
            move |read, all| listener.set((read, all)),
            || {
                add_file(30);
                add_read(10);
                assert_eq!(heard.get(), (10, 30));
                add_file(70);
                add_read(15);
                assert_eq!(heard.get(), (25, 100));
            },
        );
        assert_eq!(heard.get(), (100, 100));
        add_file(5);
        add_read(5);
        assert_eq!(heard.get(), (100, 100));
    }
}
