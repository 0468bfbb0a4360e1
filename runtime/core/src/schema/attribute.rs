//! Attribute schemas, and validation of the attributes of a call.

use oarlock_host::did_you_mean;

use crate::schema::OpSchema;
use crate::{Attribute, Attributes, Error, Result};

/// The schema of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeSchema {
    /// The name of the attribute.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: AttributeKind,
    /// True if a call must provide it. Such attributes have no default.
    pub is_required: bool,
    /// The value in calls that do not provide it.
    pub default: Option<Attribute>,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// The kinds of attribute values.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum AttributeKind {
            $($(#[$doc])* $variant,)*
        }

        impl AttributeKind {
            /// The name of the kind, equal to [`crate::Attribute::kind_name`].
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
    /// An integer; also used for booleans, dtypes and axes.
    Int = "int";
    /// A floating-point number.
    Float = "float";
    /// A string.
    String = "string";
    /// A tensor on the host.
    Tensor = "tensor";
    /// A list of integers.
    Ints = "ints";
    /// A list of floating-point numbers.
    Floats = "floats";
    /// A list of strings.
    Strings = "strings";
    /// A subgraph, which the core does not run.
    Graph = "graph";
    /// A sparse tensor. Not supported.
    SparseTensor = "sparse_tensor";
    /// A type. Not supported.
    TypeProto = "type_proto";
}

impl AttributeKind {
    /// True if [`Attribute`] can represent this kind.
    fn is_supported(self) -> bool {
        !matches!(self, Self::Graph | Self::SparseTensor | Self::TypeProto)
    }

    /// Converts a value to this kind; `None` if that is impossible. Integers convert to floating-point numbers.
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

/// An attribute of products, which permits rounding; the numbers mean what they mean in `MatMulNBits` of ONNX Runtime. ONNX's own
/// products do not have it in their schema: there it is for passes, and kernels do not see it.
pub const ACCURACY_LEVEL: &str = "accuracy_level";

/// Validates the attributes of a call and adds defaults.
pub(super) fn add_defaults(schema: &OpSchema, given: &Attributes) -> Result<Attributes> {
    let mut complete = Attributes::new();
    for (name, value) in given.iter() {
        let Some(known) = schema.attributes.iter().find(|known| known.name == name) else {
            if name == ACCURACY_LEVEL && schema.name == "MatMul" {
                continue;
            }
            return Err(unknown_attribute(schema, name));
        };
        let value = known.kind.convert_value(value).ok_or_else(|| {
            let (expected, found) = (known.kind.name(), value.kind_name());
            Error::invalid_argument(format!(
                "expected the attribute `{name}` to hold {expected}, found {found}"
            ))
        })?;
        complete.set(name, value);
    }
    for known in schema.attributes.iter().filter(|known| given.get(known.name).is_none()) {
        let (name, kind) = (known.name, known.kind.name());
        match &known.default {
            Some(default) => complete.set(name, default.clone()),
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
    Ok(complete)
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
