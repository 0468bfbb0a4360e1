//! Products taken apart, since exporters write their factors in every order.

use super::graph_view::GraphView;
use crate::graph::{Node, ValueId};

/// A product: the part that is constant, and the others.
pub(super) struct FactoredProduct {
    pub(super) constant: f64,
    pub(super) factors: Vec<ValueId>,
}

impl FactoredProduct {
    /// Takes a product apart, as far as its parts are products that nobody else reads.
    pub(super) fn from_node(look: &GraphView<'_>, node: &Node) -> Option<Self> {
        let mut product = Self { constant: 1.0, factors: Vec::new() };
        product.multiply_inputs(look, node, 0)?;
        Some(product)
    }

    fn multiply_inputs(&mut self, look: &GraphView<'_>, node: &Node, depth: usize) -> Option<()> {
        let (a, b) = node.input(0).zip(node.input(1))?;
        if node.is_op("Div") {
            self.constant /= look.scalar_constant(b)?;
            return self.multiply_value(look, a, depth);
        }
        self.multiply_value(look, a, depth)?;
        self.multiply_value(look, b, depth)
    }

    fn multiply_value(&mut self, look: &GraphView<'_>, value: ValueId, depth: usize) -> Option<()> {
        if let Some(constant) = look.scalar_constant(value) {
            self.constant *= constant;
            return Some(());
        }
        let is_product = |node: &&Node| {
            node.is_op("Mul")
                || node.is_op("Div") && node.input(1).is_some_and(|by| look.scalar_constant(by).is_some())
        };
        match look.producer(value).filter(is_product).filter(|_| look.is_read_once(value) && depth < 4) {
            Some(node) => self.multiply_inputs(look, node, depth + 1),
            None => {
                self.factors.push(value);
                Some(())
            }
        }
    }
}

/// Whether a number is what a formula has, as far as exporters write its digits.
pub(super) fn is_close(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= expected.abs() * 1e-3
}
