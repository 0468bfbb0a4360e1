//! Branches, loops, and lists of tensors.
//!
//! A block sees the names of the blocks around it and may give them another meaning. So what a loop carries is what its
//! block makes anew, and what a condition gives is what its block makes, or what was there before.

use oarlock_core::{Constant, Dtype, Error, Result};

use super::{TranslatorTable, int_attribute};
use crate::graph::{Graph, GraphValue, Node, Subgraph, ValueId, ValueType};
use crate::import::error_location::{invalid_model, quote_name};
use crate::import::paddle::WRITTEN_OPSET;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;

pub(super) const CONTROL_FLOW_OPS: TranslatorTable = &[
    ("conditional_block", lower_conditional),
    ("lod_array_length", lower_array_length),
    ("read_from_array", lower_read_array),
    ("select_input", lower_select_input),
    ("tensor_array_to_tensor", lower_join_array),
    ("while", lower_while),
    ("write_to_array", lower_write_array),
];

/// A graph as an attribute of a node.
fn subgraph_attribute(attribute: &str, (graph, captures): (Graph, Vec<ValueId>)) -> Subgraph {
    Subgraph { attribute: attribute.into(), graph, captures }
}

/// Adds a node with graphs.
fn add_node_with_subgraphs<'m>(
    program: &mut PaddleImporter<'m>,
    name: &str,
    inputs: Vec<Option<ValueId>>,
    outputs: usize,
    subgraphs: Vec<Subgraph>,
) -> Vec<ValueId> {
    let outputs: Vec<ValueId> =
        (0..outputs).map(|_| program.current_graph().add_value(GraphValue::default())).collect();
    let mut node = Node::new("", name, WRITTEN_OPSET, inputs, outputs.iter().copied().map(Some));
    node.subgraphs = subgraphs;
    program.current_graph().nodes.push(node);
    outputs
}

/// A condition without dimensions.
fn scalar_condition<'m>(program: &mut PaddleImporter<'m>, name: &'m str) -> Result<ValueId> {
    let id = program.require_value(name)?;
    Ok(match program.declared_dims(name) {
        Some([]) => id,
        _ => {
            let none = program.add_ints(&[]);
            program.add_op("Reshape", &[id, none])
        }
    })
}

/// The one name of an operand.
fn single_name<'m>(op: &'m OpDesc, operand: &str) -> Result<&'m str> {
    match OpDesc::operand_names(&op.inputs, operand) {
        [name] => Ok(name),
        other => Err(invalid_model(format!("one operand `{operand}`"), other.len())),
    }
}

/// The names that ops give a meaning to, each once.
fn assigned_names(ops: &[OpDesc]) -> Vec<&str> {
    let names = ops.iter().flat_map(|op| &op.outputs).flat_map(|list| &list.arguments);
    let mut seen = std::collections::HashSet::new();
    names.map(String::as_str).filter(|name| seen.insert(*name)).collect()
}

fn body_block(op: &OpDesc, name: &str) -> Result<i64> {
    op.block_attribute(name).ok_or_else(|| invalid_model(format!("a block as `{name}`"), "none"))
}

/// Runs a block as long as a condition holds, which the block makes anew.
fn lower_while<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let goes_on = single_name(op, "Condition")?;
    let begin = scalar_condition(program, goes_on)?;
    let block = body_block(op, "sub_block")?;
    let names = assigned_names(program.block_ops(block)?).into_iter().filter(|name| *name != goes_on);
    let carried: Vec<&str> =
        names.filter(|name| program.is_tensor_array(name) || program.has_value(name)).collect();
    let mut inputs = vec![None, Some(begin)];
    for name in &carried {
        inputs.push(Some(if program.is_tensor_array(name) {
            tensor_array(program, name)?
        } else {
            program.require_value(name)?
        }));
    }
    let ops = program.open_frame(Some(block))?;
    let scalar = |name: &str, dtype| {
        let declared = ValueType::Tensor { dtype: Some(dtype), dims: Some(Vec::new()) };
        GraphValue { declared, ..GraphValue::with_name(name) }
    };
    let iteration = program.current_graph().add_value(scalar("iteration", Dtype::I64));
    let before = program.current_graph().add_value(scalar("goes on", Dtype::Bool));
    program.current_graph().inputs = vec![iteration, before];
    for name in &carried {
        let id = program.current_graph().add_value(GraphValue::with_name(*name));
        program.current_graph().inputs.push(id);
        program.bind_name(name, id);
    }
    program.lower_ops(ops)?;
    let mut outputs = vec![scalar_condition(program, goes_on)?];
    for name in &carried {
        outputs.push(program.require_value(name)?);
    }
    let closed = program.close_frame(outputs);
    let ends = add_node_with_subgraphs(
        program,
        "Loop",
        inputs,
        carried.len(),
        vec![subgraph_attribute("body", closed)],
    );
    for (name, id) in carried.iter().zip(ends) {
        program.name_value(name, id);
    }
    let ended = program.add_scalar(0.0, Dtype::Bool)?;
    program.bind_name(goes_on, ended);
    Ok(())
}

/// Runs a block where a condition holds, and another one, or none, where it does not.
fn lower_conditional<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    if !op.bool_attribute("is_scalar_condition", false) {
        return Err(Error::unimplemented("expected a condition that is one truth value, found another"));
    }
    let holds = scalar_condition(program, single_name(op, "Cond")?)?;
    let block = body_block(op, "sub_block")?;
    let names = OpDesc::operand_names(&op.outputs, "Out");
    let then = import_branch(program, Some(block), names)?;
    let otherwise = import_branch(program, op.block_attribute("else_block"), names)?;
    let subgraphs =
        vec![subgraph_attribute("then_branch", then), subgraph_attribute("else_branch", otherwise)];
    let made = add_node_with_subgraphs(program, "If", vec![Some(holds)], names.len(), subgraphs);
    for (name, id) in names.iter().zip(made) {
        program.name_value(name, id);
    }
    Ok(())
}

/// What names mean behind a block, or, without one, where they are.
fn import_branch<'m>(
    program: &mut PaddleImporter<'m>,
    block: Option<i64>,
    names: &'m [String],
) -> Result<(Graph, Vec<ValueId>)> {
    let ops = program.open_frame(block)?;
    program.lower_ops(ops)?;
    let mut outputs = Vec::new();
    for name in names {
        outputs.push(if program.is_tensor_array(name) {
            tensor_array(program, name)?
        } else {
            match program.find_value(name) {
                Some(id) => id,
                None => placeholder_value(program, name)?,
            }
        });
    }
    Ok(program.close_frame(outputs))
}

/// What stands for a value that is not read, since its block was not run.
fn placeholder_value<'m>(program: &mut PaddleImporter<'m>, name: &str) -> Result<ValueId> {
    let dtype = program.declared_dtype(name).ok_or_else(|| {
        invalid_model("a variable of a known dtype for everything that a block makes", quote_name(name))
    })?;
    let dims = vec![0; program.declared_dims(name).map_or(1, |dims| dims.len())];
    if dims.is_empty() {
        return program.add_scalar(0.0, dtype);
    }
    Ok(program.add_constant(Constant::new(dtype, &dims, Vec::new())?))
}

/// One of its operands, of which those that are not chosen may not be there.
fn lower_select_input<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let [first, second] = OpDesc::operand_names(&op.inputs, "X") else {
        return Err(Error::unimplemented("expected two operands to choose from, found another number"));
    };
    let mask = single_name(op, "Mask")?;
    let is_truth = program.declared_dtype(mask) == Some(Dtype::Bool);
    let mut chosen = scalar_condition(program, mask)?;
    if !is_truth {
        chosen = program.add_cast(chosen, Dtype::Bool);
    }
    let mut subgraphs = Vec::new();
    for (attribute, name) in [("then_branch", second), ("else_branch", first)] {
        program.open_frame(None)?;
        let id = program.require_value(name)?;
        subgraphs.push(subgraph_attribute(attribute, program.close_frame(vec![id])));
    }
    let made = add_node_with_subgraphs(program, "If", vec![Some(chosen)], 1, subgraphs);
    program.set_output(op, "Out", made[0])
}

/// A list of tensors; an empty one where nothing made it.
fn tensor_array<'m>(program: &mut PaddleImporter<'m>, name: &'m str) -> Result<ValueId> {
    if let Some(known) = program.find_value(name) {
        return Ok(known);
    }
    let dtype = program.declared_dtype(name).unwrap_or(Dtype::F32);
    let made = program.add_op_with(
        "SequenceEmpty",
        &[],
        build_attributes([("dtype", int_attribute(dtype.onnx_number()))]),
    );
    program.name_value(name, made);
    Ok(made)
}

/// Puts a tensor at a place of a list; at the place behind the last one, the list becomes longer.
fn lower_write_array<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let [name] = OpDesc::operand_names(&op.outputs, "Out") else {
        return Err(invalid_model("one list of tensors", "another number"));
    };
    let x = program.input(op, "X")?.id;
    let place = program.input(op, "I")?.id;
    let before = tensor_array(program, name)?;
    let made = if program.is_length_of(place, before) {
        program.add_op("SequenceInsert", &[before, x])
    } else {
        let none = program.add_ints(&[]);
        let place = program.add_cast(place, Dtype::I64);
        let place = program.add_op("Reshape", &[place, none]);
        let length = program.add_op("SequenceLength", &[before]);
        let is_there = program.add_op("Less", &[place, length]);
        let without = remove_element(program, before, place, is_there)?;
        program.add_op("SequenceInsert", &[without, x, place])
    };
    program.set_output(op, "Out", made)
}

/// A list without the tensor at a place, where it has one there.
fn remove_element(
    program: &mut PaddleImporter,
    list: ValueId,
    place: ValueId,
    is_there: ValueId,
) -> Result<ValueId> {
    let mut subgraphs = Vec::new();
    for attribute in ["then_branch", "else_branch"] {
        program.open_frame(None)?;
        let list = program.capture_value(list);
        let made = match attribute {
            "then_branch" => {
                let place = program.capture_value(place);
                program.add_op("SequenceErase", &[list, place])
            }
            _ => list,
        };
        subgraphs.push(subgraph_attribute(attribute, program.close_frame(vec![made])));
    }
    Ok(add_node_with_subgraphs(program, "If", vec![Some(is_there)], 1, subgraphs)[0])
}

fn lower_read_array<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (list, place) = (tensor_array(program, single_name(op, "X")?)?, program.input(op, "I")?.id);
    let none = program.add_ints(&[]);
    let place = program.add_op("Reshape", &[place, none]);
    let made = program.add_op("SequenceAt", &[list, place]);
    program.set_output(op, "Out", made)
}

fn lower_array_length<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let list = tensor_array(program, single_name(op, "X")?)?;
    let length = program.add_op("SequenceLength", &[list]);
    let output = OpDesc::operand_names(&op.outputs, "Out").first();
    let made = match output.and_then(|output| program.declared_dims(output)) {
        Some([]) => length,
        _ => {
            let one = program.add_ints(&[1]);
            program.add_op("Reshape", &[length, one])
        }
    };
    program.record_length(made, list);
    program.set_output(op, "Out", made)
}

/// All tensors of a list behind each other, or in a dimension of their own.
fn lower_join_array<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let list = tensor_array(program, single_name(op, "X")?)?;
    let is_stacked = op.bool_attribute("use_stack", false);
    let attributes = build_attributes([
        ("axis", int_attribute(op.int_attribute("axis", 0))),
        ("new_axis", int_attribute(is_stacked.into())),
    ]);
    let made = program.add_op_with("ConcatFromSequence", &[list], attributes);
    program.set_output(op, "Out", made)
}
