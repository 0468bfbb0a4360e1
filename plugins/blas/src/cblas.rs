//! The functions that are taken from a library, in the C interface that all BLAS libraries have.

#![expect(unsafe_code, reason = "the functions are C")]

use core::ffi::c_int;

use libloading::os::unix::Library as Opened;
use oarlock_sdk::{Element, Error, Result};

/// Numbers in C order, row after row.
const ROWS: c_int = 101;
const PLAIN: c_int = 111;
const TURNED: c_int = 112;

type Gemm<T> = unsafe extern "C" fn(
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
pub struct Cblas {
    sgemm: Gemm<f32>,
    dgemm: Gemm<f64>,
    /// What keeps the library from using threads of its own, where that has to be said on each thread.
    stay_alone: Option<unsafe extern "C" fn(c_int)>,
}

impl Cblas {
    /// Takes the functions of a library.
    pub fn new(opened: &'static Opened) -> Result<Self> {
        // SAFETY: these are the types of the functions in every library with this interface, and it is never closed.
        unsafe {
            Ok(Self {
                sgemm: function(opened, "cblas_sgemm")?,
                dgemm: function(opened, "cblas_dgemm")?,
                stay_alone: None,
            })
        }
    }

    /// Has a function called with 1, the number of threads, before each product.
    ///
    /// # Safety
    ///
    /// The function may be called on any thread at any time.
    pub unsafe fn staying_alone_by(mut self, function: unsafe extern "C" fn(c_int)) -> Self {
        self.stay_alone = Some(function);
        self
    }
}

/// A function of a library.
///
/// # Safety
///
/// `F` is the type of a pointer to the function.
pub unsafe fn function<F: Copy>(opened: &'static Opened, name: &str) -> Result<F> {
    // SAFETY: the caller vouches for the type, and the library is never closed.
    unsafe { opened.get::<F>(name) }.map(|symbol| *symbol).map_err(|_| {
        Error::unimplemented(format!("expected the function `{name}`, found a library without it"))
    })
}

/// Numbers that a library multiplies.
pub(crate) trait Number: Element {
    /// Nothing.
    const ZERO: Self;
    /// From a number in an attribute.
    fn of(number: f64) -> Self;
    /// This much of a number.
    fn times(self, other: Self) -> Self;
    /// The function that multiplies them.
    fn gemm(cblas: &Cblas) -> Gemm<Self>;
}

macro_rules! numbers {
    ($($number:ident: $gemm:ident),*) => {
        $(
            impl Number for $number {
                const ZERO: Self = 0.0;
                fn of(number: f64) -> Self {
                    number as Self
                }
                fn times(self, other: Self) -> Self {
                    self * other
                }
                fn gemm(cblas: &Cblas) -> Gemm<Self> {
                    cblas.$gemm
                }
            }
        )*
    };
}

numbers!(f32: sgemm, f64: dgemm);

/// A matrix at an address, and the elements from one of its rows to the next as they lie.
#[derive(Clone, Copy)]
pub(crate) struct Operand<P> {
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
pub(crate) unsafe fn multiply<T: Number>(
    cblas: &Cblas,
    (rows, columns, depth): (usize, usize, usize),
    left: Operand<*const T>,
    right: Operand<*const T>,
    (alpha, adds): (T, bool),
    output: Operand<*mut T>,
) {
    let turned = |turned| if turned { TURNED } else { PLAIN };
    let beta = if adds { T::of(1.0) } else { T::ZERO };
    // SAFETY: the caller vouches for the operands, and with them the library touches only those.
    unsafe {
        if let Some(stay_alone) = cblas.stay_alone {
            stay_alone(1);
        }
        T::gemm(cblas)(
            ROWS,
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
