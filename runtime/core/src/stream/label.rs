//! Interned names, which are cheap to copy.

use std::collections::HashSet;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The name of a launch or an allocation in messages: the op or tensor it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InternedLabel(&'static str);

impl InternedLabel {
    /// Interns a text, which then lives until the program ends. Use names of ops, not of single calls.
    pub fn intern_label(text: &str) -> Self {
        static INTERNED_LABELS: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
        let mut known = INTERNED_LABELS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = known.get(text) {
            return Self(text);
        }
        let kept: &'static str = Box::leak(text.into());
        known.insert(kept);
        Self(kept)
    }

    /// The text, which lives until the program ends.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl From<&'static str> for InternedLabel {
    fn from(text: &'static str) -> Self {
        Self(text)
    }
}

impl fmt::Display for InternedLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_with_equal_text_are_interned_once() {
        let (result, again) =
            (InternedLabel::intern_label(&String::from("Add")), InternedLabel::intern_label("Add"));
        assert_eq!(result, again);
        assert!(std::ptr::eq(result.as_str(), again.as_str()));
        assert_eq!(result, InternedLabel::from("Add"));
    }
}
