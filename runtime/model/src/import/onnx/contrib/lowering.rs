//! Builder for the nodes that replace a contrib op.

use std::sync::Arc;

use oarlock_core::{Attribute, Attributes, Constant, Dtype, Result};

use crate::graph::{DeclaredDimension, Graph, GraphValue, Node, Subgraph, ValueId, ValueType, Weight};
use crate::import::error_location::invalid_model;
use oarlock_core::schema::OARLOCK_DOMAIN;

/// The ONNX opset of the nodes that are written.
pub(super) const WRITTEN_OPSET: u32 = 25;

/// An op, and the graph that its replacement is added to.
pub(super) struct ContribLowering<'a> {
    pub(super) node: &'a Node,
    pub(super) graph: &'a mut Graph,
    /// Prefix of the names of new values.
    title: Arc<str>,
    /// Index of the first new node.
    first: usize,
    given: Vec<(ValueId, ValueId)>,
}

impl<'a> ContribLowering<'a> {
    pub(super) fn new(node: &'a Node, graph: &'a mut Graph) -> Self {
        let title =
            node.written_values().next().map(|made| graph.value(made).name.clone()).unwrap_or_default();
        let first = graph.nodes.len();
        Self { node, graph, title, first, given: Vec::new() }
    }

    /// A required input.
    pub(super) fn input(&self, index: usize) -> Result<ValueId> {
        self.node.input(index).ok_or_else(|| invalid_model(format!("input {index}"), "none"))
    }

    pub(super) fn optional_input(&self, index: usize) -> Option<ValueId> {
        self.node.input(index)
    }

    /// True if an output is used.
    pub(super) fn wants_output(&self, index: usize) -> bool {
        self.node.output(index).is_some()
    }

    pub(super) fn int_attribute(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.node.attributes.get_int(name)?.unwrap_or(default))
    }

    pub(super) fn float_attribute(&self, name: &str, default: f64) -> Result<f64> {
        Ok(self.node.attributes.get_float(name)?.unwrap_or(default))
    }

    /// A required integer attribute above 0.
    pub(super) fn positive_attribute(&self, name: &str) -> Result<i64> {
        let found = self.node.attributes.get_int(name)?;
        found.filter(|count| *count > 0).ok_or_else(|| {
            invalid_model(
                format!("`{name}` above 0"),
                found.map_or("none".to_owned(), |count| count.to_string()),
            )
        })
    }

    /// Copies attributes that have the same names in the target op.
    pub(super) fn copy_attributes(&self, names: &[&str]) -> Attributes {
        let all = self.node.attributes.iter().filter(|(name, _)| names.contains(name));
        all.map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }

    pub(super) fn add_op(&mut self, op: &str, inputs: &[ValueId]) -> ValueId {
        self.add_op_with(op, inputs, [])
    }

    pub(super) fn add_op_with<const COUNT: usize>(
        &mut self,
        op: &str,
        inputs: &[ValueId],
        attributes: [(&str, Attribute); COUNT],
    ) -> ValueId {
        let inputs: Vec<Option<ValueId>> = inputs.iter().copied().map(Some).collect();
        self.add_node(op, &inputs, build_attributes(attributes), 1)[0]
    }

    /// Adds a node with omitted inputs or several outputs.
    pub(super) fn add_node(
        &mut self,
        op: &str,
        inputs: &[Option<ValueId>],
        attributes: Attributes,
        outputs: usize,
    ) -> Vec<ValueId> {
        let made: Vec<ValueId> = (0..outputs).map(|_| self.add_output_value(op)).collect();
        let used = inputs.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let inputs = inputs.iter().copied().take(used);
        let mut node = Node::new("", op, WRITTEN_OPSET, inputs, made.iter().copied().map(Some));
        node.attributes = attributes;
        node.name = self.node.name.clone();
        self.graph.nodes.push(node);
        made
    }

    /// Adds a node of one of Oarlock's own ops, with one output.
    pub(super) fn add_oarlock_op(&mut self, op: &str, inputs: &[ValueId], attributes: Attributes) -> ValueId {
        let inputs: Vec<Option<ValueId>> = inputs.iter().copied().map(Some).collect();
        let made = self.add_node(op, &inputs, attributes, 1)[0];
        if let Some(node) = self.last_node() {
            (node.domain, node.opset) = (OARLOCK_DOMAIN.into(), 1);
        }
        made
    }

    /// The node that was added last, to modify it.
    pub(super) fn last_node(&mut self) -> Option<&mut Node> {
        self.graph.nodes.last_mut()
    }

    /// Adds an `If` with two branches that capture the same values.
    pub(super) fn add_if(
        &mut self,
        condition: ValueId,
        captures: &[ValueId],
        outputs: usize,
        branches: [(&str, &BranchBuilder<'_>); 2],
    ) -> Result<Vec<ValueId>> {
        let mut subgraphs = Vec::new();
        for (attribute, fill) in branches {
            let mut graph = Graph::new(attribute);
            let inner = |outer: &ValueId| GraphValue { weight: None, ..self.graph.value(*outer).clone() };
            let inputs: Vec<ValueId> = captures.iter().map(|outer| graph.add_value(inner(outer))).collect();
            let (node, title) = (self.node, self.title.clone());
            let mut inner = ContribLowering { node, graph: &mut graph, title, first: 0, given: Vec::new() };
            let made = fill(&mut inner, &inputs)?;
            (graph.inputs, graph.outputs) = (inputs, made);
            subgraphs.push(Subgraph { attribute: attribute.into(), graph, captures: captures.to_vec() });
        }
        let made = self.add_node("If", &[Some(condition)], Attributes::new(), outputs);
        if let Some(node) = self.last_node() {
            node.subgraphs = subgraphs;
        }
        Ok(made)
    }

    fn add_output_value(&mut self, op: &str) -> ValueId {
        let number = self.graph.value_count();
        self.graph.add_value(GraphValue::with_name(format!("{} {op} {number}", self.title)))
    }

    pub(super) fn add_constant(&mut self, constant: Constant) -> ValueId {
        let id = self.add_output_value("constant");
        self.graph.value_mut(id).weight = Some(Weight::Numbers(constant));
        id
    }

    /// Adds a constant vector of integers.
    pub(super) fn add_ints(&mut self, values: &[i64]) -> ValueId {
        self.add_constant(Constant::from_ints(values))
    }

    /// Adds an i64 scalar.
    pub(super) fn add_int_scalar(&mut self, value: i64) -> Result<ValueId> {
        Ok(self.add_constant(Constant::new(Dtype::I64, &[], value.to_ne_bytes().to_vec())?))
    }

    /// Adds an f32 scalar.
    pub(super) fn add_float_scalar(&mut self, value: f64) -> Result<ValueId> {
        Ok(self.add_constant(Constant::new(Dtype::F32, &[], (value as f32).to_ne_bytes().to_vec())?))
    }

    /// Adds a scalar of the dtype of another value.
    pub(super) fn add_scalar_like(&mut self, value: f64, like: ValueId) -> Result<ValueId> {
        let number = self.add_float_scalar(value)?;
        Ok(self.add_cast_like(number, like))
    }

    pub(super) fn add_cast(&mut self, from: ValueId, to: Dtype) -> ValueId {
        self.add_op_with("Cast", &[from], [("to", Attribute::Int(to.onnx_number()))])
    }

    /// Casts a value to the dtype of another, unless it has it already.
    pub(super) fn add_cast_like(&mut self, from: ValueId, like: ValueId) -> ValueId {
        match (self.dtype(from), self.dtype(like)) {
            (Some(from_dtype), Some(to)) if from_dtype == to => from,
            (_, Some(to)) => self.add_cast(from, to),
            _ => self.add_op("CastLike", &[from, like]),
        }
    }

    /// Adds the sizes `start..end` of a value's shape, as a vector.
    pub(super) fn slice_shape(&mut self, of: ValueId, start: i64, end: Option<i64>) -> ValueId {
        let mut attributes = build_attributes([("start", Attribute::Int(start))]);
        if let Some(end) = end {
            attributes.set("end", Attribute::Int(end));
        }
        self.add_node("Shape", &[Some(of)], attributes, 1)[0]
    }

    /// Adds the size of a dimension, counted from the front, as a scalar.
    pub(super) fn dimension_size(&mut self, of: ValueId, axis: i64) -> ValueId {
        let (list, none) = (self.slice_shape(of, axis, Some(axis + 1)), self.add_ints(&[]));
        self.add_op("Reshape", &[list, none])
    }

    /// Adds a reshape to fixed sizes, where 0 keeps a size and -1 is inferred. Constants are reshaped at once.
    pub(super) fn add_reshape(&mut self, value: ValueId, dims: &[i64]) -> ValueId {
        match self.known_constant(value) {
            Some(known) if known.dims() == dims => return value,
            Some(known) if dims.iter().all(|dim| *dim > 0) => {
                if let Ok(known) = known.with_shape(dims) {
                    return self.add_constant(known);
                }
            }
            _ => {}
        }
        let dims = self.add_ints(dims);
        self.add_op("Reshape", &[value, dims])
    }

    /// Adds a reshape to concatenated dimensions.
    pub(super) fn add_reshape_to(&mut self, value: ValueId, parts: &[ValueId]) -> ValueId {
        let dims = self.add_concat(parts, 0);
        self.add_op("Reshape", &[value, dims])
    }

    pub(super) fn add_concat(&mut self, parts: &[ValueId], axis: i64) -> ValueId {
        self.add_op_with("Concat", parts, [("axis", Attribute::Int(axis))])
    }

    pub(super) fn add_transpose(&mut self, value: ValueId, order: &[i64]) -> ValueId {
        self.add_op_with("Transpose", &[value], [("perm", Attribute::Ints(order.to_vec()))])
    }

    pub(super) fn add_unsqueeze(&mut self, value: ValueId, axes: &[i64]) -> ValueId {
        let axes = self.add_ints(axes);
        self.add_op("Unsqueeze", &[value, axes])
    }

    /// Adds a split into equal parts.
    pub(super) fn add_split(&mut self, value: ValueId, axis: i64, count: usize) -> Vec<ValueId> {
        let attributes = build_attributes([
            ("axis", Attribute::Int(axis)),
            ("num_outputs", Attribute::Int(i64::try_from(count).unwrap_or(i64::MAX))),
        ]);
        self.add_node("Split", &[Some(value)], attributes, count)
    }

    /// Adds a slice of one axis; the bounds are vectors of one element.
    pub(super) fn add_slice(&mut self, value: ValueId, [from, to]: [ValueId; 2], axis: i64) -> ValueId {
        let axis = self.add_ints(&[axis]);
        self.add_op("Slice", &[value, from, to, axis])
    }

    /// Adds the integers from 0 up to, but not including, `count`.
    pub(super) fn add_range(&mut self, count: ValueId) -> Result<ValueId> {
        let (zero, one) = (self.add_int_scalar(0)?, self.add_int_scalar(1)?);
        Ok(self.add_op("Range", &[zero, count, one]))
    }

    /// Reshapes a value of one element to a scalar.
    pub(super) fn reshape_to_scalar(&mut self, value: ValueId) -> ValueId {
        self.add_reshape(value, &[])
    }

    /// Maps an output of the op to the value that replaces it.
    pub(super) fn set_output(&mut self, index: usize, made: ValueId) {
        if let Some(output) = self.node.output(index) {
            self.given.push((output, made));
        }
    }

    /// Declares the rank of an output, for lowerings that read it.
    pub(super) fn set_output_rank(&mut self, index: usize, rank: usize) {
        let Some(output) = self.node.output(index) else { return };
        let declared = &mut self.graph.value_mut(output).declared;
        if *declared == ValueType::Unknown {
            *declared = ValueType::Tensor { dtype: None, dims: Some(vec![DeclaredDimension::Unknown; rank]) };
        }
    }

    /// Renames the replacements to the outputs of the op, with `Identity` nodes where a rename is impossible.
    pub(super) fn finish(self) {
        let Self { graph, first, given, .. } = self;
        for (at, (output, made)) in given.iter().enumerate() {
            let is_own =
                graph.nodes[first..].iter().any(|node| node.written_values().any(|other| other == *made));
            let taken = given[..at].iter().find(|(_, other)| other == made).map(|(earlier, _)| *earlier);
            if !is_own || taken.is_some() {
                let from = taken.unwrap_or(*made);
                graph.nodes.push(Node::new("", "Identity", WRITTEN_OPSET, [Some(from)], [Some(*output)]));
                continue;
            }
            for node in &mut graph.nodes[first..] {
                node.read_values_mut().filter(|id| **id == *made).for_each(|id| *id = *output);
                node.outputs.iter_mut().flatten().filter(|id| **id == *made).for_each(|id| *id = *output);
            }
        }
    }
}

/// Adds the nodes of a branch for given captures; returns its outputs.
pub(super) type BranchBuilder<'b> = dyn Fn(&mut ContribLowering<'_>, &[ValueId]) -> Result<Vec<ValueId>> + 'b;

pub(super) fn build_attributes<const COUNT: usize>(attributes: [(&str, Attribute); COUNT]) -> Attributes {
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
