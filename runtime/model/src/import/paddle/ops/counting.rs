//! Counting elements, and finding them by their rank.

use oarlock_core::{Dtype, Error, Result};

use super::{TranslatorTable, add_scalar_like, int_attribute, known_int, text_attribute};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;
use crate::import::paddle::parameters::dtype_from_number;

pub(super) const COUNTING_OPS: TranslatorTable = &[
    ("bincount", lower_bin_count),
    ("histogram", lower_histogram),
    ("kthvalue", lower_kth_value),
    ("median", lower_median),
    ("searchsorted", lower_search),
    ("unique_consecutive", lower_unique_consecutive),
];

/// Adds `amounts` up at the given indices of a vector.
fn add_sums(
    importer: &mut PaddleImporter<'_>,
    length: ValueId,
    indices: ValueId,
    amounts: ValueId,
    dtype: Dtype,
) -> Result<ValueId> {
    let zero = importer.add_scalar(0.0, dtype)?;
    let zeros = importer.add_op("Expand", &[zero, length]);
    Ok(importer.add_op_with(
        "ScatterElements",
        &[zeros, indices, amounts],
        build_attributes([("reduction", text_attribute("add"))]),
    ))
}

fn lower_bin_count<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let least = known_int(importer, op, "minlength", "MinLength", 0)?;
    let indices = importer.add_cast(x.id, Dtype::I64);
    // An empty list of numbers has none above -1.
    let flat = importer.add_ints(&[-1]);
    let indices = importer.add_op("Reshape", &[indices, flat]);
    let all =
        importer.add_op_with("Concat", &[indices, flat], build_attributes([("axis", int_attribute(0))]));
    let highest = importer.add_op("ReduceMax", &[all]);
    let one = importer.add_ints(&[1]);
    let length = importer.add_op("Add", &[highest, one]);
    let least = importer.add_ints(&[least]);
    let length = importer.add_op("Max", &[length, least]);
    let (amounts, dtype) = match importer.optional_input(op, "Weights")? {
        Some(weights) => (importer.add_op("Reshape", &[weights.id, flat]), weights.dtype()),
        None => {
            let (one, shape) = (importer.add_scalar(1.0, Dtype::I64)?, importer.add_op("Shape", &[indices]));
            (importer.add_op("Expand", &[one, shape]), Dtype::I64)
        }
    };
    let result = add_sums(importer, length, indices, amounts, dtype)?;
    importer.set_output(op, "Out", result)
}

/// Counts the elements in bins of the same width. Without limits, those of the data hold.
fn lower_histogram<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, bins) = (importer.input(op, "X")?, op.int_attribute("bins", 100));
    let (low, high) = (op.float_attribute("min", 0.0), op.float_attribute("max", 0.0));
    if bins < 1 || low >= high || op.bool_attribute("density", false) {
        return Err(Error::unimplemented(
            "expected a histogram of counts between two limits, found one without limits, without bins or of densities",
        ));
    }
    let flat = importer.add_ints(&[-1]);
    let x = PaddleOperand { id: importer.add_op("Reshape", &[x.id, flat]), ..x };
    let [low_value, high_value] = [low, high].map(|limit| add_scalar_like(importer, x, limit));
    let (low_value, high_value) = (low_value?, high_value?);
    let from = importer.add_op("GreaterOrEqual", &[x.id, low_value]);
    let to = importer.add_op("LessOrEqual", &[x.id, high_value]);
    let is_inside = importer.add_op("And", &[from, to]);
    let amounts = importer.add_cast(is_inside, Dtype::I64);
    let offset = importer.add_op("Sub", &[x.id, low_value]);
    let count = add_scalar_like(importer, x, bins as f64)?;
    let scaled = importer.add_op("Mul", &[offset, count]);
    let width = importer.add_op("Sub", &[high_value, low_value]);
    let places = importer.add_op("Div", &[scaled, width]);
    // Elements outside do not count, but need an index.
    let zero = add_scalar_like(importer, x, 0.0)?;
    let places = importer.add_op("Where", &[is_inside, places, zero]);
    let places = importer.add_cast(places, Dtype::I64);
    let last = importer.add_scalar((bins - 1) as f64, Dtype::I64)?;
    let places = importer.add_op("Min", &[places, last]);
    let length = importer.add_ints(&[bins]);
    let result = add_sums(importer, length, places, amounts, Dtype::I64)?;
    importer.set_output(op, "Out", result)
}

/// The smallest `count` elements along an axis in order, with their indices.
fn add_smallest(importer: &mut PaddleImporter<'_>, x: ValueId, count: ValueId, axis: i64) -> [ValueId; 2] {
    let attributes = build_attributes([("axis", int_attribute(axis)), ("largest", int_attribute(0))]);
    let made = importer.add_node("TopK", &[Some(x), Some(count)], attributes, 2);
    [made[0], made[1]]
}

fn lower_kth_value<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, rank) = (importer.input(op, "X")?, op.int_attribute("k", 1));
    if rank < 1 {
        return Err(invalid_model("`k` of at least 1", rank));
    }
    let axis = x.normalize_axis(op.int_attribute("axis", -1))?;
    let count = importer.add_ints(&[rank]);
    let sorted = add_smallest(importer, x.id, count, axis);
    let place = importer.add_ints(&[rank - 1]);
    for (name, values) in ["Out", "Indices"].into_iter().zip(sorted) {
        let axis_attribute = build_attributes([("axis", int_attribute(axis))]);
        let mut found = importer.add_op_with("Gather", &[values, place], axis_attribute);
        if !op.bool_attribute("keepdim", false) {
            let axis = importer.add_ints(&[axis]);
            found = importer.add_op("Squeeze", &[found, axis]);
        }
        importer.set_output(op, name, found)?;
    }
    Ok(())
}

/// The element in the middle, or the mean of the two in the middle.
fn lower_median<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let (axes, keeps) = (op.ints_attribute("axis"), op.bool_attribute("keepdim", false));
    let (values, axis) = match axes[..] {
        [axis] => (x.id, x.normalize_axis(axis)?),
        [] if !keeps => {
            let flat = importer.add_ints(&[-1]);
            (importer.add_op("Reshape", &[x.id, flat]), 0)
        }
        _ => {
            return Err(Error::unimplemented(
                "expected a median along one axis or of all elements, found another",
            ));
        }
    };
    let attributes = build_attributes([("start", int_attribute(axis)), ("end", int_attribute(axis + 1))]);
    let count = importer.add_op_with("Shape", &[values], attributes);
    let [sorted, indices] = add_smallest(importer, values, count, axis);
    let (one, two) = (importer.add_ints(&[1]), importer.add_ints(&[2]));
    let before = importer.add_op("Sub", &[count, one]);
    let places = [before, count].map(|from| importer.add_op("Div", &[from, two]));
    let middle = places.map(|place| {
        importer.add_op_with("Gather", &[sorted, place], build_attributes([("axis", int_attribute(axis))]))
    });
    let mut result = middle[0];
    let squeezed = importer.add_ints(&[axis]);
    let is_element = op.text_attribute("mode") == "min";
    if is_element {
        let along = build_attributes([("axis", int_attribute(axis))]);
        let mut place = importer.add_op_with("Gather", &[indices, places[0]], along);
        if !keeps {
            place = importer.add_op("Squeeze", &[place, squeezed]);
        }
        importer.set_output(op, "Indices", place)?;
    } else {
        let sum = importer.add_op("Add", &middle);
        let half = add_scalar_like(importer, x, 0.5)?;
        result = importer.add_op("Mul", &[sum, half]);
    }
    // As in Paddle, NaN among the elements is the result.
    let rest = build_attributes([("keepdims", int_attribute(1))]);
    let not_a_number = importer.add_op("IsNaN", &[values]);
    let not_a_number = importer.add_cast(not_a_number, Dtype::I32);
    let not_a_number = importer.add_op_with("ReduceMax", &[not_a_number, squeezed], rest);
    let not_a_number = importer.add_cast(not_a_number, Dtype::Bool);
    let nan = add_scalar_like(importer, x, f64::NAN)?;
    let mut result = importer.add_op("Where", &[not_a_number, nan, result]);
    if !keeps {
        result = importer.add_op("Squeeze", &[result, squeezed]);
    }
    importer.set_output(op, "Out", result)
}

/// Where values belong in sorted rows: the number of elements before them.
fn lower_search<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (rows, values) = (importer.input(op, "SortedSequence")?, importer.input(op, "Values")?.id);
    let (column, row) = (importer.add_ints(&[-1]), importer.add_ints(&[-2]));
    let values = importer.add_op("Unsqueeze", &[values, column]);
    let rows = if rows.rank()? == 1 { rows.id } else { importer.add_op("Unsqueeze", &[rows.id, row]) };
    let name = if op.bool_attribute("right", false) { "LessOrEqual" } else { "Less" };
    let before = importer.add_op(name, &[rows, values]);
    let dtype = if op.bool_attribute("out_int32", false) { Dtype::I32 } else { Dtype::I64 };
    let before = importer.add_cast(before, dtype);
    let keeps = build_attributes([("keepdims", int_attribute(0))]);
    let result = importer.add_op_with("ReduceSum", &[before, column], keeps);
    importer.set_output(op, "Out", result)
}

/// Leaves out elements that are equal to the one before them.
fn lower_unique_consecutive<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    if !op.ints_attribute("axis").is_empty() {
        return Err(Error::unimplemented("expected single elements, found slices along an axis"));
    }
    let flat = importer.add_ints(&[-1]);
    let x = importer.input(op, "X")?.id;
    let x = importer.add_op("Reshape", &[x, flat]);
    let (zero, one, end) = (importer.add_ints(&[0]), importer.add_ints(&[1]), importer.add_ints(&[i64::MAX]));
    let after = importer.add_op("Slice", &[x, one, end]);
    let before = importer.add_op("Slice", &[x, zero, flat]);
    let same = importer.add_op("Equal", &[after, before]);
    let differs = importer.add_op("Not", &[same]);
    // The first element differs, if there is one.
    let count = importer.add_op("Shape", &[x]);
    let first = importer.add_op("Min", &[count, one]);
    let truth = importer.add_scalar(1.0, Dtype::Bool)?;
    let first = importer.add_op("Expand", &[truth, first]);
    let along = || build_attributes([("axis", int_attribute(0))]);
    let is_new = importer.add_op_with("Concat", &[first, differs], along());
    let result = importer.add_op_with("Compress", &[x, is_new], along());
    importer.set_output(op, "Out", result)?;
    let dtype = dtype_from_number(i32::try_from(op.int_attribute("dtype", 3)).unwrap_or(-1))?;
    let numbers = importer.add_cast(is_new, Dtype::I64);
    let axis = importer.add_scalar(0.0, Dtype::I64)?;
    let places = importer.add_op("CumSum", &[numbers, axis]);
    let places = importer.add_op("Sub", &[places, one]);
    let places = importer.add_cast(places, dtype);
    importer.set_output(op, "Index", places)?;
    let starts = importer.add_op("NonZero", &[is_new]);
    let starts = importer.add_op("Reshape", &[starts, flat]);
    let ends = importer.add_op("Slice", &[starts, one, end]);
    let ends = importer.add_op_with("Concat", &[ends, count], along());
    // Without elements there is an end, but no start.
    let many = importer.add_op("Shape", &[starts]);
    let ends = importer.add_op("Slice", &[ends, zero, many]);
    let counts = importer.add_op("Sub", &[ends, starts]);
    let counts = importer.add_cast(counts, dtype);
    importer.set_output(op, "Counts", counts)
}
