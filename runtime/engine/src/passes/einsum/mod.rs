//! Sums of products that equations describe become products of matrices.
//!
//! `Einsum` can say what `Transpose`, `ReduceSum`, `Mul` and `MatMul` do together. Written as these, it is seen by what looks
//! for products: their weights are packed, what follows becomes part of them, and attention is found. Of each dimension
//! of two operands it is known what becomes of it: both have it and the output too, both have it and it is summed
//! over, or one has it. In this order an operand is a stack of matrices, where dimensions of one kind are joined.
//!
//! Diagonals stay, and so do sums over what has one element in one operand and more in the other.

mod equation;
mod layout;

use std::collections::HashMap;
use std::sync::Arc;

use oarlock_core::{Attribute, Constant, Dims, Result};

use self::equation::{Equation, Label};
use self::layout::{Layout, Source, common_size, flat, repeated, size, sources, usual_order};
use super::channels_last::transpose;
use super::common::{pass, replace};
use super::{Pass, Scene};
use crate::graph::{Graph, Node, Value, ValueId, Weight};

pub(super) const PASS: Pass = pass(
    "sums of products",
    "writes Einsum as a product of matrices, with the transposes, reshapes and sums that it takes, so that other passes see \
     them",
    run,
);

/// The opset whose ops are written.
const OPSET: u32 = 14;

fn run(graph: &mut Graph, scene: &Scene<'_>) -> Result<usize> {
    let mut found = HashMap::new();
    for at in 0..graph.nodes.len() {
        if graph.nodes[at].is("Einsum") {
            let node = graph.nodes[at].clone();
            let mut writer = Writer { graph, scene, nodes: Vec::new(), name: node.name.clone() };
            if writer.write(&node).is_some() {
                found.insert(at, writer.nodes);
            }
        }
    }
    Ok(replace(graph, found))
}

/// A value whose dimensions have names.
#[derive(Clone)]
struct Operand {
    value: ValueId,
    labels: Vec<Label>,
}

impl Operand {
    /// Where the size of a dimension is found.
    fn source(&self, label: Label) -> Option<(ValueId, usize)> {
        Some((self.value, self.labels.iter().position(|own| *own == label)?))
    }
}

/// Nodes that are being written.
struct Writer<'g> {
    graph: &'g mut Graph,
    scene: &'g Scene<'g>,
    nodes: Vec<Node>,
    name: Arc<str>,
}

impl Writer<'_> {
    /// Writes what an `Einsum` makes; nothing where its shapes are not known, or where it takes an `Einsum`.
    fn write(&mut self, node: &Node) -> Option<()> {
        let values: Vec<ValueId> = node.inputs.iter().copied().collect::<Option<_>>()?;
        let rank = |value: &ValueId| Some(self.graph.value(*value).dims()?.len());
        let ranks: Vec<usize> = values.iter().map(rank).collect::<Option<_>>()?;
        let output = node.output(0)?;
        let equation = Equation::of(node.attributes.string("equation").ok()??, &ranks)?;
        let operands =
            values.into_iter().zip(equation.inputs).map(|(value, labels)| Operand { value, labels });
        let mut operands: Vec<Operand> = operands.collect();
        let mut made = operands.remove(0);
        while !operands.is_empty() {
            let next = operands.remove(0);
            let is_wanted = |label: &Label| {
                equation.output.contains(label)
                    || operands.iter().any(|operand| operand.labels.contains(label))
            };
            let order = match operands.is_empty() {
                true => equation.output.clone(),
                false => usual_order(&made, &next, is_wanted),
            };
            made = self.product(made, next, &order)?;
        }
        made = self.summed(made, |label| equation.output.contains(&label))?;
        self.turned(made, &equation.output)?;
        match self.nodes.last_mut() {
            Some(last) => last.outputs[0] = Some(output),
            None => self.nodes.push(Node::new("", "Identity", OPSET, node.inputs.clone(), [Some(output)])),
        }
        Some(())
    }

    /// The product of two operands, with its dimensions in an order.
    fn product(&mut self, a: Operand, b: Operand, order: &[Label]) -> Option<Operand> {
        let a = self.summed(a, |label| b.labels.contains(&label) || order.contains(&label))?;
        let b = self.summed(b, |label| a.labels.contains(&label) || order.contains(&label))?;
        let is_summed_over = |label: &Label| !order.contains(label);
        if !a.labels.iter().any(is_summed_over) {
            return self.multiplied(&a, &b, order);
        }
        let is_constant = |operand: &Operand| self.graph.value(operand.value).weight.is_some();
        let (constant_a, constant_b) = (is_constant(&a), is_constant(&b));
        let one = Layout::of(&a.labels, &b.labels, order, [constant_a, constant_b]);
        let other = Layout::of(&b.labels, &a.labels, order, [constant_b, constant_a]);
        let (layout, left, right) = if other.cost < one.cost { (other, b, a) } else { (one, a, b) };
        let inner: Vec<[(ValueId, usize); 2]> = layout
            .inner()
            .map(|label| Some([left.source(label)?, right.source(label)?]))
            .collect::<Option<_>>()?;
        let are_same = move |graph: &Graph| {
            let mut sizes = inner.iter().map(|[a, b]| Some(size(*a, graph)? == size(*b, graph)?));
            sizes.try_fold(true, |all, is_same| Some(all && is_same?))
        };
        if !self.scene.asks(self.graph, are_same) {
            return None;
        }
        let sides = [&left, &right];
        let matrices = [(&left, &layout.left), (&right, &layout.right)];
        let [a, b] = matrices.map(|(operand, groups)| {
            let turned = self.turned(operand.clone(), &flat(groups))?;
            self.grouped(turned.value, sources(&turned, groups), groups.iter().any(|group| group.len() != 1))
        });
        let (a, b) = (a?, b?);
        let made = self.sized(a, "a product", move |graph| {
            let (a, b) = (graph.value(a).dims()?, graph.value(b).dims()?);
            let (rows, columns) = (*a.get(a.len().checked_sub(2)?)?, *b.last()?);
            let (a, b) = (&a[..a.len() - 2], &b[..b.len().checked_sub(2)?]);
            let (longer, shorter) = if a.len() < b.len() { (b, a) } else { (a, b) };
            let more = longer.len() - shorter.len();
            let both = longer[more..].iter().zip(shorter).map(|(a, b)| repeated(*a, *b));
            Some(longer[..more].iter().copied().chain(both).chain([rows, columns]).collect())
        })?;
        self.taken("MatMul", [a, b], &[], made)?;
        let groups = &layout.made;
        let parts: Vec<Vec<Source>> =
            flat(groups).into_iter().map(|label| vec![sides.map(|side| side.source(label))]).collect();
        let value = self.grouped(made, parts, groups.iter().any(|group| group.len() != 1))?;
        self.turned(Operand { value, labels: flat(groups) }, order)
    }

    /// The product of two operands of which nothing is summed over.
    fn multiplied(&mut self, a: &Operand, b: &Operand, order: &[Label]) -> Option<Operand> {
        let factors = [a, b].map(|operand| {
            let own: Vec<Label> =
                order.iter().copied().filter(|label| operand.labels.contains(label)).collect();
            let turned = self.turned(operand.clone(), &own)?;
            let from = order.iter().position(|label| own.contains(label)).unwrap_or(order.len());
            // What it does not have is repeated; before its first dimension that needs no saying.
            let group = |label: &Label| if own.contains(label) { vec![*label] } else { Vec::new() };
            let groups: Vec<Vec<Label>> = order[from..].iter().map(group).collect();
            self.grouped(turned.value, sources(&turned, &groups), groups.len() != own.len())
        });
        let [first, second] = factors;
        let (first, second) = (first?, second?);
        let sizes: Vec<Source> = order.iter().map(|label| [a.source(*label), b.source(*label)]).collect();
        let made = self.sized(first, "a product", move |graph| {
            sizes.iter().map(|source| common_size(graph, source)).collect()
        })?;
        self.taken("Mul", [first, second], &[], made)?;
        Some(Operand { value: made, labels: order.to_vec() })
    }

    /// An operand summed over the dimensions that are not kept.
    fn summed(&mut self, operand: Operand, is_kept: impl Fn(Label) -> bool) -> Option<Operand> {
        let (axes, kept): (Vec<usize>, Vec<usize>) =
            (0..operand.labels.len()).partition(|axis| !is_kept(operand.labels[*axis]));
        if axes.is_empty() {
            return Some(operand);
        }
        let labels = kept.iter().map(|axis| operand.labels[*axis]).collect();
        let value = operand.value;
        let made = self.sized(value, "a sum", move |graph| {
            let dims = graph.value(value).dims()?;
            kept.iter().map(|axis| dims.get(*axis).copied()).collect()
        })?;
        let axes: Vec<i64> =
            axes.into_iter().map(i64::try_from).collect::<std::result::Result<_, _>>().ok()?;
        let axes = self.graph.add(Value::constant("axes", Weight::Numbers(Constant::of_ints(&axes))));
        self.taken("ReduceSum", [value, axes], &[("keepdims", Attribute::Int(0))], made)?;
        Some(Operand { value: made, labels })
    }

    /// An operand with its dimensions in another order.
    fn turned(&mut self, operand: Operand, labels: &[Label]) -> Option<Operand> {
        if operand.labels == labels {
            return Some(operand);
        }
        let place = |label: &Label| i64::try_from(operand.source(*label)?.1).ok();
        let order: Vec<i64> = labels.iter().map(place).collect::<Option<_>>()?;
        let value = self.scene.add_turned(self.graph, operand.value, &order)?;
        self.nodes.push(transpose(operand.value, value, order));
        Some(Operand { value, labels: labels.to_vec() })
    }

    /// A value in a shape whose every dimension is as large as those of a group together, if it has another one.
    fn grouped(&mut self, value: ValueId, groups: Vec<Vec<Source>>, is_other: bool) -> Option<ValueId> {
        if !is_other {
            return Some(value);
        }
        let made = self.sized(value, "another shape", move |graph| {
            let of_group = |group: &Vec<Source>| {
                let mut sizes = group.iter().map(|source| common_size(graph, source));
                sizes.try_fold(1i64, |all, size| all.checked_mul(size?))
            };
            groups.iter().map(of_group).collect()
        })?;
        let shape = self.scene.add_shape(self.graph, made)?;
        let mut node = Node::new("", "Reshape", OPSET, [Some(value), Some(shape)], [Some(made)]);
        // A size of zero is one.
        node.attributes.set("allowzero", Attribute::Int(1));
        self.nodes.push(node);
        Some(made)
    }

    /// Adds a value of the dtype of another one, of a shape that follows from those of others.
    fn sized(
        &mut self,
        like: ValueId,
        what: &str,
        dims: impl Fn(&Graph) -> Option<Dims> + Send + Sync + 'static,
    ) -> Option<ValueId> {
        let name = if self.name.is_empty() { "Einsum" } else { &self.name };
        self.scene.add_sized(self.graph, &format!("{what} of {name}"), like, dims)
    }

    /// Writes a node, if the device takes it.
    fn taken(
        &mut self,
        op: &str,
        inputs: [ValueId; 2],
        attributes: &[(&str, Attribute)],
        made: ValueId,
    ) -> Option<()> {
        let mut node = Node::new("", op, OPSET, inputs.map(Some), [Some(made)]);
        node.name = self.name.clone();
        attributes.iter().for_each(|(name, value)| node.attributes.set(*name, value.clone()));
        let is_taken = self.scene.takes(self.graph, &node);
        self.nodes.push(node);
        is_taken.then_some(())
    }
}
