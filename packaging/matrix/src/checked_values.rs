//! Values that are validated while a matrix is parsed, so that errors have a line number.

use std::str::FromStr as _;

use oarlock_formats::error::Error;

use super::wheel_name::normalize_distribution;
use pep440_rs::VersionSpecifiers;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Checks that an address needs no escaping in a page or a script.
pub fn check_address(text: &str) -> Result<(), Error> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-._~:/%@+[]".contains(it);
    let mut starts = ["https://", "http://", "file:///"].iter();
    if starts.any(|start| text.len() > start.len() && text.starts_with(start)) && text.chars().all(is_plain) {
        return Ok(());
    }
    Err(Error::new(format!(
        "expected an address such as `https://example.org/wheels`, without a query, found `{}`",
        text.escape_debug()
    )))
}

/// Deserializes a required address.
pub fn deserialize_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    check_address(&text).map_err(D::Error::custom).map(|()| text)
}

/// Deserializes an optional address.
pub fn deserialize_optional_address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    deserialize_address(deserializer).map(Some)
}

/// Deserializes library names, such as `libcuda.so.1`.
pub fn deserialize_sonames<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    deserialize_checked(deserializer, is_soname, "the name of a library such as `libcuda.so.1`")
}

fn is_soname(text: &str) -> bool {
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte);
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = text.strip_prefix("lib").and_then(|rest| rest.split_once(".so"));
    parts.is_some_and(|(name, version)| {
        let mut numbers = version.split('.');
        !name.is_empty() && name.bytes().all(in_name) && numbers.next() == Some("") && numbers.all(is_number)
    })
}

/// Deserializes Python requirements, such as `mkl>=2023.0,<2027`.
pub fn deserialize_requirements<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let wanted = "a package of Python with the versions that will do, such as `mkl>=2023.0,<2027`";
    deserialize_checked(deserializer, is_requirement, wanted)
}

fn is_requirement(text: &str) -> bool {
    let end = text.find(['<', '>', '=', '!', '~']).unwrap_or(text.len());
    let (name, versions) = text.split_at(end);
    !versions.is_empty()
        && name == normalize_distribution(name)
        && is_distribution_name(name)
        && VersionSpecifiers::from_str(versions).is_ok()
}

fn is_distribution_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn deserialize_checked<'de, D: Deserializer<'de>>(
    deserializer: D,
    is_right: fn(&str) -> bool,
    wanted: &str,
) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    match texts.iter().find(|text| !is_right(text)) {
        Some(wrong) => Err(D::Error::custom(format!("expected {wanted}, found `{}`", wrong.escape_debug()))),
        None => Ok(texts),
    }
}
