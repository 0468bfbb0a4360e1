//! `MatMul`.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_products::MatMul;
use oarlock_sdk::{Call, Host, Kernel, Operand, Result, dispatch, ensure, family};

use crate::cblas::{Cblas, Number};
use crate::product::{MOST, Products, Side, supported};
use crate::{Library, SCORE};

pub(crate) fn kernel(library: &Arc<Library>, host: Host) -> Kernel<()> {
    let (library, asked) = (Arc::clone(library), Arc::clone(library));
    let number = Operand::new(family::FLOATING).group(1);
    Kernel::new("MatMul", move |(): &(), call| {
        let cblas = library.cblas()?;
        dispatch!(call.output(0)?.dtype(), floating, T => run::<T>(cblas, &host, call))
    })
    .supports(move |(), call| {
        supported(&MatMul::new(call.input(0)?.dims(), call.input(1)?.dims(), MOST)?.extent)?;
        asked.cblas().map(drop)
    })
    .device_type("cpu")
    .score(SCORE)
    .inputs([number.named("A").rank(1, u32::MAX), number.named("B").rank(1, u32::MAX)])
    .outputs([number.named("Y")])
}

fn run<T: Number>(cblas: &Cblas, host: &Host, call: &Call<'_>) -> Result<()> {
    let (a, b, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let shape = MatMul::new(a.dims(), b.dims(), MOST)?;
    ensure!(
        shape.output == y.dims(),
        invalid_argument,
        "expected an output of shape {:?} for inputs of {:?} and {:?}, found {:?}",
        shape.output,
        a.dims(),
        b.dims(),
        y.dims()
    );
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let (a, b, y) = unsafe { (a.elements()?, b.elements()?, y.elements_mut()?) };
    let side = |elements| Side { elements, turned: false };
    let products = Products {
        extent: shape.extent,
        left: side(a),
        right: side(b),
        batch: shape.batch,
        alpha: T::of(1.0),
        addend: None,
    };
    products.compute(cblas, host, y)
}
