//! Why a command failed, and what the user can do about it.

use std::fmt;
use std::path::Path;

use serde::ser::{Serialize, SerializeMap as _, Serializer};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandError {
    pub(crate) message: String,
    /// Further lines below the message, such as those of a table.
    pub(crate) details: Vec<String>,
    pub(crate) hint: Option<String>,
    /// Set if the runtime or the argument parser reported the error.
    origin: Option<Box<ErrorOrigin>>,
}

/// What is known of an error besides its message.
#[derive(Debug, Default, PartialEq, Eq)]
struct ErrorOrigin {
    kind: &'static str,
    node: Option<String>,
    op: Option<String>,
}

impl CommandError {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), details: Vec::new(), hint: None, origin: None }
    }

    /// For a command line that makes no sense.
    pub(crate) fn from_usage(message: impl fmt::Display) -> Self {
        let origin = ErrorOrigin { kind: "usage", ..ErrorOrigin::default() };
        Self { origin: Some(Box::new(origin)), ..Self::new(message) }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn with_details(self, details: Vec<String>) -> Self {
        Self { details, ..self }
    }

    /// Prefixes the message with the file.
    pub(crate) fn for_file(self, file: &Path) -> Self {
        Self { message: format!("`{}`: {}", file.display(), self.message), ..self }
    }
}

impl From<oarlock_core::Error> for CommandError {
    fn from(error: oarlock_core::Error) -> Self {
        /// The core advises programs that hold tensors. A user of the command holds none.
        const OF_PROGRAMS: &str = "drop tensors that are not needed any more, use smaller ones";
        let text = error.to_string();
        let mut lines = text.lines().map(str::to_owned);
        let owned = |text: &str| text.to_owned();
        Self {
            message: lines.next().unwrap_or_default(),
            details: lines.collect(),
            hint: error.advice().map(|hint| hint.replace(OF_PROGRAMS, "give smaller inputs")),
            origin: Some(Box::new(ErrorOrigin {
                kind: error.kind().name(),
                node: error.node().map(owned),
                op: error.op().map(owned),
            })),
        }
    }
}

impl Serialize for CommandError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let origin = self.origin.as_deref();
        let lines = std::iter::once(&self.message).chain(&self.details);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", &origin.map(|origin| origin.kind))?;
        map.serialize_entry("message", &lines.map(String::as_str).collect::<Vec<_>>().join("\n"))?;
        map.serialize_entry("node", &origin.and_then(|origin| origin.node.as_deref()))?;
        map.serialize_entry("op", &origin.and_then(|origin| origin.op.as_deref()))?;
        map.serialize_entry("hint", &self.hint)?;
        map.end()
    }
}
