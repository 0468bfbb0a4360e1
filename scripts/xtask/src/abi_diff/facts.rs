//! The lines of a lock as facts, each about one subject.

use std::collections::BTreeMap;

/// What a fact is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FactKind {
    Handle,
    Enum,
    Flags,
    Bit,
    Callback,
    Struct,
    Field,
    Slot,
    Rule,
}

/// One line of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AbiFact {
    pub(crate) kind: FactKind,
    /// The declaration: `core_table.memory_set`, `code.fatal`, `E-1`.
    pub(crate) name: String,
    /// The line without the kind and the name.
    pub(crate) rest: String,
}

impl AbiFact {
    fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        let end = rest.find([' ', '(']).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let rest = rest.trim_start();
        let kind = match word {
            "handle" => FactKind::Handle,
            "enum" => FactKind::Enum,
            "flags" => FactKind::Flags,
            "bit" => FactKind::Bit,
            "callback" => FactKind::Callback,
            "struct" => FactKind::Struct,
            "field" if rest.contains(": fn(") => FactKind::Slot,
            "field" => FactKind::Field,
            "rule" => FactKind::Rule,
            _ => return None,
        };
        Some(Self { kind, name: name.to_owned(), rest: rest.to_owned() })
    }

    /// The struct, table or enum of a member.
    pub(crate) fn owner(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    /// The minor version that added it, such as `1.2`.
    pub(crate) fn since(&self) -> Option<&str> {
        let text = self.rest.split_once("since ").or_else(|| self.rest.split_once("in "))?.1;
        Some(text.split([':', ' ']).next().unwrap_or_default())
    }

    pub(crate) fn is_required(&self) -> bool {
        self.rest.ends_with(" required")
    }
}

/// The facts of one version, by subject. A struct has one for each version in which it grew.
#[derive(Clone, Debug, Default)]
pub(crate) struct AbiFacts(BTreeMap<String, AbiFact>);

impl AbiFacts {
    pub(crate) fn parse(lock: &str) -> Self {
        let facts = lock.lines().filter_map(AbiFact::parse).map(|fact| {
            let version = if fact.kind == FactKind::Struct { fact.since().unwrap_or_default() } else { "" };
            (format!("{} {version}", fact.name), fact)
        });
        Self(facts.collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &AbiFact)> {
        self.0.iter()
    }

    pub(crate) fn find(&self, subject: &str) -> Option<&AbiFact> {
        self.0.get(subject)
    }

    /// True if something of this struct or table is known.
    pub(crate) fn has_owner(&self, owner: &str) -> bool {
        self.0.values().any(|fact| fact.owner() == owner)
    }

    /// The version, where it comes from, and how much it says.
    pub(crate) fn label(&self, origin: &str) -> String {
        let minors = self.0.values().filter_map(|fact| fact.since()?.split_once('.')?.1.parse::<u32>().ok());
        format!("contract 1.{} of {origin}, {} facts", minors.max().unwrap_or_default(), self.0.len())
    }
}
