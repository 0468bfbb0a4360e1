//! The program as a graph.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_core::{Attribute, Attributes, Constant, Dtype, Error, Result, shape};

use super::messages::{BlockDesc, OpDesc, VarDesc, var_type::TensorDesc};
use super::operand::Operand;
use super::parameters::dtype;
use super::scope::Frame;
use super::{OPSET, ops};
use crate::graph::{Dimension, Graph, Node, Value, ValueId, ValueType, Weight};
use crate::import::place::{quoted, wrong};

/// How many unsupported ops are named.
const MOST_NAMED: usize = 10;

/// A program that becomes a graph.
pub(super) struct Program<'m> {
    /// The version of Paddle that wrote it, as in 2006002; 0 where it does not say.
    version: i64,
    pub(super) blocks: &'m [BlockDesc],
    /// The blocks that are bodies of ops already. One that were the body of many could make a graph of any size.
    pub(super) taken: BTreeSet<usize>,
    /// The graphs that are being made, each the body of an op of the one before.
    pub(super) frames: Vec<Frame<'m>>,
    /// What is fed and fetched, by the place that the program gives it.
    pub(super) fed: BTreeMap<i64, ValueId>,
    pub(super) fetched: BTreeMap<i64, ValueId>,
}

/// Makes a graph of the block that is run.
pub(super) fn graph<'m>(
    blocks: &'m [BlockDesc],
    version: i64,
    weights: BTreeMap<&'m str, Weight>,
) -> Result<Graph> {
    let ops = blocks.iter().flat_map(|block| &block.ops);
    let unsupported: BTreeSet<&str> =
        ops.map(|op| op.r#type()).filter(|name| ops::find(name).is_none()).collect();
    if !unsupported.is_empty() {
        let names: Vec<String> = unsupported.iter().take(MOST_NAMED).map(|name| quoted(name)).collect();
        return Err(Error::unimplemented(format!(
            "expected ops that are supported, found {}",
            names.join(", ")
        )));
    }
    for variable in blocks.iter().flat_map(|block| &block.vars) {
        let rank = tensor_of(variable).map_or(0, |tensor| tensor.dims.len());
        if rank > shape::MOST_DIMENSIONS {
            let expected = format!("at most {} dimensions", shape::MOST_DIMENSIONS);
            return Err(wrong(expected, format!("{rank} of {}", quoted(variable.name()))));
        }
    }
    let mut program = Program {
        version,
        blocks,
        taken: BTreeSet::new(),
        frames: Vec::new(),
        fed: BTreeMap::new(),
        fetched: BTreeMap::new(),
    };
    let main = program.open(Some(0))?;
    for (name, weight) in weights {
        let id = program.graph().add(Value::constant(name, weight));
        program.bind(name, id);
    }
    program.fill(main)?;
    let outputs = program.fetched.values().copied().collect();
    let (mut graph, _) = program.close(outputs);
    graph.inputs = program.fed.into_values().collect();
    Ok(graph)
}

/// What is said about a variable that is a tensor.
pub(super) fn tensor_of(variable: &VarDesc) -> Option<&TensorDesc> {
    variable.r#type.as_ref()?.dense_tensor.as_ref()?.tensor.as_ref()
}

/// What messages call an op.
pub(super) fn label(op: &OpDesc) -> String {
    let output = op.outputs.iter().flat_map(|list| &list.arguments).next();
    match output {
        Some(output) => format!("the {} that makes {}", quoted(op.r#type()), quoted(output)),
        None => quoted(op.r#type()),
    }
}

impl<'m> Program<'m> {
    /// Whether a version of Paddle wrote it that is older than a major one.
    pub(super) fn is_before(&self, major: i64) -> bool {
        (1..major * 1_000_000).contains(&self.version)
    }

    /// The operands under a name.
    pub(super) fn inputs(&mut self, op: &'m OpDesc, name: &str) -> Result<Vec<Operand<'m>>> {
        let find = |argument: &'m String| {
            let id = self.value(argument)?;
            let stated = self.tensor(argument).and_then(|tensor| dtype(tensor.data_type()).ok());
            Ok(Operand { id, dims: self.dims(argument), stated })
        };
        OpDesc::operands(&op.inputs, name).iter().map(find).collect()
    }

    /// The operand under a name, where it is given.
    pub(super) fn maybe(&mut self, op: &'m OpDesc, name: &str) -> Result<Option<Operand<'m>>> {
        Ok(self.inputs(op, name)?.into_iter().next())
    }

    /// The operand under a name.
    pub(super) fn input(&mut self, op: &'m OpDesc, name: &str) -> Result<Operand<'m>> {
        self.maybe(op, name)?.ok_or_else(|| wrong(format!("the operand `{name}`"), "none"))
    }

    /// What is said about the type of a variable.
    fn declared(&self, name: &str) -> Result<ValueType> {
        let Some(tensor) = self.tensor(name) else { return Ok(ValueType::Unknown) };
        let dim = |size: &i64| if *size < 0 { Dimension::Unknown } else { Dimension::Known(*size) };
        Ok(ValueType::Tensor {
            dtype: Some(dtype(tensor.data_type())?),
            dims: Some(tensor.dims.iter().map(dim).collect()),
        })
    }

    /// Adds a node with one output.
    pub(super) fn node(&mut self, op: &str, inputs: &[ValueId], attributes: Attributes) -> ValueId {
        let inputs: Vec<Option<ValueId>> = inputs.iter().copied().map(Some).collect();
        self.nodes(op, &inputs, attributes, 1)[0]
    }

    /// Adds a node with one output and no attributes.
    pub(super) fn apply(&mut self, op: &str, inputs: &[ValueId]) -> ValueId {
        self.node(op, inputs, Attributes::new())
    }

    /// Adds a node that makes elements of another type.
    pub(super) fn cast(&mut self, from: ValueId, to: Dtype) -> ValueId {
        self.node("Cast", &[from], with([("to", Attribute::Int(to.onnx_number()))]))
    }

    /// Adds a node of which inputs are left out, or with several outputs.
    pub(super) fn nodes(
        &mut self,
        op: &str,
        inputs: &[Option<ValueId>],
        attributes: Attributes,
        outputs: usize,
    ) -> Vec<ValueId> {
        let outputs: Vec<ValueId> = (0..outputs).map(|_| self.graph().add(Value::default())).collect();
        let made = outputs.iter().copied().map(Some);
        let mut node = Node::new("", op, OPSET, inputs.iter().copied(), made);
        node.attributes = attributes;
        self.graph().nodes.push(node);
        outputs
    }

    /// A list of integers that is known.
    pub(super) fn ints(&mut self, values: &[i64]) -> ValueId {
        self.constant(Constant::of_ints(values))
    }

    /// One number of a dtype that is known.
    pub(super) fn number(&mut self, value: f64, dtype: Dtype) -> Result<ValueId> {
        let bytes = ops::bytes_of(&[value], dtype)?;
        Ok(self.constant(Constant::new(dtype, &[], bytes)?))
    }

    /// A constant.
    pub(super) fn constant(&mut self, constant: Constant) -> ValueId {
        self.graph().add(Value::constant("", Weight::Numbers(constant)))
    }

    /// The elements of an operand that is known.
    pub(super) fn known(&self, id: ValueId) -> Option<&Constant> {
        self.frames.last()?.graph.value(id).weight.as_ref()?.numbers()
    }

    /// The elements of an operand that is known and of whole numbers.
    pub(super) fn whole(&self, id: ValueId) -> Option<Vec<i64>> {
        let known = self.known(id)?;
        match known.dtype() {
            Dtype::I64 => known.ints().ok().map(|ints| ints.to_vec()),
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
        self.dtype_of(OpDesc::operands(&op.outputs, name).first()?)
    }

    /// The dtype of an input of an op.
    pub(super) fn input_dtype(&self, op: &OpDesc, name: &str) -> Option<Dtype> {
        self.dtype_of(OpDesc::operands(&op.inputs, name).first()?)
    }

    /// Says what the outputs of an op are.
    pub(super) fn give_all(&mut self, op: &'m OpDesc, name: &str, ids: &[ValueId]) -> Result<()> {
        for (argument, id) in OpDesc::operands(&op.outputs, name).iter().zip(ids) {
            let declared = self.declared(argument)?;
            let value = self.graph().value_mut(*id);
            // What is handed on keeps the name that it has.
            if value.name.is_empty() {
                value.name = argument.as_str().into();
                value.declared = declared;
            }
            self.bind(argument, *id);
        }
        Ok(())
    }

    /// Says what the output of an op is.
    pub(super) fn give(&mut self, op: &'m OpDesc, name: &str, id: ValueId) -> Result<()> {
        self.give_all(op, name, &[id])
    }

    /// Makes what an op is fed an input of the graph.
    pub(super) fn feed(&mut self, op: &'m OpDesc) -> Result<()> {
        if self.frames.len() > 1 {
            return Err(wrong("a program that is fed", "a block that is"));
        }
        let [name] = OpDesc::operands(&op.outputs, "Out") else {
            return Err(wrong("one output", "another number"));
        };
        let graph = &self.frames[0].graph;
        if self.fed.values().any(|id| *graph.value(*id).name == **name) {
            return Err(wrong("inputs of different names", format!("`{name}` twice")));
        }
        let declared = self.declared(name)?;
        let id = self.graph().add(Value { declared, ..Value::named(name.as_str()) });
        self.bind(name, id);
        match self.fed.insert(op.int("col", 0), id) {
            Some(_) => Err(wrong("one input in each place", "two in one")),
            None => Ok(()),
        }
    }

    /// Makes what an op fetches an output of the graph, under the name that it has in the program.
    pub(super) fn fetch(&mut self, op: &'m OpDesc) -> Result<()> {
        if self.frames.len() > 1 {
            return Err(wrong("a program that fetches its outputs", "a block that does"));
        }
        let from = self.input(op, "X")?.id;
        let [name] = OpDesc::operands(&op.inputs, "X") else {
            return Err(wrong("one input", "another number"));
        };
        let id = if *self.graph().value(from).name == **name {
            from
        } else {
            let copy = self.node("Identity", &[from], Attributes::new());
            self.graph().value_mut(copy).name = name.as_str().into();
            copy
        };
        // Programs may say of whatever they fetch that it is of floats.
        if let ValueType::Tensor { dtype, .. } = &mut self.graph().value_mut(id).declared {
            *dtype = None;
        }
        match self.fetched.insert(op.int("col", 0), id) {
            Some(_) => Err(wrong("one output in each place", "two in one")),
            None => Ok(()),
        }
    }
}

/// Attributes in a few words.
pub(super) fn with<const COUNT: usize>(attributes: [(&str, Attribute); COUNT]) -> Attributes {
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
