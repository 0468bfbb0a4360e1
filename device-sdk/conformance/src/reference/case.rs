//! One call of an op: its inputs and attributes, and the outputs that a reference computes for it.

use oarlock_abi::Dtype;

use super::array::ReferenceArray;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AttributeValue {
    Int(i64),
    Float(f64),
    Text(&'static str),
    Ints(Vec<i64>),
}

/// The attributes of a call as a host gives them: complete, with the defaults of the op's schema.
pub(crate) type AttributeSet = Vec<(&'static str, AttributeValue)>;

/// A call to try.
#[derive(Clone, Debug)]
pub(crate) struct ReferenceCase {
    /// What is special about it, or empty.
    pub(crate) name: &'static str,
    /// `None` is an optional input that is left out.
    pub(crate) inputs: Vec<Option<ReferenceArray>>,
    pub(crate) attributes: AttributeSet,
}

impl ReferenceCase {
    pub(crate) fn new(inputs: Vec<ReferenceArray>) -> Self {
        Self { name: "", inputs: inputs.into_iter().map(Some).collect(), attributes: Vec::new() }
    }

    pub(crate) fn with_attributes(mut self, attributes: AttributeSet) -> Self {
        self.attributes = attributes;
        self
    }

    pub(crate) fn with_absent_input(mut self) -> Self {
        self.inputs.push(None);
        self
    }

    pub(crate) fn with_input(mut self, input: ReferenceArray) -> Self {
        self.inputs.push(Some(input));
        self
    }

    pub(crate) fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }
}

/// What a reference gets to see of a call. The inputs hold what the dtypes can represent.
pub(crate) struct ReferenceCall<'a> {
    /// The dtype called `T` in the list of operands.
    pub(crate) dtype: Dtype,
    /// The dtype called `U`, or `T` where there is none.
    pub(crate) second: Dtype,
    pub(crate) inputs: &'a [Option<ReferenceArray>],
    pub(crate) attributes: &'a AttributeSet,
}

impl ReferenceCall<'_> {
    pub(crate) fn input(&self, index: usize) -> &ReferenceArray {
        self.optional(index).expect("a case gives the inputs that its reference reads")
    }

    pub(crate) fn optional(&self, index: usize) -> Option<&ReferenceArray> {
        self.inputs.get(index)?.as_ref()
    }

    fn attribute(&self, name: &str) -> Option<&AttributeValue> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        match self.attribute(name)? {
            AttributeValue::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// A float; 0 if it is missing.
    pub(crate) fn float(&self, name: &str) -> f64 {
        match self.attribute(name) {
            Some(AttributeValue::Float(value)) => *value,
            _ => 0.0,
        }
    }

    pub(crate) fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.attribute(name)? {
            AttributeValue::Ints(values) => Some(values),
            _ => None,
        }
    }

    pub(crate) fn text(&self, name: &str) -> &'static str {
        match self.attribute(name) {
            Some(AttributeValue::Text(text)) => text,
            _ => "",
        }
    }
}

/// An output as a reference computes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReferenceOutput {
    pub(crate) array: ReferenceArray,
    /// For each element, the size of the numbers that it was computed from, such as the sum of the absolute values of all terms.
    /// Rounding errors grow with it. Empty where it is the element's own size.
    pub(crate) magnitudes: Vec<f64>,
}

impl From<ReferenceArray> for ReferenceOutput {
    fn from(array: ReferenceArray) -> Self {
        Self { array, magnitudes: Vec::new() }
    }
}

impl ReferenceOutput {
    /// Computes each element and its magnitude.
    pub(crate) fn from_fn(dims: &[usize], mut element: impl FnMut(&[usize]) -> (f64, f64)) -> Self {
        let mut magnitudes = Vec::new();
        let array = ReferenceArray::from_fn(dims, |index| {
            let (value, magnitude) = element(index);
            magnitudes.push(magnitude);
            value
        });
        Self { array, magnitudes }
    }
}

/// A sum, and the sum of the absolute values.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TermSum {
    pub(crate) value: f64,
    pub(crate) magnitude: f64,
}

impl TermSum {
    pub(crate) fn add_term(&mut self, term: f64) {
        self.value += term;
        self.magnitude += term.abs();
    }

    pub(crate) fn of_terms(terms: impl IntoIterator<Item = f64>) -> Self {
        let mut sum = Self::default();
        terms.into_iter().for_each(|term| sum.add_term(term));
        sum
    }
}
