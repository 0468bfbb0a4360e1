//! `Gemm`: alpha times a product of two matrices, either of which may be turned, plus beta times a third.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_products::{Batch, Extent, Gemm};
use oarlock_sdk::{Call, Host, Kernel, Operand, OperandFlags, Result, Tensor, dispatch, ensure, family};

use crate::cblas::{Cblas, Number};
use crate::product::{Addend, Products, Side, supported};
use crate::{Library, SCORE};

/// The first version of the op whose third matrix is repeated as in all ops.
const SINCE: u32 = 7;

pub(crate) fn kernel(library: &Arc<Library>, host: Host) -> Kernel<()> {
    let (library, asked) = (Arc::clone(library), Arc::clone(library));
    let number = Operand::new(family::FLOATING).group(1);
    Kernel::new("Gemm", move |(): &(), call| {
        let cblas = library.cblas()?;
        dispatch!(call.output(0)?.dtype(), floating, T => run::<T>(cblas, &host, call))
    })
    .supports(move |(), call| {
        let settings = Gemm::new(call)?;
        supported(&settings.extent(call.input(0)?.dims(), call.input(1)?.dims())?)?;
        check_alpha(settings.alpha)?;
        asked.cblas().map(drop)
    })
    .since(SINCE)
    .device_type("cpu")
    .score(SCORE)
    .inputs([
        number.named("A").rank(2, 2),
        number.named("B").rank(2, 2),
        number.named("C").rank(0, 2).flags(OperandFlags::OPTIONAL),
    ])
    .outputs([number.named("Y").rank(2, 2)])
}

/// With an alpha of 0, libraries do not look at the operands, so that NaN and infinity in them would be lost.
fn check_alpha(alpha: f64) -> Result<()> {
    let vanishes = alpha as f32 == 0.0;
    ensure!(!vanishes, unimplemented, "expected an `alpha` that does not vanish in f32, found {alpha}");
    Ok(())
}

fn run<T: Number>(cblas: &Cblas, host: &Host, call: &Call<'_>) -> Result<()> {
    let settings = Gemm::new(call)?;
    let (a, b, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let extent = settings.extent(a.dims(), b.dims())?;
    extent.check_output(y.dims())?;
    let beta = T::of(settings.beta);
    let addend = call.optional_input(2)?.map(|c| addend(&c, &extent, beta)).transpose()?;
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let (a, b, y) = unsafe { (a.elements()?, b.elements()?, y.elements_mut()?) };
    let products = Products {
        extent,
        left: Side { elements: a, turned: settings.a_turned },
        right: Side { elements: b, turned: settings.b_turned },
        batch: Batch::ONE,
        alpha: T::of(settings.alpha),
        addend,
    };
    products.compute(cblas, host, y)
}

/// The third matrix, which is repeated along dimensions of 1.
fn addend<'a, T: Number>(c: &Tensor<'a>, extent: &Extent, beta: T) -> Result<Addend<'a, T>> {
    let [row_step, column_step] = extent.addend_steps(c.dims())?;
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    Ok(Addend { elements: unsafe { c.elements() }?, row_step, column_step, beta })
}
