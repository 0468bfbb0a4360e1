//! The functions that are taken from a library, in the C interface that all BLAS libraries have.

#![expect(unsafe_code, reason = "the functions are C")]

use core::ffi::c_int;

use libloading::os::unix::Library as Opened;
use oarlock_sdk::{Element, PluginError, Result};

/// Numbers in C order, row after row.
const CBLAS_ROW_MAJOR: c_int = 101;
const CBLAS_NO_TRANSPOSE: c_int = 111;
const CBLAS_TRANSPOSE: c_int = 112;

type GemmFunction<T> = unsafe extern "C" fn(
    order: c_int,
    left_turned: c_int,
    right_turned: c_int,
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

/// The functions of a library that counts with 32 bits.
#[derive(Clone, Copy, Debug)]
pub struct CblasFunctions {
    sgemm: GemmFunction<f32>,
    dgemm: GemmFunction<f64>,
    /// What keeps the library from using threads of its own, where that has to be said on each thread.
    stay_alone: Option<unsafe extern "C" fn(c_int)>,
}

impl CblasFunctions {
    /// Takes the functions of a library.
    pub fn new(opened: &'static Opened) -> Result<Self> {
        // SAFETY: these are the types of the functions in every library with this interface, and it is never closed.
        unsafe {
            Ok(Self {
                sgemm: resolve_function(opened, "cblas_sgemm")?,
                dgemm: resolve_function(opened, "cblas_dgemm")?,
                stay_alone: None,
            })
        }
    }

    /// Has a function called with 1, the number of threads, before each product.
    ///
    /// # Safety
    ///
    /// The function may be called on any thread at any time.
    pub unsafe fn with_thread_limiter(mut self, function: unsafe extern "C" fn(c_int)) -> Self {
        self.stay_alone = Some(function);
        self
    }
}

/// A function of a library.
///
/// # Safety
///
/// `F` is the type of a pointer to the function.
pub unsafe fn resolve_function<F: Copy>(opened: &'static Opened, name: &str) -> Result<F> {
    // SAFETY: the caller vouches for the type, and the library is never closed.
    unsafe { opened.get::<F>(name) }.map(|symbol| *symbol).map_err(|_| {
        PluginError::unimplemented(format!("expected the function `{name}`, found a library without it"))
    })
}

/// Numbers that a library multiplies.
pub(crate) trait BlasElement: Element {
    /// Nothing.
    const ZERO: Self;
    /// From a number in an attribute.
    fn from_attribute(number: f64) -> Self;
    /// This much of a number.
    fn scaled_by(self, other: Self) -> Self;
    /// The function that multiplies them.
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

/// A matrix at an address, and the elements from one of its rows to the next as they lie.
#[derive(Clone, Copy)]
pub(crate) struct MatrixOperand<P> {
    pub(crate) address: P,
    pub(crate) step: usize,
    /// Whether the matrix lies column after column.
    pub(crate) turned: bool,
}

/// `output = alpha · left · right`, plus the output where `adds` is set.
///
/// # Safety
///
/// The operands have rows × depth, depth × columns and rows × columns elements; nothing else touches the output; none of the
/// sizes and steps is 0 or above `i32::MAX`.
pub(crate) unsafe fn multiply_matrices<T: BlasElement>(
    cblas: &CblasFunctions,
    (rows, columns, depth): (usize, usize, usize),
    left: MatrixOperand<*const T>,
    right: MatrixOperand<*const T>,
    (alpha, adds): (T, bool),
    output: MatrixOperand<*mut T>,
) {
    let turned = |turned| if turned { CBLAS_TRANSPOSE } else { CBLAS_NO_TRANSPOSE };
    let beta = if adds { T::from_attribute(1.0) } else { T::ZERO };
    // SAFETY: the caller vouches for the operands, and with them the library touches only those.
    unsafe {
        if let Some(stay_alone) = cblas.stay_alone {
            stay_alone(1);
        }
        T::gemm_function(cblas)(
            CBLAS_ROW_MAJOR,
            turned(left.turned),
            turned(right.turned),
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
