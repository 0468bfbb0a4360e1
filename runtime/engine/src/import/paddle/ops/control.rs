//! Branches, loops, and lists of tensors.
//!
//! A block sees the names of the blocks around it and may give them another meaning. So what a loop carries is what its
//! block makes anew, and what a condition gives is what its block makes, or what was there before.

use oarlock_core::{Constant, Dtype, Error, Result};

use super::{Table, int};
use crate::graph::{Graph, Node, Subgraph, Value, ValueId, ValueType};
use crate::import::paddle::OPSET;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::program::{Program, with};
use crate::import::place::{quoted, wrong};

pub(super) const OPS: Table = &[
    ("conditional_block", conditional),
    ("lod_array_length", array_length),
    ("read_from_array", read_array),
    ("select_input", select_input),
    ("tensor_array_to_tensor", join_array),
    ("while", repeat),
    ("write_to_array", write_array),
];

/// A graph as an attribute of a node.
fn subgraph(attribute: &str, (graph, captures): (Graph, Vec<ValueId>)) -> Subgraph {
    Subgraph { attribute: attribute.into(), graph, captures }
}

/// Adds a node with graphs.
fn node_with<'m>(
    program: &mut Program<'m>,
    name: &str,
    inputs: Vec<Option<ValueId>>,
    outputs: usize,
    subgraphs: Vec<Subgraph>,
) -> Vec<ValueId> {
    let outputs: Vec<ValueId> = (0..outputs).map(|_| program.graph().add(Value::default())).collect();
    let mut node = Node::new("", name, OPSET, inputs, outputs.iter().copied().map(Some));
    node.subgraphs = subgraphs;
    program.graph().nodes.push(node);
    outputs
}

/// A condition without dimensions.
fn condition<'m>(program: &mut Program<'m>, name: &'m str) -> Result<ValueId> {
    let id = program.value(name)?;
    Ok(match program.dims(name) {
        Some([]) => id,
        _ => {
            let none = program.ints(&[]);
            program.apply("Reshape", &[id, none])
        }
    })
}

/// The one name of an operand.
fn one<'m>(op: &'m OpDesc, operand: &str) -> Result<&'m str> {
    match OpDesc::operands(&op.inputs, operand) {
        [name] => Ok(name),
        other => Err(wrong(format!("one operand `{operand}`"), other.len())),
    }
}

/// The names that ops give a meaning to, each once.
fn made(ops: &[OpDesc]) -> Vec<&str> {
    let names = ops.iter().flat_map(|op| &op.outputs).flat_map(|list| &list.arguments);
    let mut seen = std::collections::HashSet::new();
    names.map(String::as_str).filter(|name| seen.insert(*name)).collect()
}

fn body(op: &OpDesc, name: &str) -> Result<i64> {
    op.block(name).ok_or_else(|| wrong(format!("a block as `{name}`"), "none"))
}

/// Runs a block as long as a condition holds, which the block makes anew.
fn repeat<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let goes_on = one(op, "Condition")?;
    let begin = condition(program, goes_on)?;
    let block = body(op, "sub_block")?;
    let names = made(program.ops(block)?).into_iter().filter(|name| *name != goes_on);
    let carried: Vec<&str> = names.filter(|name| program.is_array(name) || program.has(name)).collect();
    let mut inputs = vec![None, Some(begin)];
    for name in &carried {
        inputs.push(Some(if program.is_array(name) {
            array(program, name)?
        } else {
            program.value(name)?
        }));
    }
    let ops = program.open(Some(block))?;
    let scalar = |name: &str, dtype| {
        let declared = ValueType::Tensor { dtype: Some(dtype), dims: Some(Vec::new()) };
        Value { declared, ..Value::named(name) }
    };
    let iteration = program.graph().add(scalar("iteration", Dtype::I64));
    let before = program.graph().add(scalar("goes on", Dtype::Bool));
    program.graph().inputs = vec![iteration, before];
    for name in &carried {
        let id = program.graph().add(Value::named(*name));
        program.graph().inputs.push(id);
        program.bind(name, id);
    }
    program.fill(ops)?;
    let mut outputs = vec![condition(program, goes_on)?];
    for name in &carried {
        outputs.push(program.value(name)?);
    }
    let closed = program.close(outputs);
    let ends = node_with(program, "Loop", inputs, carried.len(), vec![subgraph("body", closed)]);
    for (name, id) in carried.iter().zip(ends) {
        program.call(name, id);
    }
    let ended = program.number(0.0, Dtype::Bool)?;
    program.bind(goes_on, ended);
    Ok(())
}

/// Runs a block where a condition holds, and another one, or none, where it does not.
fn conditional<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    if !op.flag("is_scalar_condition", false) {
        return Err(Error::unimplemented("expected a condition that is one truth value, found another"));
    }
    let holds = condition(program, one(op, "Cond")?)?;
    let block = body(op, "sub_block")?;
    let names = OpDesc::operands(&op.outputs, "Out");
    let then = branch(program, Some(block), names)?;
    let otherwise = branch(program, op.block("else_block"), names)?;
    let subgraphs = vec![subgraph("then_branch", then), subgraph("else_branch", otherwise)];
    let made = node_with(program, "If", vec![Some(holds)], names.len(), subgraphs);
    for (name, id) in names.iter().zip(made) {
        program.call(name, id);
    }
    Ok(())
}

/// What names mean behind a block, or, without one, where they are.
fn branch<'m>(
    program: &mut Program<'m>,
    block: Option<i64>,
    names: &'m [String],
) -> Result<(Graph, Vec<ValueId>)> {
    let ops = program.open(block)?;
    program.fill(ops)?;
    let mut outputs = Vec::new();
    for name in names {
        outputs.push(if program.is_array(name) {
            array(program, name)?
        } else {
            match program.find(name) {
                Some(id) => id,
                None => nothing(program, name)?,
            }
        });
    }
    Ok(program.close(outputs))
}

/// What stands for a value that is not read, since its block was not run.
fn nothing<'m>(program: &mut Program<'m>, name: &str) -> Result<ValueId> {
    let dtype = program.dtype_of(name).ok_or_else(|| {
        wrong("a variable of a known dtype for everything that a block makes", quoted(name))
    })?;
    let dims = vec![0; program.dims(name).map_or(1, |dims| dims.len())];
    if dims.is_empty() {
        return program.number(0.0, dtype);
    }
    Ok(program.constant(Constant::new(dtype, &dims, Vec::new())?))
}

/// One of its operands, of which those that are not chosen may not be there.
fn select_input<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let [first, second] = OpDesc::operands(&op.inputs, "X") else {
        return Err(Error::unimplemented("expected two operands to choose from, found another number"));
    };
    let mask = one(op, "Mask")?;
    let is_truth = program.dtype_of(mask) == Some(Dtype::Bool);
    let mut chosen = condition(program, mask)?;
    if !is_truth {
        chosen = program.cast(chosen, Dtype::Bool);
    }
    let mut subgraphs = Vec::new();
    for (attribute, name) in [("then_branch", second), ("else_branch", first)] {
        program.open(None)?;
        let id = program.value(name)?;
        subgraphs.push(subgraph(attribute, program.close(vec![id])));
    }
    let made = node_with(program, "If", vec![Some(chosen)], 1, subgraphs);
    program.give(op, "Out", made[0])
}

/// A list of tensors; an empty one where nothing made it.
fn array<'m>(program: &mut Program<'m>, name: &'m str) -> Result<ValueId> {
    if let Some(known) = program.find(name) {
        return Ok(known);
    }
    let dtype = program.dtype_of(name).unwrap_or(Dtype::F32);
    let made = program.node("SequenceEmpty", &[], with([("dtype", int(dtype.onnx_number()))]));
    program.call(name, made);
    Ok(made)
}

/// Puts a tensor at a place of a list; at the place behind the last one, the list becomes longer.
fn write_array<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let [name] = OpDesc::operands(&op.outputs, "Out") else {
        return Err(wrong("one list of tensors", "another number"));
    };
    let x = program.input(op, "X")?.id;
    let place = program.input(op, "I")?.id;
    let before = array(program, name)?;
    let made = if program.is_length(place, before) {
        program.apply("SequenceInsert", &[before, x])
    } else {
        let none = program.ints(&[]);
        let place = program.cast(place, Dtype::I64);
        let place = program.apply("Reshape", &[place, none]);
        let length = program.apply("SequenceLength", &[before]);
        let is_there = program.apply("Less", &[place, length]);
        let without = shortened(program, before, place, is_there)?;
        program.apply("SequenceInsert", &[without, x, place])
    };
    program.give(op, "Out", made)
}

/// A list without the tensor at a place, where it has one there.
fn shortened(program: &mut Program, list: ValueId, place: ValueId, is_there: ValueId) -> Result<ValueId> {
    let mut subgraphs = Vec::new();
    for attribute in ["then_branch", "else_branch"] {
        program.open(None)?;
        let list = program.capture(list);
        let made = match attribute {
            "then_branch" => {
                let place = program.capture(place);
                program.apply("SequenceErase", &[list, place])
            }
            _ => list,
        };
        subgraphs.push(subgraph(attribute, program.close(vec![made])));
    }
    Ok(node_with(program, "If", vec![Some(is_there)], 1, subgraphs)[0])
}

fn read_array<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (list, place) = (array(program, one(op, "X")?)?, program.input(op, "I")?.id);
    let none = program.ints(&[]);
    let place = program.apply("Reshape", &[place, none]);
    let made = program.apply("SequenceAt", &[list, place]);
    program.give(op, "Out", made)
}

fn array_length<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let list = array(program, one(op, "X")?)?;
    let length = program.apply("SequenceLength", &[list]);
    let output = OpDesc::operands(&op.outputs, "Out").first();
    let made = match output.and_then(|output| program.dims(output)) {
        Some([]) => length,
        _ => {
            let one = program.ints(&[1]);
            program.apply("Reshape", &[length, one])
        }
    };
    program.note_length(made, list);
    program.give(op, "Out", made)
}

/// All tensors of a list behind each other, or in a dimension of their own.
fn join_array<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let list = array(program, one(op, "X")?)?;
    let is_stacked = op.flag("use_stack", false);
    let attributes = with([("axis", int(op.int("axis", 0))), ("new_axis", int(is_stacked.into()))]);
    let made = program.node("ConcatFromSequence", &[list], attributes);
    program.give(op, "Out", made)
}
