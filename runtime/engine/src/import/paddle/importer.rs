//! The program as a graph.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_core::{Attribute, Attributes, Constant, Dtype, Error, Result, shape};

use super::messages::{BlockDesc, OpDesc, VarDesc, var_type::TensorDesc};
use super::operand::PaddleOperand;
use super::parameters::dtype_from_number;
use super::scope::GraphFrame;
use super::{WRITTEN_OPSET, ops};
use crate::graph::{DeclaredDimension, Graph, GraphValue, Node, ValueId, ValueType, Weight};
use crate::import::error_location::{invalid_model, quote_name};

/// How many unsupported ops are named.
const MOST_NAMED_OPS: usize = 10;

/// A program that becomes a graph.
pub(super) struct PaddleImporter<'m> {
    /// The version of Paddle that wrote it, as in 2006002; 0 where it does not say.
    version: i64,
    pub(super) blocks: &'m [BlockDesc],
    /// The blocks that are bodies of ops already. One that were the body of many could make a graph of any size.
    pub(super) taken: BTreeSet<usize>,
    /// The graphs that are being made, each the body of an op of the one before.
    pub(super) frames: Vec<GraphFrame<'m>>,
    /// What is fed and fetched, by the place that the program gives it.
    pub(super) fed: BTreeMap<i64, ValueId>,
    pub(super) fetched: BTreeMap<i64, ValueId>,
}

/// Makes a graph of the block that is run.
pub(super) fn import_graph<'m>(
    blocks: &'m [BlockDesc],
    version: i64,
    weights: BTreeMap<&'m str, Weight>,
) -> Result<Graph> {
    let ops = blocks.iter().flat_map(|block| &block.ops);
    let unsupported: BTreeSet<&str> =
        ops.map(|op| op.r#type()).filter(|name| ops::find_translator(name).is_none()).collect();
    if !unsupported.is_empty() {
        let names: Vec<String> =
            unsupported.iter().take(MOST_NAMED_OPS).map(|name| quote_name(name)).collect();
        return Err(Error::unimplemented(format!(
            "expected ops that are supported, found {}",
            names.join(", ")
        )));
    }
    for variable in blocks.iter().flat_map(|block| &block.vars) {
        let rank = tensor_desc(variable).map_or(0, |tensor| tensor.dims.len());
        if rank > shape::MAX_RANK {
            let expected = format!("at most {} dimensions", shape::MAX_RANK);
            return Err(invalid_model(expected, format!("{rank} of {}", quote_name(variable.name()))));
        }
    }
    let mut program = PaddleImporter {
        version,
        blocks,
        taken: BTreeSet::new(),
        frames: Vec::new(),
        fed: BTreeMap::new(),
        fetched: BTreeMap::new(),
    };
    let main = program.open_frame(Some(0))?;
    for (name, weight) in weights {
        let id = program.current_graph().add_value(GraphValue::with_weight(name, weight));
        program.bind_name(name, id);
    }
    program.lower_ops(main)?;
    let outputs = program.fetched.values().copied().collect();
    let (mut graph, _) = program.close_frame(outputs);
    graph.inputs = program.fed.into_values().collect();
    Ok(graph)
}

/// What is said about a variable that is a tensor.
pub(super) fn tensor_desc(variable: &VarDesc) -> Option<&TensorDesc> {
    variable.r#type.as_ref()?.dense_tensor.as_ref()?.tensor.as_ref()
}

/// What messages call an op.
pub(super) fn op_label(op: &OpDesc) -> String {
    let output = op.outputs.iter().flat_map(|list| &list.arguments).next();
    match output {
        Some(output) => format!("the {} that makes {}", quote_name(op.r#type()), quote_name(output)),
        None => quote_name(op.r#type()),
    }
}

impl<'m> PaddleImporter<'m> {
    /// Whether a version of Paddle wrote it that is older than a major one.
    pub(super) fn is_older_than(&self, major: i64) -> bool {
        (1..major * 1_000_000).contains(&self.version)
    }

    /// The operands under a name.
    pub(super) fn inputs(&mut self, op: &'m OpDesc, name: &str) -> Result<Vec<PaddleOperand<'m>>> {
        let find = |argument: &'m String| {
            let id = self.require_value(argument)?;
            let stated =
                self.find_tensor_desc(argument).and_then(|tensor| dtype_from_number(tensor.data_type()).ok());
            Ok(PaddleOperand { id, dims: self.declared_dims(argument), stated })
        };
        OpDesc::operand_names(&op.inputs, name).iter().map(find).collect()
    }

    /// The operand under a name, where it is given.
    pub(super) fn optional_input(&mut self, op: &'m OpDesc, name: &str) -> Result<Option<PaddleOperand<'m>>> {
        Ok(self.inputs(op, name)?.into_iter().next())
    }

    /// The operand under a name.
    pub(super) fn input(&mut self, op: &'m OpDesc, name: &str) -> Result<PaddleOperand<'m>> {
        self.optional_input(op, name)?.ok_or_else(|| invalid_model(format!("the operand `{name}`"), "none"))
    }

    /// What is said about the type of a variable.
    fn declared_type(&self, name: &str) -> Result<ValueType> {
        let Some(tensor) = self.find_tensor_desc(name) else { return Ok(ValueType::Unknown) };
        let dim =
            |size: &i64| if *size < 0 { DeclaredDimension::Unknown } else { DeclaredDimension::Known(*size) };
        Ok(ValueType::Tensor {
            dtype: Some(dtype_from_number(tensor.data_type())?),
            dims: Some(tensor.dims.iter().map(dim).collect()),
        })
    }

    /// Adds a node with one output.
    pub(super) fn add_op_with(&mut self, op: &str, inputs: &[ValueId], attributes: Attributes) -> ValueId {
        let inputs: Vec<Option<ValueId>> = inputs.iter().copied().map(Some).collect();
        self.add_node(op, &inputs, attributes, 1)[0]
    }

    /// Adds a node with one output and no attributes.
    pub(super) fn add_op(&mut self, op: &str, inputs: &[ValueId]) -> ValueId {
        self.add_op_with(op, inputs, Attributes::new())
    }

    /// Adds a node that makes elements of another type.
    pub(super) fn add_cast(&mut self, from: ValueId, to: Dtype) -> ValueId {
        self.add_op_with("Cast", &[from], build_attributes([("to", Attribute::Int(to.onnx_number()))]))
    }

    /// Adds a node of which inputs are left out, or with several outputs.
    pub(super) fn add_node(
        &mut self,
        op: &str,
        inputs: &[Option<ValueId>],
        attributes: Attributes,
        outputs: usize,
    ) -> Vec<ValueId> {
        let outputs: Vec<ValueId> =
            (0..outputs).map(|_| self.current_graph().add_value(GraphValue::default())).collect();
        let made = outputs.iter().copied().map(Some);
        let mut node = Node::new("", op, WRITTEN_OPSET, inputs.iter().copied(), made);
        node.attributes = attributes;
        self.current_graph().nodes.push(node);
        outputs
    }

    /// A list of integers that is known.
    pub(super) fn add_ints(&mut self, values: &[i64]) -> ValueId {
        self.add_constant(Constant::from_ints(values))
    }

    /// One number of a dtype that is known.
    pub(super) fn add_scalar(&mut self, value: f64, dtype: Dtype) -> Result<ValueId> {
        let bytes = ops::encode_numbers(&[value], dtype)?;
        Ok(self.add_constant(Constant::new(dtype, &[], bytes)?))
    }

    /// A constant.
    pub(super) fn add_constant(&mut self, constant: Constant) -> ValueId {
        self.current_graph().add_value(GraphValue::with_weight("", Weight::Numbers(constant)))
    }

    /// The elements of an operand that is known.
    pub(super) fn known_constant(&self, id: ValueId) -> Option<&Constant> {
        self.frames.last()?.graph.value(id).weight.as_ref()?.as_numbers()
    }

    /// The elements of an operand that is known and of whole numbers.
    pub(super) fn known_ints(&self, id: ValueId) -> Option<Vec<i64>> {
        let known = self.known_constant(id)?;
        match known.dtype() {
            Dtype::I64 => known.to_ints().ok().map(|ints| ints.to_vec()),
            Dtype::I32 => Some(
                known
                    .bytes()
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|it| i64::from(i32::from_ne_bytes(*it)))
                    .collect(),
            ),
            _ => None,
        }
    }

    /// The dtype of the first output of an op under a name, as the program says it.
    pub(super) fn output_dtype(&self, op: &OpDesc, name: &str) -> Option<Dtype> {
        self.declared_dtype(OpDesc::operand_names(&op.outputs, name).first()?)
    }

    /// The dtype of an input of an op.
    pub(super) fn input_dtype(&self, op: &OpDesc, name: &str) -> Option<Dtype> {
        self.declared_dtype(OpDesc::operand_names(&op.inputs, name).first()?)
    }

    /// Says what the outputs of an op are.
    pub(super) fn set_outputs(&mut self, op: &'m OpDesc, name: &str, ids: &[ValueId]) -> Result<()> {
        for (argument, id) in OpDesc::operand_names(&op.outputs, name).iter().zip(ids) {
            let declared = self.declared_type(argument)?;
            let value = self.current_graph().value_mut(*id);
            // What is handed on keeps the name that it has.
            if value.name.is_empty() {
                value.name = argument.as_str().into();
                value.declared = declared;
            }
            self.bind_name(argument, *id);
        }
        Ok(())
    }

    /// Says what the output of an op is.
    pub(super) fn set_output(&mut self, op: &'m OpDesc, name: &str, id: ValueId) -> Result<()> {
        self.set_outputs(op, name, &[id])
    }

    /// Makes what an op is fed an input of the graph.
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

    /// Makes what an op fetches an output of the graph, under the name that it has in the program.
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
        // Programs may say of whatever they fetch that it is of floats.
        if let ValueType::Tensor { dtype, .. } = &mut self.current_graph().value_mut(id).declared {
            *dtype = None;
        }
        match self.fetched.insert(op.int_attribute("col", 0), id) {
            Some(_) => Err(invalid_model("one output in each place", "two in one")),
            None => Ok(()),
        }
    }
}

/// Attributes in a few words.
pub(super) fn build_attributes<const COUNT: usize>(attributes: [(&str, Attribute); COUNT]) -> Attributes {
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
