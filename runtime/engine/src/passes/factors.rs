//! Takes products apart into factors, because exporters write these in every order.

use super::graph_view::GraphView;
use crate::graph::{Node, ValueId};

/// A product of one constant and other factors.
pub(super) struct FactoredProduct {
    pub(super) constant: f64,
    pub(super) factors: Vec<ValueId>,
}

impl FactoredProduct {
    /// Collects the factors of a product, descending into products with no other reader.
    pub(super) fn from_node(view: &GraphView<'_>, node: &Node) -> Option<Self> {
        let mut product = Self { constant: 1.0, factors: Vec::new() };
        product.multiply_inputs(view, node, 0)?;
        Some(product)
    }

    fn multiply_inputs(&mut self, view: &GraphView<'_>, node: &Node, depth: usize) -> Option<()> {
        let (a, b) = node.input(0).zip(node.input(1))?;
        if node.is_op("Div") {
            self.constant /= view.scalar_constant(b)?;
            return self.multiply_value(view, a, depth);
        }
        self.multiply_value(view, a, depth)?;
        self.multiply_value(view, b, depth)
    }

    fn multiply_value(&mut self, view: &GraphView<'_>, value: ValueId, depth: usize) -> Option<()> {
        if let Some(constant) = view.scalar_constant(value) {
            self.constant *= constant;
            return Some(());
        }
        let is_product = |node: &&Node| {
            node.is_op("Mul")
                || node.is_op("Div") && node.input(1).is_some_and(|by| view.scalar_constant(by).is_some())
        };
        match view.producer(value).filter(is_product).filter(|_| view.is_read_once(value) && depth < 4) {
            Some(node) => self.multiply_inputs(view, node, depth + 1),
            None => {
                self.factors.push(value);
                Some(())
            }
        }
    }
}

/// Compares with the constant of a formula, allowing for the few digits that exporters write.
pub(super) fn is_close(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= expected.abs() * 1e-3
}
