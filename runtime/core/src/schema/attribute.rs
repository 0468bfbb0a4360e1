//! What a schema says about each attribute, and how the attributes of a call are held to it.

use oarlock_host::did_you_mean;

use crate::schema::OpSchema;
use crate::{Attribute, Attributes, Error, Result};

/// An attribute of an op.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeSchema {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: AttributeKind,
    /// Whether it must be given.
    pub is_required: bool,
    /// What it is when it is not given.
    pub default: Option<Attribute>,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// What an attribute holds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum AttributeKind {
            $($(#[$doc])* $variant,)*
        }

        impl AttributeKind {
            /// Its name, which is also what [`crate::Attribute::kind_name`] calls it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            pub(super) fn of(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

kinds! {
    /// An integer.
    Int = "int";
    /// A number.
    Float = "float";
    /// Text.
    String = "string";
    /// A tensor.
    Tensor = "tensor";
    /// Integers.
    Ints = "ints";
    /// Numbers.
    Floats = "floats";
    /// Texts.
    Strings = "strings";
    /// Ops of its own, which nothing here runs.
    Graph = "graph";
    /// A sparse tensor, which nothing here makes.
    SparseTensor = "sparse_tensor";
    /// A type, which nothing here reads.
    TypeProto = "type_proto";
}

impl AttributeKind {
    /// Whether an attribute of this kind can be given.
    fn is_supported(self) -> bool {
        !matches!(self, Self::Graph | Self::SparseTensor | Self::TypeProto)
    }

    /// The value as this kind; `None` where it is of another. Integers are numbers too.
    fn convert_value(self, value: &Attribute) -> Option<Attribute> {
        match (self, value) {
            (Self::Float, Attribute::Int(int)) => Some(Attribute::Float(*int as f64)),
            (Self::Floats, Attribute::Ints(ints)) => {
                Some(Attribute::Floats(ints.iter().map(|int| *int as f64).collect()))
            }
            _ => (value.kind_name() == self.name()).then(|| value.clone()),
        }
    }
}

/// The attributes of a call as the schema wants them, defaults included.
pub(super) fn bind_attributes(schema: &OpSchema, given: &Attributes) -> Result<Attributes> {
    let mut bound = Attributes::new();
    for (name, value) in given.iter() {
        let Some(known) = schema.attributes.iter().find(|known| known.name == name) else {
            return Err(unknown_attribute(schema, name));
        };
        let value = known.kind.convert_value(value).ok_or_else(|| {
            let (expected, found) = (known.kind.name(), value.kind_name());
            Error::invalid_argument(format!(
                "expected the attribute `{name}` to hold {expected}, found {found}"
            ))
        })?;
        bound.set(name, value);
    }
    for known in schema.attributes.iter().filter(|known| given.get(known.name).is_none()) {
        let (name, kind) = (known.name, known.kind.name());
        match &known.default {
            Some(default) => bound.set(name, default.clone()),
            None if !known.is_required => {}
            None if known.kind.is_supported() => {
                return Err(Error::invalid_argument(format!(
                    "expected the attribute `{name}`, which holds {kind}, found none"
                )));
            }
            None => {
                return Err(Error::unimplemented(format!(
                    "expected attributes of supported kinds, found that `{name}`, which is required, holds {kind}"
                )));
            }
        }
    }
    Ok(bound)
}

#[cold]
fn unknown_attribute(schema: &OpSchema, name: &str) -> Error {
    let names: Vec<_> = schema.attributes.iter().map(|known| known.name).collect();
    let expected = match names.as_slice() {
        [] => "no attribute".to_owned(),
        names => format!("attributes named {}", names.join(", ")),
    };
    let suggestion = did_you_mean(name, names.iter().copied());
    let name = oarlock_host::sanitize_text(name);
    Error::invalid_argument(format!("expected {expected}, found `{name}`{suggestion}"))
}
