//! Inlines functions of the model.

use std::collections::HashMap;

use oarlock_core::{Error, Result, schema};

use super::attribute::attribute_kind;
use super::functions::{FunctionCall, OnnxFunction, function_title};
use super::importer::OnnxImporter;
use super::messages::attribute_proto::AttributeType;
use super::messages::{AttributeProto, FunctionProto, NodeProto};
use crate::graph::{Node, ValueId};
use crate::import::error_location::{ErrorLocation as _, invalid_model, quote_name};

/// Limit on the prefix of inlined names, which nested calls would otherwise make ever longer.
const MAX_CALL_TITLE: usize = 100;

impl<'m> OnnxImporter<'m> {
    /// Inlines a function: its operands are those of the call.
    pub(super) fn inline_call(
        &mut self,
        function: OnnxFunction<'m>,
        node: &'m NodeProto,
        inputs: &[Option<ValueId>],
        outputs: &[Option<ValueId>],
    ) -> Result<()> {
        let OnnxFunction { proto, opsets } = function;
        let place = || function_title(proto);
        if self.scopes.enclosing_calls().any(|call| std::ptr::eq(call.function, proto)) {
            return Err(invalid_model(
                "functions that do not call themselves",
                format!("{}, which does", place()),
            ));
        }
        for (kind, most, found) in
            [("inputs", proto.input.len(), inputs.len()), ("outputs", proto.output.len(), outputs.len())]
        {
            if found > most {
                return Err(invalid_model(format!("at most {most} {kind}"), found)).with_location(place);
            }
        }
        let attributes = self.call_attributes(proto, node)?;
        let called = if node.name().is_empty() { proto.name() } else { node.name() };
        let title = shorten_name(&self.scopes.qualified_title(called)).to_owned();
        self.scopes.open_call(FunctionCall { title, attributes, opsets, function: proto })?;
        let before = self.scopes.current_graph().nodes.len();
        self.inline_nodes(proto, inputs, outputs).with_location(place)?;
        self.scopes.close_call();
        let name = self.scopes.qualified_title(node.name());
        // A function of a single node, such as a wrapper for another opset, takes the name of the call.
        if let Some([only]) = self.scopes.current_graph().nodes.get_mut(before..)
            && only.name.is_empty()
            && !node.name().is_empty()
        {
            only.name = name;
        }
        Ok(())
    }

    /// The attributes of a call, with the function's defaults.
    fn call_attributes(
        &self,
        function: &'m FunctionProto,
        node: &'m NodeProto,
    ) -> Result<HashMap<&'m str, &'m AttributeProto>> {
        let defaults = function.attribute_proto.iter().map(|attribute| (attribute.name(), attribute));
        let mut attributes: HashMap<_, _> = defaults.collect();
        for attribute in &node.attribute {
            let place = || format!("the attribute {}", quote_name(attribute.name()));
            let Some(meant) = self.resolve_attribute(attribute).with_location(place)? else { continue };
            if matches!(
                attribute_kind(meant).with_location(place)?,
                AttributeType::Graph | AttributeType::Graphs
            ) {
                let message = "expected a call of a function without graphs among its attributes, found one";
                return Err(Error::unimplemented(message)).with_location(place);
            }
            attributes.insert(attribute.name(), meant);
        }
        Ok(attributes)
    }

    fn inline_nodes(
        &mut self,
        function: &'m FunctionProto,
        inputs: &[Option<ValueId>],
        outputs: &[Option<ValueId>],
    ) -> Result<()> {
        for (at, name) in function.input.iter().enumerate() {
            self.scopes.bind_name(name, inputs.get(at).copied().flatten())?;
        }
        let mut result = HashMap::new();
        let mut passed = Vec::new();
        for (name, output) in function.output.iter().zip(outputs) {
            let Some(output) = output else { continue };
            if self.scopes.find_own(name).is_some() || result.contains_key(name.as_str()) {
                passed.push((name, *output));
            } else {
                result.insert(name.as_str(), *output);
            }
        }
        self.declare_outputs(&function.node, &mut result)?;
        if let Some(name) = result.keys().next() {
            return Err(invalid_model(
                "outputs that a node produces",
                format!("{}, which nothing makes", quote_name(name)),
            ));
        }
        self.declare_types(&function.value_info)?;
        for node in &function.node {
            self.import_node(node)?;
        }
        for (name, output) in passed {
            let Some(Some(value)) = self.scopes.find_own(name) else {
                return Err(invalid_model(
                    "outputs that a node produces",
                    format!("{}, which the call leaves out", quote_name(name)),
                ));
            };
            let opset = self.domain_opset("").or_else(|_| schema::latest_opset(schema::ONNX_DOMAIN))?;
            self.scopes.current_graph().nodes.push(Node::new(
                "",
                "Identity",
                opset,
                [Some(value)],
                [Some(output)],
            ));
        }
        Ok(())
    }
}

/// Keeps the end of a name that is too long.
fn shorten_name(name: &str) -> &str {
    let fits = |at: &usize| name.len() - at <= MAX_CALL_TITLE;
    let start = name.char_indices().map(|(at, _)| at).find(fits).unwrap_or(name.len());
    &name[start..]
}
