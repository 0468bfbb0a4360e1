//! Variant properties: requirements of a wheel on a machine, after the draft PEP 825.

use std::str::FromStr;

use oarlock_formats::error::Error;

use super::wheel_name::is_word;

/// A property, written as `namespace :: feature :: value`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VariantProperty {
    /// The authority that defines the feature.
    pub namespace: String,
    /// The feature.
    pub feature: String,
    /// The value that a machine must support.
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
