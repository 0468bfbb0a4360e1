//! Attributes typed by a user, parsed by the kind that the op's schema declares.

use std::ffi::OsStr;
use std::str::FromStr;

use oarlock_core::schema::{self, AttributeKind};
use oarlock_core::{Attribute, Attributes, Device, Dtype};

use crate::arguments::OpArguments;
use crate::problem::CommandError;

/// Parses the attributes of a call. Tensor attributes are read through a device.
pub(super) fn parse_attributes(
    call: &OpArguments,
    opset: u32,
    device: &Device,
) -> Result<Attributes, CommandError> {
    let schema = schema::find_schema(&call.domain, &call.name, opset).ok();
    let kind = |name: &str| {
        let known = schema?.attributes.iter().find(|known| known.name == name)?;
        Some(known.kind)
    };
    let one = |(name, text): &(String, String)| {
        let attribute = match kind(name) {
            Some(AttributeKind::Tensor) => {
                let tensor = super::read_array(OsStr::new(text))?.to_tensor(device)?;
                Attribute::Tensor(tensor.to_constant()?)
            }
            Some(kind) => {
                parse_attribute(kind, name, text).ok_or_else(|| invalid_attribute(call, kind, name, text))?
            }
            // The op itself rejects names that its schema does not know. Without a schema, guess.
            None => guess_attribute(text),
        };
        Ok((name.clone(), attribute))
    };
    call.attributes.iter().map(one).collect()
}

fn invalid_attribute(call: &OpArguments, kind: AttributeKind, name: &str, text: &str) -> CommandError {
    let is_dtype = kind == AttributeKind::Int && is_dtype_attribute(name);
    let names = Dtype::ALL.iter().map(|dtype| dtype.name());
    let expected = if is_dtype {
        format!("a dtype ({})", names.collect::<Vec<_>>().join(", "))
    } else {
        kind.name().to_owned()
    };
    let message =
        format!("`{}`: expected the attribute `{name}` to hold {expected}, found `{text}`", call.name);
    CommandError::new(message).with_hint(match kind {
        AttributeKind::Int if is_dtype => format!("write it as in `--attr {name}=f32`"),
        AttributeKind::Int => format!("write it as in `--attr {name}=1`"),
        AttributeKind::Float => format!("write it as in `--attr {name}=0.5`"),
        AttributeKind::Ints => format!("write it as in `--attr {name}=1,2`"),
        AttributeKind::Floats => format!("write it as in `--attr {name}=0.5,1`"),
        _ => "an attribute of this kind cannot be given here".to_owned(),
    })
}

/// `None` if the text does not parse as this kind.
fn parse_attribute(kind: AttributeKind, name: &str, text: &str) -> Option<Attribute> {
    match kind {
        AttributeKind::Int => parse_integer(name, text).map(Attribute::Int),
        AttributeKind::Float => text.trim().parse().ok().map(Attribute::Float),
        AttributeKind::String => Some(Attribute::String(text.to_owned())),
        AttributeKind::Ints => parse_list(text).map(Attribute::Ints),
        AttributeKind::Floats => parse_list(text).map(Attribute::Floats),
        AttributeKind::Strings => parse_list(text).map(Attribute::Strings),
        AttributeKind::Tensor
        | AttributeKind::Graph
        | AttributeKind::SparseTensor
        | AttributeKind::TypeProto => None,
    }
}

/// Accepts integers, `true`, `false`, and dtype names if the attribute is a dtype.
fn parse_integer(name: &str, text: &str) -> Option<i64> {
    match text.trim() {
        "true" => Some(1),
        "false" => Some(0),
        text => text.parse().ok().or_else(|| {
            text.parse::<Dtype>().ok().filter(|_| is_dtype_attribute(name)).map(Dtype::onnx_number)
        }),
    }
}

fn is_dtype_attribute(name: &str) -> bool {
    /// Parts of the names of dtype attributes.
    const DTYPE_ATTRIBUTE_WORDS: [&str; 2] = ["type", "precision"];
    name == "to" || DTYPE_ATTRIBUTE_WORDS.iter().any(|part| name.contains(part))
}

/// Comma-separated values, with or without brackets.
fn parse_list<T: FromStr>(text: &str) -> Option<Vec<T>> {
    let text = text.trim();
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if text.trim().is_empty() {
        return Some(Vec::new());
    }
    text.split(',').map(|part| part.trim().parse().ok()).collect()
}

/// Guesses the kind from the text.
fn guess_attribute(text: &str) -> Attribute {
    let kinds = [AttributeKind::Int, AttributeKind::Float];
    let lists = [AttributeKind::Ints, AttributeKind::Floats, AttributeKind::Strings];
    let kinds = if text.contains(',') { &lists[..] } else { &kinds };
    let guess = kinds.iter().find_map(|kind| parse_attribute(*kind, "", text));
    guess.unwrap_or_else(|| Attribute::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_text_parses_according_to_its_kind() {
        use AttributeKind::{Float, Floats, Int, Ints, String, Strings};
        let cases = [
            (Int, "axis", "-1", Some(Attribute::Int(-1))),
            (Int, "keepdims", "true", Some(Attribute::Int(1))),
            (Int, "to", "f16", Some(Attribute::Int(10))),
            (Int, "dtype", "float32", Some(Attribute::Int(1))),
            (Int, "axis", "f16", None),
            (Int, "axis", "1.5", None),
            (Float, "alpha", "1", Some(Attribute::Float(1.0))),
            (Float, "alpha", "x", None),
            (String, "mode", "a,b", Some(Attribute::String("a,b".to_owned()))),
            (Ints, "pads", "1, 2", Some(Attribute::Ints(vec![1, 2]))),
            (Ints, "pads", "[3]", Some(Attribute::Ints(vec![3]))),
            (Ints, "pads", "", Some(Attribute::Ints(Vec::new()))),
            (Ints, "pads", "1,,2", None),
            (Floats, "scales", "1,0.5", Some(Attribute::Floats(vec![1.0, 0.5]))),
            (Strings, "keys", "a,b", Some(Attribute::Strings(vec!["a".to_owned(), "b".to_owned()]))),
            (AttributeKind::Graph, "body", "x", None),
        ];
        for (kind, name, text, expected) in cases {
            assert_eq!(parse_attribute(kind, name, text), expected, "{name}={text}");
        }
    }

    #[test]
    fn without_a_schema_a_text_is_what_it_looks_like() {
        let kinds = ["1", "1.5", "x", "1,2", "1,2.5", "1,x"].map(|text| guess_attribute(text).kind_name());
        assert_eq!(kinds, ["int", "float", "string", "ints", "floats", "strings"]);
    }
}
