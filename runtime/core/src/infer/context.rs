//! Access to the operands and attributes of a call, with errors that name the invalid one.

use std::fmt;

use super::fact::{DisplayDims, PartialDim, TensorFact};
use super::output::PartialShape;
use super::{InferenceRequest, values};
use crate::{Attribute, Attributes, Constant, Dtype, Error, Result, schema, shape};

/// The call that a rule sees.
pub(super) struct InferenceContext<'a> {
    inference: &'a InferenceRequest<'a>,
}

impl<'a> InferenceContext<'a> {
    pub(super) fn new(inference: &'a InferenceRequest<'a>) -> Self {
        Self { inference }
    }

    pub(super) fn op(&self) -> &'a str {
        self.inference.op
    }

    pub(super) fn version(&self) -> u32 {
        self.inference.version
    }

    /// The number of outputs to infer.
    pub(super) fn output_count(&self) -> usize {
        self.inference.outputs.len()
    }

    pub(super) fn input_count(&self) -> usize {
        self.inference.inputs.len()
    }

    /// An input; `None` if it is left out.
    pub(super) fn optional_input(&self, input: usize) -> Option<&'a TensorFact> {
        self.inference.inputs.get(input)?.as_ref()
    }

    /// A required input.
    pub(super) fn input(&self, input: usize) -> Result<&'a TensorFact> {
        self.optional_input(input).ok_or_else(|| self.input_error(input, "a tensor", "none"))
    }

    /// The dimensions of a required input; `None` if its rank is unknown.
    pub(super) fn input_dims(&self, input: usize) -> Result<Option<&'a [PartialDim]>> {
        Ok(self.input(input)?.dims.as_deref())
    }

    /// An owned copy of the dimensions of a required input, for rules that derive the output from it.
    pub(super) fn input_shape(&self, input: usize) -> Result<PartialShape> {
        Ok(self.input(input)?.dims.clone())
    }

    /// The dimensions of a required input; an error if its rank is known and different.
    pub(super) fn dims_of_rank<const RANK: usize>(&self, input: usize) -> Result<Option<[PartialDim; RANK]>> {
        let Some(dims) = self.input_dims(input)? else { return Ok(None) };
        let known = <[PartialDim; RANK]>::try_from(dims);
        known.map(Some).map_err(|_| self.input_error(input, format!("{RANK} dimensions"), DisplayDims(dims)))
    }

    /// The dimensions of a required input; an error if its rank is known and lower.
    pub(super) fn dims_of_at_least(&self, input: usize, rank: usize) -> Result<Option<&'a [PartialDim]>> {
        let dims = self.input_dims(input)?;
        match dims {
            Some(dims) if dims.len() < rank => {
                Err(self.input_error(input, format!("at least {rank} dimensions"), DisplayDims(dims)))
            }
            _ => Ok(dims),
        }
    }

    /// Checks the dimensions of an input. Left-out inputs and unknown sizes pass.
    pub(super) fn expect_dims(&self, input: usize, expected: &[PartialDim]) -> Result<()> {
        let Some(found) = self.optional_input(input).and_then(|fact| fact.dims.as_deref()) else {
            return Ok(());
        };
        let agrees =
            found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| a.may_equal(*b));
        if agrees {
            return Ok(());
        }
        Err(self.input_error(input, format!("the shape {}", DisplayDims(expected)), DisplayDims(found)))
    }

    /// Checks that an input has one element. A left-out input passes.
    pub(super) fn expect_one_element(&self, input: usize) -> Result<()> {
        let Some(found) = self.optional_input(input).and_then(|fact| fact.dims.as_deref()) else {
            return Ok(());
        };
        if found.iter().all(|dim| dim.may_equal(PartialDim::Known(1))) {
            return Ok(());
        }
        Err(self.input_error(input, "one element", DisplayDims(found)))
    }

    /// The length of a required input that must have rank 1.
    pub(super) fn list_length(&self, input: usize) -> Result<PartialDim> {
        Ok(self.dims_of_rank::<1>(input)?.map_or(PartialDim::Unknown, |[length]| length))
    }

    /// The elements of a required input as integers, if they are known.
    pub(super) fn input_ints(&self, input: usize) -> Result<Option<Vec<i64>>> {
        let Some(value) = &self.input(input)?.value else { return Ok(None) };
        values::read_ints(value).map_err(self.blame_input(input))
    }

    /// The elements of a required input as floating-point numbers, if they are known.
    pub(super) fn input_floats(&self, input: usize) -> Result<Option<Vec<f64>>> {
        let Some(value) = &self.input(input)?.value else { return Ok(None) };
        values::read_floats(value).map_err(self.blame_input(input))
    }

    /// The single integer in a required input, if it is known.
    pub(super) fn input_int(&self, input: usize) -> Result<PartialDim> {
        self.expect_one_element(input)?;
        match self.input_ints(input)?.as_deref() {
            Some([value]) => Ok(PartialDim::Known(*value)),
            Some(found) => Err(self.input_error(input, "one element", found.len())),
            None => Ok(PartialDim::Unknown),
        }
    }

    #[cold]
    pub(super) fn input_error(
        &self,
        input: usize,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Error {
        Error::invalid_argument(format!("expected {expected}, found {found}"))
            .with_operand(self.operand_name(input))
    }

    /// Adds the name of an input to errors.
    pub(super) fn blame_input(&self, input: usize) -> impl Fn(Error) -> Error + '_ {
        move |error| error.with_operand(self.operand_name(input))
    }

    fn operand_name(&self, input: usize) -> String {
        let InferenceRequest { domain, op, version, .. } = *self.inference;
        let schema = schema::find_schema(domain, op, version);
        schema.map_or_else(|_| format!("input {input}"), |schema| schema.operand_name(input))
    }

    /// Resolves an axis attribute against a rank.
    pub(super) fn axis_attribute(&self, name: &str, default: i64, rank: usize) -> Result<usize> {
        shape::resolve_axis(self.int_attribute_or(name, default)?, rank).map_err(blame_attribute(name))
    }

    fn attributes(&self) -> &'a Attributes {
        self.inference.attributes
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&'a Attribute> {
        self.attributes().get(name)
    }

    pub(super) fn int_attribute(&self, name: &str) -> Result<Option<i64>> {
        self.attributes().get_int(name)
    }

    pub(super) fn int_attribute_or(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.int_attribute(name)?.unwrap_or(default))
    }

    /// A required attribute that must be greater than 0.
    pub(super) fn positive_attribute(&self, name: &str) -> Result<i64> {
        match self.int_attribute(name)? {
            Some(value) if value > 0 => Ok(value),
            Some(value) => Err(attribute_error(name, "more than 0", value)),
            None => Err(attribute_error(name, "an integer", "none")),
        }
    }

    /// An attribute that must be 0 or 1, as a bool.
    pub(super) fn flag_attribute(&self, name: &str, default: bool) -> Result<bool> {
        Ok(self.int_attribute_or(name, default.into())? != 0)
    }

    pub(super) fn ints_attribute(&self, name: &str) -> Result<Option<&'a [i64]>> {
        self.attributes().get_ints(name)
    }

    pub(super) fn float_attribute(&self, name: &str) -> Result<Option<f64>> {
        self.attributes().get_float(name)
    }

    pub(super) fn floats_attribute(&self, name: &str) -> Result<Option<&'a [f64]>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Floats(floats)) => Ok(Some(floats)),
            Some(other) => Err(attribute_error(name, "floats", other.kind_name())),
        }
    }

    pub(super) fn string_attribute(&self, name: &str, default: &'static str) -> Result<&'a str> {
        Ok(self.attributes().get_string(name)?.unwrap_or(default))
    }

    pub(super) fn tensor_attribute(&self, name: &str) -> Result<Option<&'a Constant>> {
        self.attributes().get_tensor(name)
    }

    /// An attribute that contains the ONNX number of a dtype.
    pub(super) fn dtype_attribute(&self, name: &str) -> Result<Option<Dtype>> {
        let Some(number) = self.int_attribute(name)? else { return Ok(None) };
        let known = Dtype::from_onnx(number);
        known
            .map(Some)
            .ok_or_else(|| attribute_error(name, "the number of a dtype that tensors can have", number))
    }

    /// Rejects negative sizes and excessive ranks, so that rules need not check for them.
    pub(super) fn check_inputs(&self) -> Result<()> {
        for input in 0..self.input_count() {
            let Some(dims) = self.optional_input(input).and_then(|fact| fact.dims.as_deref()) else {
                continue;
            };
            if dims.len() > shape::MAX_RANK {
                let expected = format!("at most {} dimensions", shape::MAX_RANK);
                return Err(self.input_error(input, expected, dims.len()));
            }
            if dims.iter().any(|dim| dim.known_size().is_some_and(|size| size < 0)) {
                return Err(self.input_error(input, "sizes of at least 0", DisplayDims(dims)));
            }
        }
        Ok(())
    }
}

#[cold]
pub(super) fn attribute_error(name: &str, expected: impl fmt::Display, found: impl fmt::Display) -> Error {
    Error::invalid_argument(format!("expected {expected}, found {found}"))
        .with_operand(format!("attribute `{name}`"))
}

/// Adds the name of an attribute to errors.
pub(super) fn blame_attribute(name: &str) -> impl Fn(Error) -> Error {
    move |error| error.with_operand(format!("attribute `{name}`"))
}

/// Resolves a list of axes, and rejects duplicates.
pub(super) fn resolve_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    let mut found = Vec::new();
    for axis in axes {
        let axis = shape::resolve_axis(*axis, rank)?;
        if found.contains(&axis) {
            return Err(Error::invalid_argument(format!("expected every axis once, found {axes:?}")));
        }
        found.push(axis);
    }
    Ok(found)
}
