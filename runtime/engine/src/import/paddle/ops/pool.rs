//! Windows over pictures, of a size or of a number.

use oarlock_core::{Attributes, Error, Result};

use super::convolution::{padding_attribute, restore_channels, spatial_sizes, to_channels_first};
use super::{TranslatorTable, int_attribute, ints_attribute, known_list};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;

/// The most parts that a dimension is cut into where the parts are not equal; each is a few nodes.
const MOST_POOL_PARTS: i64 = 64;

pub(super) const POOL_OPS: TranslatorTable = &[
    ("max_pool2d_with_index", |program, op| lower_max_pool_with_index(program, op, 2)),
    ("max_pool3d_with_index", |program, op| lower_max_pool_with_index(program, op, 3)),
    ("pool2d", |program, op| lower_pool(program, op, 2)),
    ("pool3d", |program, op| lower_pool(program, op, 3)),
];

fn lower_pool<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc, count: usize) -> Result<()> {
    op.expect_attribute("pooling_type", &["avg", "max"])?;
    let x = program.input(op, "X")?;
    let is_average = op.text_attribute("pooling_type") == "avg";
    let window = known_list(program, op, "ksize", "KSize", "KSize")?.ok_or_else(|| {
        Error::unimplemented("expected a window of a known size, found one that is computed")
    })?;
    let from = to_channels_first(program, op, "data_format", x)?;
    let is_adaptive = op.bool_attribute("adaptive", false);
    let name = if is_average { "AveragePool" } else { "MaxPool" };
    let made = if op.bool_attribute("global_pooling", false)
        || (is_adaptive && window.iter().all(|size| *size == 1))
    {
        program.add_op(if is_average { "GlobalAveragePool" } else { "GlobalMaxPool" }, &[from])
    } else if is_adaptive {
        let sizes = spatial_sizes(op, "data_format", x)?;
        match equal_windows(&sizes, &window) {
            Some(window) => {
                let attributes = build_attributes([
                    ("kernel_shape", ints_attribute(&window)),
                    ("strides", ints_attribute(&window)),
                ]);
                program.add_op_with(name, &[from], attributes)
            }
            None => pool_parts(program, from, &window, if is_average { "ReduceMean" } else { "ReduceMax" })?,
        }
    } else {
        let mut attributes = pool_attributes(op, &window, count)?;
        if is_average {
            attributes
                .set("count_include_pad", int_attribute((!op.bool_attribute("exclusive", true)).into()));
        }
        program.add_op_with(name, &[from], attributes)
    };
    let made = restore_channels(program, op, "data_format", x, made)?;
    program.set_output(op, "Out", made)
}

fn pool_attributes(op: &OpDesc, window: &[i64], count: usize) -> Result<Attributes> {
    Ok(build_attributes([
        ("kernel_shape", ints_attribute(window)),
        ("strides", ints_attribute(&op.ints_attribute("strides"))),
        ("ceil_mode", int_attribute(op.bool_attribute("ceil_mode", false).into())),
        padding_attribute(op, count)?,
    ]))
}

/// The windows that cut dimensions into so many equal parts, where there are such.
fn equal_windows(sizes: &[i64], counts: &[i64]) -> Option<Vec<i64>> {
    let window =
        |(size, count): (&i64, &i64)| (*size > 0 && *count > 0 && size % count == 0).then(|| size / count);
    let windows: Option<Vec<i64>> = sizes.iter().zip(counts).map(window).collect();
    windows.filter(|windows| windows.len() == counts.len())
}

/// Cuts each dimension behind the second into parts that may overlap by one place, and makes one of each.
fn pool_parts(program: &mut PaddleImporter, from: ValueId, counts: &[i64], name: &str) -> Result<ValueId> {
    let mut made = from;
    for (at, count) in counts.iter().enumerate() {
        if !(1..=MOST_POOL_PARTS).contains(count) {
            return Err(Error::unimplemented(format!(
                "expected 1 to {MOST_POOL_PARTS} parts, found {count}"
            )));
        }
        let axis = at as i64 + 2;
        let size = program.add_op_with(
            "Shape",
            &[from],
            build_attributes([("start", int_attribute(axis)), ("end", int_attribute(axis + 1))]),
        );
        let axes = program.add_ints(&[axis]);
        let whole = program.add_ints(&[*count]);
        let mut each = Vec::new();
        for part in 0..*count {
            // From where the part begins, rounded down, to where it ends, rounded up.
            let (begin, end) = (program.add_ints(&[part]), program.add_ints(&[part + 1]));
            let before_next = program.add_ints(&[count - 1]);
            let begin = program.add_op("Mul", &[size, begin]);
            let begin = program.add_op("Div", &[begin, whole]);
            let end = program.add_op("Mul", &[size, end]);
            let end = program.add_op("Add", &[end, before_next]);
            let end = program.add_op("Div", &[end, whole]);
            let window = program.add_op("Slice", &[made, begin, end, axes]);
            each.push(program.add_op_with(
                name,
                &[window, axes],
                build_attributes([("keepdims", int_attribute(1))]),
            ));
        }
        made = program.add_op_with("Concat", &each, build_attributes([("axis", int_attribute(axis))]));
    }
    Ok(made)
}

/// The largest of each window, and its place within its own picture, where ONNX counts from the first one.
fn lower_max_pool_with_index<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    count: usize,
) -> Result<()> {
    let x = program.input(op, "X")?;
    let rank = x.rank()?;
    let mut window = op.ints_attribute("ksize");
    if op.bool_attribute("adaptive", false) {
        // The places of what is in windows that overlap are nothing that ONNX counts.
        let made = pool_parts(program, x.id, &window, "ReduceMax")?;
        return program.set_output(op, "Out", made);
    }
    if op.bool_attribute("global_pooling", false) {
        window = x.dims.and_then(|dims| dims.get(2..)).unwrap_or_default().to_vec();
        if window.iter().any(|size| *size < 0) {
            return Err(Error::unimplemented("expected a picture of a known size, found another"));
        }
    }
    if window.len() != count {
        return Err(invalid_model(format!("a window of {count} sizes"), window.len()));
    }
    let made = program.add_node("MaxPool", &[Some(x.id)], pool_attributes(op, &window, count)?, 2);
    program.set_output(op, "Out", made[0])?;
    let sizes = super::slice_shape(program, x, 2, rank);
    let size =
        program.add_op_with("ReduceProd", &[sizes], build_attributes([("keepdims", int_attribute(1))]));
    let place = program.add_op("Mod", &[made[1], size]);
    let place = program.add_cast(place, oarlock_core::Dtype::I32);
    program.set_output(op, "Mask", place)
}
