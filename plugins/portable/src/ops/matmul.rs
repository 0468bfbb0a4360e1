//! Matrix products.

use oarlock_sdk::shape::broadcast_dims;
use oarlock_sdk::{Dtype, Kernel, KernelCall, OperandFlags, PluginError, Result, dtype_set, ensure};

use super::elementwise::check_work_group_count;
use super::registration::{
    FLOAT_DTYPES, arithmetic_kernel, check_output_shape, contiguous_operand, input_view, output_view,
    strided_operand,
};
use crate::argument_list::{ArgumentList, FormulaNumber};
use crate::device::GpuDevices;
use crate::gpu::Gpu;
use crate::launch::launch_variant;
use crate::operand_view::{MAX_DIMENSIONS, OperandView};
use crate::operand_walk::{OperandWalk, saturating_element_count};
use crate::source::{MatmulProgram, ProgramVariant, needs_wide_indices};

/// Side of the output tile that one work-group computes; the same as `TILE` in `kernels/matmul.c`. A tile of 64 × 64 over 256
/// work-items gives each a 4 × 4 block of accumulators, so 8 loads from local memory feed 16 multiply-adds.
const TILE_SIZE: i64 = 64;

pub(super) fn matmul_kernels<G: Gpu>() -> Vec<Kernel<GpuDevices<G>>> {
    let integers = dtype_set(&[Dtype::I32, Dtype::U32, Dtype::I64, Dtype::U64]);
    let numbers = FLOAT_DTYPES.union(integers);
    let most = MAX_DIMENSIONS as u32;
    let (number, float) =
        (strided_operand(numbers).with_dtype_group(1), strided_operand(FLOAT_DTYPES).with_dtype_group(1));
    vec![
        arithmetic_kernel("MatMul", run_matmul::<G>)
            .with_inputs([number.with_name("A").with_rank(1, most), number.with_name("B").with_rank(1, most)])
            .with_outputs([contiguous_operand(numbers).with_dtype_group(1).with_name("Y")]),
        arithmetic_kernel("Gemm", run_gemm::<G>)
            .since_version(7)
            .with_inputs([
                float.with_name("A").with_rank(2, 2),
                float.with_name("B").with_rank(2, 2),
                float.with_name("C").with_rank(0, 2).with_flags(OperandFlags::OPTIONAL),
            ])
            .with_outputs([contiguous_operand(FLOAT_DTYPES).with_dtype_group(1).with_name("Y")]),
    ]
}

/// A factor of a product: strides of its batch, rows and columns.
struct MatrixFactor<'a> {
    view: &'a OperandView,
    batch: Vec<i64>,
    dims: [i64; 2],
    steps: [i64; 2],
}

impl<'a> MatrixFactor<'a> {
    /// Splits off the matrix from the last two dimensions. A 1-D operand is a row on the left and a column on the right.
    fn new(view: &'a OperandView, is_left: bool) -> Self {
        let (dims, steps) = (&view.dims, &view.steps);
        match (dims.len(), is_left) {
            // The added dimension has the single index 0, so its step is never used.
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

    fn transpose(self) -> Self {
        let ([rows, columns], [down, across]) = (self.dims, self.steps);
        // The kernel follows any strides, so exchanging them transposes without a copy.
        Self { dims: [columns, rows], steps: [across, down], ..self }
    }

    /// Strides from matrix to matrix when the factor broadcasts to `batch`.
    fn batch_strides(&self, batch: &[i64]) -> Vec<i64> {
        // A step of 0 makes all products of the batch read the same matrix.
        let missing = batch.len() - self.batch.len();
        let own =
            self.batch.iter().zip(&self.view.steps).map(|(dim, step)| if *dim == 1 { 0 } else { *step });
        std::iter::repeat_n(0, missing).chain(own).collect()
    }
}

/// Scales of `Gemm`, and its optional third operand.
struct GemmScaling<'a> {
    alpha: f64,
    beta: f64,
    added: Option<(&'a OperandView, Vec<i64>)>,
}

fn run_matmul<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let (a, b, y) = (input_view(call, 0)?, input_view(call, 1)?, output_view(call, 0)?);
    ensure!(
        !a.dims.is_empty() && !b.dims.is_empty(),
        invalid_argument,
        "expected operands of one dimension or more, found {:?} and {:?}",
        a.dims,
        b.dims
    );
    let (left, right) = (MatrixFactor::new(&a, true), MatrixFactor::new(&b, false));
    let batch = broadcast_dims([left.batch.as_slice(), right.batch.as_slice()])?;
    let mut expected = batch.clone();
    expected.extend((a.dims.len() > 1).then_some(left.dims[0]));
    expected.extend((b.dims.len() > 1).then_some(right.dims[1]));
    check_depth(&left, &right)?;
    check_output_shape(&expected, &y)?;
    launch_matmul(gpus, call, &left, &right, None, &batch, &y)
}

fn run_gemm<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let (a, b, y) = (input_view(call, 0)?, input_view(call, 1)?, output_view(call, 0)?);
    let c = call.optional_input(2)?.map(|tensor| OperandView::new(&tensor)).transpose()?;
    ensure!(
        a.dims.len() == 2 && b.dims.len() == 2,
        invalid_argument,
        "expected two matrices, found {:?} and {:?}",
        a.dims,
        b.dims
    );
    let flag = |name| Ok(call.int_attribute(name)?.unwrap_or(0) != 0);
    let (left, right) = (MatrixFactor::new(&a, true), MatrixFactor::new(&b, false));
    let left = if flag("transA")? { left.transpose() } else { left };
    let right = if flag("transB")? { right.transpose() } else { right };
    check_depth(&left, &right)?;
    check_output_shape(&[left.dims[0], right.dims[1]], &y)?;
    let added = match &c {
        None => None,
        Some(c) => Some((
            c,
            c.broadcast_strides(&y.dims).ok_or_else(|| {
                let (expected, found) = (&y.dims, &c.dims);
                PluginError::invalid_argument(format!(
                    "expected a `C` that can be repeated to {expected:?}, found {found:?}"
                ))
            })?,
        )),
    };
    let scaled = GemmScaling {
        alpha: call.float_attribute("alpha")?.unwrap_or(1.0),
        beta: call.float_attribute("beta")?.unwrap_or(1.0),
        added,
    };
    launch_matmul(gpus, call, &left, &right, Some(scaled), &[], &y)
}

fn check_depth(left: &MatrixFactor<'_>, right: &MatrixFactor<'_>) -> Result<()> {
    ensure!(
        left.dims[1] == right.dims[0],
        invalid_argument,
        "expected as many columns on the left as rows on the right, found {:?} and {:?}",
        left.view.dims,
        right.view.dims
    );
    Ok(())
}

fn launch_matmul<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    left: &MatrixFactor<'_>,
    right: &MatrixFactor<'_>,
    scaled: Option<GemmScaling<'_>>,
    batch: &[i64],
    y: &OperandView,
) -> Result<()> {
    // A depth of 0 is launched all the same: the sums are empty, and the kernel has to store them.
    if y.count == 0 {
        return Ok(());
    }
    let ([m, k], [_, n]) = (left.dims, right.dims);
    let walk = OperandWalk::new(batch, &[&left.batch_strides(batch), &right.batch_strides(batch)]);
    let accesses = walk.operand_accesses();
    let added = scaled.as_ref().and_then(|scaled| scaled.added.as_ref());
    let operands: Vec<&OperandView> =
        [left.view, right.view].into_iter().chain(added.map(|(c, _)| *c)).chain([y]).collect();
    let variant = ProgramVariant::Matmul(MatmulProgram {
        dtype: y.dtype,
        a: accesses[0],
        b: accesses[1],
        a_along_depth: left.steps[1] == 1,
        b_along_depth: right.steps[0] == 1 && right.steps[1] != 1,
        is_scaled: scaled.is_some(),
        has_c: added.is_some(),
        rank: walk.rank(),
        is_wide: needs_wide_indices(operands.iter().map(|view| view.last_index())),
    });
    // No more groups than elements of the output, so the product cannot overflow.
    let groups = saturating_element_count(batch)
        * ((m + TILE_SIZE - 1) / TILE_SIZE)
        * ((n + TILE_SIZE - 1) / TILE_SIZE);
    // Without a `C` the kernel ignores these, but the struct has one layout.
    let c_steps = added.map_or([0, 0], |(_, steps)| [steps[0], steps[1]]);
    let mut arguments = ArgumentList::default().with_operands(operands).with_walk(&walk);
    if let Some(GemmScaling { alpha, beta, .. }) = scaled {
        arguments =
            arguments.with_numbers(y.dtype, &[FormulaNumber::Float(alpha), FormulaNumber::Float(beta)]);
    }
    let [a_steps, b_steps] = [left.steps, right.steps];
    let arguments = arguments
        .with_integers(&[m, n, k, a_steps[0], a_steps[1], b_steps[0], b_steps[1], c_steps[0], c_steps[1]]);
    launch_variant(gpus, call, &variant, check_work_group_count(groups)?, &arguments)
}
