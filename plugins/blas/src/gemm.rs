//! `Gemm`: `alpha · A · B + beta · C`, with either factor transposed.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_products::{GemmProblem, GemmSize, MatrixBatch};
use oarlock_sdk::{
    HostServices, Kernel, KernelCall, OperandFlags, OperandSpec, Result, TensorView, dispatch, ensure, family,
};

use crate::cblas::{BlasElement, CblasFunctions};
use crate::product::{BatchedProduct, BroadcastAddend, ProductOperand, check_dimensions};
use crate::{BlasLibrary, KERNEL_SCORE};

/// The first version of the op whose third matrix broadcasts by the common rules.
const GEMM_SINCE_VERSION: u32 = 7;

pub(crate) fn gemm_kernel(library: &Arc<BlasLibrary>, host: HostServices) -> Kernel<()> {
    let (library, asked) = (Arc::clone(library), Arc::clone(library));
    let number = OperandSpec::new(family::FLOATING).with_dtype_group(1);
    Kernel::new("Gemm", move |(): &(), call| {
        let cblas = library.cblas_functions()?;
        dispatch!(call.output(0)?.dtype(), floating, T => run_gemm::<T>(cblas, &host, call))
    })
    .with_support_check(move |(), call| {
        // Everything that a library cannot do is refused here, where the host can still take the built-in kernel.
        let settings = GemmProblem::new(call)?;
        check_dimensions(&settings.gemm_size(call.input(0)?.dims(), call.input(1)?.dims())?)?;
        check_alpha(settings.alpha)?;
        // Opens the library, so that one that does not load is found out before the call is placed.
        asked.cblas_functions().map(drop)
    })
    .since_version(GEMM_SINCE_VERSION)
    .with_device_type("cpu")
    .with_score(KERNEL_SCORE)
    .with_inputs([
        number.with_name("A").with_rank(2, 2),
        number.with_name("B").with_rank(2, 2),
        number.with_name("C").with_rank(0, 2).with_flags(OperandFlags::OPTIONAL),
    ])
    .with_outputs([number.with_name("Y").with_rank(2, 2)])
}

/// With an `alpha` of 0, libraries skip the operands, so NaN and infinity in them would be lost.
fn check_alpha(alpha: f64) -> Result<()> {
    // What counts is the scale that the library gets, and for `f32` matrices that is rounded.
    let vanishes = alpha as f32 == 0.0;
    ensure!(!vanishes, unimplemented, "expected an `alpha` that does not vanish in f32, found {alpha}");
    Ok(())
}

fn run_gemm<T: BlasElement>(
    cblas: &CblasFunctions,
    host: &HostServices,
    call: &KernelCall<'_>,
) -> Result<()> {
    let settings = GemmProblem::new(call)?;
    let (a, b, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let extent = settings.gemm_size(a.dims(), b.dims())?;
    extent.check_output(y.dims())?;
    let beta = T::from_attribute(settings.beta);
    let addend = call.optional_input(2)?.map(|c| broadcast_addend(&c, &extent, beta)).transpose()?;
    // SAFETY: device memory is host memory here, and the call guarantees its operands.
    let (a, b, y) = unsafe { (a.elements()?, b.elements()?, y.elements_mut()?) };
    let products = BatchedProduct {
        extent,
        left: ProductOperand { elements: a, transposed: settings.a_transposed },
        right: ProductOperand { elements: b, transposed: settings.b_transposed },
        batch: MatrixBatch::SINGLE_MATRIX,
        alpha: T::from_attribute(settings.alpha),
        addend,
    };
    products.compute_products(cblas, host, y)
}

/// The third matrix, which broadcasts along dimensions of 1.
fn broadcast_addend<'a, T: BlasElement>(
    c: &TensorView<'a>,
    extent: &GemmSize,
    beta: T,
) -> Result<BroadcastAddend<'a, T>> {
    let [row_step, column_step] = extent.addend_strides(c.dims())?;
    // SAFETY: device memory is host memory here, and the call guarantees its operands.
    Ok(BroadcastAddend { elements: unsafe { c.elements() }?, row_step, column_step, beta })
}
