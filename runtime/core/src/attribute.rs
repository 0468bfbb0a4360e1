//! Attributes: the constant arguments of a node, by name.

use std::sync::Arc;

use crate::{Constant, Error, Result};

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// An integer; also used for booleans, dtypes and axes.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A string.
    String(String),
    /// A tensor on the host.
    Tensor(Constant),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A list of floating-point numbers.
    Floats(Vec<f64>),
    /// A list of strings.
    Strings(Vec<String>),
}

impl Attribute {
    /// The name of the kind of value, for messages.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::String(_) => "string",
            Self::Tensor(_) => "tensor",
            Self::Ints(_) => "ints",
            Self::Floats(_) => "floats",
            Self::Strings(_) => "strings",
        }
    }
}

/// The attributes of one node, by name. Clones share them, with copy-on-write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes(Option<Arc<Vec<(String, Attribute)>>>);

impl Attributes {
    /// Creates an empty set; this does not allocate.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Adds an attribute, or replaces one of the same name.
    pub fn with_attribute(mut self, name: impl Into<String>, value: Attribute) -> Self {
        self.set(name, value);
        self
    }

    /// Adds an attribute, or replaces one of the same name.
    pub fn set(&mut self, name: impl Into<String>, value: Attribute) {
        let name = name.into();
        let all = Arc::make_mut(self.0.get_or_insert_default());
        match all.binary_search_by(|(known, _)| known.cmp(&name)) {
            Ok(at) => all[at].1 = value,
            Err(at) => all.insert(at, (name, value)),
        }
    }

    /// Looks an attribute up by name.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        let all = self.entries();
        let at = all.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        Some(&all[at].1)
    }

    /// All attributes, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Attribute)> {
        self.entries().iter().map(|(name, value)| (name.as_str(), value))
    }

    fn entries(&self) -> &[(String, Attribute)] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    /// An integer attribute: `None` if absent, an error if it is of another kind.
    pub fn get_int(&self, name: &str) -> Result<Option<i64>> {
        self.get_as(name, "int", |value| if let Attribute::Int(int) = value { Some(*int) } else { None })
    }

    /// A floating-point attribute: `None` if absent, an error if it is of another kind.
    pub fn get_float(&self, name: &str) -> Result<Option<f64>> {
        self.get_as(
            name,
            "float",
            |value| if let Attribute::Float(float) = value { Some(*float) } else { None },
        )
    }

    /// A string attribute: `None` if absent, an error if it is of another kind.
    pub fn get_string(&self, name: &str) -> Result<Option<&str>> {
        self.get_as(name, "string", |value| {
            if let Attribute::String(text) = value { Some(text.as_str()) } else { None }
        })
    }

    /// A list of integers: `None` if absent, an error if it is of another kind.
    pub fn get_ints(&self, name: &str) -> Result<Option<&[i64]>> {
        self.get_as(name, "ints", |value| {
            if let Attribute::Ints(ints) = value { Some(ints.as_slice()) } else { None }
        })
    }

    /// A list of floating-point numbers: `None` if absent, an error if it is of another kind.
    pub fn get_floats(&self, name: &str) -> Result<Option<&[f64]>> {
        self.get_as(name, "floats", |value| {
            if let Attribute::Floats(floats) = value { Some(floats.as_slice()) } else { None }
        })
    }

    /// A tensor attribute: `None` if absent, an error if it is of another kind.
    pub fn get_tensor(&self, name: &str) -> Result<Option<&Constant>> {
        self.get_as(
            name,
            "tensor",
            |value| if let Attribute::Tensor(tensor) = value { Some(tensor) } else { None },
        )
    }

    fn get_as<'a, T>(
        &'a self,
        name: &str,
        expected: &str,
        take: impl FnOnce(&'a Attribute) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let found = value.kind_name();
        take(value).map(Some).ok_or_else(|| {
            Error::invalid_argument(format!(
                "expected the attribute `{name}` to hold {expected}, found {found}"
            ))
        })
    }
}

impl FromIterator<(String, Attribute)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (String, Attribute)>>(attributes: I) -> Self {
        let mut all = Self::new();
        attributes.into_iter().for_each(|(name, value)| all.set(name, value));
        all
    }
}
