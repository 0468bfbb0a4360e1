//! Progress that a Python function is told of: while a model is read, and while its kernels are prepared.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use oarlock_engine::PrepareProgressListener;
use pyo3::prelude::*;

/// Time between two calls of the function, except the last one.
const CALL_INTERVAL: Duration = Duration::from_millis(50);

/// A function of Python that is called with what is done, all there is to do, and a word for it.
pub(super) struct ProgressFunction {
    function: Py<PyAny>,
    last_call: Mutex<Option<Instant>>,
}

impl ProgressFunction {
    pub(super) fn new(function: Py<PyAny>) -> Arc<Self> {
        Arc::new(Self { function, last_call: Mutex::default() })
    }

    /// A listener for kernels that are prepared.
    pub(super) fn prepare_listener(self: &Arc<Self>) -> PrepareProgressListener {
        let this = self.clone();
        PrepareProgressListener::new(move |ready, all| {
            this.call_function(ready as u64, all as u64, "preparing kernels");
        })
    }

    /// Calls the function if its last call was long enough ago, or if all is done. What it raises is only reported.
    pub(super) fn call_function(&self, done: u64, all: u64, what: &str) {
        let mut last_call = self.last_call.lock().unwrap_or_else(PoisonError::into_inner);
        if done < all && last_call.is_some_and(|last| last.elapsed() < CALL_INTERVAL) {
            return;
        }
        *last_call = Some(Instant::now());
        drop(last_call);
        Python::attach(|py| {
            if let Err(error) = self.function.call1(py, (done, all, what)) {
                error.write_unraisable(py, Some(self.function.bind(py)));
            }
        });
    }
}
