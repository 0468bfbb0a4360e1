//! Short names that cost nothing to pass around.

use std::collections::HashSet;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

/// What a launch or a piece of memory is called in messages: the op or the tensor it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(&'static str);

impl Label {
    /// The label with this text. Texts are kept until the program ends, so they are names of ops, not of single calls.
    pub fn named(text: &str) -> Self {
        static KNOWN: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = known.get(text) {
            return Self(text);
        }
        let kept: &'static str = Box::leak(text.into());
        known.insert(kept);
        Self(kept)
    }

    /// The text.
    pub fn text(self) -> &'static str {
        self.0
    }
}

impl From<&'static str> for Label {
    fn from(text: &'static str) -> Self {
        Self(text)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_with_one_text_are_one_label_however_they_are_made() {
        let (made, again) = (Label::named(&String::from("Add")), Label::named("Add"));
        assert_eq!(made, again);
        assert!(std::ptr::eq(made.text(), again.text()));
        assert_eq!(made, Label::from("Add"));
    }
}
