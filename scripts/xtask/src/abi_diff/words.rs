//! Changes in words: what was added and what a side without it does, or what breaks and whom.

use oarlock_contract::Contract;
use oarlock_contract::model::{ItemKind, MemberDefinition, SlotDefinition, member_slots};
use serde::Serialize;

use crate::abi_diff::facts::{AbiFact, AbiFacts, FactKind};

/// A change of one fact.
#[derive(Debug, Serialize)]
pub(crate) struct AbiChange {
    /// `added`, `changed`, `removed` or `withdrawn`.
    change: &'static str,
    /// What it is about, such as "slot `host_table.stop_check` in 1.2, optional".
    subject: String,
    /// What it means, one sentence each.
    notes: Vec<String>,
    /// Whom it breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    breaks: Option<String>,
}

impl AbiChange {
    pub(crate) fn is_breaking(&self) -> bool {
        self.breaks.is_some()
    }

    pub(crate) fn render_text(&self) -> String {
        let Self { change, subject, notes, breaks } = self;
        let mut text = format!("{change:<10}{subject}\n");
        for note in notes {
            text.push_str(&format!("          {note}\n"));
        }
        if let Some(whom) = breaks {
            text.push_str(&format!("  breaks  {whom}\n"));
        }
        text
    }
}

/// All changes from `old` to `new`; `withdrawn` facts may be missing.
pub(crate) fn describe_changes(
    old: &AbiFacts,
    new: &AbiFacts,
    withdrawn: &AbiFacts,
    contract: Option<&Contract>,
) -> Vec<AbiChange> {
    let mut changes = Vec::new();
    for (subject, fact) in old.iter() {
        match new.find(subject) {
            Some(kept) if kept == fact => {}
            Some(changed) => changes.push(describe_changed(fact, changed)),
            None if withdrawn.find(subject) == Some(fact) => changes.push(AbiChange {
                change: "withdrawn",
                subject: describe_subject(fact),
                notes: vec!["`abi.withdrawn` says why nobody relies on it".to_owned()],
                breaks: None,
            }),
            None => changes.push(AbiChange {
                change: "removed",
                subject: describe_subject(fact),
                notes: Vec::new(),
                breaks: Some(users_of(fact)),
            }),
        }
    }
    let added = new.iter().filter(|(subject, _)| old.find(subject).is_none());
    changes.extend(added.map(|(_, fact)| describe_added(fact, old, contract)));
    changes
}

fn describe_subject(fact: &AbiFact) -> String {
    let AbiFact { kind, name, .. } = fact;
    let since = fact.since().map_or_else(String::new, |since| format!(" in {since}"));
    let value = || fact.rest.split(" since").next().unwrap_or_default().to_owned();
    match kind {
        FactKind::Handle => format!("handle `{name}`"),
        FactKind::Enum => format!("value `{name}` {}{since}", value()),
        FactKind::Bit => format!("flag `{name}`, bit {}{since}", value().trim_start_matches("= ")),
        FactKind::Flags => format!("flags `{name}`"),
        FactKind::Callback => format!("callback `{name}`"),
        FactKind::Struct => format!("size of `{name}`{since}"),
        FactKind::Field => format!("field `{name}`{since}"),
        FactKind::Slot if fact.is_required() => format!("slot `{name}`{since}, required"),
        FactKind::Slot => format!("slot `{name}`{since}, optional"),
        FactKind::Rule => format!("rule {name}"),
    }
}

fn describe_changed(old: &AbiFact, new: &AbiFact) -> AbiChange {
    let notes = vec![format!("was `{}`", old.rest), format!("is  `{}`", new.rest)];
    AbiChange { change: "changed", subject: describe_subject(old), notes, breaks: Some(users_of(old)) }
}

fn describe_added(fact: &AbiFact, old: &AbiFacts, contract: Option<&Contract>) -> AbiChange {
    let owner_is_old = old.has_owner(fact.owner());
    let mut notes: Vec<String> = first_sentence(fact, contract).into_iter().collect();
    let mut breaks = None;
    match fact.kind {
        FactKind::Slot if owner_is_old && fact.is_required() => {
            breaks = Some(format!("{} built before, which lack it", fillers_of(fact.owner())));
        }
        FactKind::Slot if owner_is_old => {
            if let Some(default) = find_slot(fact, contract).and_then(|slot| slot.default.as_ref()) {
                notes.push(format!("A {} without it: {default}", side_of(fact.owner())));
            }
        }
        FactKind::Struct if owner_is_old => {
            let size = fact.rest.split_once(": ").map_or("", |(_, size)| size);
            notes.push(format!("It grows at the end, to {size}; its `size` says which part is there"));
        }
        FactKind::Field if owner_is_old => {
            notes.push(
                "An older side does not have it, as the `size` of the struct says (rule S-3)".to_owned(),
            );
        }
        FactKind::Enum | FactKind::Bit if owner_is_old => {
            notes.push(
                "An older side does not know it, and treats it as data, not as an error of the struct"
                    .to_owned(),
            );
        }
        _ => {}
    }
    AbiChange { change: "added", subject: describe_subject(fact), notes, breaks }
}

/// Who fills a struct or table.
fn side_of(owner: &str) -> &'static str {
    let by_host = ["host", "host_table", "call", "tensor", "attribute", "extension"];
    if by_host.contains(&owner) { "host" } else { "plugin" }
}

fn fillers_of(owner: &str) -> &'static str {
    if side_of(owner) == "host" { "hosts" } else { "plugins" }
}

/// Whom it breaks that a fact is not true any more.
fn users_of(fact: &AbiFact) -> String {
    match fact.kind {
        FactKind::Field | FactKind::Slot | FactKind::Struct if side_of(fact.owner()) == "host" => {
            "plugins that use it, and hosts that fill it".to_owned()
        }
        FactKind::Field | FactKind::Slot | FactKind::Struct => {
            "plugins that fill it, and hosts that use it".to_owned()
        }
        FactKind::Rule => format!("whoever relies on rule {}", fact.name),
        _ => format!("every binary that uses `{}`", fact.name),
    }
}

fn find_slot<'a>(fact: &AbiFact, contract: Option<&'a Contract>) -> Option<&'a SlotDefinition> {
    let (owner, name) = fact.name.split_once('.')?;
    let item = contract?.items.iter().find(|item| item.type_name() == owner)?;
    let members = match &item.kind {
        ItemKind::Struct(members) => members,
        ItemKind::Table(table) => &table.members,
        _ => return None,
    };
    member_slots(members).find(|slot| slot.name == name)
}

/// The first sentence of the declaration's comment, or the text of a rule.
fn first_sentence(fact: &AbiFact, contract: Option<&Contract>) -> Option<String> {
    let contract = contract?;
    let item = contract.items.iter().find(|item| item.type_name() == fact.owner())?;
    let member = fact.name.split_once('.').map(|(_, name)| name);
    let docs: &[String] = match (member, &item.kind) {
        (None, _) if fact.kind == FactKind::Struct => return None,
        (None, _) => &item.docs,
        (Some(name), ItemKind::Enum(constants) | ItemKind::Flags(_, constants)) => {
            &constants.iter().find(|constant| constant.name == name)?.docs
        }
        (Some(name), ItemKind::Value(members) | ItemKind::Struct(members)) => member_docs(members, name)?,
        (Some(name), ItemKind::Table(table)) => member_docs(&table.members, name)?,
        _ => return None,
    };
    let text = docs.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    let end = text.find(". ").map_or(text.len(), |end| end + 1);
    Some(text[..end].to_owned()).filter(|sentence| !sentence.is_empty())
}

fn member_docs<'a>(members: &'a [MemberDefinition], name: &str) -> Option<&'a [String]> {
    members.iter().find_map(|member| match member {
        MemberDefinition::Field(field) if field.name == name => Some(field.docs.as_slice()),
        MemberDefinition::Slot(slot) if slot.name == name => Some(slot.docs.as_slice()),
        _ => None,
    })
}
