//! Windows over pictures, of a size or of a number.

use oarlock_core::{Attributes, Error, Result};

use super::spatial::{extents, first, last, padding};
use super::{Table, int, ints, known_list};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::program::{Program, with};
use crate::import::place::wrong;

/// The most parts that a dimension is cut into where the parts are not equal; each is a few nodes.
const MOST_PARTS: i64 = 64;

pub(super) const OPS: Table = &[
    ("max_pool2d_with_index", |program, op| indexed(program, op, 2)),
    ("max_pool3d_with_index", |program, op| indexed(program, op, 3)),
    ("pool2d", |program, op| pool(program, op, 2)),
    ("pool3d", |program, op| pool(program, op, 3)),
];

fn pool<'m>(program: &mut Program<'m>, op: &'m OpDesc, count: usize) -> Result<()> {
    op.expect("pooling_type", &["avg", "max"])?;
    let x = program.input(op, "X")?;
    let is_average = op.text("pooling_type") == "avg";
    let window = known_list(program, op, "ksize", "KSize", "KSize")?.ok_or_else(|| {
        Error::unimplemented("expected a window of a known size, found one that is computed")
    })?;
    let from = first(program, op, "data_format", x)?;
    let is_adaptive = op.flag("adaptive", false);
    let name = if is_average { "AveragePool" } else { "MaxPool" };
    let made = if op.flag("global_pooling", false) || (is_adaptive && window.iter().all(|size| *size == 1)) {
        program.apply(if is_average { "GlobalAveragePool" } else { "GlobalMaxPool" }, &[from])
    } else if is_adaptive {
        let sizes = extents(op, "data_format", x)?;
        match equal_parts(&sizes, &window) {
            Some(window) => {
                let attributes = with([("kernel_shape", ints(&window)), ("strides", ints(&window))]);
                program.node(name, &[from], attributes)
            }
            None => parts(program, from, &window, if is_average { "ReduceMean" } else { "ReduceMax" })?,
        }
    } else {
        let mut attributes = attributes(op, &window, count)?;
        if is_average {
            attributes.set("count_include_pad", int((!op.flag("exclusive", true)).into()));
        }
        program.node(name, &[from], attributes)
    };
    let made = last(program, op, "data_format", x, made)?;
    program.give(op, "Out", made)
}

fn attributes(op: &OpDesc, window: &[i64], count: usize) -> Result<Attributes> {
    Ok(with([
        ("kernel_shape", ints(window)),
        ("strides", ints(&op.ints("strides"))),
        ("ceil_mode", int(op.flag("ceil_mode", false).into())),
        padding(op, count)?,
    ]))
}

/// The windows that cut dimensions into so many equal parts, where there are such.
fn equal_parts(sizes: &[i64], counts: &[i64]) -> Option<Vec<i64>> {
    let window =
        |(size, count): (&i64, &i64)| (*size > 0 && *count > 0 && size % count == 0).then(|| size / count);
    let windows: Option<Vec<i64>> = sizes.iter().zip(counts).map(window).collect();
    windows.filter(|windows| windows.len() == counts.len())
}

/// Cuts each dimension behind the second into parts that may overlap by one place, and makes one of each.
fn parts(program: &mut Program, from: ValueId, counts: &[i64], name: &str) -> Result<ValueId> {
    let mut made = from;
    for (at, count) in counts.iter().enumerate() {
        if !(1..=MOST_PARTS).contains(count) {
            return Err(Error::unimplemented(format!("expected 1 to {MOST_PARTS} parts, found {count}")));
        }
        let axis = at as i64 + 2;
        let size = program.node("Shape", &[from], with([("start", int(axis)), ("end", int(axis + 1))]));
        let axes = program.ints(&[axis]);
        let whole = program.ints(&[*count]);
        let mut each = Vec::new();
        for part in 0..*count {
            // From where the part begins, rounded down, to where it ends, rounded up.
            let (begin, end) = (program.ints(&[part]), program.ints(&[part + 1]));
            let before_next = program.ints(&[count - 1]);
            let begin = program.apply("Mul", &[size, begin]);
            let begin = program.apply("Div", &[begin, whole]);
            let end = program.apply("Mul", &[size, end]);
            let end = program.apply("Add", &[end, before_next]);
            let end = program.apply("Div", &[end, whole]);
            let window = program.apply("Slice", &[made, begin, end, axes]);
            each.push(program.node(name, &[window, axes], with([("keepdims", int(1))])));
        }
        made = program.node("Concat", &each, with([("axis", int(axis))]));
    }
    Ok(made)
}

/// The largest of each window, and its place within its own picture, where ONNX counts from the first one.
fn indexed<'m>(program: &mut Program<'m>, op: &'m OpDesc, count: usize) -> Result<()> {
    let x = program.input(op, "X")?;
    let rank = x.rank()?;
    let mut window = op.ints("ksize");
    if op.flag("adaptive", false) {
        // The places of what is in windows that overlap are nothing that ONNX counts.
        let made = parts(program, x.id, &window, "ReduceMax")?;
        return program.give(op, "Out", made);
    }
    if op.flag("global_pooling", false) {
        window = x.dims.and_then(|dims| dims.get(2..)).unwrap_or_default().to_vec();
        if window.iter().any(|size| *size < 0) {
            return Err(Error::unimplemented("expected a picture of a known size, found another"));
        }
    }
    if window.len() != count {
        return Err(wrong(format!("a window of {count} sizes"), window.len()));
    }
    let made = program.nodes("MaxPool", &[Some(x.id)], attributes(op, &window, count)?, 2);
    program.give(op, "Out", made[0])?;
    let sizes = super::sizes(program, x, 2, rank);
    let size = program.node("ReduceProd", &[sizes], with([("keepdims", int(1))]));
    let place = program.apply("Mod", &[made[1], size]);
    let place = program.cast(place, oarlock_core::Dtype::I32);
    program.give(op, "Mask", place)
}
