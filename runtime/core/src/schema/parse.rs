//! Reads the files of schemas. `schemas/onnx.schemas` describes their format.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::schema::operand::{Arity, Formal};
use crate::schema::types::{TypeConstraint, TypeSet};
use crate::schema::{AttributeKind, AttributeSchema, Schema};
use crate::{Attribute, Error, Result};

/// The sets of types that have a name, each as the text of its list.
pub(super) type NamedSets = HashMap<&'static str, &'static str>;

/// What one paragraph of a file says.
pub(super) enum Paragraph {
    /// Nothing but comments.
    Comment,
    /// A domain.
    Domain(Domain),
    /// A named set, and the text of its list.
    Set { name: &'static str, types: &'static str },
    /// An op, and the lines about it.
    Op(Heading, &'static str),
}

/// What a file says about a domain.
#[derive(Clone, Copy)]
pub(super) struct Domain {
    pub(super) name: &'static str,
    pub(super) newest_opset: u32,
    pub(super) schema_count: usize,
}

/// The first line about an op.
#[derive(Clone, Copy)]
pub(super) struct Heading {
    pub(super) domain: &'static str,
    pub(super) name: &'static str,
    pub(super) since_version: u32,
    pub(super) is_deprecated: bool,
}

/// Reads a paragraph as far as an index needs it.
pub(super) fn paragraph(mut text: &'static str) -> Result<Paragraph> {
    while text.starts_with('#') {
        text = text.split_once('\n').map_or("", |(_, rest)| rest);
    }
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let words: SmallVec<[&str; 6]> = first.split(' ').collect();
    let number = |text: &str| text.parse().map_err(|_| malformed(first));
    match *words.as_slice() {
        [""] => Ok(Paragraph::Comment),
        ["domain", name, "newest", newest, "schemas", count] => {
            let newest_opset = number(newest)?;
            let schema_count = count.parse().map_err(|_| malformed(first))?;
            Ok(Paragraph::Domain(Domain { name, newest_opset, schema_count }))
        }
        ["set", name] => Ok(Paragraph::Set { name, types: rest }),
        ["op", domain, name, since, ref others @ ..] if matches!(others, [] | ["deprecated"]) => {
            let (since_version, is_deprecated) = (number(since)?, !others.is_empty());
            Ok(Paragraph::Op(Heading { domain, name, since_version, is_deprecated }, rest))
        }
        _ => Err(malformed(first)),
    }
}

/// Reads the lines about an op.
pub(super) fn schema(heading: Heading, text: &'static str, sets: &NamedSets) -> Result<Schema> {
    let Heading { domain, name, since_version, is_deprecated } = heading;
    let (inputs, outputs, types, attributes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut schema =
        Schema { domain, name, since_version, is_deprecated, inputs, outputs, types, attributes };
    for line in text.lines() {
        if let Some(("type", name, types)) = parts(line) {
            schema.types.push(TypeConstraint { name, allowed: type_set(types, sets)? });
        }
    }
    for line in text.lines() {
        match parts(line).ok_or_else(|| malformed(line))? {
            ("input", name, text) => {
                let formal = formal(line, name, text, &mut schema.types)?;
                schema.inputs.push(formal);
            }
            ("output", name, text) => {
                let formal = formal(line, name, text, &mut schema.types)?;
                schema.outputs.push(formal);
            }
            ("type", ..) => {}
            ("attribute", name, text) => schema.attributes.push(attribute(line, name, text)?),
            _ => return Err(malformed(line)),
        }
    }
    Ok(schema)
}

/// Takes `  word name: text` apart.
fn parts(line: &'static str) -> Option<(&'static str, &'static str, &'static str)> {
    let (head, text) = line.split_once(": ")?;
    let (word, name) = head.trim_start().split_once(' ')?;
    Some((word, name, text))
}

fn type_set(text: &'static str, sets: &NamedSets) -> Result<TypeSet> {
    let text = if text.starts_with('@') { *sets.get(text).ok_or_else(|| malformed(text))? } else { text };
    let mut types = TypeSet::default();
    text.split_ascii_whitespace().for_each(|name| types.add(name));
    Ok(types)
}

/// Reads an operand. A type that has no variable is added to the types as one of its own.
fn formal(
    line: &'static str,
    name: &'static str,
    text: &'static str,
    types: &mut Vec<TypeConstraint>,
) -> Result<Formal> {
    let (ty, arity) = text.split_once(' ').unwrap_or((text, ""));
    let arity = match arity {
        "" => Arity::Required,
        "optional" => Arity::Optional,
        "variadic" => Arity::Variadic { at_least: 1, is_mixed: false },
        "variadic mixed" => Arity::Variadic { at_least: 1, is_mixed: true },
        "variadic from 0" => Arity::Variadic { at_least: 0, is_mixed: false },
        "variadic mixed from 0" => Arity::Variadic { at_least: 0, is_mixed: true },
        _ => return Err(malformed(line)),
    };
    let type_index = match types.iter().position(|known| known.name == ty) {
        Some(known) => known,
        None if ty.contains('(') => {
            let mut allowed = TypeSet::default();
            allowed.add(ty);
            types.push(TypeConstraint { name: ty, allowed });
            types.len() - 1
        }
        None => return Err(malformed(line)),
    };
    Ok(Formal { name, arity, type_index })
}

fn attribute(line: &'static str, name: &'static str, text: &'static str) -> Result<AttributeSchema> {
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    let kind = AttributeKind::of(kind).ok_or_else(|| malformed(line))?;
    let default = match rest {
        "" | "required" => None,
        _ => Some(rest.strip_prefix("= ").and_then(|text| value(kind, text)).ok_or_else(|| malformed(line))?),
    };
    Ok(AttributeSchema { name, kind, is_required: rest == "required", default })
}

/// Reads a default value. One number of ONNX is an `f32`, whatever its text looks like.
fn value(kind: AttributeKind, text: &str) -> Option<Attribute> {
    let float = |text: &str| text.parse::<f32>().ok().map(f64::from);
    let string = |text: &str| Some(text.strip_prefix('"')?.strip_suffix('"')?.to_owned());
    let words = || text.split_ascii_whitespace();
    match kind {
        AttributeKind::Int => text.parse().ok().map(Attribute::Int),
        AttributeKind::Float => float(text).map(Attribute::Float),
        AttributeKind::String => string(text).map(Attribute::String),
        AttributeKind::Ints => {
            words().map(|word| word.parse().ok()).collect::<Option<_>>().map(Attribute::Ints)
        }
        AttributeKind::Floats => words().map(float).collect::<Option<_>>().map(Attribute::Floats),
        AttributeKind::Strings => words().map(string).collect::<Option<_>>().map(Attribute::Strings),
        _ => None,
    }
}

#[cold]
fn malformed(line: &str) -> Error {
    Error::fatal(format!("expected a line as `onnx.schemas` describes it, found `{line}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_not_as_described_is_refused_and_shown() {
        for line in
            ["op ai.onnx Add", "op ai.onnx Add 1 new", "domain d newest x schemas 1", "sett @a", "set a b"]
        {
            let error = paragraph(line).err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.contains(line)), "{line}");
        }
        let heading = Heading { domain: "d", name: "N", since_version: 1, is_deprecated: false };
        for line in [
            "  input A: T",
            "  input A: tensor(float) sometimes",
            "  type T: @Nowhere-1.T",
            "  attribute a: int = x",
            "  attribute a: number",
            "  attribute a: graph = 1",
            "  note",
        ] {
            assert!(schema(heading, line, &NamedSets::new()).is_err(), "{line}");
        }
    }
}
