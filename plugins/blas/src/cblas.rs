//! The functions resolved in a library, by the C interface that all BLAS libraries share.

#![expect(unsafe_code, reason = "the functions are C")]

use core::ffi::c_int;

use libloading::os::unix::Library;
use oarlock_sdk::{Element, PluginError, Result};

/// `CblasRowMajor`.
// Tensors are row-major, so the library reads and writes them in place.
const CBLAS_ROW_MAJOR: c_int = 101;
const CBLAS_NO_TRANSPOSE: c_int = 111;
const CBLAS_TRANSPOSE: c_int = 112;

type GemmFunction<T> = unsafe extern "C" fn(
    order: c_int,
    left_transposed: c_int,
    right_transposed: c_int,
    rows: c_int,
    columns: c_int,
    depth: c_int,
    alpha: T,
    left: *const T,
    left_step: c_int,
    right: *const T,
    right_step: c_int,
    beta: T,
    output: *mut T,
    output_step: c_int,
);

/// Entry points of a library with 32-bit integers (LP64).
#[derive(Clone, Copy, Debug)]
pub struct CblasFunctions {
    sgemm: GemmFunction<f32>,
    dgemm: GemmFunction<f64>,
    /// Limits the library to one thread, where that is a setting of each calling thread.
    stay_alone: Option<unsafe extern "C" fn(c_int)>,
}

impl CblasFunctions {
    /// Resolves the functions; an error names the one that is missing.
    pub fn new(opened: &'static Library) -> Result<Self> {
        // SAFETY: these are the types of the functions in every library with this interface, and the library is never closed.
        unsafe {
            Ok(Self {
                sgemm: resolve_function(opened, "cblas_sgemm")?,
                dgemm: resolve_function(opened, "cblas_dgemm")?,
                stay_alone: None,
            })
        }
    }

    /// Sets a function that is called with 1, the number of threads, before each product.
    ///
    /// # Safety
    ///
    /// The function may be called on any thread at any time.
    pub unsafe fn with_thread_limiter(mut self, function: unsafe extern "C" fn(c_int)) -> Self {
        self.stay_alone = Some(function);
        self
    }
}

/// Resolves a function of a library.
///
/// # Safety
///
/// `F` is the type of a pointer to the function.
pub unsafe fn resolve_function<F: Copy>(opened: &'static Library, name: &str) -> Result<F> {
    // SAFETY: the caller guarantees the type, and the library is never closed.
    unsafe { opened.get::<F>(name) }.map(|symbol| *symbol).map_err(|_| {
        PluginError::unimplemented(format!("expected the function `{name}`, found a library without it"))
    })
}

/// An element type that CBLAS has a `gemm` for.
pub(crate) trait BlasElement: Element {
    const ZERO: Self;
    /// Converts a number from an attribute, such as `alpha`.
    fn from_attribute(number: f64) -> Self;
    /// The product of two numbers.
    fn scaled_by(self, other: Self) -> Self;
    fn gemm_function(cblas: &CblasFunctions) -> GemmFunction<Self>;
}

macro_rules! numbers {
    ($($number:ident: $gemm:ident),*) => {
        $(
            impl BlasElement for $number {
                const ZERO: Self = 0.0;
                fn from_attribute(number: f64) -> Self {
                    number as Self
                }
                fn scaled_by(self, other: Self) -> Self {
                    self * other
                }
                fn gemm_function(cblas: &CblasFunctions) -> GemmFunction<Self> {
                    cblas.$gemm
                }
            }
        )*
    };
}

numbers!(f32: sgemm, f64: dgemm);

/// A matrix at an address; `step` is its leading dimension, in elements.
#[derive(Clone, Copy)]
pub(crate) struct MatrixOperand<P> {
    pub(crate) address: P,
    pub(crate) step: usize,
    /// True if the matrix is stored column by column, that is, transposed.
    pub(crate) transposed: bool,
}

/// Computes `output = alpha · left · right`, plus `output` if `adds` is set.
///
/// # Safety
///
/// The operands have rows × depth, depth × columns and rows × columns elements; nothing else touches the output; no size or
/// stride is 0 or above `i32::MAX`.
pub(crate) unsafe fn multiply_matrices<T: BlasElement>(
    cblas: &CblasFunctions,
    (rows, columns, depth): (usize, usize, usize),
    left: MatrixOperand<*const T>,
    right: MatrixOperand<*const T>,
    (alpha, adds): (T, bool),
    output: MatrixOperand<*mut T>,
) {
    let transposed = |transposed| if transposed { CBLAS_TRANSPOSE } else { CBLAS_NO_TRANSPOSE };
    // With a `beta` of 0 the library does not read the output, which may hold anything, NaN included.
    let beta = if adds { T::from_attribute(1.0) } else { T::ZERO };
    // SAFETY: the caller guarantees the sizes of the operands, and within those sizes the library touches nothing else.
    unsafe {
        // Before each product: the setting belongs to the calling thread, and the pool of the host may start threads at any time.
        if let Some(stay_alone) = cblas.stay_alone {
            stay_alone(1);
        }
        T::gemm_function(cblas)(
            CBLAS_ROW_MAJOR,
            transposed(left.transposed),
            transposed(right.transposed),
            rows as c_int,
            columns as c_int,
            depth as c_int,
            alpha,
            left.address,
            left.step as c_int,
            right.address,
            right.step as c_int,
            beta,
            output.address,
            output.step as c_int,
        );
    }
}
