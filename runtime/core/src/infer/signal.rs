//! Fourier transforms, and the windows and weights that go with them.

use super::call::{Call, of_attribute};
use super::fact::{Dim, PartialDims};
use super::output::{Output, one};
use super::table::{LATEST, Rule, rule};
use crate::{Dtype, Error, Result, shape};

pub(super) const RULES: &[Rule] = &[
    rule("DFT", 17, 19, &[1], transform_by_attribute),
    rule("DFT", 20, LATEST, &[1, 2], transform_by_input),
    rule("STFT", 17, LATEST, &[1, 3], short_transform),
    rule("BlackmanWindow HammingWindow HannWindow", 17, LATEST, &[0], window),
    rule("MelWeightMatrix", 17, LATEST, &[0, 1], mel_weights),
];

fn transform_by_attribute(call: &Call<'_>) -> Result<Vec<Output>> {
    transform(call, Dim::Known(call.int_or("axis", 1)?), of_attribute("axis"))
}

fn transform_by_input(call: &Call<'_>) -> Result<Vec<Output>> {
    let axis = if call.given(2).is_some() { call.int_value(2)? } else { Dim::Known(-2) };
    transform(call, axis, call.blame(2))
}

/// The last dimension holds the real and the imaginary part.
fn transform(call: &Call<'_>, axis: Dim, blame: impl Fn(Error) -> Error) -> Result<Vec<Output>> {
    let length = length_value(call, 1)?;
    let Some(dims) = call.dims_of_at_least(0, 2)? else { return one(None) };
    let (is_inverse, is_onesided) = (call.flag("inverse", false)?, call.flag("onesided", false)?);
    let last = dims.len() - 1;
    let parts = dims[last];
    if !parts.agrees(Dim::Known(1)) && !parts.agrees(Dim::Known(2)) {
        return Err(call.wrong(0, "a last dimension of 1 or 2", parts));
    }
    let mut output = PartialDims::from_slice(dims);
    // Half of a spectrum becomes a signal that is real.
    output[last] = Dim::Known(if is_inverse && is_onesided { 1 } else { 2 });
    let Dim::Known(axis) = axis else {
        output.iter_mut().take(last).for_each(|dim| *dim = Dim::Unknown);
        return one(output);
    };
    let axis = shape::axis(axis, dims.len()).map_err(&blame)?;
    if axis == last {
        return Err(blame(Error::out_of_range("expected an axis before the last one, found the last one")));
    }
    let length = match length {
        Some(length) => length,
        None if is_inverse && is_onesided => dims[axis].minus(1)?.times(2)?,
        None => dims[axis],
    };
    output[axis] = if is_onesided && !is_inverse { length.over(2)?.plus(1)? } else { length };
    if output[axis].known().is_some_and(|size| size < 0) {
        return Err(call.wrong(0, format!("more than nothing along axis {axis}"), dims[axis]));
    }
    one(output)
}

/// A length that an input states, if it is there.
fn length_value(call: &Call<'_>, input: usize) -> Result<Option<Dim>> {
    if call.given(input).is_none() {
        return Ok(None);
    }
    let length = call.int_value(input)?;
    if length.known().is_some_and(|length| length < 1) {
        return Err(call.wrong(input, "at least 1", length));
    }
    Ok(Some(length))
}

fn short_transform(call: &Call<'_>) -> Result<Vec<Output>> {
    let (batches, length) = match call.dims_of_at_least(0, 2)? {
        // The standard wants a last dimension of 1 for real signals, which exporters leave out.
        Some([batches, length] | [batches, length, _]) => (*batches, *length),
        Some(other) => return Err(call.wrong(0, "2 or 3 dimensions", other.len())),
        None => (Dim::Unknown, Dim::Unknown),
    };
    call.input(1)?;
    let step = length_value(call, 1)?.unwrap_or(Dim::Unknown);
    let window = if call.given(2).is_some() { Some(call.list_length(2)?) } else { None };
    let frame = match (length_value(call, 3)?, window) {
        (Some(stated), Some(window)) if !stated.agrees(window) => {
            return Err(call.wrong(2, format!("{stated} elements, as input 3 says"), window));
        }
        (Some(stated), window) => stated.or(window.unwrap_or(Dim::Unknown)),
        (None, window) => window.unwrap_or(length),
    };
    let room = length.minus(frame)?;
    if room.known().is_some_and(|room| room < 0) {
        return Err(call.wrong(0, format!("a signal of at least {frame}, the length of a frame"), length));
    }
    let bins = if call.flag("onesided", true)? { frame.over(2)?.plus(1)? } else { frame };
    one([batches, room.over(step)?.plus(1)?, bins, Dim::Known(2)].as_slice())
}

fn output_dtype(call: &Call<'_>) -> Result<Dtype> {
    Ok(call.dtype("output_datatype")?.unwrap_or(Dtype::F32))
}

fn window(call: &Call<'_>) -> Result<Vec<Output>> {
    let size = call.int_value(0)?;
    if size.known().is_some_and(|size| size < 0) {
        return Err(call.wrong(0, "at least 0", size));
    }
    one(Output::from([size].as_slice()).of_dtype(output_dtype(call)?))
}

fn mel_weights(call: &Call<'_>) -> Result<Vec<Output>> {
    (0..5).try_for_each(|input| call.input(input).and_then(|_| call.expect_one_element(input)))?;
    let bins = length_value(call, 0)?.unwrap_or(Dim::Unknown);
    let length = length_value(call, 1)?.unwrap_or(Dim::Unknown);
    one(Output::from([length.over(2)?.plus(1)?, bins].as_slice()).of_dtype(output_dtype(call)?))
}
