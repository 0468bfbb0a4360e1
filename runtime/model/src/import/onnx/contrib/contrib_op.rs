//! Table rows: inputs, attributes and outputs of a contrib op, and which of them are supported.

use oarlock_core::{Attribute, Error, Result};

use super::lowering::ContribLowering;
use crate::graph::{Node, ValueId};
use crate::import::error_location::invalid_model;

/// A contrib op and its lowering.
pub(super) struct ContribOp {
    pub(super) op: &'static str,
    /// Input names in order: `x` is required, `x?` optional, `!x` unsupported, and `x*` variadic.
    pub(super) inputs: &'static str,
    /// Attribute names. For `name=0`, only that value is supported.
    pub(super) attributes: &'static str,
    /// Output names in order; `!y` is unsupported.
    pub(super) outputs: &'static str,
    /// Adds the equivalent nodes.
    pub(super) lower: fn(&mut ContribLowering<'_>) -> Result<()>,
}

impl ContribOp {
    /// Checks that a node has everything the op requires and nothing unsupported.
    pub(super) fn check_node(&self, node: &Node) -> Result<()> {
        check_operands("input", self.inputs, &node.inputs)?;
        check_operands("output", self.outputs, &node.outputs)?;
        for (name, value) in node.attributes.iter() {
            let known = self.attributes.split(' ').map(|word| word.split_once('=').unwrap_or((word, "")));
            match known.into_iter().find(|(known, _)| *known == name) {
                None => {
                    return Err(unsupported_error(
                        format!("none that is called `{name}`"),
                        "an attribute of it",
                    ));
                }
                Some((_, "")) => {}
                Some((_, only)) if is_written_as(value, only) => {}
                Some((_, only)) => {
                    let found = format!("{value:?}");
                    return Err(unsupported_error(format!("`{only}` for the attribute `{name}`"), &found));
                }
            }
        }
        Ok(())
    }
}

fn check_operands(kind: &str, words: &str, given: &[Option<ValueId>]) -> Result<()> {
    let mut words = words.split_whitespace();
    for index in 0.. {
        let given_here = given.get(index).copied().flatten();
        let Some(word) = words.next() else {
            if given.len() > index {
                return Err(invalid_model(format!("at most {index} {kind}s"), given.len()));
            }
            break;
        };
        if word.ends_with('*') {
            break;
        }
        let name = word.trim_matches(['!', '?']);
        if word.starts_with('!') && given_here.is_some() {
            return Err(unsupported_error(format!("no {kind} `{name}`, which is not supported"), "one"));
        }
        let is_wanted = !word.starts_with('!') && !word.ends_with('?');
        if kind == "input" && is_wanted && given_here.is_none() {
            return Err(invalid_model(format!("the input `{name}`"), "none"));
        }
    }
    Ok(())
}

/// True if an attribute equals the value written in the table.
fn is_written_as(value: &Attribute, text: &str) -> bool {
    match value {
        Attribute::Int(value) => text.parse() == Ok(*value),
        Attribute::Float(value) => text.parse() == Ok(*value),
        Attribute::String(value) => value == text,
        _ => false,
    }
}

/// An error about a feature that the op has but the lowering does not support.
pub(super) fn unsupported_error(expected: impl std::fmt::Display, found: &str) -> Error {
    Error::unimplemented(format!("expected {expected}, found {found}"))
}

#[cfg(test)]
mod tests {
    use oarlock_core::ErrorKind;

    use super::*;
    use crate::graph::{Graph, GraphValue};

    const TEST_OP: ContribOp = ContribOp {
        op: "Example",
        inputs: "a b? !c",
        attributes: "axis shared=0 mode=none",
        outputs: "y !z",
        lower: |_| Ok(()),
    };

    fn test_node(inputs: &[bool], outputs: &[bool]) -> Node {
        let mut graph = Graph::new("test");
        let mut operands = |given: &[bool]| -> Vec<Option<ValueId>> {
            given.iter().map(|is_given| is_given.then(|| graph.add_value(GraphValue::default()))).collect()
        };
        let (inputs, outputs) = (operands(inputs), operands(outputs));
        Node::new("com.microsoft", "Example", 1, inputs, outputs)
    }

    #[test]
    fn operands_that_are_missing_or_not_understood_are_named() {
        let message = |node: Node| TEST_OP.check_node(&node).map_err(|error| error.message().to_owned());
        assert_eq!(message(test_node(&[true], &[true])), Ok(()));
        assert_eq!(message(test_node(&[true, true, false], &[false, false])), Ok(()));
        assert_eq!(
            message(test_node(&[false, true], &[true])).unwrap_err(),
            "expected the input `a`, found none"
        );
        assert!(message(test_node(&[true, true, true], &[true])).unwrap_err().contains("no input `c`"));
        assert!(message(test_node(&[true], &[true, true])).unwrap_err().contains("no output `z`"));
        assert!(message(test_node(&[true; 4], &[true])).is_err());
        assert_eq!(
            message(test_node(&[true, false, false, true], &[true])).unwrap_err(),
            "expected at most 3 inputs, found 4"
        );
    }

    #[test]
    fn attributes_that_are_not_understood_are_named() {
        let with = |name: &str, value: Attribute| {
            let mut node = test_node(&[true], &[true]);
            node.attributes.set(name, value);
            TEST_OP.check_node(&node)
        };
        with("axis", Attribute::Int(7)).unwrap();
        with("shared", Attribute::Int(0)).unwrap();
        with("mode", Attribute::String("none".to_owned())).unwrap();
        let error = with("shared", Attribute::Int(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unimplemented);
        assert!(error.message().contains("`shared`"), "{error}");
        assert!(with("mode", Attribute::String("all".to_owned())).unwrap_err().message().contains("`mode`"));
        assert!(with("other", Attribute::Int(0)).unwrap_err().message().contains("`other`"));
    }
}
