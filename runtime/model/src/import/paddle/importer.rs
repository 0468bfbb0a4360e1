//! The state of an import, and the nodes and operands that translations of ops use.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_core::{Attribute, Attributes, Constant, Dtype, Result};

use super::WRITTEN_OPSET;
use super::graph_frame::GraphFrame;
use super::messages::{BlockDesc, OpDesc};
use super::number_encoding::encode_numbers;
use super::operand::PaddleOperand;
use super::parameters::dtype_from_number;
use crate::graph::{DeclaredDimension, GraphValue, Node, ValueId, ValueType, Weight};
use crate::import::error_location::invalid_model;
use oarlock_core::schema::OARLOCK_DOMAIN;

/// State of one import.
pub(super) struct PaddleImporter<'m> {
    /// Version of Paddle that wrote the program, such as 2006002; 0 if unknown.
    version: i64,
    pub(super) blocks: &'m [BlockDesc],
    /// Blocks already used as bodies. A block must have one owner, or a small file could describe a graph of any size.
    pub(super) taken: BTreeSet<usize>,
    /// Graphs under construction; each is the body of an op of the one before.
    pub(super) frames: Vec<GraphFrame<'m>>,
    /// Inputs of the program, by the column that it assigns.
    pub(super) fed: BTreeMap<i64, ValueId>,
    pub(super) fetched: BTreeMap<i64, ValueId>,
    /// Finds the translator of an op. Translators of branches and loops have it called for the ops of their bodies.
    pub(super) find_translator: fn(&str) -> Option<OpTranslator>,
}

/// Adds the nodes that an op is equivalent to.
pub(super) type OpTranslator = for<'m> fn(&mut PaddleImporter<'m>, &'m OpDesc) -> Result<()>;

impl<'m> PaddleImporter<'m> {
    /// An import of blocks that the given version of Paddle wrote.
    pub(super) fn new(
        blocks: &'m [BlockDesc],
        version: i64,
        find_translator: fn(&str) -> Option<OpTranslator>,
    ) -> Self {
        Self {
            version,
            blocks,
            taken: BTreeSet::new(),
            frames: Vec::new(),
            fed: BTreeMap::new(),
            fetched: BTreeMap::new(),
            find_translator,
        }
    }

    /// True for a known version of Paddle before the major version `major`.
    pub(super) fn is_older_than(&self, major: i64) -> bool {
        (1..major * 1_000_000).contains(&self.version)
    }

    /// All operands under a parameter name.
    pub(super) fn inputs(&mut self, op: &'m OpDesc, name: &str) -> Result<Vec<PaddleOperand<'m>>> {
        let find = |argument: &'m String| {
            let id = self.require_value(argument)?;
            let stated =
                self.find_tensor_desc(argument).and_then(|tensor| dtype_from_number(tensor.data_type()).ok());
            Ok(PaddleOperand { id, dims: self.declared_dims(argument), stated })
        };
        OpDesc::operand_names(&op.inputs, name).iter().map(find).collect()
    }

    /// The operand under a parameter name, if there is one.
    pub(super) fn optional_input(&mut self, op: &'m OpDesc, name: &str) -> Result<Option<PaddleOperand<'m>>> {
        Ok(self.inputs(op, name)?.into_iter().next())
    }

    /// The operand under a parameter name; required.
    pub(super) fn input(&mut self, op: &'m OpDesc, name: &str) -> Result<PaddleOperand<'m>> {
        self.optional_input(op, name)?.ok_or_else(|| invalid_model(format!("the operand `{name}`"), "none"))
    }

    /// The declared type of a variable.
    fn declared_type(&self, name: &str) -> Result<ValueType> {
        let Some(tensor) = self.find_tensor_desc(name) else { return Ok(ValueType::Unknown) };
        let dim =
            |size: &i64| if *size < 0 { DeclaredDimension::Unknown } else { DeclaredDimension::Known(*size) };
        Ok(ValueType::Tensor {
            dtype: Some(dtype_from_number(tensor.data_type())?),
            dims: Some(tensor.dims.iter().map(dim).collect()),
        })
    }

    pub(super) fn add_op_with(&mut self, op: &str, inputs: &[ValueId], attributes: Attributes) -> ValueId {
        let inputs: Vec<Option<ValueId>> = inputs.iter().copied().map(Some).collect();
        self.add_node(op, &inputs, attributes, 1)[0]
    }

    /// Adds a node with one output and no attributes.
    pub(super) fn add_op(&mut self, op: &str, inputs: &[ValueId]) -> ValueId {
        self.add_op_with(op, inputs, Attributes::new())
    }

    pub(super) fn add_cast(&mut self, from: ValueId, to: Dtype) -> ValueId {
        self.add_op_with("Cast", &[from], build_attributes([("to", Attribute::Int(to.onnx_number()))]))
    }

    /// Adds a node with omitted inputs or several outputs.
    pub(super) fn add_node(
        &mut self,
        op: &str,
        inputs: &[Option<ValueId>],
        attributes: Attributes,
        outputs: usize,
    ) -> Vec<ValueId> {
        let outputs: Vec<ValueId> =
            (0..outputs).map(|_| self.current_graph().add_value(GraphValue::default())).collect();
        let result = outputs.iter().copied().map(Some);
        let mut node = Node::new("", op, WRITTEN_OPSET, inputs.iter().copied(), result);
        node.attributes = attributes;
        self.current_graph().nodes.push(node);
        outputs
    }

    /// Adds a node of one of Oarlock's own ops, with one output.
    pub(super) fn add_oarlock_op(&mut self, op: &str, inputs: &[ValueId], attributes: Attributes) -> ValueId {
        self.add_oarlock_node(op, inputs, attributes, 1)[0]
    }

    /// Adds a node of one of Oarlock's own ops.
    pub(super) fn add_oarlock_node(
        &mut self,
        op: &str,
        inputs: &[ValueId],
        attributes: Attributes,
        outputs: usize,
    ) -> Vec<ValueId> {
        let inputs: Vec<Option<ValueId>> = inputs.iter().copied().map(Some).collect();
        let made = self.add_node(op, &inputs, attributes, outputs);
        if let Some(node) = self.current_graph().nodes.last_mut() {
            (node.domain, node.opset) = (OARLOCK_DOMAIN.into(), 1);
        }
        made
    }

    /// Adds a constant vector of integers.
    pub(super) fn add_ints(&mut self, values: &[i64]) -> ValueId {
        self.add_constant(Constant::from_ints(values))
    }

    /// Adds a scalar of a dtype.
    pub(super) fn add_scalar(&mut self, value: f64, dtype: Dtype) -> Result<ValueId> {
        let bytes = encode_numbers(&[value], dtype)?;
        Ok(self.add_constant(Constant::new(dtype, &[], bytes)?))
    }

    pub(super) fn add_constant(&mut self, constant: Constant) -> ValueId {
        self.current_graph().add_value(GraphValue::with_weight("", Weight::Numbers(constant)))
    }

    pub(super) fn known_constant(&self, id: ValueId) -> Option<&Constant> {
        self.frames.last()?.graph.value(id).weight.as_ref()?.as_numbers()
    }

    /// The elements of an integer constant, widened to i64.
    pub(super) fn known_ints(&self, id: ValueId) -> Option<Vec<i64>> {
        let known = self.known_constant(id)?;
        match known.dtype() {
            Dtype::I32 | Dtype::I64 => known.to_ints().ok(),
            _ => None,
        }
    }

    /// The declared dtype of the first output under a parameter name.
    pub(super) fn output_dtype(&self, op: &OpDesc, name: &str) -> Option<Dtype> {
        self.declared_dtype(OpDesc::operand_names(&op.outputs, name).first()?)
    }

    /// The declared dtype of the first input under a parameter name.
    pub(super) fn input_dtype(&self, op: &OpDesc, name: &str) -> Option<Dtype> {
        self.declared_dtype(OpDesc::operand_names(&op.inputs, name).first()?)
    }

    /// Binds the outputs of an op to values.
    pub(super) fn set_outputs(&mut self, op: &'m OpDesc, name: &str, ids: &[ValueId]) -> Result<()> {
        for (argument, id) in OpDesc::operand_names(&op.outputs, name).iter().zip(ids) {
            let declared = self.declared_type(argument)?;
            let value = self.current_graph().value_mut(*id);
            // A value that is only passed on keeps its name.
            if value.name.is_empty() {
                value.name = argument.as_str().into();
                value.declared = declared;
            }
            self.bind_name(argument, *id);
        }
        Ok(())
    }

    pub(super) fn set_output(&mut self, op: &'m OpDesc, name: &str, id: ValueId) -> Result<()> {
        self.set_outputs(op, name, &[id])
    }

    /// Turns a `feed` op into an input of the graph.
    pub(super) fn lower_feed(&mut self, op: &'m OpDesc) -> Result<()> {
        if self.frames.len() > 1 {
            return Err(invalid_model("a program that is fed", "a block that is"));
        }
        let [name] = OpDesc::operand_names(&op.outputs, "Out") else {
            return Err(invalid_model("one output", "another number"));
        };
        let graph = &self.frames[0].graph;
        if self.fed.values().any(|id| *graph.value(*id).name == **name) {
            return Err(invalid_model("inputs of different names", format!("`{name}` twice")));
        }
        let declared = self.declared_type(name)?;
        let id =
            self.current_graph().add_value(GraphValue { declared, ..GraphValue::with_name(name.as_str()) });
        self.bind_name(name, id);
        match self.fed.insert(op.int_attribute("col", 0), id) {
            Some(_) => Err(invalid_model("one input in each place", "two in one")),
            None => Ok(()),
        }
    }

    /// Turns a `fetch` op into an output of the graph, with the name that it has in the program.
    pub(super) fn lower_fetch(&mut self, op: &'m OpDesc) -> Result<()> {
        if self.frames.len() > 1 {
            return Err(invalid_model("a program that fetches its outputs", "a block that does"));
        }
        let from = self.input(op, "X")?.id;
        let [name] = OpDesc::operand_names(&op.inputs, "X") else {
            return Err(invalid_model("one input", "another number"));
        };
        let id = if *self.current_graph().value(from).name == **name {
            from
        } else {
            let copy = self.add_op_with("Identity", &[from], Attributes::new());
            self.current_graph().value_mut(copy).name = name.as_str().into();
            copy
        };
        // Programs may declare any fetched value as a float tensor.
        if let ValueType::Tensor { dtype, .. } = &mut self.current_graph().value_mut(id).declared {
            *dtype = None;
        }
        match self.fetched.insert(op.int_attribute("col", 0), id) {
            Some(_) => Err(invalid_model("one output in each place", "two in one")),
            None => Ok(()),
        }
    }
}

pub(super) fn build_attributes<const COUNT: usize>(attributes: [(&str, Attribute); COUNT]) -> Attributes {
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
