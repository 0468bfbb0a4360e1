//! Diagonals of matrices: taken, filled and made, and the indices of triangles.

use oarlock_core::{Constant, Dtype, Error, Result};

use super::{TranslatorTable, add_scalar_like, int_attribute, ints_attribute};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;
use crate::import::paddle::parameters::dtype_from_number;

pub(super) const DIAGONAL_OPS: TranslatorTable = &[
    ("diag_embed", lower_diag_embed),
    ("diag_v2", lower_diag),
    ("diagonal", |importer, op| {
        let x = importer.input(op, "Input")?;
        let axes = [op.int_attribute("axis1", 0), op.int_attribute("axis2", 1)];
        let result = take_diagonal(importer, x, op.int_attribute("offset", 0), axes)?;
        importer.set_output(op, "Out", result)
    }),
    ("fill_diagonal", lower_fill_diagonal),
    ("trace", lower_trace),
    ("tril_indices", |importer, op| {
        lower_triangle(importer, op, ["rows", "cols"], |row, column| column <= row)
    }),
    ("triu_indices", |importer, op| {
        lower_triangle(importer, op, ["row", "col"], |row, column| column >= row)
    }),
];

/// Limit on the elements of the matrix whose triangle is listed.
const MAX_TRIANGLE_ELEMENTS: i64 = 1 << 20;

/// Moves two axes to the end.
fn order_with_last(rank: i64, last: [i64; 2]) -> Vec<i64> {
    (0..rank).filter(|axis| !last.contains(axis)).chain(last).collect()
}

/// The diagonal of two axes, as the last axis.
fn take_diagonal(
    importer: &mut PaddleImporter<'_>,
    x: PaddleOperand<'_>,
    offset: i64,
    axes: [i64; 2],
) -> Result<ValueId> {
    let (rank, axes) = (x.rank()?, [x.normalize_axis(axes[0])?, x.normalize_axis(axes[1])?]);
    if axes[0] == axes[1] {
        return Err(invalid_model("two different axes", axes[0]));
    }
    let order = build_attributes([("perm", ints_attribute(&order_with_last(rank, axes)))]);
    let matrices = importer.add_op_with("Transpose", &[x.id], order);
    let [rows, columns] = add_matrix_size(importer, matrices);
    // With the offset, the diagonal begins in this row and column.
    let (first_row, first_column) = (offset.saturating_neg().max(0), offset.max(0));
    let left = [(rows, first_row), (columns, first_column)].map(|(size, first)| {
        let first = importer.add_scalar(first as f64, Dtype::I64);
        first.map(|first| importer.add_op("Sub", &[size, first]))
    });
    let [left_rows, left_columns] = left;
    let length = importer.add_op("Min", &[left_rows?, left_columns?]);
    let (zero, one) = (importer.add_scalar(0.0, Dtype::I64)?, importer.add_scalar(1.0, Dtype::I64)?);
    let length = importer.add_op("Max", &[length, zero]);
    let steps = importer.add_op("Range", &[zero, length, one]);
    let step = importer.add_op("Add", &[columns, one]);
    let places = importer.add_op("Mul", &[steps, step]);
    let first_row = importer.add_scalar(first_row as f64, Dtype::I64)?;
    let first = importer.add_op("Mul", &[first_row, columns]);
    let first_column = importer.add_scalar(first_column as f64, Dtype::I64)?;
    let first = importer.add_op("Add", &[first, first_column]);
    let places = importer.add_op("Add", &[places, first]);
    let flat: Vec<i64> = (0..rank - 2).map(|_| 0).chain([-1]).collect();
    let flat = importer.add_ints(&flat);
    let flat = importer.add_op("Reshape", &[matrices, flat]);
    Ok(importer.add_op_with("Gather", &[flat, places], build_attributes([("axis", int_attribute(-1))])))
}

/// The sizes of the last two dimensions, as scalars.
fn add_matrix_size(importer: &mut PaddleImporter<'_>, matrices: ValueId) -> [ValueId; 2] {
    let shape = importer.add_op("Shape", &[matrices]);
    [-2_i64, -1].map(|axis| {
        let place = importer.add_constant(scalar(axis));
        importer.add_op("Gather", &[shape, place])
    })
}

fn scalar(value: i64) -> Constant {
    Constant::from_ints(&[value]).with_shape(&[]).unwrap_or_else(|_| Constant::from_ints(&[value]))
}

/// True on a diagonal of a matrix of the given size.
fn add_diagonal_mask(
    importer: &mut PaddleImporter<'_>,
    [rows, columns]: [ValueId; 2],
    offset: i64,
) -> Result<ValueId> {
    let (zero, one) = (importer.add_scalar(0.0, Dtype::I64)?, importer.add_scalar(1.0, Dtype::I64)?);
    let offset = importer.add_scalar(offset as f64, Dtype::I64)?;
    let rows = importer.add_op("Range", &[zero, rows, one]);
    let wanted = importer.add_op("Add", &[rows, offset]);
    let last = importer.add_ints(&[1]);
    let wanted = importer.add_op("Unsqueeze", &[wanted, last]);
    let columns = importer.add_op("Range", &[zero, columns, one]);
    Ok(importer.add_op("Equal", &[wanted, columns]))
}

/// Matrices with the last dimension on a diagonal, and `other` elsewhere.
fn make_diagonal<'m>(
    importer: &mut PaddleImporter<'m>,
    x: PaddleOperand<'m>,
    offset: i64,
    other: f64,
) -> Result<ValueId> {
    let rank = x.rank()?;
    let pads: Vec<i64> = (0..2 * rank - 1).map(|_| 0).chain([offset.saturating_abs()]).collect();
    let pads = importer.add_ints(&pads);
    let long = importer.add_op("Pad", &[x.id, pads]);
    let size = importer.add_op("Shape", &[long]);
    let last = importer.add_constant(scalar(-1));
    let size = importer.add_op("Gather", &[size, last]);
    let mask = add_diagonal_mask(importer, [size, size], offset)?;
    // Above the main diagonal the row says which element it is, below it the column.
    let axis = importer.add_ints(&[if offset < 0 { -2 } else { -1 }]);
    let spread = importer.add_op("Unsqueeze", &[long, axis]);
    let other = add_scalar_like(importer, x, other)?;
    Ok(importer.add_op("Where", &[mask, spread, other]))
}

fn lower_diag<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, offset) = (importer.input(op, "X")?, op.int_attribute("offset", 0));
    let result = match x.rank()? {
        1 => make_diagonal(importer, x, offset, op.float_attribute("padding_value", 0.0))?,
        2 => take_diagonal(importer, x, offset, [0, 1])?,
        rank => return Err(invalid_model("one or two dimensions", rank)),
    };
    importer.set_output(op, "Out", result)
}

fn lower_diag_embed<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "Input")?;
    let rank = x.rank()? + 1;
    let axes = [("dim1", -2), ("dim2", -1)].map(|(name, default)| {
        let axis = op.int_attribute(name, default);
        if axis < 0 { axis.saturating_add(rank) } else { axis }
    });
    if axes[0] == axes[1] || axes.iter().any(|axis| !(0..rank).contains(axis)) {
        return Err(invalid_model(format!("two of {rank} axes"), format!("{axes:?}")));
    }
    let matrices = make_diagonal(importer, x, op.int_attribute("offset", 0), 0.0)?;
    // The inverse of moving these axes to the end.
    let order = order_with_last(rank, axes);
    let mut back: Vec<i64> = (0..rank).collect();
    back.sort_by_key(|place| order[*place as usize]);
    let result =
        importer.add_op_with("Transpose", &[matrices], build_attributes([("perm", ints_attribute(&back))]));
    importer.set_output(op, "Out", result)
}

fn lower_fill_diagonal<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    if x.rank()? != 2 || op.bool_attribute("wrap", false) {
        return Err(Error::unimplemented("expected a matrix whose diagonal ends in it, found another"));
    }
    let size = add_matrix_size(importer, x.id);
    let mask = add_diagonal_mask(importer, size, op.int_attribute("offset", 0))?;
    let value = add_scalar_like(importer, x, op.float_attribute("value", 0.0))?;
    let result = importer.add_op("Where", &[mask, value, x.id]);
    importer.set_output(op, "Out", result)
}

fn lower_trace<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "Input")?;
    let axes = [op.int_attribute("axis1", 0), op.int_attribute("axis2", 1)];
    let diagonal = take_diagonal(importer, x, op.int_attribute("offset", 0), axes)?;
    let last = importer.add_ints(&[-1]);
    let result = importer.add_op_with(
        "ReduceSum",
        &[diagonal, last],
        build_attributes([("keepdims", int_attribute(0))]),
    );
    super::set_scalar_output(importer, op, "Out", result)
}

/// Rows and columns of the elements of a triangle, written out.
fn lower_triangle<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    names: [&str; 2],
    is_inside: fn(i64, i64) -> bool,
) -> Result<()> {
    let [rows, columns] = names.map(|name| op.int_attribute(name, 0));
    let offset = op.int_attribute("offset", 0);
    if rows < 0 || columns < 0 || rows.saturating_mul(columns) > MAX_TRIANGLE_ELEMENTS {
        let most = format!("a matrix of at most {MAX_TRIANGLE_ELEMENTS} elements");
        return Err(invalid_model(most, format!("{rows} rows of {columns}")));
    }
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let (rows, columns): (Vec<i64>, Vec<i64>) =
        places.filter(|(row, column)| is_inside(row.saturating_add(offset), *column)).unzip();
    let shape = [2, rows.len() as i64];
    let made = importer.add_constant(Constant::from_ints(&[rows, columns].concat()).with_shape(&shape)?);
    let dtype = dtype_from_number(i32::try_from(op.int_attribute("dtype", 3)).unwrap_or(-1))?;
    let made = importer.add_cast(made, dtype);
    importer.set_output(op, "out", made)
}
