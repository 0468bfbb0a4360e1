//! Chooses layouts in which two operands are stacks of matrices whose product is what an equation says.

use super::LabeledOperand;
use super::equation::DimensionLabel;
use crate::graph::{Graph, ValueId};

/// Labels in order. Those of one group are merged into one dimension.
pub(super) type LabelGroups = Vec<Vec<DimensionLabel>>;

/// Sources for the size of a dimension: either operand or both, where a size of 1 broadcasts.
pub(super) type DimensionSource = [Option<(ValueId, usize)>; 2];

/// The dimension orders of two operands and of their product. The last two groups are rows and columns.
pub(super) struct EinsumLayout {
    pub(super) left: LabelGroups,
    pub(super) right: LabelGroups,
    pub(super) made: LabelGroups,
    /// Estimated cost of the transposes to get there.
    pub(super) cost: u32,
}

impl EinsumLayout {
    /// Plans a product with the output dimensions in a given order. A label that only one operand has, and that is not summed
    /// over, becomes a row or column dimension.
    pub(super) fn plan_layout(
        left: &[DimensionLabel],
        right: &[DimensionLabel],
        order: &[DimensionLabel],
        is_constant: [bool; 2],
    ) -> Self {
        let kept = |is_in_left: bool, is_in_right: bool| -> Vec<DimensionLabel> {
            let is_it = |label: &&DimensionLabel| {
                (left.contains(label), right.contains(label)) == (is_in_left, is_in_right)
            };
            order.iter().filter(is_it).copied().collect()
        };
        let (stack, mut rows, mut columns) = (kept(true, true), kept(true, false), kept(false, true));
        // Contracted dimensions keep the order of the operand that is not constant, since that one is transposed in each run.
        let guide = if is_constant[0] { right } else { left };
        let inner: Vec<DimensionLabel> =
            guide.iter().filter(|label| !order.contains(label)).copied().collect();
        // If the operands share no stack dimension, one of them may be a stack by itself, which saves a merge.
        let mut outer = [Vec::new(), Vec::new()];
        if stack.is_empty() {
            for (side, free) in [&mut rows, &mut columns].into_iter().enumerate() {
                let most = free.len().saturating_sub(1);
                let is_before = order.starts_with(&free[..most]);
                if is_before && outer[0].is_empty() && !(side == 1 && is_constant[1]) {
                    outer[side] = free.drain(..most).collect();
                }
            }
        }
        let groups =
            |outer: &[DimensionLabel], rows: &[DimensionLabel], columns: &[DimensionLabel]| -> LabelGroups {
                let apart = outer.iter().chain(&stack).map(|label| vec![*label]);
                apart.chain([rows.to_vec(), columns.to_vec()]).collect()
            };
        let made = groups(&outer.concat(), &rows, &columns);
        let (own_left, own_right) = (groups(&outer[0], &rows, &inner), groups(&outer[1], &inner, &columns));
        let cost = move_cost(left, &own_left, is_constant[0])
            + move_cost(right, &own_right, is_constant[1])
            + if flatten_groups(&made) == order { 0 } else { FULL_MOVE_COST }
            // A constant right operand is packed once, so prefer it there.
            + u32::from(is_constant[0] && !is_constant[1]);
        Self { left: own_left, right: own_right, made, cost }
    }

    /// The labels that the product sums over.
    pub(super) fn contracted_labels(&self) -> impl Iterator<Item = DimensionLabel> {
        self.left.last().into_iter().flatten().copied()
    }
}

/// Cost of a transpose that moves the whole operand.
const FULL_MOVE_COST: u32 = 2;

/// Cost of bringing an operand into an order. Exchanging the last two groups is cheap, because products read either order.
fn move_cost(from: &[DimensionLabel], to: &LabelGroups, is_constant: bool) -> u32 {
    let mut exchanged = to.clone();
    let last = exchanged.len().saturating_sub(2);
    exchanged[last..].reverse();
    match from {
        _ if is_constant || from == flatten_groups(to) => 0,
        _ if from == flatten_groups(&exchanged) => 1,
        _ => FULL_MOVE_COST,
    }
}

pub(super) fn flatten_groups(groups: &LabelGroups) -> Vec<DimensionLabel> {
    groups.concat()
}

/// The order in which a product naturally comes out, for one that is only an intermediate.
pub(super) fn natural_order(
    a: &LabeledOperand,
    b: &LabeledOperand,
    is_wanted: impl Fn(&DimensionLabel) -> bool,
) -> Vec<DimensionLabel> {
    let (both, rows): (Vec<DimensionLabel>, Vec<DimensionLabel>) =
        a.labels.iter().copied().filter(&is_wanted).partition(|label| b.labels.contains(label));
    let columns = b.labels.iter().copied().filter(|label| !a.labels.contains(label) && is_wanted(label));
    both.into_iter().chain(rows).chain(columns).collect()
}

/// For each group of an operand, where its sizes can be read.
pub(super) fn dimension_sources(operand: &LabeledOperand, groups: &LabelGroups) -> Vec<Vec<DimensionSource>> {
    let of_group = |group: &Vec<DimensionLabel>| {
        group.iter().map(|label| [operand.dimension_source(*label), None]).collect()
    };
    groups.iter().map(of_group).collect()
}

pub(super) fn dimension_size((value, axis): (ValueId, usize), graph: &Graph) -> Option<i64> {
    graph.value(value).dims()?.get(axis).copied()
}

/// The size of a dimension that one operand has, or both after broadcasting.
pub(super) fn common_size(graph: &Graph, source: &DimensionSource) -> Option<i64> {
    match source {
        [Some(a), Some(b)] => Some(broadcast_size(dimension_size(*a, graph)?, dimension_size(*b, graph)?)),
        [Some(one), None] | [None, Some(one)] => dimension_size(*one, graph),
        [None, None] => None,
    }
}

/// The broadcast of two compatible sizes.
pub(super) fn broadcast_size(a: i64, b: i64) -> i64 {
    if a == 1 { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chosen layout of both operands and the product, with its cost.
    fn describe_layout(left: &str, right: &str, order: &str, is_constant: [bool; 2]) -> String {
        let labels = |text: &str| text.chars().collect::<Vec<_>>();
        let made = EinsumLayout::plan_layout(&labels(left), &labels(right), &labels(order), is_constant);
        let shown = |groups: &LabelGroups| {
            groups.iter().map(|group| group.iter().collect()).collect::<Vec<String>>().join(".")
        };
        format!("{} {} {} {}", shown(&made.left), shown(&made.right), shown(&made.made), made.cost)
    }

    #[test]
    fn what_both_have_is_a_stack_and_the_rest_is_joined_to_rows_and_columns() {
        let plain = [false, false];
        assert_eq!(describe_layout("bij", "bkj", "bik", plain), "b.i.j b.j.k b.i.k 1");
        assert_eq!(describe_layout("bihd", "bjhd", "bhij", plain), "b.h.i.d b.h.d.j b.h.i.j 4");
        assert_eq!(describe_layout("bqnc", "bnchw", "bqnhw", plain), "b.n.q.c b.n.c.hw b.n.q.hw 4");
        assert_eq!(describe_layout("i", "i", "", plain), ".i i. . 0");
        assert_eq!(describe_layout("bij", "bj", "bi", plain), "b.i.j b.j. b.i. 0");
    }

    #[test]
    fn without_a_stack_in_common_one_operand_is_a_stack_by_itself() {
        assert_eq!(describe_layout("abc", "cd", "abd", [false, true]), "a.b.c c.d a.b.d 0");
        assert_eq!(describe_layout("bnd", "dhk", "bnhk", [false, true]), "b.n.d d.hk b.n.hk 0");
        assert_eq!(describe_layout("oi", "bit", "bot", [true, false]), "o.i b.i.t b.o.t 1");
    }

    #[test]
    fn constant_right_operands_add_no_layout_cost() {
        assert!(describe_layout("oi", "bi", "bo", [true, false]).ends_with(" 4"));
        assert!(describe_layout("bi", "oi", "bo", [false, true]).ends_with(" 0"));
    }
}
