//! Text that people write: patterns, misspelled words, TOML; and untrusted text, made safe to print.

pub(crate) mod name;
pub(crate) mod paths;
pub(crate) mod sanitize;
pub(crate) mod suggestion;
pub(crate) mod toml;
pub(crate) mod wildcard;
