//! The program as a graph.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use oarlock_core::{Attribute, Attributes, Constant, Dtype, Error, Result, shape};

use super::messages::{BlockDesc, OpDesc, VarDesc, var_type::TensorDesc};
use super::parameters::dtype;
use super::{OPSET, ops};
use crate::graph::{Dimension, Graph, Node, Value, ValueId, ValueType, Weight};
use crate::import::place::{Within as _, quoted, wrong};

/// How many unsupported ops are named.
const MOST_NAMED: usize = 10;

/// A program that becomes a graph.
pub(super) struct Program<'m> {
    graph: Graph,
    /// What each name means at this point.
    names: HashMap<&'m str, ValueId>,
    variables: HashMap<&'m str, &'m VarDesc>,
    /// What is fed and fetched, by the place that the program gives it.
    fed: BTreeMap<i64, ValueId>,
    fetched: BTreeMap<i64, ValueId>,
}

/// An operand with what is known about it.
#[derive(Clone, Copy)]
pub(super) struct Operand<'m> {
    pub(super) id: ValueId,
    /// The sizes of its dimensions, -1 where one is not known; none where not even their number is.
    pub(super) dims: Option<&'m [i64]>,
}

impl Operand<'_> {
    /// How many dimensions it has.
    pub(super) fn rank(&self) -> Result<i64> {
        match self.dims {
            Some(dims) => Ok(dims.len() as i64),
            None => Err(Error::unimplemented(
                "expected an operand of a known number of dimensions, found another",
            )),
        }
    }
}

/// Makes a graph of the block that is run.
pub(super) fn graph<'m>(block: &'m BlockDesc, weights: BTreeMap<&'m str, Weight>) -> Result<Graph> {
    let unsupported: BTreeSet<&str> =
        block.ops.iter().map(|op| op.r#type()).filter(|name| ops::find(name).is_none()).collect();
    if !unsupported.is_empty() {
        let names: Vec<String> = unsupported.iter().take(MOST_NAMED).map(|name| quoted(name)).collect();
        return Err(Error::unimplemented(format!(
            "expected ops that are supported, found {}",
            names.join(", ")
        )));
    }
    for variable in &block.vars {
        let rank = tensor_of(variable).map_or(0, |tensor| tensor.dims.len());
        if rank > shape::MOST_DIMENSIONS {
            let expected = format!("at most {} dimensions", shape::MOST_DIMENSIONS);
            return Err(wrong(expected, format!("{rank} of {}", quoted(variable.name()))));
        }
    }
    let variables = block.vars.iter().map(|variable| (variable.name(), variable)).collect();
    let mut program = Program {
        graph: Graph::new("main"),
        names: HashMap::new(),
        variables,
        fed: BTreeMap::new(),
        fetched: BTreeMap::new(),
    };
    for (name, weight) in weights {
        let id = program.graph.add(Value::constant(name, weight));
        program.names.insert(name, id);
    }
    for op in &block.ops {
        let Some(translate) = ops::find(op.r#type()) else { continue };
        translate(&mut program, op).within(|| label(op))?;
    }
    let Program { mut graph, fed, fetched, .. } = program;
    (graph.inputs, graph.outputs) = (fed.into_values().collect(), fetched.into_values().collect());
    let unnamed: Vec<ValueId> =
        graph.values().filter(|(_, value)| value.name.is_empty()).map(|(id, _)| id).collect();
    for id in unnamed {
        graph.value_mut(id).name = format!("#{}", id.index()).into();
    }
    Ok(graph)
}

/// What is said about a variable that is a tensor.
fn tensor_of(variable: &VarDesc) -> Option<&TensorDesc> {
    variable.r#type.as_ref()?.dense_tensor.as_ref()?.tensor.as_ref()
}

/// What messages call an op.
fn label(op: &OpDesc) -> String {
    let output = op.outputs.iter().flat_map(|list| &list.arguments).next();
    match output {
        Some(output) => format!("the {} that makes {}", quoted(op.r#type()), quoted(output)),
        None => quoted(op.r#type()),
    }
}

impl<'m> Program<'m> {
    /// The operands under a name.
    pub(super) fn inputs(&self, op: &'m OpDesc, name: &str) -> Result<Vec<Operand<'m>>> {
        let find = |argument: &'m String| {
            let id = self.names.get(argument.as_str()).copied();
            let id = id.ok_or_else(|| {
                wrong("values that are made", format!("{}, which is not", quoted(argument)))
            })?;
            Ok(Operand { id, dims: self.dims(argument) })
        };
        OpDesc::operands(&op.inputs, name).iter().map(find).collect()
    }

    /// The operand under a name, where it is given.
    pub(super) fn maybe(&self, op: &'m OpDesc, name: &str) -> Result<Option<Operand<'m>>> {
        Ok(self.inputs(op, name)?.into_iter().next())
    }

    /// The operand under a name.
    pub(super) fn input(&self, op: &'m OpDesc, name: &str) -> Result<Operand<'m>> {
        self.maybe(op, name)?.ok_or_else(|| wrong(format!("the operand `{name}`"), "none"))
    }

    fn tensor(&self, name: &str) -> Option<&'m TensorDesc> {
        tensor_of(self.variables.get(name)?)
    }

    fn dims(&self, name: &str) -> Option<&'m [i64]> {
        self.tensor(name).map(|tensor| tensor.dims.as_slice())
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

    /// Adds a node of which inputs are left out, or with several outputs.
    pub(super) fn nodes(
        &mut self,
        op: &str,
        inputs: &[Option<ValueId>],
        attributes: Attributes,
        outputs: usize,
    ) -> Vec<ValueId> {
        let outputs: Vec<ValueId> = (0..outputs).map(|_| self.graph.add(Value::default())).collect();
        let made = outputs.iter().copied().map(Some);
        let mut node = Node::new("", op, OPSET, inputs.iter().copied(), made);
        node.attributes = attributes;
        self.graph.nodes.push(node);
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
        self.graph.add(Value::constant("", Weight::Numbers(constant)))
    }

    /// The elements of an operand that is known.
    pub(super) fn known(&self, id: ValueId) -> Option<&Constant> {
        self.graph.value(id).weight.as_ref()?.numbers()
    }

    /// The dtype of the first output of an op under a name, as the program says it.
    pub(super) fn output_dtype(&self, op: &OpDesc, name: &str) -> Option<Dtype> {
        let output = OpDesc::operands(&op.outputs, name).first()?;
        dtype(self.tensor(output)?.data_type()).ok()
    }

    /// The dtype of an input of an op.
    pub(super) fn input_dtype(&self, op: &OpDesc, name: &str) -> Option<Dtype> {
        let input = OpDesc::operands(&op.inputs, name).first()?;
        dtype(self.tensor(input)?.data_type()).ok()
    }

    /// Says what the outputs of an op are.
    pub(super) fn give_all(&mut self, op: &'m OpDesc, name: &str, ids: &[ValueId]) -> Result<()> {
        for (argument, id) in OpDesc::operands(&op.outputs, name).iter().zip(ids) {
            let declared = self.declared(argument)?;
            let value = self.graph.value_mut(*id);
            // What is handed on keeps the name that it has.
            if value.name.is_empty() {
                value.name = argument.as_str().into();
                value.declared = declared;
            }
            self.names.insert(argument, *id);
        }
        Ok(())
    }

    /// Says what the output of an op is.
    pub(super) fn give(&mut self, op: &'m OpDesc, name: &str, id: ValueId) -> Result<()> {
        self.give_all(op, name, &[id])
    }

    /// Makes what an op is fed an input of the graph.
    pub(super) fn feed(&mut self, op: &'m OpDesc) -> Result<()> {
        let [name] = OpDesc::operands(&op.outputs, "Out") else {
            return Err(wrong("one output", "another number"));
        };
        let declared = self.declared(name)?;
        let id = self.graph.add(Value { declared, ..Value::named(name.as_str()) });
        self.names.insert(name, id);
        match self.fed.insert(op.int("col", 0), id) {
            Some(_) => Err(wrong("one input in each place", "two in one")),
            None => Ok(()),
        }
    }

    /// Makes what an op fetches an output of the graph, under the name that it has in the program.
    pub(super) fn fetch(&mut self, op: &'m OpDesc) -> Result<()> {
        let from = self.input(op, "X")?.id;
        let [name] = OpDesc::operands(&op.inputs, "X") else {
            return Err(wrong("one input", "another number"));
        };
        let id = if *self.graph.value(from).name == **name {
            from
        } else {
            let copy = self.node("Identity", &[from], Attributes::new());
            self.graph.value_mut(copy).name = name.as_str().into();
            copy
        };
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
