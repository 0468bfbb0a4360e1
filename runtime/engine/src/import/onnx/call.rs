//! Functions of the model, whose nodes take the place of their calls.

use std::collections::HashMap;
use std::sync::Arc;

use oarlock_core::{Error, Result, schema};

use super::attribute::kind;
use super::body::Importer;
use super::messages::attribute_proto::AttributeType;
use super::messages::{AttributeProto, FunctionProto, NodeProto};
use super::opsets::{self, Opsets};
use super::{domain_of, shown};
use crate::graph::{Node, ValueId};
use crate::import::place::{Within as _, quoted, wrong};

/// The longest name that is put before the names of a function. Calls within calls would make names ever longer.
const LONGEST_TITLE: usize = 100;

/// The functions of a model, by domain, name and overload.
pub(super) struct Functions<'m>(HashMap<(&'m str, &'m str, &'m str), Function<'m>>);

/// A function, and the opsets that its nodes mean.
#[derive(Clone)]
pub(super) struct Function<'m> {
    proto: &'m FunctionProto,
    opsets: Arc<Opsets<'m>>,
}

/// A call of a function, while its nodes are added.
pub(super) struct Call<'m> {
    /// What stands before the names of the function.
    pub(super) title: String,
    /// What the attributes of the function are.
    pub(super) attributes: HashMap<&'m str, &'m AttributeProto>,
    /// The opsets that its nodes mean.
    pub(super) opsets: Arc<Opsets<'m>>,
    function: &'m FunctionProto,
}

impl<'m> Functions<'m> {
    /// The functions of a model.
    pub(super) fn of(protos: &'m [FunctionProto]) -> Result<Self> {
        let mut functions = HashMap::with_capacity(protos.len());
        for proto in protos {
            let opsets = opsets::read(&proto.opset_import).within(|| title(proto))?.into();
            let key = (domain_of(proto.domain()), proto.name(), proto.overload());
            if functions.insert(key, Function { proto, opsets }).is_some() {
                return Err(wrong("every function once", format!("{} twice", title(proto))));
            }
        }
        Ok(Self(functions))
    }

    /// The function that a node calls, if it calls one.
    pub(super) fn find(&self, node: &NodeProto) -> Option<Function<'m>> {
        let key = (domain_of(node.domain()), node.op_type(), node.overload());
        self.0.get(&key).cloned()
    }
}

impl<'m> Importer<'m> {
    /// Adds the nodes of a function to the graph, with the operands of the call in the place of its own.
    pub(super) fn call(
        &mut self,
        function: Function<'m>,
        node: &'m NodeProto,
        inputs: &[Option<ValueId>],
        outputs: &[Option<ValueId>],
    ) -> Result<()> {
        let Function { proto, opsets } = function;
        let place = || title(proto);
        if self.scopes.calls().any(|call| std::ptr::eq(call.function, proto)) {
            return Err(wrong("functions that do not call themselves", format!("{}, which does", place())));
        }
        for (kind, most, found) in
            [("inputs", proto.input.len(), inputs.len()), ("outputs", proto.output.len(), outputs.len())]
        {
            if found > most {
                return Err(wrong(format!("at most {most} {kind}"), found)).within(place);
            }
        }
        let attributes = self.given(proto, node)?;
        let called = if node.name().is_empty() { proto.name() } else { node.name() };
        let title = shortened(&self.scopes.title(called)).to_owned();
        self.scopes.open_call(Call { title, attributes, opsets, function: proto })?;
        let before = self.scopes.graph().nodes.len();
        self.put(proto, inputs, outputs).within(place)?;
        self.scopes.close_call();
        let name = self.scopes.title(node.name());
        // A function of one node, as they are written for another opset, stands for this node.
        if let Some([only]) = self.scopes.graph().nodes.get_mut(before..)
            && only.name.is_empty()
            && !node.name().is_empty()
        {
            only.name = name;
        }
        Ok(())
    }

    /// What the attributes of a function are in a call.
    fn given(
        &self,
        function: &'m FunctionProto,
        node: &'m NodeProto,
    ) -> Result<HashMap<&'m str, &'m AttributeProto>> {
        let defaults = function.attribute_proto.iter().map(|attribute| (attribute.name(), attribute));
        let mut attributes: HashMap<_, _> = defaults.collect();
        for attribute in &node.attribute {
            let place = || format!("the attribute {}", quoted(attribute.name()));
            let Some(meant) = self.meant(attribute).within(place)? else { continue };
            if matches!(kind(meant).within(place)?, AttributeType::Graph | AttributeType::Graphs) {
                let message = "expected a call of a function without graphs among its attributes, found one";
                return Err(Error::unimplemented(message)).within(place);
            }
            attributes.insert(attribute.name(), meant);
        }
        Ok(attributes)
    }

    fn put(
        &mut self,
        function: &'m FunctionProto,
        inputs: &[Option<ValueId>],
        outputs: &[Option<ValueId>],
    ) -> Result<()> {
        for (at, name) in function.input.iter().enumerate() {
            self.scopes.name(name, inputs.get(at).copied().flatten())?;
        }
        let mut made = HashMap::new();
        let mut passed = Vec::new();
        for (name, output) in function.output.iter().zip(outputs) {
            let Some(output) = output else { continue };
            if self.scopes.own(name).is_some() || made.contains_key(name.as_str()) {
                passed.push((name, *output));
            } else {
                made.insert(name.as_str(), *output);
            }
        }
        self.promise(&function.node, &mut made)?;
        if let Some(name) = made.keys().next() {
            return Err(wrong("outputs that are made", format!("{}, which nothing makes", quoted(name))));
        }
        self.declare(&function.value_info)?;
        for node in &function.node {
            self.node(node)?;
        }
        for (name, output) in passed {
            let Some(Some(value)) = self.scopes.own(name) else {
                return Err(wrong(
                    "outputs that are made",
                    format!("{}, which the call leaves out", quoted(name)),
                ));
            };
            let opset = self.opset("").or_else(|_| schema::newest_opset(schema::ONNX))?;
            self.scopes.graph().nodes.push(Node::new("", "Identity", opset, [Some(value)], [Some(output)]));
        }
        Ok(())
    }
}

/// What messages call a function.
fn title(function: &FunctionProto) -> String {
    format!(
        "the function {}",
        quoted(&format!("{}.{}", shown(domain_of(function.domain())), function.name()))
    )
}

/// The end of a name, as far as it is not too long.
fn shortened(name: &str) -> &str {
    let fits = |at: &usize| name.len() - at <= LONGEST_TITLE;
    let start = name.char_indices().map(|(at, _)| at).find(fits).unwrap_or(name.len());
    &name[start..]
}
