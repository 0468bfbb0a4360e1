//! Slices, gathers and lookups.

use oarlock_core::{Attributes, Constant, Dtype, Result};

use super::{TranslatorTable, int_attribute, known_int, known_list, list_operand};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

pub(super) const INDEXING_OPS: TranslatorTable = &[
    ("frame", lower_frame),
    ("gather", lower_gather),
    ("gather_nd", lower_gather_nd),
    ("index_sample", |importer, op| lower_gather_along(importer, op, "X", 1, "Out")),
    ("index_select", lower_index_select),
    ("lookup_table", |importer, op| lower_lookup(importer, op, true)),
    ("lookup_table_v2", |importer, op| lower_lookup(importer, op, false)),
    ("masked_fill", |importer, op| {
        let operands = ["Mask", "Value", "X"].map(|name| importer.input(op, name).map(|operand| operand.id));
        let [mask, value, x] = operands;
        let result = importer.add_op("Where", &[mask?, value?, x?]);
        importer.set_output(op, "Out", result)
    }),
    ("one_hot", |importer, op| lower_one_hot(importer, op, true)),
    ("one_hot_v2", |importer, op| lower_one_hot(importer, op, false)),
    ("slice", lower_slice),
    ("strided_slice", lower_slice),
    ("take_along_axis", |importer, op| {
        lower_gather_along(importer, op, "Input", op.int_attribute("Axis", 0), "Result")
    }),
    ("where", lower_select),
];

/// Overlapping windows of a signal, along the first or the last axis.
fn lower_frame<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let (length, step) = (op.int_attribute("frame_length", 1), op.int_attribute("hop_length", 1));
    let axis = x.normalize_axis(op.int_attribute("axis", -1))?;
    if length < 1 || step < 1 || axis != 0 && axis != x.rank()? - 1 {
        return Err(invalid_model("windows along the first or last axis", format!("axis {axis}")));
    }
    let none = importer.add_ints(&[]);
    let size = super::slice_shape(importer, x, axis, axis + 1);
    let size = importer.add_op("Reshape", &[size, none]);
    let [zero, one, length, step] = [0, 1, length, step].map(|number| {
        let number = importer.add_ints(&[number]);
        importer.add_op("Reshape", &[number, none])
    });
    // The last window begins where a whole one is left.
    let end = importer.add_op("Sub", &[size, length]);
    let end = importer.add_op("Add", &[end, one]);
    let starts = importer.add_op("Range", &[zero, end, step]);
    let places = importer.add_op("Range", &[zero, length, one]);
    // Along the first axis windows come first, along the last one their elements.
    let (rows, columns) = if op.int_attribute("axis", -1) == 0 { (starts, places) } else { (places, starts) };
    let axes = importer.add_ints(&[1]);
    let rows = importer.add_op("Unsqueeze", &[rows, axes]);
    let places = importer.add_op("Add", &[rows, columns]);
    let along = build_attributes([("axis", int_attribute(axis))]);
    let result = importer.add_op_with("Gather", &[x.id, places], along);
    importer.set_output(op, "Out", result)
}

fn lower_gather<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, index) = (importer.input(op, "X")?.id, importer.input(op, "Index")?);
    let axis = known_int(importer, op, "axis", "Axis", 0)?;
    // Older programs have the indices as a column.
    let index = match index.dims {
        Some([_, 1]) => {
            let last = importer.add_ints(&[-1]);
            importer.add_op("Squeeze", &[index.id, last])
        }
        _ => index.id,
    };
    let result =
        importer.add_op_with("Gather", &[x, index], build_attributes([("axis", int_attribute(axis))]));
    importer.set_output(op, "Out", result)
}

/// Gathers an element for each index, along one axis.
fn lower_gather_along<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    from: &str,
    axis: i64,
    output: &str,
) -> Result<()> {
    let (x, index) = (importer.input(op, from)?, importer.input(op, "Index")?.id);
    let axis = x.normalize_axis(axis)?;
    let result = importer.add_op_with(
        "GatherElements",
        &[x.id, index],
        build_attributes([("axis", int_attribute(axis))]),
    );
    importer.set_output(op, output, result)
}

/// Embedding lookup. The older op has indices with a trailing dimension of 1. One row may be defined as zeros.
fn lower_lookup<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, is_old: bool) -> Result<()> {
    let (table, mut ids) = (importer.input(op, "W")?.id, importer.input(op, "Ids")?.id);
    let last = importer.add_ints(&[-1]);
    if is_old {
        ids = importer.add_op_with("Squeeze", &[ids, last], Attributes::new());
    }
    let mut result =
        importer.add_op_with("Gather", &[table, ids], build_attributes([("axis", int_attribute(0))]));
    let padding = op.int_attribute("padding_idx", -1);
    if padding >= 0 {
        let of_ids = importer.input_dtype(op, "Ids").unwrap_or(Dtype::I64);
        let padding = importer.add_scalar(padding as f64, of_ids)?;
        let zero = importer.add_scalar(0.0, importer.output_dtype(op, "Out").unwrap_or(Dtype::F32))?;
        let is_padding = importer.add_op_with("Equal", &[ids, padding], Attributes::new());
        let is_padding = importer.add_op_with("Unsqueeze", &[is_padding, last], Attributes::new());
        result = importer.add_op_with("Where", &[is_padding, zero, result], Attributes::new());
    }
    importer.set_output(op, "Out", result)
}

fn lower_slice<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let input = importer.input(op, "Input")?;
    let mut result = slice_operand(importer, op, input, input.id)?;
    let dropped = op.ints_attribute("decrease_axis");
    if !dropped.is_empty() {
        let dropped = importer.add_ints(&dropped);
        result = importer.add_op("Squeeze", &[result, dropped]);
    }
    super::set_scalar_output(importer, op, "Out", result)
}

/// Applies the slice of an op to `from`, which has the shape of `x`.
pub(super) fn slice_operand<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    x: PaddleOperand<'m>,
    from: ValueId,
) -> Result<ValueId> {
    let starts = list_operand(importer, op, "starts", "StartsTensor", "StartsTensorList")?;
    let axes = op.ints_attribute("axes");
    let name = if op.ints_attribute("steps").is_empty() { "strides" } else { "steps" };
    let steps = known_list(importer, op, name, "StridesTensor", "StridesTensorList")?;
    let mut stops = known_list(importer, op, "ends", "EndsTensor", "EndsTensorList")?;
    if let (Some(stops), Some(steps)) = (&mut stops, &steps) {
        for (at, (stop, step)) in stops.iter_mut().zip(steps).enumerate() {
            // Later versions interpret negative steps as ONNX does.
            if *step < 0 && *stop < 0 && importer.is_older_than(3) {
                let size = axes.get(at).and_then(|axis| x.dimension_size(*axis));
                *stop = backward_slice_end(*stop, size);
            }
        }
    }
    let stops = match stops {
        Some(stops) => importer.add_ints(&stops),
        None => list_operand(importer, op, "ends", "EndsTensor", "EndsTensorList")?,
    };
    let mut operands = vec![from, starts, stops, importer.add_ints(&axes)];
    if steps.as_ref().is_none_or(|steps| !steps.is_empty()) {
        operands.push(match steps {
            Some(steps) => importer.add_ints(&steps),
            None => list_operand(importer, op, name, "StridesTensor", "StridesTensorList")?,
        });
    }
    Ok(importer.add_op("Slice", &operands))
}

/// Converts the end of a slice with a negative step: -1 means before the first element, which no other value reaches.
fn backward_slice_end(stop: i64, size: Option<i64>) -> i64 {
    match size {
        _ if stop == -1 => i64::MIN,
        Some(size) if stop.saturating_add(size) < 0 => 0,
        _ => stop,
    }
}

fn lower_select<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let mut operands = Vec::new();
    for name in ["Condition", "X", "Y"] {
        operands.push(importer.input(op, name)?.id);
    }
    let result = importer.add_op_with("Where", &operands, Attributes::new());
    importer.set_output(op, "Out", result)
}

fn lower_gather_nd<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, index) = (importer.input(op, "X")?.id, importer.input(op, "Index")?.id);
    // ONNX requires i64 indices.
    let index = importer.add_op_with(
        "Cast",
        &[index],
        build_attributes([("to", int_attribute(Dtype::I64.onnx_number()))]),
    );
    let result = importer.add_op_with("GatherND", &[x, index], Attributes::new());
    importer.set_output(op, "Out", result)
}

fn lower_index_select<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, index) = (importer.input(op, "X")?.id, importer.input(op, "Index")?.id);
    let result = importer.add_op_with(
        "Gather",
        &[x, index],
        build_attributes([("axis", int_attribute(op.int_attribute("dim", 0)))]),
    );
    importer.set_output(op, "Out", result)
}

/// One-hot encoding. The older op has indices with a trailing dimension of 1. Indices become i64, as the depth is: in exported
/// models, onnxruntime takes few other combinations.
fn lower_one_hot<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, is_old: bool) -> Result<()> {
    let mut x = importer.input(op, "X")?.id;
    if is_old {
        let last = importer.add_ints(&[-1]);
        x = importer.add_op("Squeeze", &[x, last]);
    }
    if importer.input_dtype(op, "X") != Some(Dtype::I64) {
        x = importer.add_cast(x, Dtype::I64);
    }
    let depth = known_int(importer, op, "depth", "depth_tensor", 1)?;
    let depth = importer.add_ints(&[depth]);
    let values = super::encode_numbers(&[0.0, 1.0], Dtype::F32)?;
    let values = importer.add_constant(Constant::new(Dtype::F32, &[2], values)?);
    let result =
        importer.add_op_with("OneHot", &[x, depth, values], build_attributes([("axis", int_attribute(-1))]));
    importer.set_output(op, "Out", result)
}
