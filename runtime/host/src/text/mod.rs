//! Text that people write: patterns, misspelt words, TOML.

pub(crate) mod nearest;
pub(crate) mod toml;
pub(crate) mod wildcard;
