//! `Gemm`: alpha times a product of two matrices, either of which may be turned, plus beta times a third.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_sdk::{
    Call, Error, Host, Kernel, Operand, OperandFlags, Result, Tensor, dispatch, ensure, family,
};

use crate::cblas::{Cblas, Number};
use crate::product::{Addend, Products, Side, Sizes};
use crate::shape::Batch;
use crate::{Library, SCORE, size};

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
        let settings = Settings::new(call)?;
        settings.sizes(&call.input(0)?, &call.input(1)?)?.supported()?;
        settings.supported()?;
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

/// The attributes.
#[derive(Clone, Copy)]
struct Settings {
    alpha: f64,
    beta: f64,
    /// Which operands are turned.
    a_turned: bool,
    b_turned: bool,
}

impl Settings {
    fn new(call: &Call<'_>) -> Result<Self> {
        let is_set = |name| Ok::<_, Error>(call.int(name)?.unwrap_or(0) != 0);
        Ok(Self {
            alpha: call.float("alpha")?.unwrap_or(1.0),
            beta: call.float("beta")?.unwrap_or(1.0),
            a_turned: is_set("transA")?,
            b_turned: is_set("transB")?,
        })
    }

    /// With an alpha of 0, libraries do not look at the operands, so that NaN and infinity in them would be lost.
    fn supported(&self) -> Result<()> {
        let vanishes = self.alpha as f32 == 0.0;
        ensure!(
            !vanishes,
            unimplemented,
            "expected an `alpha` that does not vanish in f32, found {}",
            self.alpha
        );
        Ok(())
    }

    fn sizes(&self, a: &Tensor<'_>, b: &Tensor<'_>) -> Result<Sizes> {
        let ([a_rows, a_columns], [b_rows, b_columns]) = (a.dims(), b.dims()) else {
            let (a, b) = (a.dims(), b.dims());
            return Err(Error::invalid_argument(format!(
                "expected two matrices, found shapes {a:?} and {b:?}"
            )));
        };
        let (rows, depth) = if self.a_turned { (a_columns, a_rows) } else { (a_rows, a_columns) };
        let (b_depth, columns) = if self.b_turned { (b_columns, b_rows) } else { (b_rows, b_columns) };
        ensure!(
            depth == b_depth,
            invalid_argument,
            "expected as many steps in A as in B, found {depth} and {b_depth} in shapes {:?} and {:?}",
            a.dims(),
            b.dims()
        );
        Ok(Sizes { rows: size(*rows)?, columns: size(*columns)?, depth: size(*depth)? })
    }
}

fn run<T: Number>(cblas: &Cblas, host: &Host, call: &Call<'_>) -> Result<()> {
    let settings = Settings::new(call)?;
    let (a, b, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let sizes = settings.sizes(&a, &b)?;
    let expected = [sizes.rows as i64, sizes.columns as i64];
    ensure!(
        y.dims() == expected,
        invalid_argument,
        "expected an output of shape {expected:?}, found {:?}",
        y.dims()
    );
    let beta = T::of(settings.beta);
    let addend = call.optional_input(2)?.map(|c| addend(&c, &sizes, beta)).transpose()?;
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let (a, b, y) = unsafe { (a.elements()?, b.elements()?, y.elements_mut()?) };
    let products = Products {
        sizes,
        left: Side { elements: a, turned: settings.a_turned },
        right: Side { elements: b, turned: settings.b_turned },
        batch: Batch::ONE,
        alpha: T::of(settings.alpha),
        addend,
    };
    products.compute(cblas, host, y)
}

/// The third matrix, which is repeated along dimensions of 1.
fn addend<'a, T: Number>(c: &Tensor<'a>, sizes: &Sizes, beta: T) -> Result<Addend<'a, T>> {
    let (rows, columns) = match c.dims() {
        [] => (1, 1),
        [columns] => (1, *columns),
        [rows, columns] => (*rows, *columns),
        dims => return Err(Error::invalid_argument(format!("expected C as a matrix, found shape {dims:?}"))),
    };
    let fits = |found: i64, size: usize| found == 1 || usize::try_from(found) == Ok(size);
    ensure!(
        fits(rows, sizes.rows) && fits(columns, sizes.columns),
        invalid_argument,
        "expected C to be repeatable to [{}, {}], found shape {:?}",
        sizes.rows,
        sizes.columns,
        c.dims()
    );
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let elements = unsafe { c.elements() }?;
    let step = |dim: i64, step: i64| if dim == 1 { 0 } else { step as usize };
    Ok(Addend { elements, row_step: step(rows, columns), column_step: step(columns, 1), beta })
}
