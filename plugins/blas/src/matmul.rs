//! `MatMul`.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_products::MatMulProblem;
use oarlock_sdk::{HostServices, Kernel, KernelCall, OperandSpec, Result, dispatch, ensure, family};

use crate::cblas::{BlasElement, CblasFunctions};
use crate::product::{BatchedProduct, MAX_DIMENSION, ProductOperand, check_dimensions};
use crate::{BlasLibrary, KERNEL_SCORE};

pub(crate) fn matmul_kernel(library: &Arc<BlasLibrary>, host: HostServices) -> Kernel<()> {
    let (library, asked) = (Arc::clone(library), Arc::clone(library));
    let number = OperandSpec::new(family::FLOATING).with_dtype_group(1);
    Kernel::new("MatMul", move |(): &(), call| {
        let cblas = library.cblas_functions()?;
        dispatch!(call.output(0)?.dtype(), floating, T => run_matmul::<T>(cblas, &host, call))
    })
    .with_support_check(move |(), call| {
        check_dimensions(
            &MatMulProblem::new(call.input(0)?.dims(), call.input(1)?.dims(), MAX_DIMENSION)?.extent,
        )?;
        // Opens the library, so that one that does not load is found out before the call is placed.
        asked.cblas_functions().map(drop)
    })
    .with_device_type("cpu")
    .with_score(KERNEL_SCORE)
    .with_inputs([number.with_name("A").with_rank(1, u32::MAX), number.with_name("B").with_rank(1, u32::MAX)])
    .with_outputs([number.with_name("Y")])
}

fn run_matmul<T: BlasElement>(
    cblas: &CblasFunctions,
    host: &HostServices,
    call: &KernelCall<'_>,
) -> Result<()> {
    let (a, b, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let shape = MatMulProblem::new(a.dims(), b.dims(), MAX_DIMENSION)?;
    ensure!(
        shape.output == y.dims(),
        invalid_argument,
        "expected an output of shape {:?} for inputs of {:?} and {:?}, found {:?}",
        shape.output,
        a.dims(),
        b.dims(),
        y.dims()
    );
    // SAFETY: device memory is host memory here, and the call guarantees its operands.
    let (a, b, y) = unsafe { (a.elements()?, b.elements()?, y.elements_mut()?) };
    // Strided operands are not registered, so both factors lie row by row.
    let side = |elements| ProductOperand { elements, transposed: false };
    let products = BatchedProduct {
        extent: shape.extent,
        left: side(a),
        right: side(b),
        batch: shape.batch,
        alpha: T::from_attribute(1.0),
        addend: None,
    };
    products.compute_products(cblas, host, y)
}
