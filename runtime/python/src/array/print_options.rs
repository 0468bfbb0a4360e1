//! How arrays are printed, for the whole program.

use std::sync::{PoisonError, RwLock};

use pyo3::prelude::*;

/// The settings of `oarlock.set_printoptions`.
#[derive(Clone, Copy)]
pub(super) struct PrintOptions {
    /// The most digits behind the point; `None` for as many as tell the number from its neighbors.
    pub(super) precision: Option<usize>,
    /// Arrays with more elements are abbreviated.
    pub(super) threshold: u64,
    /// The indices shown at either end of an abbreviated axis.
    pub(super) edge_items: usize,
    pub(super) line_width: usize,
    /// True if no number is written with an exponent.
    pub(super) is_plain: bool,
}

const DEFAULT_OPTIONS: PrintOptions =
    PrintOptions { precision: None, threshold: 1000, edge_items: 3, line_width: 88, is_plain: false };

static PRINT_OPTIONS: RwLock<PrintOptions> = RwLock::new(DEFAULT_OPTIONS);

pub(super) fn print_options() -> PrintOptions {
    *PRINT_OPTIONS.read().unwrap_or_else(PoisonError::into_inner)
}

/// The settings: precision, threshold, edge items, line width, and whether exponents are left out.
#[pyfunction]
pub(crate) fn _print_options() -> (Option<usize>, u64, usize, usize, bool) {
    let PrintOptions { precision, threshold, edge_items, line_width, is_plain } = print_options();
    (precision, threshold, edge_items, line_width, is_plain)
}

/// Changes all settings.
#[pyfunction]
pub(crate) fn _set_print_options(
    precision: Option<usize>,
    threshold: u64,
    edge_items: usize,
    line_width: usize,
    is_plain: bool,
) {
    // More digits than these are never shorter than the exact number.
    let precision = precision.map(|digits| digits.min(1100));
    let options = PrintOptions { precision, threshold, edge_items: edge_items.max(1), line_width, is_plain };
    *PRINT_OPTIONS.write().unwrap_or_else(PoisonError::into_inner) = options;
}
