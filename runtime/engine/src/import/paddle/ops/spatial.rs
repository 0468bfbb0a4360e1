//! Convolutions, windows and pictures.

use oarlock_core::{Attribute, Attributes, Dtype, Error, Result};

use super::{Translate, int, ints};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::program::{Operand, Program, with};
use crate::import::place::wrong;

pub(super) fn find(name: &str) -> Option<Translate> {
    Some(match name {
        "bilinear_interp_v2" => |program, op| resize(program, op, "linear"),
        "conv2d" | "depthwise_conv2d" => |program, op| convolution(program, op, "Conv"),
        "conv2d_transpose" | "depthwise_conv2d_transpose" => {
            |program, op| convolution(program, op, "ConvTranspose")
        }
        "nearest_interp_v2" => |program, op| resize(program, op, "nearest"),
        "pool2d" => pool,
        _ => return None,
    })
}

/// The padding of two dimensions: before both and then behind both, or how it follows from the sizes.
fn padding(op: &OpDesc) -> Result<(&'static str, Attribute)> {
    op.expect("padding_algorithm", &["EXPLICIT", "SAME", "VALID"])?;
    let pads = match (op.text("padding_algorithm"), op.ints("paddings").as_slice()) {
        ("SAME", _) => return Ok(("auto_pad", Attribute::String("SAME_UPPER".into()))),
        ("VALID", _) => [0; 4],
        (_, [height, width]) => [*height, *width, *height, *width],
        (_, [top, bottom, left, right]) => [*top, *left, *bottom, *right],
        (_, other) => return Err(wrong("2 or 4 paddings", other.len())),
    };
    Ok(("pads", ints(&pads)))
}

fn convolution<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    op.expect("data_format", &["NCHW", "AnyLayout"])?;
    let (input, filter) = (program.input(op, "Input")?.id, program.input(op, "Filter")?.id);
    let bias = program.maybe(op, "Bias")?.map(|bias| bias.id);
    let operands: Vec<_> = [input, filter].into_iter().chain(bias).collect();
    let mut attributes = with([
        ("strides", ints(&op.ints("strides"))),
        ("dilations", ints(&op.ints("dilations"))),
        ("group", int(op.int("groups", 1))),
        padding(op)?,
    ]);
    for (paddle, onnx) in [("output_padding", "output_padding"), ("output_size", "output_shape")] {
        let given = op.ints(paddle);
        if !given.is_empty() {
            attributes.set(onnx, Attribute::Ints(given));
        }
    }
    let made = program.node(name, &operands, attributes);
    program.give(op, "Output", made)
}

fn pool<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect("data_format", &["NCHW", "AnyLayout"])?;
    op.expect("pooling_type", &["avg", "max"])?;
    let x = program.input(op, "X")?;
    let is_average = op.text("pooling_type") == "avg";
    let (window, is_adaptive) = (op.ints("ksize"), op.flag("adaptive", false));
    if op.flag("global_pooling", false) || (is_adaptive && window == [1, 1]) {
        let name = if is_average { "GlobalAveragePool" } else { "GlobalMaxPool" };
        let made = program.node(name, &[x.id], Attributes::new());
        return program.give(op, "Out", made);
    }
    let mut attributes = if is_adaptive {
        let window = parts(x, &window)?;
        with([("kernel_shape", ints(&window)), ("strides", ints(&window))])
    } else {
        with([
            ("kernel_shape", ints(&window)),
            ("strides", ints(&op.ints("strides"))),
            ("ceil_mode", int(op.flag("ceil_mode", false).into())),
            padding(op)?,
        ])
    };
    if is_average {
        attributes.set("count_include_pad", int((!op.flag("exclusive", true)).into()));
    }
    let made = program.node(if is_average { "AveragePool" } else { "MaxPool" }, &[x.id], attributes);
    program.give(op, "Out", made)
}

/// The windows that cut the last two dimensions into so many parts.
fn parts(x: Operand<'_>, counts: &[i64]) -> Result<Vec<i64>> {
    let sizes = x.dims.and_then(|dims| dims.last_chunk::<2>()).copied().unwrap_or([-1, -1]);
    let window =
        |(size, count): (i64, &i64)| (size > 0 && *count > 0 && size % count == 0).then(|| size / count);
    let windows: Option<Vec<i64>> = sizes.into_iter().zip(counts).map(window).collect();
    windows.filter(|windows| windows.len() == 2).ok_or_else(|| {
        Error::unimplemented(format!(
            "expected sizes that can be cut into {counts:?} equal parts, found {sizes:?}"
        ))
    })
}

fn resize<'m>(program: &mut Program<'m>, op: &'m OpDesc, mode: &str) -> Result<()> {
    op.expect("data_layout", &["NCHW", "AnyLayout"])?;
    let x = program.input(op, "X")?;
    for name in ["OutSize", "SizeTensor", "Scale"] {
        if !program.inputs(op, name)?.is_empty() {
            return Err(Error::unimplemented(format!("expected a size that is known, found `{name}`")));
        }
    }
    let places = match (op.flag("align_corners", true), mode, op.int("align_mode", 1)) {
        (true, ..) => "align_corners",
        (false, "linear", 0) => "half_pixel",
        (false, ..) => "asymmetric",
    };
    let text = |text: &str| Attribute::String(text.to_owned());
    let rounded = if places == "align_corners" { "round_prefer_ceil" } else { "floor" };
    let attributes = with([
        ("mode", text(mode)),
        ("coordinate_transformation_mode", text(places)),
        ("nearest_mode", text(rounded)),
    ]);
    let scales = op.floats("scale");
    let (height, width) = (op.int("out_h", -1), op.int("out_w", -1));
    let made = match scales.as_slice() {
        [] if height > 0 && width > 0 => {
            // The first two sizes are those of the operand.
            let shape = program.node("Shape", &[x.id], with([("start", int(0)), ("end", int(2))]));
            let size = program.ints(&[height, width]);
            let sizes = program.node("Concat", &[shape, size], with([("axis", int(0))]));
            program.nodes("Resize", &[Some(x.id), None, None, Some(sizes)], attributes, 1)[0]
        }
        [] => return Err(wrong("a size or a scale", "neither")),
        scales => {
            let scales = [1.0, 1.0, scales[0], scales[scales.len() - 1]];
            let scales = super::bytes_of(&scales, Dtype::F32)?;
            let scales = program.constant(oarlock_core::Constant::new(Dtype::F32, &[4], scales)?);
            program.nodes("Resize", &[Some(x.id), None, Some(scales)], attributes, 1)[0]
        }
    };
    program.give(op, "Out", made)
}
