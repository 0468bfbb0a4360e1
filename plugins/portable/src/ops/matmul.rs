//! Matrix products.

use oarlock_sdk::{Call, Dtype, Error, Kernel, OperandFlags, Result, dtype_set, ensure};

use super::elementwise::{broadcast, within_groups};
use super::row::{FLOATS, arithmetic, check_shape, input, output, plain, strided};
use crate::arguments::{Arguments, Number};
use crate::device::Gpus;
use crate::gpu::Gpu;
use crate::program::launch;
use crate::source::{Matmul, Variant, is_wide};
use crate::view::{MOST_DIMENSIONS, View};
use crate::walk::{Walk, product};

/// Rows and columns that one work-group computes.
const TILE: i64 = 64;

pub(super) fn kernels<G: Gpu>() -> Vec<Kernel<Gpus<G>>> {
    let integers = dtype_set(&[Dtype::I32, Dtype::U32, Dtype::I64, Dtype::U64]);
    let numbers = FLOATS.union(integers);
    let most = MOST_DIMENSIONS as u32;
    let (number, float) = (strided(numbers).group(1), strided(FLOATS).group(1));
    vec![
        arithmetic("MatMul", matmul::<G>)
            .inputs([number.named("A").rank(1, most), number.named("B").rank(1, most)])
            .outputs([plain(numbers).group(1).named("Y")]),
        arithmetic("Gemm", gemm::<G>)
            .since(7)
            .inputs([
                float.named("A").rank(2, 2),
                float.named("B").rank(2, 2),
                float.named("C").rank(0, 2).flags(OperandFlags::OPTIONAL),
            ])
            .outputs([plain(FLOATS).group(1).named("Y")]),
    ]
}

/// A factor: the steps of its batch, its rows and its columns.
struct Factor<'a> {
    view: &'a View,
    batch: Vec<i64>,
    dims: [i64; 2],
    steps: [i64; 2],
}

impl<'a> Factor<'a> {
    /// The last two dimensions are the matrix; a single one is a row on the left and a column on the right.
    fn new(view: &'a View, is_left: bool) -> Self {
        let (dims, steps) = (&view.dims, &view.steps);
        match (dims.len(), is_left) {
            (1, true) => Self { view, batch: vec![], dims: [1, dims[0]], steps: [0, steps[0]] },
            (1, false) => Self { view, batch: vec![], dims: [dims[0], 1], steps: [steps[0], 0] },
            (rank, _) => Self {
                view,
                batch: dims[..rank - 2].to_vec(),
                dims: [dims[rank - 2], dims[rank - 1]],
                steps: [steps[rank - 2], steps[rank - 1]],
            },
        }
    }

    fn transposed(self) -> Self {
        let ([rows, columns], [down, across]) = (self.dims, self.steps);
        Self { dims: [columns, rows], steps: [across, down], ..self }
    }

    /// The steps from matrix to matrix when the batch is repeated to another shape.
    fn batch_steps(&self, batch: &[i64]) -> Vec<i64> {
        let missing = batch.len() - self.batch.len();
        let own =
            self.batch.iter().zip(&self.view.steps).map(|(dim, step)| if *dim == 1 { 0 } else { *step });
        std::iter::repeat_n(0, missing).chain(own).collect()
    }
}

/// What is done to a product: its scale, and an operand with another scale that is added.
struct Scaled<'a> {
    alpha: f64,
    beta: f64,
    added: Option<(&'a View, Vec<i64>)>,
}

fn matmul<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let (a, b, y) = (input(call, 0)?, input(call, 1)?, output(call, 0)?);
    ensure!(
        !a.dims.is_empty() && !b.dims.is_empty(),
        invalid_argument,
        "expected operands of one dimension or more, found {:?} and {:?}",
        a.dims,
        b.dims
    );
    let (left, right) = (Factor::new(&a, true), Factor::new(&b, false));
    let batch = broadcast([left.batch.as_slice(), right.batch.as_slice()])?;
    let mut expected = batch.clone();
    expected.extend((a.dims.len() > 1).then_some(left.dims[0]));
    expected.extend((b.dims.len() > 1).then_some(right.dims[1]));
    check_depth(&left, &right)?;
    check_shape(&expected, &y)?;
    multiply(gpus, call, &left, &right, None, &batch, &y)
}

fn gemm<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let (a, b, y) = (input(call, 0)?, input(call, 1)?, output(call, 0)?);
    let c = call.optional_input(2)?.map(|tensor| View::new(&tensor)).transpose()?;
    ensure!(
        a.dims.len() == 2 && b.dims.len() == 2,
        invalid_argument,
        "expected two matrices, found {:?} and {:?}",
        a.dims,
        b.dims
    );
    let flag = |name| Ok(call.int(name)?.unwrap_or(0) != 0);
    let (left, right) = (Factor::new(&a, true), Factor::new(&b, false));
    let left = if flag("transA")? { left.transposed() } else { left };
    let right = if flag("transB")? { right.transposed() } else { right };
    check_depth(&left, &right)?;
    check_shape(&[left.dims[0], right.dims[1]], &y)?;
    let added = match &c {
        None => None,
        Some(c) => Some((
            c,
            c.repeated_to(&y.dims).ok_or_else(|| {
                let (expected, found) = (&y.dims, &c.dims);
                Error::invalid_argument(format!(
                    "expected a `C` that can be repeated to {expected:?}, found {found:?}"
                ))
            })?,
        )),
    };
    let scaled = Scaled {
        alpha: call.float("alpha")?.unwrap_or(1.0),
        beta: call.float("beta")?.unwrap_or(1.0),
        added,
    };
    multiply(gpus, call, &left, &right, Some(scaled), &[], &y)
}

fn check_depth(left: &Factor<'_>, right: &Factor<'_>) -> Result<()> {
    ensure!(
        left.dims[1] == right.dims[0],
        invalid_argument,
        "expected as many columns on the left as rows on the right, found {:?} and {:?}",
        left.view.dims,
        right.view.dims
    );
    Ok(())
}

fn multiply<G: Gpu>(
    gpus: &Gpus<G>,
    call: &Call<'_>,
    left: &Factor<'_>,
    right: &Factor<'_>,
    scaled: Option<Scaled<'_>>,
    batch: &[i64],
    y: &View,
) -> Result<()> {
    if y.count == 0 {
        return Ok(());
    }
    let ([m, k], [_, n]) = (left.dims, right.dims);
    let walk = Walk::new(batch, &[&left.batch_steps(batch), &right.batch_steps(batch)]);
    let accesses = walk.accesses();
    let added = scaled.as_ref().and_then(|scaled| scaled.added.as_ref());
    let operands: Vec<&View> =
        [left.view, right.view].into_iter().chain(added.map(|(c, _)| *c)).chain([y]).collect();
    let variant = Variant::Matmul(Matmul {
        dtype: y.dtype,
        a: accesses[0],
        b: accesses[1],
        a_along_depth: left.steps[1] == 1,
        b_along_depth: right.steps[0] == 1 && right.steps[1] != 1,
        is_scaled: scaled.is_some(),
        has_c: added.is_some(),
        rank: walk.rank(),
        is_wide: is_wide(operands.iter().map(|view| view.last())),
    });
    let groups = product(batch) * ((m + TILE - 1) / TILE) * ((n + TILE - 1) / TILE);
    let c_steps = added.map_or([0, 0], |(_, steps)| [steps[0], steps[1]]);
    let mut arguments = Arguments::default().operands(operands).walk(&walk);
    if let Some(Scaled { alpha, beta, .. }) = scaled {
        arguments = arguments.numbers(y.dtype, &[Number::Float(alpha), Number::Float(beta)]);
    }
    let [a_steps, b_steps] = [left.steps, right.steps];
    let arguments = arguments
        .integers(&[m, n, k, a_steps[0], a_steps[1], b_steps[0], b_steps[1], c_steps[0], c_steps[1]]);
    launch(gpus, call, &variant, within_groups(groups)?, &arguments)
}
