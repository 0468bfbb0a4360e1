//! Rewrites sums of products that equations describe as products of matrices.
//!
//! `Einsum` can express what `Transpose`, `ReduceSum`, `Mul` and `MatMul` do together. Once it is written as these, other
//! passes apply: weights are packed, epilogues are fused, and attention is found. Each label of two operands is of one kind:
//! both have it and so has the output (a stack), both have it and it is summed over (contracted), or only one has it (rows or
//! columns). With the labels in this order and those of one kind merged, an operand is a stack of matrices.
//!
//! Diagonals are not lowered, and neither are sums over a dimension that broadcasts between the operands.

mod equation;
mod layout;

use std::collections::HashMap;
use std::sync::Arc;

use oarlock_core::{Attribute, Constant, Dims, Result};

use self::equation::{DimensionLabel, EinsumTerms};
use self::layout::{
    DimensionSource, EinsumLayout, broadcast_size, common_size, dimension_size, dimension_sources,
    flatten_groups, natural_order,
};
use super::channels_last::transpose_node;
use super::graph_view::{define_pass, replace_nodes};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, GraphValue, Node, ValueId, Weight};

pub(super) const LOWER_EINSUM: GraphPass = define_pass(
    "Einsum lowering",
    "lowers Einsum to a matrix product with the transposes, reshapes and sums that it needs, so that \
     other passes see them",
    lower_einsums,
);

/// The opset of the nodes that replace an `Einsum`.
const WRITTEN_OPSET: u32 = 14;

fn lower_einsums(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    let mut found = HashMap::new();
    for at in 0..graph.nodes.len() {
        if graph.nodes[at].is_op("Einsum") {
            let node = graph.nodes[at].clone();
            let mut writer = EinsumLowering { graph, context, nodes: Vec::new(), name: node.name.clone() };
            if writer.lower_node(&node).is_some() {
                found.insert(at, writer.nodes);
            }
        }
    }
    Ok(replace_nodes(graph, found))
}

/// A value with a label for each dimension.
#[derive(Clone)]
struct LabeledOperand {
    value: ValueId,
    labels: Vec<DimensionLabel>,
}

impl LabeledOperand {
    fn dimension_source(&self, label: DimensionLabel) -> Option<(ValueId, usize)> {
        Some((self.value, self.labels.iter().position(|own| *own == label)?))
    }
}

/// Collects the nodes of one lowering.
struct EinsumLowering<'g> {
    graph: &'g mut Graph,
    context: &'g PassContext<'g>,
    nodes: Vec<Node>,
    name: Arc<str>,
}

impl EinsumLowering<'_> {
    /// Lowers an `Einsum`; `None` if shapes are unknown or the equation has no such form.
    fn lower_node(&mut self, node: &Node) -> Option<()> {
        let values: Vec<ValueId> = node.inputs.iter().copied().collect::<Option<_>>()?;
        let rank = |value: &ValueId| Some(self.graph.value(*value).dims()?.len());
        let ranks: Vec<usize> = values.iter().map(rank).collect::<Option<_>>()?;
        let output = node.output(0)?;
        let equation = EinsumTerms::parse(node.attributes.get_string("equation").ok()??, &ranks)?;
        let operands =
            values.into_iter().zip(equation.inputs).map(|(value, labels)| LabeledOperand { value, labels });
        let mut operands: Vec<LabeledOperand> = operands.collect();
        let mut made = operands.remove(0);
        while !operands.is_empty() {
            let next = operands.remove(0);
            let is_wanted = |label: &DimensionLabel| {
                equation.output.contains(label)
                    || operands.iter().any(|operand| operand.labels.contains(label))
            };
            let order = match operands.is_empty() {
                true => equation.output.clone(),
                false => natural_order(&made, &next, is_wanted),
            };
            made = self.add_product(made, next, &order)?;
        }
        made = self.add_sum(made, |label| equation.output.contains(&label))?;
        self.add_transpose(made, &equation.output)?;
        match self.nodes.last_mut() {
            Some(last) => last.outputs[0] = Some(output),
            None => {
                self.nodes.push(Node::new(
                    "",
                    "Identity",
                    WRITTEN_OPSET,
                    node.inputs.clone(),
                    [Some(output)],
                ));
            }
        }
        Some(())
    }

    /// Adds the product of two operands, with its dimensions in the given order.
    fn add_product(
        &mut self,
        a: LabeledOperand,
        b: LabeledOperand,
        order: &[DimensionLabel],
    ) -> Option<LabeledOperand> {
        let a = self.add_sum(a, |label| b.labels.contains(&label) || order.contains(&label))?;
        let b = self.add_sum(b, |label| a.labels.contains(&label) || order.contains(&label))?;
        let is_summed_over = |label: &DimensionLabel| !order.contains(label);
        if !a.labels.iter().any(is_summed_over) {
            return self.add_elementwise_product(&a, &b, order);
        }
        let is_constant = |operand: &LabeledOperand| self.graph.value(operand.value).weight.is_some();
        let (constant_a, constant_b) = (is_constant(&a), is_constant(&b));
        let one = EinsumLayout::plan_layout(&a.labels, &b.labels, order, [constant_a, constant_b]);
        let other = EinsumLayout::plan_layout(&b.labels, &a.labels, order, [constant_b, constant_a]);
        let (layout, left, right) = if other.cost < one.cost { (other, b, a) } else { (one, a, b) };
        let inner: Vec<[(ValueId, usize); 2]> = layout
            .contracted_labels()
            .map(|label| Some([left.dimension_source(label)?, right.dimension_source(label)?]))
            .collect::<Option<_>>()?;
        let are_same = move |graph: &Graph| {
            let mut sizes =
                inner.iter().map(|[a, b]| Some(dimension_size(*a, graph)? == dimension_size(*b, graph)?));
            sizes.try_fold(true, |all, is_same| Some(all && is_same?))
        };
        if !self.context.check_shapes(self.graph, are_same) {
            return None;
        }
        let sides = [&left, &right];
        let matrices = [(&left, &layout.left), (&right, &layout.right)];
        let [a, b] = matrices.map(|(operand, groups)| {
            let transposed = self.add_transpose(operand.clone(), &flatten_groups(groups))?;
            self.add_grouping_reshape(
                transposed.value,
                dimension_sources(&transposed, groups),
                groups.iter().any(|group| group.len() != 1),
            )
        });
        let (a, b) = (a?, b?);
        let made = self.add_value_with_dims(a, "a product", move |graph| {
            let (a, b) = (graph.value(a).dims()?, graph.value(b).dims()?);
            let (rows, columns) = (*a.get(a.len().checked_sub(2)?)?, *b.last()?);
            let (a, b) = (&a[..a.len() - 2], &b[..b.len().checked_sub(2)?]);
            let (longer, shorter) = if a.len() < b.len() { (b, a) } else { (a, b) };
            let more = longer.len() - shorter.len();
            let both = longer[more..].iter().zip(shorter).map(|(a, b)| broadcast_size(*a, *b));
            Some(longer[..more].iter().copied().chain(both).chain([rows, columns]).collect())
        })?;
        self.add_supported_node("MatMul", [a, b], &[], made)?;
        let groups = &layout.made;
        let parts: Vec<Vec<DimensionSource>> = flatten_groups(groups)
            .into_iter()
            .map(|label| vec![sides.map(|side| side.dimension_source(label))])
            .collect();
        let value = self.add_grouping_reshape(made, parts, groups.iter().any(|group| group.len() != 1))?;
        self.add_transpose(LabeledOperand { value, labels: flatten_groups(groups) }, order)
    }

    /// Adds the product of two operands that share no contracted label, by broadcasting.
    fn add_elementwise_product(
        &mut self,
        a: &LabeledOperand,
        b: &LabeledOperand,
        order: &[DimensionLabel],
    ) -> Option<LabeledOperand> {
        let factors = [a, b].map(|operand| {
            let own: Vec<DimensionLabel> =
                order.iter().copied().filter(|label| operand.labels.contains(label)).collect();
            let transposed = self.add_transpose(operand.clone(), &own)?;
            let from = order.iter().position(|label| own.contains(label)).unwrap_or(order.len());
            // Missing dimensions get size 1. Leading ones can be omitted, because broadcasting aligns at the end.
            let group = |label: &DimensionLabel| if own.contains(label) { vec![*label] } else { Vec::new() };
            let groups: Vec<Vec<DimensionLabel>> = order[from..].iter().map(group).collect();
            self.add_grouping_reshape(
                transposed.value,
                dimension_sources(&transposed, &groups),
                groups.len() != own.len(),
            )
        });
        let [first, second] = factors;
        let (first, second) = (first?, second?);
        let sizes: Vec<DimensionSource> =
            order.iter().map(|label| [a.dimension_source(*label), b.dimension_source(*label)]).collect();
        let made = self.add_value_with_dims(first, "a product", move |graph| {
            sizes.iter().map(|source| common_size(graph, source)).collect()
        })?;
        self.add_supported_node("Mul", [first, second], &[], made)?;
        Some(LabeledOperand { value: made, labels: order.to_vec() })
    }

    /// Sums an operand over the labels that are not kept.
    fn add_sum(
        &mut self,
        operand: LabeledOperand,
        is_kept: impl Fn(DimensionLabel) -> bool,
    ) -> Option<LabeledOperand> {
        let (axes, kept): (Vec<usize>, Vec<usize>) =
            (0..operand.labels.len()).partition(|axis| !is_kept(operand.labels[*axis]));
        if axes.is_empty() {
            return Some(operand);
        }
        let labels = kept.iter().map(|axis| operand.labels[*axis]).collect();
        let value = operand.value;
        let made = self.add_value_with_dims(value, "a sum", move |graph| {
            let dims = graph.value(value).dims()?;
            kept.iter().map(|axis| dims.get(*axis).copied()).collect()
        })?;
        let axes: Vec<i64> =
            axes.into_iter().map(i64::try_from).collect::<std::result::Result<_, _>>().ok()?;
        let axes = self
            .graph
            .add_value(GraphValue::with_weight("axes", Weight::Numbers(Constant::from_ints(&axes))));
        self.add_supported_node("ReduceSum", [value, axes], &[("keepdims", Attribute::Int(0))], made)?;
        Some(LabeledOperand { value: made, labels })
    }

    /// Transposes an operand into the given label order, unless it has it already.
    fn add_transpose(
        &mut self,
        operand: LabeledOperand,
        labels: &[DimensionLabel],
    ) -> Option<LabeledOperand> {
        if operand.labels == labels {
            return Some(operand);
        }
        let place = |label: &DimensionLabel| i64::try_from(operand.dimension_source(*label)?.1).ok();
        let order: Vec<i64> = labels.iter().map(place).collect::<Option<_>>()?;
        let value = self.context.add_transposed_value(self.graph, operand.value, &order)?;
        self.nodes.push(transpose_node(operand.value, value, order));
        Some(LabeledOperand { value, labels: labels.to_vec() })
    }

    /// Merges the dimensions of each group by a reshape, if there is anything to merge.
    fn add_grouping_reshape(
        &mut self,
        value: ValueId,
        groups: Vec<Vec<DimensionSource>>,
        is_other: bool,
    ) -> Option<ValueId> {
        if !is_other {
            return Some(value);
        }
        let made = self.add_value_with_dims(value, "another shape", move |graph| {
            let of_group = |group: &Vec<DimensionSource>| {
                let mut sizes = group.iter().map(|source| common_size(graph, source));
                sizes.try_fold(1i64, |all, size| all.checked_mul(size?))
            };
            groups.iter().map(of_group).collect()
        })?;
        let shape = self.context.add_shape_constant(self.graph, made)?;
        let mut node = Node::new("", "Reshape", WRITTEN_OPSET, [Some(value), Some(shape)], [Some(made)]);
        // A size of 0 means an empty dimension here, not a copy of the input's.
        node.attributes.set("allowzero", Attribute::Int(1));
        self.nodes.push(node);
        Some(made)
    }

    /// Adds a value of the dtype of another one. Its shape is a function of other shapes, which a replay evaluates again.
    fn add_value_with_dims(
        &mut self,
        like: ValueId,
        what: &str,
        dims: impl Fn(&Graph) -> Option<Dims> + Send + Sync + 'static,
    ) -> Option<ValueId> {
        let name = if self.name.is_empty() { "Einsum" } else { &self.name };
        self.context.add_value_with_dims(self.graph, &format!("{what} of {name}"), like, dims)
    }

    /// Adds a node, if the device supports it.
    fn add_supported_node(
        &mut self,
        op: &str,
        inputs: [ValueId; 2],
        attributes: &[(&str, Attribute)],
        made: ValueId,
    ) -> Option<()> {
        let mut node = Node::new("", op, WRITTEN_OPSET, inputs.map(Some), [Some(made)]);
        node.name = self.name.clone();
        attributes.iter().for_each(|(name, value)| node.attributes.set(*name, value.clone()));
        let is_supported = self.context.supports_node(self.graph, &node);
        self.nodes.push(node);
        is_supported.then_some(())
    }
}
