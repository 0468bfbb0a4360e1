//! Branches, loops, and tensor arrays.
//!
//! A block sees the names of enclosing blocks and may reassign them. A loop therefore carries the names that its block
//! assigns, and the result of a conditional is what its block assigned, or else the value from before.

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

fn subgraph_attribute(attribute: &str, (graph, captures): (Graph, Vec<ValueId>)) -> Subgraph {
    Subgraph { attribute: attribute.into(), graph, captures }
}

fn add_node_with_subgraphs<'m>(
    importer: &mut PaddleImporter<'m>,
    name: &str,
    inputs: Vec<Option<ValueId>>,
    outputs: usize,
    subgraphs: Vec<Subgraph>,
) -> Vec<ValueId> {
    let outputs: Vec<ValueId> =
        (0..outputs).map(|_| importer.current_graph().add_value(GraphValue::default())).collect();
    let mut node = Node::new("", name, WRITTEN_OPSET, inputs, outputs.iter().copied().map(Some));
    node.subgraphs = subgraphs;
    importer.current_graph().nodes.push(node);
    outputs
}

/// A condition as a scalar.
fn scalar_condition<'m>(importer: &mut PaddleImporter<'m>, name: &'m str) -> Result<ValueId> {
    let id = importer.require_value(name)?;
    Ok(match importer.declared_dims(name) {
        Some([]) => id,
        _ => {
            let none = importer.add_ints(&[]);
            importer.add_op("Reshape", &[id, none])
        }
    })
}

/// The name of an operand that must be a single one.
fn single_name<'m>(op: &'m OpDesc, operand: &str) -> Result<&'m str> {
    match OpDesc::operand_names(&op.inputs, operand) {
        [name] => Ok(name),
        other => Err(invalid_model(format!("one operand `{operand}`"), other.len())),
    }
}

/// The names that ops assign, each once.
fn assigned_names(ops: &[OpDesc]) -> Vec<&str> {
    let names = ops.iter().flat_map(|op| &op.outputs).flat_map(|list| &list.arguments);
    let mut seen = std::collections::HashSet::new();
    names.map(String::as_str).filter(|name| seen.insert(*name)).collect()
}

fn body_block(op: &OpDesc, name: &str) -> Result<i64> {
    op.block_attribute(name).ok_or_else(|| invalid_model(format!("a block as `{name}`"), "none"))
}

/// Lowers `while`: the block runs as long as the condition holds, and recomputes it.
fn lower_while<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let goes_on = single_name(op, "Condition")?;
    let begin = scalar_condition(importer, goes_on)?;
    let block = body_block(op, "sub_block")?;
    let names = assigned_names(importer.block_ops(block)?).into_iter().filter(|name| *name != goes_on);
    let carried: Vec<&str> =
        names.filter(|name| importer.is_tensor_array(name) || importer.has_value(name)).collect();
    let mut inputs = vec![None, Some(begin)];
    for name in &carried {
        inputs.push(Some(if importer.is_tensor_array(name) {
            tensor_array(importer, name)?
        } else {
            importer.require_value(name)?
        }));
    }
    let ops = importer.open_frame(Some(block))?;
    let scalar = |name: &str, dtype| {
        let declared = ValueType::Tensor { dtype: Some(dtype), dims: Some(Vec::new()) };
        GraphValue { declared, ..GraphValue::with_name(name) }
    };
    let iteration = importer.current_graph().add_value(scalar("iteration", Dtype::I64));
    let before = importer.current_graph().add_value(scalar("goes on", Dtype::Bool));
    importer.current_graph().inputs = vec![iteration, before];
    for name in &carried {
        let id = importer.current_graph().add_value(GraphValue::with_name(*name));
        importer.current_graph().inputs.push(id);
        importer.bind_name(name, id);
    }
    importer.lower_ops(ops)?;
    let mut outputs = vec![scalar_condition(importer, goes_on)?];
    for name in &carried {
        outputs.push(importer.require_value(name)?);
    }
    let dtypes: Vec<Option<Dtype>> = carried.iter().map(|name| assigned_dtype(importer, ops, name)).collect();
    let closed = importer.close_frame(outputs);
    // Before a loop, Paddle fills what is undefined there with f64, whereas a value that `Loop` carries has one dtype.
    for (input, dtype) in inputs.iter_mut().skip(2).zip(dtypes) {
        let Some((id, dtype)) = input.zip(dtype) else { continue };
        if importer.known_constant(id).is_some_and(|constant| constant.dtype() != dtype) {
            *input = Some(importer.add_cast(id, dtype));
        }
    }
    let ends = add_node_with_subgraphs(
        importer,
        "Loop",
        inputs,
        carried.len(),
        vec![subgraph_attribute("body", closed)],
    );
    for (name, id) in carried.iter().zip(ends) {
        importer.name_value(name, id);
    }
    let ended = importer.add_scalar(0.0, Dtype::Bool)?;
    importer.bind_name(goes_on, ended);
    Ok(())
}

/// The dtype of the variable that a block last assigns to a name.
fn assigned_dtype(importer: &PaddleImporter, ops: &[OpDesc], name: &str) -> Option<Dtype> {
    let is_target =
        |op: &&OpDesc| matches!(OpDesc::operand_names(&op.outputs, "Out"), [target] if target == name);
    let last = ops.iter().rev().find(is_target).filter(|op| op.r#type() == "assign")?;
    let [source] = OpDesc::operand_names(&last.inputs, "X") else { return None };
    importer.declared_dtype(source)
}

/// Lowers a conditional block, with an optional block for the other case.
fn lower_conditional<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    if !op.bool_attribute("is_scalar_condition", false) {
        return Err(Error::unimplemented("expected a condition that is one truth value, found another"));
    }
    let holds = scalar_condition(importer, single_name(op, "Cond")?)?;
    let block = body_block(op, "sub_block")?;
    let names = OpDesc::operand_names(&op.outputs, "Out");
    let then = import_branch(importer, Some(block), names)?;
    let otherwise = import_branch(importer, op.block_attribute("else_block"), names)?;
    let subgraphs =
        vec![subgraph_attribute("then_branch", then), subgraph_attribute("else_branch", otherwise)];
    let result = add_node_with_subgraphs(importer, "If", vec![Some(holds)], names.len(), subgraphs);
    for (name, id) in names.iter().zip(result) {
        importer.name_value(name, id);
    }
    Ok(())
}

/// Imports a block as a branch that returns the final values of `names`; without a block, their current values.
fn import_branch<'m>(
    importer: &mut PaddleImporter<'m>,
    block: Option<i64>,
    names: &'m [String],
) -> Result<(Graph, Vec<ValueId>)> {
    let ops = importer.open_frame(block)?;
    importer.lower_ops(ops)?;
    let mut outputs = Vec::new();
    for name in names {
        outputs.push(if importer.is_tensor_array(name) {
            tensor_array(importer, name)?
        } else {
            match importer.find_value(name) {
                Some(id) => id,
                None => placeholder_value(importer, name)?,
            }
        });
    }
    Ok(importer.close_frame(outputs))
}

/// A placeholder for a value that is never read, because its block did not run.
fn placeholder_value<'m>(importer: &mut PaddleImporter<'m>, name: &str) -> Result<ValueId> {
    let dtype = importer.declared_dtype(name).ok_or_else(|| {
        invalid_model("a variable of a known dtype for everything that a block makes", quote_name(name))
    })?;
    let dims = vec![0; importer.declared_dims(name).map_or(1, |dims| dims.len())];
    if dims.is_empty() {
        return importer.add_scalar(0.0, dtype);
    }
    Ok(importer.add_constant(Constant::new(dtype, &dims, Vec::new())?))
}

/// Selects one of two operands; the other one may be undefined.
fn lower_select_input<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let [first, second] = OpDesc::operand_names(&op.inputs, "X") else {
        return Err(Error::unimplemented("expected two operands to choose from, found another number"));
    };
    let mask = single_name(op, "Mask")?;
    let is_truth = importer.declared_dtype(mask) == Some(Dtype::Bool);
    let mut chosen = scalar_condition(importer, mask)?;
    if !is_truth {
        chosen = importer.add_cast(chosen, Dtype::Bool);
    }
    let mut subgraphs = Vec::new();
    for (attribute, name) in [("then_branch", second), ("else_branch", first)] {
        importer.open_frame(None)?;
        let id = importer.require_value(name)?;
        subgraphs.push(subgraph_attribute(attribute, importer.close_frame(vec![id])));
    }
    let result = add_node_with_subgraphs(importer, "If", vec![Some(chosen)], 1, subgraphs);
    importer.set_output(op, "Out", result[0])
}

/// A tensor array, created empty on first use.
fn tensor_array<'m>(importer: &mut PaddleImporter<'m>, name: &'m str) -> Result<ValueId> {
    if let Some(known) = importer.find_value(name) {
        return Ok(known);
    }
    let dtype = importer.declared_dtype(name).unwrap_or(Dtype::F32);
    let result = importer.add_op_with(
        "SequenceEmpty",
        &[],
        build_attributes([("dtype", int_attribute(dtype.onnx_number()))]),
    );
    importer.name_value(name, result);
    Ok(result)
}

/// Writes an element of a tensor array; writing at its end appends.
fn lower_write_array<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let [name] = OpDesc::operand_names(&op.outputs, "Out") else {
        return Err(invalid_model("one list of tensors", "another number"));
    };
    let x = importer.input(op, "X")?.id;
    let place = importer.input(op, "I")?.id;
    let before = tensor_array(importer, name)?;
    let result = if importer.is_length_of(place, before) {
        importer.add_op("SequenceInsert", &[before, x])
    } else {
        let none = importer.add_ints(&[]);
        let place = importer.add_cast(place, Dtype::I64);
        let place = importer.add_op("Reshape", &[place, none]);
        let length = importer.add_op("SequenceLength", &[before]);
        let is_there = importer.add_op("Less", &[place, length]);
        let without = remove_element(importer, before, place, is_there)?;
        importer.add_op("SequenceInsert", &[without, x, place])
    };
    importer.set_output(op, "Out", result)
}

/// Removes an element of a tensor array, if it exists.
fn remove_element(
    importer: &mut PaddleImporter,
    list: ValueId,
    place: ValueId,
    is_there: ValueId,
) -> Result<ValueId> {
    let mut subgraphs = Vec::new();
    for attribute in ["then_branch", "else_branch"] {
        importer.open_frame(None)?;
        let list = importer.capture_value(list);
        let result = match attribute {
            "then_branch" => {
                let place = importer.capture_value(place);
                importer.add_op("SequenceErase", &[list, place])
            }
            _ => list,
        };
        subgraphs.push(subgraph_attribute(attribute, importer.close_frame(vec![result])));
    }
    Ok(add_node_with_subgraphs(importer, "If", vec![Some(is_there)], 1, subgraphs)[0])
}

fn lower_read_array<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (list, place) = (tensor_array(importer, single_name(op, "X")?)?, importer.input(op, "I")?.id);
    let none = importer.add_ints(&[]);
    let place = importer.add_op("Reshape", &[place, none]);
    let result = importer.add_op("SequenceAt", &[list, place]);
    importer.set_output(op, "Out", result)
}

fn lower_array_length<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let list = tensor_array(importer, single_name(op, "X")?)?;
    let length = importer.add_op("SequenceLength", &[list]);
    let output = OpDesc::operand_names(&op.outputs, "Out").first();
    let result = match output.and_then(|output| importer.declared_dims(output)) {
        Some([]) => length,
        _ => {
            let one = importer.add_ints(&[1]);
            importer.add_op("Reshape", &[length, one])
        }
    };
    importer.record_length(result, list);
    importer.set_output(op, "Out", result)
}

/// Concatenates or stacks all elements of a tensor array.
fn lower_join_array<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let list = tensor_array(importer, single_name(op, "X")?)?;
    let is_stacked = op.bool_attribute("use_stack", false);
    let attributes = build_attributes([
        ("axis", int_attribute(op.int_attribute("axis", 0))),
        ("new_axis", int_attribute(is_stacked.into())),
    ]);
    let result = importer.add_op_with("ConcatFromSequence", &[list], attributes);
    importer.set_output(op, "Out", result)
}
