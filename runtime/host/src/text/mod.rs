//! Text that people write: patterns, misspelt words, TOML; and text of strangers, made fit to be shown.

pub(crate) mod paths;
pub(crate) mod sanitize;
pub(crate) mod suggestion;
pub(crate) mod toml;
pub(crate) mod wildcard;
