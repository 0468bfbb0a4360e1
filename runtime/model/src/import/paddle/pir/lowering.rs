//! Converts numbered values to named variables, and ops to their Paddle 2 names.

use std::collections::HashMap;

use oarlock_core::{Error, Result};
use serde_json::Value;

use super::attributes::{convert_attribute, strip_dialect, value_types};
use super::op_names::{self, PirOpNames};
use super::{PirBlock, PirOp, PirOperand, PirRegion, PirResult};
use crate::import::error_location::{ErrorLocation as _, invalid_model, quote_name};
use crate::import::paddle::messages::{BlockDesc, OpDesc, VarDesc, VarType, op_desc};

/// Limit on nested blocks in a program.
const MAX_PIR_BLOCKS: usize = 4096;

/// Converts a region to the blocks of a Paddle 2 program.
pub(super) fn lower_blocks(region: &PirRegion) -> Result<Vec<BlockDesc>> {
    let mut lowering = PirLowering::default();
    let block = single_block(region)?;
    lowering.name_outputs(block);
    lowering.lower_block(block, &[])?;
    Ok(lowering.blocks)
}

fn single_block(region: &PirRegion) -> Result<&PirBlock> {
    match region.blocks.as_slice() {
        [block] => Ok(block),
        other => Err(invalid_model("a region with one block", other.len())),
    }
}

#[derive(Default)]
struct PirLowering {
    blocks: Vec<BlockDesc>,
    /// Index of the block that ops are added to.
    here: usize,
    /// Names of values: one for a tensor, several for a list.
    names: HashMap<i64, Vec<String>>,
    kinds: HashMap<String, Option<VarType>>,
    /// Constants, as unnamed attributes.
    known: HashMap<String, op_desc::Attr>,
    /// Names of values that are outputs of the program.
    outputs: HashMap<i64, String>,
    fed: i32,
}

fn operand_lists(lists: Vec<(&str, Vec<String>)>) -> Vec<op_desc::Var> {
    let list = |(parameter, arguments): (&str, Vec<String>)| op_desc::Var {
        parameter: Some(parameter.to_owned()),
        arguments,
    };
    lists.into_iter().map(list).collect()
}

fn named_attribute(name: &str) -> op_desc::Attr {
    op_desc::Attr { name: Some(name.to_owned()), ..op_desc::Attr::default() }
}

impl PirOp {
    /// The data of an attribute.
    fn find_attribute(&self, name: &str) -> Option<&Value> {
        let attribute = self.attributes.iter().find(|it| it.get("N").and_then(Value::as_str) == Some(name));
        attribute?.get("AT")?.get("D")
    }
}

impl PirLowering {
    /// Gives outputs of the program their names at the op that makes them.
    fn name_outputs(&mut self, block: &PirBlock) {
        for op in block.ops.iter().filter(|op| strip_dialect(&op.name) == "fetch") {
            if let ([read], Some(name)) =
                (op.inputs.as_slice(), op.find_attribute("name").and_then(Value::as_str))
            {
                self.outputs.entry(read.number).or_insert_with(|| name.to_owned());
            }
        }
    }

    /// Converts a block with named arguments; returns its index and the names that it yields.
    fn lower_block(&mut self, block: &PirBlock, arguments: &[String]) -> Result<(i32, Vec<String>)> {
        let place = self.blocks.len();
        if place >= MAX_PIR_BLOCKS {
            return Err(Error::resource_exhausted(format!(
                "expected at most {MAX_PIR_BLOCKS} blocks, found more"
            )));
        }
        if block.args.len() != arguments.len() {
            return Err(invalid_model(format!("a block of {} arguments", arguments.len()), block.args.len()));
        }
        self.blocks.push(BlockDesc { idx: i32::try_from(place).ok(), ..BlockDesc::default() });
        let around = std::mem::replace(&mut self.here, place);
        // Value numbers of block arguments are unique only within the block, so outer names are hidden meanwhile.
        let mut hidden = Vec::new();
        for (made, name) in block.args.iter().zip(arguments) {
            hidden.push((made.number, self.names.insert(made.number, vec![name.clone()])));
        }
        let mut yielded = Vec::new();
        for op in &block.ops {
            if strip_dialect(&op.name) == "yield" {
                yielded = self.operand_list_names(&op.inputs)?;
            } else {
                self.lower_op(op).with_location(|| quote_name(&op.name))?;
            }
        }
        for (number, before) in hidden {
            match before {
                Some(before) => self.names.insert(number, before),
                None => self.names.remove(&number),
            };
        }
        self.here = around;
        Ok((i32::try_from(place).unwrap_or_default(), yielded))
    }

    fn operand_list_names(&self, reads: &[PirOperand]) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for read in reads {
            all.extend(self.operand_names(read)?);
        }
        Ok(all)
    }

    /// The names of an operand; empty if it is omitted.
    fn operand_names(&self, read: &PirOperand) -> Result<Vec<String>> {
        match self.names.get(&read.number) {
            Some(names) => Ok(names.clone()),
            None if read.number == 0 => Ok(Vec::new()),
            None => {
                Err(invalid_model("values that are made", format!("value {}, which is not", read.number)))
            }
        }
    }

    fn declare_variable(&mut self, name: &str, kind: Option<VarType>, is_kept: bool) {
        let variable =
            VarDesc { name: Some(name.to_owned()), r#type: kind.clone(), persistable: Some(is_kept) };
        self.blocks[self.here].vars.push(variable);
        self.kinds.insert(name.to_owned(), kind);
    }

    /// Assigns names to a result and declares its variables.
    fn name_result(&mut self, made: &PirResult) -> Result<Vec<String>> {
        let kinds = value_types(&made.kind)?;
        let base = self.outputs.get(&made.number).cloned().unwrap_or_else(|| format!("%{}", made.number));
        let name = |at: usize| if kinds.len() == 1 { base.clone() } else { format!("{base}.{at}") };
        let names: Vec<String> = (0..kinds.len()).map(name).collect();
        for (name, kind) in names.iter().zip(kinds) {
            self.declare_variable(name, kind, false);
        }
        self.names.insert(made.number, names.clone());
        Ok(names)
    }

    fn emit_op(
        &mut self,
        name: &str,
        inputs: Vec<(&str, Vec<String>)>,
        outputs: Vec<(&str, Vec<String>)>,
        attrs: Vec<op_desc::Attr>,
    ) {
        let (inputs, outputs) = (operand_lists(inputs), operand_lists(outputs));
        self.blocks[self.here].ops.push(OpDesc { r#type: Some(name.to_owned()), inputs, outputs, attrs });
    }

    fn emit_assign(&mut self, from: &str, to: &str) {
        self.emit_op(
            "assign",
            vec![("X", vec![from.to_owned()])],
            vec![("Out", vec![to.to_owned()])],
            Vec::new(),
        );
    }

    fn lower_op(&mut self, op: &PirOp) -> Result<()> {
        let made = op.outputs.as_slice();
        let one = || made.first().ok_or_else(|| invalid_model("an output", "none"));
        match (strip_dialect(&op.name), op.name.starts_with("0.")) {
            ("p" | "parameter", _) => self.lower_parameter(op, one()?),
            ("data" | "feed", _) => {
                let name = op.find_attribute("name").and_then(Value::as_str).unwrap_or("input").to_owned();
                let kind = value_types(&one()?.kind)?.into_iter().next().flatten();
                self.declare_variable(&name, kind, false);
                let column = op_desc::Attr { i: Some(self.fed), ..named_attribute("col") };
                self.fed += 1;
                self.emit_op("feed", Vec::new(), vec![("Out", vec![name.clone()])], vec![column]);
                self.names.insert(one()?.number, vec![name]);
                Ok(())
            }
            ("fetch", _) => {
                let column = op.find_attribute("col").and_then(Value::as_i64).unwrap_or(0);
                let mut from = self.operand_list_names(&op.inputs)?;
                let name = op
                    .find_attribute("name")
                    .and_then(Value::as_str)
                    .map_or_else(|| "output".to_owned(), str::to_owned);
                if from.first() != Some(&name)
                    && let Some(source) = from.first().cloned()
                {
                    self.emit_assign(&source, &name);
                    from = vec![name];
                }
                let column = op_desc::Attr { l: Some(column), ..named_attribute("col") };
                self.emit_op("fetch", vec![("X", from)], Vec::new(), vec![column]);
                Ok(())
            }
            ("combine", true) => {
                let all = self.operand_list_names(&op.inputs)?;
                self.names.insert(one()?.number, all);
                Ok(())
            }
            ("split", true) => {
                let all = self.operand_list_names(&op.inputs)?;
                for (made, name) in made.iter().zip(all) {
                    self.names.insert(made.number, vec![name]);
                }
                Ok(())
            }
            ("slice", true) => {
                let all = self.operand_list_names(&op.inputs)?;
                let at = op.find_attribute("index").and_then(Value::as_u64).unwrap_or(u64::MAX);
                let name = usize::try_from(at).ok().and_then(|at| all.get(at)).cloned();
                let name = name.ok_or_else(|| invalid_model(format!("one of {} values", all.len()), at))?;
                self.names.insert(one()?.number, vec![name]);
                Ok(())
            }
            ("create_array", _) => self.name_result(one()?).map(|_| ()),
            ("array_write_", _) => {
                let [array, value, place] = op.inputs.as_slice() else {
                    return Err(invalid_model("3 operands", op.inputs.len()));
                };
                let array = self.operand_names(array)?;
                self.names.insert(one()?.number, array.clone());
                let inputs = vec![("X", self.operand_names(value)?), ("I", self.operand_names(place)?)];
                self.emit_op("write_to_array", inputs, vec![("Out", array)], Vec::new());
                Ok(())
            }
            ("if", _) => self.lower_if(op),
            ("while", _) => self.lower_while(op),
            (name, _) => match op_names::find_op_names(name) {
                Some(row) => self.lower_renamed_op(op, &row),
                None => {
                    self.emit_op(&format!("pd_op.{name}"), Vec::new(), Vec::new(), Vec::new());
                    made.iter().try_for_each(|made| self.name_result(made).map(|_| ()))
                }
            },
        }
    }

    /// Converts a parameter. Its name is among flags about training.
    fn lower_parameter(&mut self, op: &PirOp, made: &PirResult) -> Result<()> {
        let name = op.attributes.iter().find_map(Value::as_str);
        let name = name.ok_or_else(|| invalid_model("a name", "none"))?.to_owned();
        let is_kept = op.known.first().is_none_or(|known| known.as_i64() != Some(0));
        let kind = value_types(&made.kind)?.into_iter().next().flatten();
        self.declare_variable(&name, kind, is_kept);
        self.names.insert(made.number, vec![name]);
        Ok(())
    }

    fn lower_renamed_op(&mut self, op: &PirOp, row: &PirOpNames) -> Result<()> {
        let pairs = || row.attributes.split_whitespace().filter(|pair| !pair.contains(":="));
        let rename = |name: &str| {
            let renamed = pairs().filter_map(|pair| pair.split_once('=')).find(|(from, _)| *from == name);
            renamed.map_or(name, |(_, to)| to).to_owned()
        };
        let mut attrs: Vec<op_desc::Attr> =
            op.attributes.iter().filter_map(|value| convert_attribute(value, rename)).collect();
        for (name, value) in row.attributes.split_whitespace().filter_map(|pair| pair.split_once(":=")) {
            attrs.push(op_desc::Attr { b: Some(value == "true"), ..named_attribute(name) });
        }
        let mut inputs = Vec::new();
        for (slot, read) in row.inputs.split_whitespace().zip(&op.inputs) {
            let names = self.operand_names(read)?;
            let Some(attribute) = slot.strip_prefix('@') else {
                if slot != "-" && !names.is_empty() {
                    inputs.push((slot, names));
                }
                continue;
            };
            let (attribute, operand) = attribute.split_once(':').unwrap_or((attribute, ""));
            match names.as_slice() {
                [] => {}
                [one] if self.known.contains_key(one) => {
                    attrs.push(op_desc::Attr { name: Some(attribute.to_owned()), ..self.known[one].clone() });
                }
                _ if operand.is_empty() => {
                    let message = format!("expected `{attribute}` to be a constant, found a computed value");
                    return Err(Error::unimplemented(message));
                }
                _ => inputs.push((operand, names)),
            }
        }
        let mut outputs = Vec::new();
        for (slot, made) in row.outputs.split_whitespace().zip(op.outputs.as_slice()) {
            let names = self.name_result(made)?;
            if slot != "-" {
                outputs.push((slot, names));
            }
        }
        if let [(_, names)] = outputs.as_slice()
            && let [name] = names.as_slice()
        {
            self.record_constant(op, name, &mut attrs);
        }
        self.emit_op(row.old, inputs, outputs, attrs);
        Ok(())
    }

    /// Records the value of a constant, and gives integer lists their shape.
    fn record_constant(&mut self, op: &PirOp, name: &str, attrs: &mut Vec<op_desc::Attr>) {
        let of = |attrs: &[op_desc::Attr], name: &str| attrs.iter().find(|it| it.name() == name).cloned();
        match strip_dialect(&op.name) {
            "full_int_array" => {
                let Some(mut value) = of(attrs, "values") else { return };
                attrs.push(op_desc::Attr {
                    longs: vec![value.longs.len() as i64],
                    ..named_attribute("shape")
                });
                if let [one] = value.longs[..] {
                    value.l = Some(one);
                }
                self.known.insert(name.to_owned(), value);
            }
            "full" => {
                let is_one = of(attrs, "shape").is_none_or(|shape| shape.longs.iter().all(|size| *size == 1));
                if let Some(mut value) = of(attrs, "value").filter(|_| is_one) {
                    let number = value.float64.unwrap_or_default();
                    if number.fract() == 0.0 && number.abs() < i64::MAX as f64 {
                        value.l = Some(number as i64);
                        value.longs = vec![number as i64];
                    }
                    self.known.insert(name.to_owned(), value);
                }
            }
            _ => {}
        }
    }

    fn lower_if(&mut self, op: &PirOp) -> Result<()> {
        let [then, otherwise] = op.regions.as_slice() else {
            return Err(invalid_model("two regions", op.regions.len()));
        };
        let condition = self.operand_list_names(&op.inputs)?;
        let mut made = Vec::new();
        for output in op.outputs.as_slice() {
            made.extend(self.name_result(output)?);
        }
        let mut attrs = vec![op_desc::Attr { b: Some(true), ..named_attribute("is_scalar_condition") }];
        for (name, region) in [("sub_block", then), ("else_block", otherwise)] {
            let (place, yielded) = self.lower_block(single_block(region)?, &[])?;
            self.emit_assigns(place, &yielded, &made)?;
            attrs.push(op_desc::Attr { block_idx: Some(place), ..named_attribute(name) });
        }
        self.emit_op("conditional_block", vec![("Cond", condition)], vec![("Out", made)], attrs);
        Ok(())
    }

    /// Converts a loop: inputs, outputs and carried values become the same variables.
    fn lower_while(&mut self, op: &PirOp) -> Result<()> {
        let [region] = op.regions.as_slice() else {
            return Err(invalid_model("one region", op.regions.len()));
        };
        let mut begin = self.operand_list_names(&op.inputs)?;
        let mut carried = Vec::new();
        for output in op.outputs.as_slice() {
            carried.extend(self.name_result(output)?);
        }
        if begin.len() != carried.len() + 1 {
            return Err(invalid_model(format!("{} operands", carried.len() + 1), begin.len()));
        }
        let condition = begin.remove(0);
        let goes_on = format!("{condition} of the loop {}", self.blocks.len());
        let kind = self.kinds.get(&condition).cloned().flatten();
        self.declare_variable(&goes_on, kind, false);
        self.emit_assign(&condition, &goes_on);
        for (from, to) in begin.iter().zip(&carried) {
            self.emit_assign(from, to);
        }
        let (place, yielded) = self.lower_block(single_block(region)?, &carried)?;
        let all = [vec![goes_on.clone()], carried.clone()].concat();
        self.emit_assigns(place, &yielded, &all)?;
        let attrs = vec![op_desc::Attr { block_idx: Some(place), ..named_attribute("sub_block") }];
        self.emit_op("while", vec![("Condition", vec![goes_on])], vec![("Out", carried)], attrs);
        Ok(())
    }

    /// Ends a block by assigning what it yields. Values are copied first, as a target may be a source too.
    fn emit_assigns(&mut self, block: i32, from: &[String], to: &[String]) -> Result<()> {
        if from.len() != to.len() {
            return Err(invalid_model(format!("a block that yields {} values", to.len()), from.len()));
        }
        let around = std::mem::replace(&mut self.here, block as usize);
        let between: Vec<String> = to.iter().map(|name| format!("{name} of block {block}")).collect();
        for (from, between) in from.iter().zip(&between) {
            let kind = self.kinds.get(from).cloned().flatten();
            self.declare_variable(between, kind, false);
            self.emit_assign(from, between);
        }
        for (between, to) in between.iter().zip(to) {
            self.emit_assign(between, to);
        }
        self.here = around;
        Ok(())
    }
}
