//! What an op of a program says about itself.

use oarlock_core::Result;

use super::messages::{OpDesc, Scalar, op_desc};
use crate::import::error_location::{invalid_model, quote_name};

impl OpDesc {
    /// The names of the operands under a name; none where it is left out.
    pub(super) fn operand_names<'m>(lists: &'m [op_desc::Var], name: &str) -> &'m [String] {
        lists.iter().find(|list| list.parameter() == name).map_or(&[], |list| &list.arguments)
    }

    fn find_attribute(&self, name: &str) -> Option<&op_desc::Attr> {
        self.attrs.iter().find(|attribute| attribute.name() == name)
    }

    /// An integer.
    pub(super) fn int_attribute(&self, name: &str, default: i64) -> i64 {
        let Some(attribute) = self.find_attribute(name) else { return default };
        let scalar = || attribute.scalar.as_ref().and_then(|scalar| scalar.i);
        attribute.i.map(i64::from).or(attribute.l).or_else(scalar).unwrap_or(default)
    }

    /// A number.
    pub(super) fn float_attribute(&self, name: &str, default: f64) -> f64 {
        let Some(attribute) = self.find_attribute(name) else { return default };
        let of_scalar = |scalar: &Scalar| scalar.r.or(scalar.i.map(|int| int as f64));
        let scalar = || attribute.scalar.as_ref().and_then(of_scalar);
        attribute.f.map(f64::from).or(attribute.float64).or_else(scalar).unwrap_or(default)
    }

    /// Whether something is so.
    pub(super) fn bool_attribute(&self, name: &str, default: bool) -> bool {
        self.find_attribute(name).and_then(|attribute| attribute.b).unwrap_or(default)
    }

    /// A text; empty where it is left out.
    pub(super) fn text_attribute(&self, name: &str) -> &str {
        self.find_attribute(name).map_or("", |attribute| attribute.s())
    }

    /// The block that is the body of the op, where it has one of that name.
    pub(super) fn block_attribute(&self, name: &str) -> Option<i64> {
        self.find_attribute(name)?.block_idx.map(i64::from)
    }

    /// Integers; none where they are left out.
    pub(super) fn ints_attribute(&self, name: &str) -> Vec<i64> {
        let Some(attribute) = self.find_attribute(name) else { return Vec::new() };
        let scalars = attribute.scalars.iter().filter_map(|scalar| scalar.i);
        let ints = attribute.ints.iter().map(|int| i64::from(*int));
        // One integer where several are meant, as axes are written at times.
        let one = attribute.i.map(i64::from);
        let truths = attribute.bools.iter().map(|truth| i64::from(*truth));
        ints.chain(truths).chain(attribute.longs.iter().copied()).chain(scalars).chain(one).collect()
    }

    /// Numbers of any type; none where they are left out.
    pub(super) fn floats_attribute(&self, name: &str) -> Vec<f64> {
        let Some(attribute) = self.find_attribute(name) else { return Vec::new() };
        let floats = attribute.floats.iter().map(|float| f64::from(*float));
        let scalars = attribute.scalars.iter().filter_map(|scalar| scalar.r);
        floats.chain(attribute.float64s.iter().copied()).chain(scalars).collect()
    }

    /// Refuses an op of which an attribute is not what it is for all ops that are supported.
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
