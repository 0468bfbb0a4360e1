//! A node that becomes others.

use std::sync::Arc;

use oarlock_core::{Attribute, Attributes, Constant, Dtype, Result};

use crate::graph::{Dimension, Graph, Node, Subgraph, Value, ValueId, ValueType, Weight};
use crate::import::place::wrong;

/// The opset of ONNX whose ops are written.
pub(super) const OPSET: u32 = 25;

/// The domain of the ops that this program adds to ONNX.
pub(super) const OARLOCK: &str = "oarlock";

/// An op with the graph that gets the nodes it stands for.
pub(super) struct Lowering<'a> {
    pub(super) node: &'a Node,
    pub(super) graph: &'a mut Graph,
    /// What its values are called after.
    title: Arc<str>,
    /// Where the nodes begin that it stands for.
    first: usize,
    given: Vec<(ValueId, ValueId)>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(node: &'a Node, graph: &'a mut Graph) -> Self {
        let title = node.makes().next().map(|made| graph.value(made).name.clone()).unwrap_or_default();
        let first = graph.nodes.len();
        Self { node, graph, title, first, given: Vec::new() }
    }

    /// An input, which has to be there.
    pub(super) fn input(&self, index: usize) -> Result<ValueId> {
        self.node.input(index).ok_or_else(|| wrong(format!("input {index}"), "none"))
    }

    /// An input that may be left out.
    pub(super) fn maybe(&self, index: usize) -> Option<ValueId> {
        self.node.input(index)
    }

    /// Whether somebody wants an output.
    pub(super) fn wants(&self, index: usize) -> bool {
        self.node.output(index).is_some()
    }

    pub(super) fn int(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.node.attributes.int(name)?.unwrap_or(default))
    }

    pub(super) fn float(&self, name: &str, default: f64) -> Result<f64> {
        Ok(self.node.attributes.float(name)?.unwrap_or(default))
    }

    /// A whole number above 0, which has to be there.
    pub(super) fn count(&self, name: &str) -> Result<i64> {
        let found = self.node.attributes.int(name)?;
        found.filter(|count| *count > 0).ok_or_else(|| {
            wrong(format!("`{name}` above 0"), found.map_or("none".to_owned(), |count| count.to_string()))
        })
    }

    /// Attributes that another op has under the same names.
    pub(super) fn copied(&self, names: &[&str]) -> Attributes {
        let all = self.node.attributes.iter().filter(|(name, _)| names.contains(name));
        all.map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }

    /// Adds a node with one output and no attributes.
    pub(super) fn apply(&mut self, op: &str, inputs: &[ValueId]) -> ValueId {
        self.with(op, inputs, [])
    }

    /// Adds a node with one output.
    pub(super) fn with<const COUNT: usize>(
        &mut self,
        op: &str,
        inputs: &[ValueId],
        attributes: [(&str, Attribute); COUNT],
    ) -> ValueId {
        let inputs: Vec<Option<ValueId>> = inputs.iter().copied().map(Some).collect();
        self.of(op, &inputs, named(attributes), 1)[0]
    }

    /// Adds a node of which inputs are left out, or with several outputs.
    pub(super) fn of(
        &mut self,
        op: &str,
        inputs: &[Option<ValueId>],
        attributes: Attributes,
        outputs: usize,
    ) -> Vec<ValueId> {
        let made: Vec<ValueId> = (0..outputs).map(|_| self.fresh(op)).collect();
        let used = inputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let inputs = inputs.iter().copied().take(used);
        let mut node = Node::new("", op, OPSET, inputs, made.iter().copied().map(Some));
        node.attributes = attributes;
        node.name = self.node.name.clone();
        self.graph.nodes.push(node);
        made
    }

    /// Adds a node of an op that this program adds to ONNX, with one output.
    pub(super) fn own(&mut self, op: &str, inputs: &[ValueId], attributes: Attributes) -> ValueId {
        let inputs: Vec<Option<ValueId>> = inputs.iter().copied().map(Some).collect();
        let made = self.of(op, &inputs, attributes, 1)[0];
        if let Some(node) = self.last() {
            (node.domain, node.opset) = (OARLOCK.into(), 1);
        }
        made
    }

    /// The node that was added last, to be changed.
    pub(super) fn last(&mut self) -> Option<&mut Node> {
        self.graph.nodes.last_mut()
    }

    /// Adds a choice between two graphs, each of which is made of the same values.
    pub(super) fn choose(
        &mut self,
        condition: ValueId,
        captures: &[ValueId],
        outputs: usize,
        branches: [(&str, &Branch<'_>); 2],
    ) -> Result<Vec<ValueId>> {
        let mut subgraphs = Vec::new();
        for (attribute, fill) in branches {
            let mut graph = Graph::new(attribute);
            let inner = |outer: &ValueId| Value { weight: None, ..self.graph.value(*outer).clone() };
            let inputs: Vec<ValueId> = captures.iter().map(|outer| graph.add(inner(outer))).collect();
            let (node, title) = (self.node, self.title.clone());
            let mut inner = Lowering { node, graph: &mut graph, title, first: 0, given: Vec::new() };
            let made = fill(&mut inner, &inputs)?;
            (graph.inputs, graph.outputs) = (inputs, made);
            subgraphs.push(Subgraph { attribute: attribute.into(), graph, captures: captures.to_vec() });
        }
        let made = self.of("If", &[Some(condition)], Attributes::new(), outputs);
        if let Some(node) = self.last() {
            node.subgraphs = subgraphs;
        }
        Ok(made)
    }

    fn fresh(&mut self, op: &str) -> ValueId {
        let number = self.graph.value_count();
        self.graph.add(Value::named(format!("{} {op} {number}", self.title)))
    }

    /// A constant.
    pub(super) fn constant(&mut self, constant: Constant) -> ValueId {
        let id = self.fresh("constant");
        self.graph.value_mut(id).weight = Some(Weight::Numbers(constant));
        id
    }

    /// A list of integers that is known.
    pub(super) fn ints(&mut self, values: &[i64]) -> ValueId {
        self.constant(Constant::of_ints(values))
    }

    /// One integer without dimensions.
    pub(super) fn whole(&mut self, value: i64) -> Result<ValueId> {
        Ok(self.constant(Constant::new(Dtype::I64, &[], value.to_ne_bytes().to_vec())?))
    }

    /// One number without dimensions.
    pub(super) fn real(&mut self, value: f64) -> Result<ValueId> {
        Ok(self.constant(Constant::new(Dtype::F32, &[], (value as f32).to_ne_bytes().to_vec())?))
    }

    /// One number of the dtype of a value.
    pub(super) fn number(&mut self, value: f64, like: ValueId) -> Result<ValueId> {
        let number = self.real(value)?;
        Ok(self.cast_like(number, like))
    }

    pub(super) fn cast(&mut self, from: ValueId, to: Dtype) -> ValueId {
        self.with("Cast", &[from], [("to", Attribute::Int(to.onnx_number()))])
    }

    /// Numbers of the dtype of a value.
    pub(super) fn cast_like(&mut self, from: ValueId, like: ValueId) -> ValueId {
        match (self.dtype(from), self.dtype(like)) {
            (Some(from_dtype), Some(to)) if from_dtype == to => from,
            (_, Some(to)) => self.cast(from, to),
            _ => self.apply("CastLike", &[from, like]),
        }
    }

    /// The sizes of some dimensions of a value, as a list.
    pub(super) fn sizes(&mut self, of: ValueId, start: i64, end: Option<i64>) -> ValueId {
        let mut attributes = named([("start", Attribute::Int(start))]);
        if let Some(end) = end {
            attributes.set("end", Attribute::Int(end));
        }
        self.of("Shape", &[Some(of)], attributes, 1)[0]
    }

    /// The size of a dimension, counted from the front, without dimensions.
    pub(super) fn size(&mut self, of: ValueId, axis: i64) -> ValueId {
        let (list, none) = (self.sizes(of, axis, Some(axis + 1)), self.ints(&[]));
        self.apply("Reshape", &[list, none])
    }

    /// The same elements in another shape, whose sizes are known but for 0, as it was, and -1.
    pub(super) fn reshape(&mut self, value: ValueId, dims: &[i64]) -> ValueId {
        match self.known(value) {
            Some(known) if known.dims() == dims => return value,
            Some(known) if dims.iter().all(|dim| *dim > 0) => {
                if let Ok(known) = known.reshaped(dims) {
                    return self.constant(known);
                }
            }
            _ => {}
        }
        let dims = self.ints(dims);
        self.apply("Reshape", &[value, dims])
    }

    /// The same elements in a shape that is put together from lists.
    pub(super) fn reshape_to(&mut self, value: ValueId, parts: &[ValueId]) -> ValueId {
        let dims = self.join(parts, 0);
        self.apply("Reshape", &[value, dims])
    }

    pub(super) fn join(&mut self, parts: &[ValueId], axis: i64) -> ValueId {
        self.with("Concat", parts, [("axis", Attribute::Int(axis))])
    }

    pub(super) fn transpose(&mut self, value: ValueId, order: &[i64]) -> ValueId {
        self.with("Transpose", &[value], [("perm", Attribute::Ints(order.to_vec()))])
    }

    /// Adds dimensions of one element.
    pub(super) fn unsqueeze(&mut self, value: ValueId, axes: &[i64]) -> ValueId {
        let axes = self.ints(axes);
        self.apply("Unsqueeze", &[value, axes])
    }

    /// Equal parts along an axis.
    pub(super) fn parts(&mut self, value: ValueId, axis: i64, count: usize) -> Vec<ValueId> {
        let attributes = named([
            ("axis", Attribute::Int(axis)),
            ("num_outputs", Attribute::Int(i64::try_from(count).unwrap_or(i64::MAX))),
        ]);
        self.of("Split", &[Some(value)], attributes, count)
    }

    /// What lies between two places of an axis, each a list of one element.
    pub(super) fn slice(&mut self, value: ValueId, [from, to]: [ValueId; 2], axis: i64) -> ValueId {
        let axis = self.ints(&[axis]);
        self.apply("Slice", &[value, from, to, axis])
    }

    /// The whole numbers from 0 to before one.
    pub(super) fn range(&mut self, count: ValueId) -> Result<ValueId> {
        let (zero, one) = (self.whole(0)?, self.whole(1)?);
        Ok(self.apply("Range", &[zero, count, one]))
    }

    /// A value of one element without its dimensions.
    pub(super) fn scalar(&mut self, value: ValueId) -> ValueId {
        self.reshape(value, &[])
    }

    /// Says what an output is.
    pub(super) fn give(&mut self, index: usize, made: ValueId) {
        if let Some(output) = self.node.output(index) {
            self.given.push((output, made));
        }
    }

    /// Says how many dimensions an output has, for those who read it.
    pub(super) fn note_rank(&mut self, index: usize, rank: usize) {
        let Some(output) = self.node.output(index) else { return };
        let declared = &mut self.graph.value_mut(output).declared;
        if *declared == ValueType::Unknown {
            *declared = ValueType::Tensor { dtype: None, dims: Some(vec![Dimension::Unknown; rank]) };
        }
    }

    /// Puts the outputs where they are wanted.
    pub(super) fn finish(self) {
        let Self { graph, first, given, .. } = self;
        for (at, (output, made)) in given.iter().enumerate() {
            let is_own = graph.nodes[first..].iter().any(|node| node.makes().any(|other| other == *made));
            let taken = given[..at].iter().find(|(_, other)| other == made).map(|(earlier, _)| *earlier);
            if !is_own || taken.is_some() {
                let from = taken.unwrap_or(*made);
                graph.nodes.push(Node::new("", "Identity", OPSET, [Some(from)], [Some(*output)]));
                continue;
            }
            for node in &mut graph.nodes[first..] {
                node.uses_mut().filter(|id| **id == *made).for_each(|id| *id = *output);
                node.outputs.iter_mut().flatten().filter(|id| **id == *made).for_each(|id| *id = *output);
            }
        }
    }
}

/// Adds the nodes of a branch, given what it captures; gives what it makes.
pub(super) type Branch<'b> = dyn Fn(&mut Lowering<'_>, &[ValueId]) -> Result<Vec<ValueId>> + 'b;

/// Attributes in a few words.
pub(super) fn named<const COUNT: usize>(attributes: [(&str, Attribute); COUNT]) -> Attributes {
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
