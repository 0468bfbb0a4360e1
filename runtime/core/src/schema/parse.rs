//! Parses schema files. `schemas/onnx.schemas` describes the format.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::schema::facts::OpFact;
use crate::schema::operand::{FormalParameter, OperandArity};
use crate::schema::types::{TypeConstraint, TypeSet};
use crate::schema::{AttributeKind, AttributeSchema, OpSchema};
use crate::{Attribute, Error, Result};

/// Named sets of types, each as the unparsed text of its list.
pub(super) type NamedTypeSets = HashMap<&'static str, &'static str>;

/// One paragraph of a file.
pub(super) enum SchemaParagraph {
    /// Only comments.
    Comment,
    Domain(SchemaDomain),
    /// A named set, with the unparsed text of its list.
    Set {
        name: &'static str,
        types: &'static str,
    },
    /// An op, with the unparsed lines about it.
    Op(SchemaHeading, &'static str),
    /// A fact about ops of ONNX, with their names.
    Fact(OpFact, &'static str),
}

#[derive(Clone, Copy)]
pub(super) struct SchemaDomain {
    pub(super) name: &'static str,
    pub(super) newest_opset: u32,
    pub(super) schema_count: usize,
}

/// The first line of an op.
#[derive(Clone, Copy)]
pub(super) struct SchemaHeading {
    pub(super) domain: &'static str,
    pub(super) name: &'static str,
    pub(super) since_version: u32,
    pub(super) is_deprecated: bool,
}

/// Parses a paragraph only as far as the index needs it.
pub(super) fn parse_paragraph(mut text: &'static str) -> Result<SchemaParagraph> {
    while text.starts_with('#') {
        text = text.split_once('\n').map_or("", |(_, rest)| rest);
    }
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let words: SmallVec<[&str; 6]> = first.split(' ').collect();
    let number = |text: &str| text.parse().map_err(|_| malformed_line(first));
    match *words.as_slice() {
        [""] => Ok(SchemaParagraph::Comment),
        ["domain", name, "newest", newest, "schemas", count] => {
            let newest_opset = number(newest)?;
            let schema_count = count.parse().map_err(|_| malformed_line(first))?;
            Ok(SchemaParagraph::Domain(SchemaDomain { name, newest_opset, schema_count }))
        }
        ["set", name] => Ok(SchemaParagraph::Set { name, types: rest }),
        ["fact", name] => {
            let fact = OpFact::from_name(name).ok_or_else(|| malformed_line(first))?;
            Ok(SchemaParagraph::Fact(fact, rest))
        }
        ["op", domain, name, since, ref others @ ..] if matches!(others, [] | ["deprecated"]) => {
            let (since_version, is_deprecated) = (number(since)?, !others.is_empty());
            Ok(SchemaParagraph::Op(SchemaHeading { domain, name, since_version, is_deprecated }, rest))
        }
        _ => Err(malformed_line(first)),
    }
}

/// Parses the lines of an op.
pub(super) fn parse_schema(
    heading: SchemaHeading,
    text: &'static str,
    sets: &NamedTypeSets,
) -> Result<OpSchema> {
    let SchemaHeading { domain, name, since_version, is_deprecated } = heading;
    let (inputs, outputs, types, attributes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut schema =
        OpSchema { domain, name, since_version, is_deprecated, inputs, outputs, types, attributes };
    for line in text.lines() {
        if let Some(("type", name, types)) = split_line(line) {
            schema.types.push(TypeConstraint { name, allowed: parse_type_set(types, sets)? });
        }
    }
    for line in text.lines() {
        match split_line(line).ok_or_else(|| malformed_line(line))? {
            ("input", name, text) => {
                let formal = parse_formal(line, name, text, &mut schema.types)?;
                schema.inputs.push(formal);
            }
            ("output", name, text) => {
                let formal = parse_formal(line, name, text, &mut schema.types)?;
                schema.outputs.push(formal);
            }
            ("type", ..) => {}
            ("attribute", name, text) => schema.attributes.push(parse_attribute(line, name, text)?),
            _ => return Err(malformed_line(line)),
        }
    }
    Ok(schema)
}

/// Splits a line of the form `  word name: text`.
fn split_line(line: &'static str) -> Option<(&'static str, &'static str, &'static str)> {
    let (head, text) = line.split_once(": ")?;
    let (word, name) = head.trim_start().split_once(' ')?;
    Some((word, name, text))
}

fn parse_type_set(text: &'static str, sets: &NamedTypeSets) -> Result<TypeSet> {
    let text =
        if text.starts_with('@') { *sets.get(text).ok_or_else(|| malformed_line(text))? } else { text };
    let mut types = TypeSet::default();
    text.split_ascii_whitespace().for_each(|name| types.add_type(name));
    Ok(types)
}

/// Parses an operand. A type without a variable is appended to the types.
fn parse_formal(
    line: &'static str,
    name: &'static str,
    text: &'static str,
    types: &mut Vec<TypeConstraint>,
) -> Result<FormalParameter> {
    let (ty, arity) = text.split_once(' ').unwrap_or((text, ""));
    let arity = match arity {
        "" => OperandArity::Required,
        "optional" => OperandArity::Optional,
        "variadic" => OperandArity::Variadic { at_least: 1, is_mixed: false },
        "variadic mixed" => OperandArity::Variadic { at_least: 1, is_mixed: true },
        "variadic from 0" => OperandArity::Variadic { at_least: 0, is_mixed: false },
        "variadic mixed from 0" => OperandArity::Variadic { at_least: 0, is_mixed: true },
        _ => return Err(malformed_line(line)),
    };
    let type_index = match types.iter().position(|known| known.name == ty) {
        Some(known) => known,
        None if ty.contains('(') => {
            let mut allowed = TypeSet::default();
            allowed.add_type(ty);
            types.push(TypeConstraint { name: ty, allowed });
            types.len() - 1
        }
        None => return Err(malformed_line(line)),
    };
    Ok(FormalParameter { name, arity, type_index })
}

fn parse_attribute(line: &'static str, name: &'static str, text: &'static str) -> Result<AttributeSchema> {
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    let kind = AttributeKind::of(kind).ok_or_else(|| malformed_line(line))?;
    let default = match rest {
        "" | "required" => None,
        _ => Some(
            rest.strip_prefix("= ")
                .and_then(|text| parse_value(kind, text))
                .ok_or_else(|| malformed_line(line))?,
        ),
    };
    Ok(AttributeSchema { name, kind, is_required: rest == "required", default })
}

/// Parses a default value. ONNX stores a single floating-point number as `f32`, so the text is rounded to that.
fn parse_value(kind: AttributeKind, text: &str) -> Option<Attribute> {
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
fn malformed_line(line: &str) -> Error {
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
            let error = parse_paragraph(line).err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.contains(line)), "{line}");
        }
        let heading = SchemaHeading { domain: "d", name: "N", since_version: 1, is_deprecated: false };
        for line in [
            "  input A: T",
            "  input A: tensor(float) sometimes",
            "  type T: @Nowhere-1.T",
            "  attribute a: int = x",
            "  attribute a: number",
            "  attribute a: graph = 1",
            "  note",
        ] {
            assert!(parse_schema(heading, line, &NamedTypeSets::new()).is_err(), "{line}");
        }
    }
}
