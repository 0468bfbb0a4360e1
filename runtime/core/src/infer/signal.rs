//! Fourier transforms, and the windows and mel weights that go with them.

use super::context::{InferenceContext, blame_attribute};
use super::fact::{PartialDim, PartialDims};
use super::output::{InferredOutput, single_output};
use super::rule::{InferenceRule, LATEST, rule};
use crate::{Dtype, Error, Result, shape};

pub(super) const RULES: &[InferenceRule] = &[
    rule("DFT", 17, 19, &[1], infer_dft_by_attribute),
    rule("DFT", 20, LATEST, &[1, 2], infer_dft_by_input),
    rule("STFT", 17, LATEST, &[1, 3], infer_stft),
    rule("BlackmanWindow HammingWindow HannWindow", 17, LATEST, &[0], infer_signal_window),
    rule("MelWeightMatrix", 17, LATEST, &[0, 1], infer_mel_weights),
];

fn infer_dft_by_attribute(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    infer_dft(call, PartialDim::Known(call.int_attribute_or("axis", 1)?), blame_attribute("axis"))
}

fn infer_dft_by_input(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let axis = if call.optional_input(2).is_some() { call.input_int(2)? } else { PartialDim::Known(-2) };
    infer_dft(call, axis, call.blame_input(2))
}

/// The last dimension contains the real and the imaginary part.
fn infer_dft(
    call: &InferenceContext<'_>,
    axis: PartialDim,
    blame: impl Fn(Error) -> Error,
) -> Result<Vec<InferredOutput>> {
    let length = stated_length(call, 1)?;
    let Some(dims) = call.dims_of_at_least(0, 2)? else { return single_output(None) };
    let (is_inverse, is_onesided) =
        (call.flag_attribute("inverse", false)?, call.flag_attribute("onesided", false)?);
    let last = dims.len() - 1;
    let parts = dims[last];
    if !parts.may_equal(PartialDim::Known(1)) && !parts.may_equal(PartialDim::Known(2)) {
        return Err(call.input_error(0, "a last dimension of 1 or 2", parts));
    }
    let mut output = PartialDims::from_slice(dims);
    // The inverse of a one-sided spectrum is a real signal.
    output[last] = PartialDim::Known(if is_inverse && is_onesided { 1 } else { 2 });
    let PartialDim::Known(axis) = axis else {
        output.iter_mut().take(last).for_each(|dim| *dim = PartialDim::Unknown);
        return single_output(output);
    };
    let axis = shape::resolve_axis(axis, dims.len()).map_err(&blame)?;
    if axis == last {
        return Err(blame(Error::out_of_range("expected an axis before the last one, found the last one")));
    }
    let length = match length {
        Some(length) => length,
        None if is_inverse && is_onesided => dims[axis].try_sub(1)?.try_mul(2)?,
        None => dims[axis],
    };
    output[axis] = if is_onesided && !is_inverse { length.try_div(2)?.try_add(1)? } else { length };
    if output[axis].known_size().is_some_and(|size| size < 0) {
        return Err(call.input_error(0, format!("more than nothing along axis {axis}"), dims[axis]));
    }
    single_output(output)
}

/// A length given by an optional input.
fn stated_length(call: &InferenceContext<'_>, input: usize) -> Result<Option<PartialDim>> {
    if call.optional_input(input).is_none() {
        return Ok(None);
    }
    let length = call.input_int(input)?;
    if length.known_size().is_some_and(|length| length < 1) {
        return Err(call.input_error(input, "at least 1", length));
    }
    Ok(Some(length))
}

fn infer_stft(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let (batches, length) = match call.dims_of_at_least(0, 2)? {
        // The standard requires a last dimension of 1 for real signals, but exporters leave it out.
        Some([batches, length] | [batches, length, _]) => (*batches, *length),
        Some(other) => return Err(call.input_error(0, "2 or 3 dimensions", other.len())),
        None => (PartialDim::Unknown, PartialDim::Unknown),
    };
    call.input(1)?;
    let step = stated_length(call, 1)?.unwrap_or(PartialDim::Unknown);
    let window = if call.optional_input(2).is_some() { Some(call.list_length(2)?) } else { None };
    let frame = match (stated_length(call, 3)?, window) {
        (Some(stated), Some(window)) if !stated.may_equal(window) => {
            return Err(call.input_error(2, format!("{stated} elements, as input 3 specifies"), window));
        }
        (Some(stated), window) => stated.refine_with(window.unwrap_or(PartialDim::Unknown)),
        (None, window) => window.unwrap_or(length),
    };
    let room = length.try_sub(frame)?;
    if room.known_size().is_some_and(|room| room < 0) {
        return Err(call.input_error(
            0,
            format!("a signal of at least {frame}, the length of a frame"),
            length,
        ));
    }
    let bins = if call.flag_attribute("onesided", true)? { frame.try_div(2)?.try_add(1)? } else { frame };
    single_output([batches, room.try_div(step)?.try_add(1)?, bins, PartialDim::Known(2)].as_slice())
}

fn output_dtype(call: &InferenceContext<'_>) -> Result<Dtype> {
    Ok(call.dtype_attribute("output_datatype")?.unwrap_or(Dtype::F32))
}

fn infer_signal_window(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let size = call.input_int(0)?;
    if size.known_size().is_some_and(|size| size < 0) {
        return Err(call.input_error(0, "at least 0", size));
    }
    single_output(InferredOutput::from([size].as_slice()).with_dtype(output_dtype(call)?))
}

fn infer_mel_weights(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    (0..5).try_for_each(|input| call.input(input).and_then(|_| call.expect_one_element(input)))?;
    let bins = stated_length(call, 0)?.unwrap_or(PartialDim::Unknown);
    let length = stated_length(call, 1)?.unwrap_or(PartialDim::Unknown);
    single_output(
        InferredOutput::from([length.try_div(2)?.try_add(1)?, bins].as_slice())
            .with_dtype(output_dtype(call)?),
    )
}
