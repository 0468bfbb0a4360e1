//! Types of operands: dtypes of tensors, and types that the core does not support, kept as text.

use std::fmt;

use crate::{Dtype, DtypeSet, Error, Result};

/// A type variable of a schema, such as `T`. All operands with the same variable have the same type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeConstraint {
    /// The name of the variable. If the schema requires one fixed type, this is the type itself, such as `tensor(int64)`.
    pub name: &'static str,
    /// The types that the variable may stand for.
    pub allowed: TypeSet,
}

/// A set of types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeSet {
    dtypes: DtypeSet,
    others: Vec<&'static str>,
}

impl TypeSet {
    /// The dtypes in the set.
    pub fn dtypes(&self) -> DtypeSet {
        self.dtypes
    }

    /// Unsupported types in the set, as ONNX writes them: sequences, optionals, maps, and tensors of other dtypes.
    pub fn unsupported_types(&self) -> &[&'static str] {
        &self.others
    }

    /// The dtype, if it is the only type in the set.
    pub fn only_dtype(&self) -> Option<Dtype> {
        let mut dtypes = self.iter();
        let first = dtypes.next()?;
        (self.others.is_empty() && dtypes.next().is_none()).then_some(first)
    }

    /// Checks that a dtype is in the set.
    pub(super) fn check_dtype(&self, dtype: Dtype) -> Result<()> {
        if dtype.is_in(self.dtypes) {
            return Ok(());
        }
        if self.iter().next().is_none() {
            return Err(Error::unimplemented(format!(
                "expected {self}, of which nothing is supported, found a tensor of {dtype}"
            )));
        }
        let expected = join_alternatives(&self.type_names());
        Err(Error::invalid_argument(format!("expected {expected}, found {dtype}")).mark_dtype_mismatch())
    }

    pub(super) fn add_type(&mut self, name: &'static str) {
        match parse_dtype(name) {
            Some(dtype) => self.dtypes = self.dtypes | dtype.to_set(),
            None => self.others.push(name),
        }
    }

    fn iter(&self) -> impl Iterator<Item = Dtype> {
        Dtype::ALL.iter().copied().filter(|dtype| dtype.is_in(self.dtypes))
    }

    fn type_names(&self) -> Vec<&'static str> {
        self.iter().map(Dtype::name).collect()
    }
}

impl fmt::Display for TypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join_alternatives(&[self.type_names().as_slice(), &self.others].concat()))
    }
}

/// Parses a type of ONNX such as `tensor(float)`.
fn parse_dtype(name: &str) -> Option<Dtype> {
    let element = name.strip_prefix("tensor(")?.strip_suffix(')')?;
    match element {
        "float" => Some(Dtype::F32),
        "double" => Some(Dtype::F64),
        "float8e4m3fn" => Some(Dtype::F8E4M3),
        "float8e5m2" => Some(Dtype::F8E5M2),
        "float8e4m3fnuz" => Some(Dtype::F8E4M3Fnuz),
        "float8e5m2fnuz" => Some(Dtype::F8E5M2Fnuz),
        "float8e8m0" => Some(Dtype::F8E8M0),
        "float4e2m1" => Some(Dtype::F4E2M1),
        "string" => Some(Dtype::String),
        _ => Dtype::ALL.iter().copied().find(|dtype| dtype.numpy_name() == element),
    }
}

/// Joins names for a sentence: `a`, `a or b`, `a, b or c`.
fn join_alternatives(names: &[&str]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_cover_every_dtype_and_other_names_are_unknown() {
        let names = [
            "bool",
            "int4",
            "uint4",
            "int8",
            "uint8",
            "int16",
            "uint16",
            "int32",
            "uint32",
            "int64",
            "uint64",
            "float8e4m3fn",
            "float8e5m2",
            "float16",
            "bfloat16",
            "float",
            "double",
            "complex64",
            "complex128",
            "string",
            "float8e4m3fnuz",
            "float8e5m2fnuz",
            "float8e8m0",
            "float4e2m1",
            "int2",
            "uint2",
        ];
        let dtypes: Vec<_> =
            names.iter().filter_map(|name| parse_dtype(&format!("tensor({name})"))).collect();
        assert_eq!(dtypes, Dtype::ALL);
        for unsupported in ["float6e2m3", "float6e3m2", "float8"] {
            assert_eq!(parse_dtype(&format!("tensor({unsupported})")), None);
        }
        assert_eq!(parse_dtype("seq(tensor(float))"), None);
    }
}
