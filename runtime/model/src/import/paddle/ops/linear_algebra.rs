//! Linear algebra: decompositions, systems of equations, and products with a structure.

use oarlock_core::{Attributes, Dtype, Result};

use super::{TranslatorTable, add_scalar_like, int_attribute, text_attribute};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

pub(super) const LINEAR_ALGEBRA_OPS: TranslatorTable = &[
    ("bilinear_tensor_product", lower_bilinear),
    ("cholesky", lower_cholesky),
    ("cross", lower_cross),
    ("determinant", |importer, op| {
        let x = importer.input(op, "Input")?.id;
        let result = importer.add_op("Det", &[x]);
        importer.set_output(op, "Out", result)
    }),
    ("dist", lower_distance),
    ("inverse", lower_inverse),
    ("kron", lower_kronecker),
    ("matrix_power", lower_power),
    ("multi_dot", lower_chain),
    ("slogdeterminant", lower_log_determinant),
    ("solve", |importer, op| {
        let x = importer.input(op, "X")?.id;
        lower_solve(importer, op, x)
    }),
    ("triangular_solve", lower_triangular_solve),
];

/// Limit on the products that a power of a matrix becomes.
const MAX_MATRIX_POWER: i64 = 64;
/// Marks that the axis of a cross product is the first of three elements.
const DEFAULT_CROSS_AXIS: i64 = 9;

fn lower_bilinear<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let operands = ["X", "Weight", "Y"].map(|name| importer.input(op, name).map(|operand| operand.id));
    let [x, weight, y] = operands;
    let equation = build_attributes([("equation", text_attribute("bi,kij,bj->bk"))]);
    let mut result = importer.add_op_with("Einsum", &[x?, weight?, y?], equation);
    if let Some(bias) = importer.optional_input(op, "Bias")? {
        result = importer.add_op("Add", &[result, bias.id]);
    }
    importer.set_output(op, "Out", result)
}

fn lower_cholesky<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let mut result = importer.add_oarlock_op("Cholesky", &[x.id], Attributes::new());
    if op.bool_attribute("upper", false) {
        result = transpose_last(importer, result, x.rank()?);
    }
    importer.set_output(op, "Out", result)
}

/// Swaps the last two dimensions.
fn transpose_last(importer: &mut PaddleImporter<'_>, x: ValueId, rank: i64) -> ValueId {
    let order: Vec<i64> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
    importer.add_op_with("Transpose", &[x], build_attributes([("perm", super::ints_attribute(&order))]))
}

fn lower_cross<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = (importer.input(op, "X")?, importer.input(op, "Y")?);
    let axis = match op.int_attribute("dim", DEFAULT_CROSS_AXIS) {
        DEFAULT_CROSS_AXIS => {
            let dims = x.dims.unwrap_or_default();
            let found = dims.iter().position(|size| *size == 3);
            found.ok_or_else(|| invalid_model("a dimension of 3", format!("the shape {dims:?}")))? as i64
        }
        axis => x.normalize_axis(axis)?,
    };
    let mut turned = |operand: PaddleOperand<'m>, order: [i64; 3]| {
        let order = importer.add_ints(&order);
        let axis = build_attributes([("axis", int_attribute(axis))]);
        importer.add_op_with("Gather", &[operand.id, order], axis)
    };
    let [first, second] = [[[1, 2, 0], [2, 0, 1]], [[2, 0, 1], [1, 2, 0]]];
    let factors = [turned(x, first[0]), turned(y, first[1]), turned(x, second[0]), turned(y, second[1])];
    let products = [[factors[0], factors[1]], [factors[2], factors[3]]];
    let products = products.map(|factors| importer.add_op("Mul", &factors));
    let result = importer.add_op("Sub", &products);
    importer.set_output(op, "Out", result)
}

/// The norm of a difference.
fn lower_distance<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, y) = (importer.input(op, "X")?, importer.input(op, "Y")?);
    let difference = importer.add_op("Sub", &[x.id, y.id]);
    let size = importer.add_op("Abs", &[difference]);
    let power = op.float_attribute("p", 2.0);
    let reduced = |importer: &mut PaddleImporter<'m>, name: &str, from: ValueId| {
        importer.add_op_with(name, &[from], build_attributes([("keepdims", int_attribute(0))]))
    };
    let result = if power == 0.0 {
        let zero = add_scalar_like(importer, x, 0.0)?;
        let differs = importer.add_op("Greater", &[size, zero]);
        let differs = importer.add_cast(differs, x.dtype());
        reduced(importer, "ReduceSum", differs)
    } else if power == f64::INFINITY {
        reduced(importer, "ReduceMax", size)
    } else if power == f64::NEG_INFINITY {
        reduced(importer, "ReduceMin", size)
    } else {
        let (exponent, root) =
            (add_scalar_like(importer, x, power)?, add_scalar_like(importer, x, 1.0 / power)?);
        let powers = importer.add_op("Pow", &[size, exponent]);
        let sum = reduced(importer, "ReduceSum", powers);
        importer.add_op("Pow", &[sum, root])
    };
    super::set_scalar_output(importer, op, "Out", result)
}

/// Identity matrices in the shape of others.
fn add_identity(importer: &mut PaddleImporter<'_>, like: ValueId, dtype: Dtype) -> Result<ValueId> {
    let (one, shape) = (importer.add_scalar(1.0, dtype)?, importer.add_op("Shape", &[like]));
    let ones = importer.add_op("Expand", &[one, shape]);
    let upper = importer.add_op("Trilu", &[ones]);
    Ok(importer.add_op_with("Trilu", &[upper], build_attributes([("upper", int_attribute(0))])))
}

fn add_inverse(importer: &mut PaddleImporter<'_>, x: ValueId, dtype: Dtype) -> Result<ValueId> {
    let identity = add_identity(importer, x, dtype)?;
    Ok(importer.add_oarlock_op("Solve", &[x, identity], Attributes::new()))
}

fn lower_inverse<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "Input")?;
    let result = add_inverse(importer, x.id, x.dtype())?;
    importer.set_output(op, "Output", result)
}

/// Multiplies each element of X by all of Y, which makes blocks of Y.
fn lower_kronecker<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let operands = [importer.input(op, "X")?, importer.input(op, "Y")?];
    let ranks = [operands[0].rank()?, operands[1].rank()?];
    let rank = ranks[0].max(ranks[1]);
    let aligned = [0, 1].map(|index| {
        let missing: Vec<i64> = (0..rank - ranks[index]).collect();
        let axes = importer.add_ints(&missing);
        if missing.is_empty() {
            operands[index].id
        } else {
            importer.add_op("Unsqueeze", &[operands[index].id, axes])
        }
    });
    let shapes = aligned.map(|operand| importer.add_op("Shape", &[operand]));
    let spread = [0, 1].map(|index| {
        // X gets a dimension after each of its own, and Y one before.
        let axes: Vec<i64> = (0..rank).map(|axis| 2 * axis + 1 - index as i64).collect();
        let axes = importer.add_ints(&axes);
        importer.add_op("Unsqueeze", &[aligned[index], axes])
    });
    let products = importer.add_op("Mul", &spread);
    let shape = importer.add_op("Mul", &shapes);
    let result = importer.add_op("Reshape", &[products, shape]);
    importer.set_output(op, "Out", result)
}

fn lower_power<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, power) = (importer.input(op, "X")?, op.int_attribute("n", 1));
    if !(-MAX_MATRIX_POWER..=MAX_MATRIX_POWER).contains(&power) {
        return Err(invalid_model(format!("`n` of at most {MAX_MATRIX_POWER}"), power));
    }
    let base = if power < 0 { add_inverse(importer, x.id, x.dtype())? } else { x.id };
    let result = match power {
        0 => add_identity(importer, x.id, x.dtype())?,
        _ => (1..power.abs()).fold(base, |product, _| importer.add_op("MatMul", &[product, base])),
    };
    importer.set_output(op, "Out", result)
}

fn lower_chain<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let operands = importer.inputs(op, "X")?;
    let product = operands
        .into_iter()
        .map(|operand| operand.id)
        .reduce(|left, right| importer.add_op("MatMul", &[left, right]));
    let product = product.ok_or_else(|| invalid_model("matrices", "none"))?;
    importer.set_output(op, "Out", product)
}

/// The sign of a determinant and the logarithm of its size, one after the other.
fn lower_log_determinant<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "Input")?.id;
    let made = importer.add_oarlock_node("SlogDet", &[x], Attributes::new(), 2);
    let axis = importer.add_ints(&[0]);
    let parts = [0, 1].map(|index| importer.add_op("Unsqueeze", &[made[index], axis]));
    let result = importer.add_op_with("Concat", &parts, build_attributes([("axis", int_attribute(0))]));
    importer.set_output(op, "Out", result)
}

/// Solves a system of equations with the given matrices; a right-hand side may be a vector.
fn lower_solve<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, matrices: ValueId) -> Result<()> {
    let right = importer.input(op, "Y")?;
    if right.rank()? > 1 {
        let result = importer.add_oarlock_op("Solve", &[matrices, right.id], Attributes::new());
        return importer.set_output(op, "Out", result);
    }
    let axis = importer.add_ints(&[-1]);
    let column = importer.add_op("Unsqueeze", &[right.id, axis]);
    let result = importer.add_oarlock_op("Solve", &[matrices, column], Attributes::new());
    let result = importer.add_op("Squeeze", &[result, axis]);
    importer.set_output(op, "Out", result)
}

/// Only one triangle of the matrices counts, and with `unitriangular` not its diagonal, which is 1 then.
fn lower_triangular_solve<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let (is_upper, is_unit) = (op.bool_attribute("upper", true), op.bool_attribute("unitriangular", false));
    let upper = build_attributes([("upper", int_attribute(is_upper.into()))]);
    let distance = i64::from(is_unit) * if is_upper { 1 } else { -1 };
    let distance = importer.add_scalar(distance as f64, Dtype::I64)?;
    let mut triangle = importer.add_op_with("Trilu", &[x.id, distance], upper);
    if is_unit {
        let identity = add_identity(importer, x.id, x.dtype())?;
        triangle = importer.add_op("Add", &[triangle, identity]);
    }
    if op.bool_attribute("transpose", false) {
        triangle = transpose_last(importer, triangle, x.rank()?);
    }
    lower_solve(importer, op, triangle)
}
