//! Products taken apart, since exporters write their factors in every order.

use super::common::Look;
use crate::graph::{Node, ValueId};

/// A product: the part that is constant, and the others.
pub(super) struct Product {
    pub(super) constant: f64,
    pub(super) factors: Vec<ValueId>,
}

impl Product {
    /// Takes a product apart, as far as its parts are products that nobody else reads.
    pub(super) fn of(look: &Look<'_>, node: &Node) -> Option<Self> {
        let mut product = Self { constant: 1.0, factors: Vec::new() };
        product.multiply(look, node, 0)?;
        Some(product)
    }

    fn multiply(&mut self, look: &Look<'_>, node: &Node, depth: usize) -> Option<()> {
        let (a, b) = node.input(0).zip(node.input(1))?;
        if node.is("Div") {
            self.constant /= look.scalar(b)?;
            return self.take(look, a, depth);
        }
        self.take(look, a, depth)?;
        self.take(look, b, depth)
    }

    fn take(&mut self, look: &Look<'_>, value: ValueId, depth: usize) -> Option<()> {
        if let Some(constant) = look.scalar(value) {
            self.constant *= constant;
            return Some(());
        }
        let is_product = |node: &&Node| {
            node.is("Mul") || node.is("Div") && node.input(1).is_some_and(|by| look.scalar(by).is_some())
        };
        match look.maker(value).filter(is_product).filter(|_| look.is_read_once(value) && depth < 4) {
            Some(node) => self.multiply(look, node, depth + 1),
            None => {
                self.factors.push(value);
                Some(())
            }
        }
    }
}

/// Whether a number is what a formula has, as far as exporters write its digits.
pub(super) fn is_near(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= expected.abs() * 1e-3
}
