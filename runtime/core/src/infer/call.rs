//! What rules read of a call, with errors that name the operand or the attribute.

use std::fmt;

use super::fact::{Dim, Fact, Listed};
use super::output::Shape;
use super::{Inference, values};
use crate::{Attribute, Attributes, Constant, Dtype, Error, Result, schema, shape};

/// A call, as its rule sees it.
pub(super) struct Call<'a> {
    inference: &'a Inference<'a>,
}

impl<'a> Call<'a> {
    pub(super) fn new(inference: &'a Inference<'a>) -> Self {
        Self { inference }
    }

    pub(super) fn op(&self) -> &'a str {
        self.inference.op
    }

    pub(super) fn version(&self) -> u32 {
        self.inference.version
    }

    /// How many outputs are wanted.
    pub(super) fn output_count(&self) -> usize {
        self.inference.outputs.len()
    }

    pub(super) fn input_count(&self) -> usize {
        self.inference.inputs.len()
    }

    /// An input, where it is not left out.
    pub(super) fn given(&self, input: usize) -> Option<&'a Fact> {
        self.inference.inputs.get(input)?.as_ref()
    }

    /// An input that must be there.
    pub(super) fn input(&self, input: usize) -> Result<&'a Fact> {
        self.given(input).ok_or_else(|| self.wrong(input, "a tensor", "none"))
    }

    /// The dimensions of an input that must be there; none where their number is not known.
    pub(super) fn dims(&self, input: usize) -> Result<Option<&'a [Dim]>> {
        Ok(self.input(input)?.dims.as_deref())
    }

    /// The shape of an input that must be there, to go on with.
    pub(super) fn shape(&self, input: usize) -> Result<Shape> {
        Ok(self.input(input)?.dims.clone())
    }

    /// The dimensions of an input that must have this many.
    pub(super) fn dims_of_rank<const RANK: usize>(&self, input: usize) -> Result<Option<[Dim; RANK]>> {
        let Some(dims) = self.dims(input)? else { return Ok(None) };
        let known = <[Dim; RANK]>::try_from(dims);
        known.map(Some).map_err(|_| self.wrong(input, format!("{RANK} dimensions"), Listed(dims)))
    }

    /// The dimensions of an input that must have at least this many.
    pub(super) fn dims_of_at_least(&self, input: usize, rank: usize) -> Result<Option<&'a [Dim]>> {
        let dims = self.dims(input)?;
        match dims {
            Some(dims) if dims.len() < rank => {
                Err(self.wrong(input, format!("at least {rank} dimensions"), Listed(dims)))
            }
            _ => Ok(dims),
        }
    }

    /// Checks that an input has these dimensions, where it is given and as far as both are known.
    pub(super) fn expect_dims(&self, input: usize, expected: &[Dim]) -> Result<()> {
        let Some(found) = self.given(input).and_then(|fact| fact.dims.as_deref()) else { return Ok(()) };
        let agrees = found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| a.agrees(*b));
        if agrees {
            return Ok(());
        }
        Err(self.wrong(input, format!("the shape {}", Listed(expected)), Listed(found)))
    }

    /// Checks that an input has one element, where it is given.
    pub(super) fn expect_one_element(&self, input: usize) -> Result<()> {
        let Some(found) = self.given(input).and_then(|fact| fact.dims.as_deref()) else { return Ok(()) };
        if found.iter().all(|dim| dim.agrees(Dim::Known(1))) {
            return Ok(());
        }
        Err(self.wrong(input, "one element", Listed(found)))
    }

    /// How many elements a list has, which is an input that must be there and have one dimension.
    pub(super) fn list_length(&self, input: usize) -> Result<Dim> {
        Ok(self.dims_of_rank::<1>(input)?.map_or(Dim::Unknown, |[length]| length))
    }

    /// The integers in an input that must be there, where they are known.
    pub(super) fn ints(&self, input: usize) -> Result<Option<Vec<i64>>> {
        let Some(value) = &self.input(input)?.value else { return Ok(None) };
        values::ints(value).map_err(self.blame(input))
    }

    /// The numbers in an input that must be there, where they are known.
    pub(super) fn floats(&self, input: usize) -> Result<Option<Vec<f64>>> {
        let Some(value) = &self.input(input)?.value else { return Ok(None) };
        values::floats(value).map_err(self.blame(input))
    }

    /// The one integer in an input that must be there, where it is known.
    pub(super) fn int_value(&self, input: usize) -> Result<Dim> {
        self.expect_one_element(input)?;
        match self.ints(input)?.as_deref() {
            Some([value]) => Ok(Dim::Known(*value)),
            Some(found) => Err(self.wrong(input, "one element", found.len())),
            None => Ok(Dim::Unknown),
        }
    }

    /// An error about an input.
    #[cold]
    pub(super) fn wrong(&self, input: usize, expected: impl fmt::Display, found: impl fmt::Display) -> Error {
        Error::invalid_argument(format!("expected {expected}, found {found}")).of_operand(self.operand(input))
    }

    /// An error that came of looking at an input.
    pub(super) fn blame(&self, input: usize) -> impl Fn(Error) -> Error + '_ {
        move |error| error.of_operand(self.operand(input))
    }

    /// What messages call an input.
    fn operand(&self, input: usize) -> String {
        let Inference { domain, op, version, .. } = *self.inference;
        let schema = schema::find(domain, op, version);
        schema.map_or_else(|_| format!("input {input}"), |schema| schema.operand_name(input))
    }

    /// The dimension of an input of known rank that an attribute means.
    pub(super) fn axis(&self, name: &str, default: i64, rank: usize) -> Result<usize> {
        shape::axis(self.int_or(name, default)?, rank).map_err(of_attribute(name))
    }

    fn attributes(&self) -> &'a Attributes {
        self.inference.attributes
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&'a Attribute> {
        self.attributes().get(name)
    }

    pub(super) fn int(&self, name: &str) -> Result<Option<i64>> {
        self.attributes().int(name)
    }

    pub(super) fn int_or(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// An integer that must be there and more than 0.
    pub(super) fn positive(&self, name: &str) -> Result<i64> {
        match self.int(name)? {
            Some(value) if value > 0 => Ok(value),
            Some(value) => Err(wrong_attribute(name, "more than 0", value)),
            None => Err(wrong_attribute(name, "an integer", "none")),
        }
    }

    /// Whether an attribute that is 0 or 1 is 1.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool> {
        Ok(self.int_or(name, default.into())? != 0)
    }

    pub(super) fn int_list(&self, name: &str) -> Result<Option<&'a [i64]>> {
        self.attributes().ints(name)
    }

    pub(super) fn float(&self, name: &str) -> Result<Option<f64>> {
        self.attributes().float(name)
    }

    pub(super) fn float_list(&self, name: &str) -> Result<Option<&'a [f64]>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Floats(floats)) => Ok(Some(floats)),
            Some(other) => Err(wrong_attribute(name, "floats", other.kind())),
        }
    }

    pub(super) fn text(&self, name: &str, default: &'static str) -> Result<&'a str> {
        Ok(self.attributes().string(name)?.unwrap_or(default))
    }

    pub(super) fn constant(&self, name: &str) -> Result<Option<&'a Constant>> {
        self.attributes().tensor(name)
    }

    /// The dtype behind the number in an attribute.
    pub(super) fn dtype(&self, name: &str) -> Result<Option<Dtype>> {
        let Some(number) = self.int(name)? else { return Ok(None) };
        let known = Dtype::from_onnx(number);
        known
            .map(Some)
            .ok_or_else(|| wrong_attribute(name, "the number of a dtype that tensors can have", number))
    }

    /// Checks what no rule has to expect: that no size is below 0, and no rank more than can be.
    pub(super) fn check_inputs(&self) -> Result<()> {
        for input in 0..self.input_count() {
            let Some(dims) = self.given(input).and_then(|fact| fact.dims.as_deref()) else { continue };
            if dims.len() > shape::MOST_DIMENSIONS {
                let expected = format!("at most {} dimensions", shape::MOST_DIMENSIONS);
                return Err(self.wrong(input, expected, dims.len()));
            }
            if dims.iter().any(|dim| dim.known().is_some_and(|size| size < 0)) {
                return Err(self.wrong(input, "sizes of at least 0", Listed(dims)));
            }
        }
        Ok(())
    }
}

/// An error about an attribute.
#[cold]
pub(super) fn wrong_attribute(name: &str, expected: impl fmt::Display, found: impl fmt::Display) -> Error {
    Error::invalid_argument(format!("expected {expected}, found {found}"))
        .of_operand(format!("attribute `{name}`"))
}

/// An error that came of looking at an attribute.
pub(super) fn of_attribute(name: &str) -> impl Fn(Error) -> Error {
    move |error| error.of_operand(format!("attribute `{name}`"))
}

/// The dimensions that a list of axes means, each at most once.
pub(super) fn axes(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    let mut found = Vec::new();
    for axis in axes {
        let axis = shape::axis(*axis, rank)?;
        if found.contains(&axis) {
            return Err(Error::invalid_argument(format!("expected every axis once, found {axes:?}")));
        }
        found.push(axis);
    }
    Ok(found)
}
