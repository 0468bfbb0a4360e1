//! What a wheel needs of a machine, as PEP 825 has it, a draft.

use std::str::FromStr;

use super::wheel_name::is_word;
use crate::error::Error;

/// `namespace :: feature :: value`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VariantProperty {
    /// Who says what the rest means.
    pub namespace: String,
    /// What it is about.
    pub feature: String,
    /// What of that a machine must have.
    pub value: String,
}

impl FromStr for VariantProperty {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parts: Vec<&str> = text.split("::").map(str::trim).collect();
        match parts[..] {
            [namespace, feature, value]
                if is_word(namespace, b"_") && is_word(feature, b"_") && is_word(value, b"_.") =>
            {
                Ok(Self { namespace: namespace.into(), feature: feature.into(), value: value.into() })
            }
            _ => Err(Error::new(format!(
                "expected a property such as `nvidia :: cuda_version_lower_bound :: 12.8`, in small letters; found `{text}`"
            ))),
        }
    }
}
