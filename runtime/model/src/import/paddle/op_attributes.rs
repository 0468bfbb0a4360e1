//! Access to the operands and attributes of an op.

use oarlock_core::Result;

use super::messages::{OpDesc, Scalar, op_desc};
use crate::import::error_location::{invalid_model, quote_name};

impl OpDesc {
    /// The variables under a parameter name; empty if it is missing.
    pub(super) fn operand_names<'m>(lists: &'m [op_desc::Var], name: &str) -> &'m [String] {
        lists.iter().find(|list| list.parameter() == name).map_or(&[], |list| &list.arguments)
    }

    fn find_attribute(&self, name: &str) -> Option<&op_desc::Attr> {
        self.attrs.iter().find(|attribute| attribute.name() == name)
    }

    /// An integer, from any of the fields that may hold one.
    pub(super) fn int_attribute(&self, name: &str, default: i64) -> i64 {
        let Some(attribute) = self.find_attribute(name) else { return default };
        let scalar = || attribute.scalar.as_ref().and_then(|scalar| scalar.i);
        attribute.i.map(i64::from).or(attribute.l).or_else(scalar).unwrap_or(default)
    }

    /// A number, from any of the fields that may hold one.
    pub(super) fn float_attribute(&self, name: &str, default: f64) -> f64 {
        let Some(attribute) = self.find_attribute(name) else { return default };
        let of_scalar = |scalar: &Scalar| scalar.r.or(scalar.i.map(|int| int as f64));
        let scalar = || attribute.scalar.as_ref().and_then(of_scalar);
        let int = || attribute.i.map(i64::from).or(attribute.l).map(|int| int as f64);
        attribute.f.map(f64::from).or(attribute.float64).or_else(scalar).or_else(int).unwrap_or(default)
    }

    pub(super) fn bool_attribute(&self, name: &str, default: bool) -> bool {
        self.find_attribute(name).and_then(|attribute| attribute.b).unwrap_or(default)
    }

    /// A string; empty if missing.
    pub(super) fn text_attribute(&self, name: &str) -> &str {
        self.find_attribute(name).map_or("", |attribute| attribute.s())
    }

    /// The index of a block that is the body of the op.
    pub(super) fn block_attribute(&self, name: &str) -> Option<i64> {
        self.find_attribute(name)?.block_idx.map(i64::from)
    }

    /// Integers, from any of the fields that may hold some; empty if missing.
    pub(super) fn ints_attribute(&self, name: &str) -> Vec<i64> {
        let Some(attribute) = self.find_attribute(name) else { return Vec::new() };
        let scalars = attribute.scalars.iter().filter_map(|scalar| scalar.i);
        let ints = attribute.ints.iter().map(|int| i64::from(*int));
        // A single integer where a list is expected, as axes are written at times.
        let one = attribute.i.map(i64::from);
        let truths = attribute.bools.iter().map(|truth| i64::from(*truth));
        ints.chain(truths).chain(attribute.longs.iter().copied()).chain(scalars).chain(one).collect()
    }

    /// Numbers, from any of the fields that may hold some; empty if missing.
    pub(super) fn floats_attribute(&self, name: &str) -> Vec<f64> {
        let Some(attribute) = self.find_attribute(name) else { return Vec::new() };
        let floats = attribute.floats.iter().map(|float| f64::from(*float));
        let scalars = attribute.scalars.iter().filter_map(|scalar| scalar.r);
        floats.chain(attribute.float64s.iter().copied()).chain(scalars).collect()
    }

    /// Returns an error unless an attribute is missing or has one of the supported values.
    pub(super) fn expect_attribute(&self, name: &str, expected: &[&str]) -> Result<()> {
        match self.text_attribute(name) {
            "" => Ok(()),
            found if expected.contains(&found) => Ok(()),
            found => {
                Err(invalid_model(format!("`{name}` to be {}", expected.join(" or ")), quote_name(found)))
            }
        }
    }
}
