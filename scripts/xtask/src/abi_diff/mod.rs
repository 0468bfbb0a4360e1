//! `cargo xtask abi-diff`: what changed in the contract between two versions, in words for a vendor.
//!
//! The facts come from two versions of `abi.lock`, which says everything that a binary may rely on. The words come from the newer
//! contract. A fact that is missing or differs breaks somebody, unless it was withdrawn before anybody could rely on it.

mod facts;
mod words;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use oarlock_contract::Contract;
use serde::Serialize;

use crate::abi_diff::facts::AbiFacts;
use crate::abi_diff::words::{AbiChange, describe_changes};

const LOCK_FILE: &str = "device-sdk/contract/abi.lock";
const WITHDRAWN_FILE: &str = "device-sdk/contract/abi.withdrawn";
const CONTRACT_FILE: &str = "device-sdk/contract/oarlock.contract";
const FROZEN: &str = "tests/frozen";

#[derive(Args)]
pub(crate) struct AbiDiffArguments {
    /// A commit, or a file such as `abi.lock`; the newest frozen version of the contract if left out
    old: Option<String>,
    /// A commit, or a file such as `abi.lock`; the working tree if left out
    new: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One side of the comparison.
struct ContractVersion {
    label: String,
    facts: AbiFacts,
    /// The contract, if it is at hand and this program can read it.
    contract: Option<Contract>,
}

#[derive(Serialize)]
struct AbiDifference {
    old: String,
    new: String,
    /// True if some binary that was built for the old version may not work with the new one.
    breaks: bool,
    changes: Vec<AbiChange>,
}

pub(crate) fn run(arguments: &AbiDiffArguments) -> Result<()> {
    let root = crate::root();
    let old = match &arguments.old {
        Some(name) => ContractVersion::read(&root, name)?,
        None => ContractVersion::read_lock(&newest_frozen_lock(&root)?)?,
    };
    let new = match &arguments.new {
        Some(name) => ContractVersion::read(&root, name)?,
        None => ContractVersion::read_tree(&root)?,
    };
    let withdrawn = std::fs::read_to_string(root.join(WITHDRAWN_FILE)).unwrap_or_default();
    let changes =
        describe_changes(&old.facts, &new.facts, &AbiFacts::parse(&withdrawn), new.contract.as_ref());
    let breaks = changes.iter().any(AbiChange::is_breaking);
    let difference = AbiDifference { old: old.label, new: new.label, breaks, changes };
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&difference)?);
    } else {
        print!("{}", difference.render_text());
    }
    ensure!(
        !breaks,
        "the new version breaks binaries of the old one; restore what they rely on, and append instead"
    );
    Ok(())
}

impl ContractVersion {
    /// Reads a version by the name of a file or commit.
    fn read(root: &Path, name: &str) -> Result<Self> {
        if Path::new(name).is_file() {
            return Self::read_lock(Path::new(name));
        }
        let show = |file: &str| {
            let output =
                Command::new("git").args(["show", &format!("{name}:{file}")]).current_dir(root).output()?;
            if !output.status.success() {
                bail!(
                    "expected a file or a commit with `{file}`, found `{name}`: {}",
                    String::from_utf8_lossy(&output.stderr).trim()
                );
            }
            Ok(String::from_utf8(output.stdout)?)
        };
        let facts = AbiFacts::parse(&show(LOCK_FILE)?);
        let contract =
            show(CONTRACT_FILE).ok().and_then(|source| oarlock_contract::read_contract(&source).ok());
        Ok(Self { label: facts.label(name), facts, contract })
    }

    fn read_lock(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("expected a lock in `{}`", file.display()))?;
        let facts = AbiFacts::parse(&text);
        ensure!(
            !facts.is_empty(),
            "expected facts such as `handle error u64` in `{}`, found none",
            file.display()
        );
        let name = file.strip_prefix(crate::root()).unwrap_or(file);
        Ok(Self { label: facts.label(&name.display().to_string()), facts, contract: None })
    }

    fn read_tree(root: &Path) -> Result<Self> {
        let source = std::fs::read_to_string(root.join(CONTRACT_FILE)).context(CONTRACT_FILE)?;
        let contract = oarlock_contract::read_contract(&source)
            .map_err(|error| anyhow::anyhow!("`{CONTRACT_FILE}`: {error}"))?;
        let facts = AbiFacts::parse(&oarlock_contract::lock::lock_text(&contract));
        Ok(Self { label: facts.label("the working tree"), facts, contract: Some(contract) })
    }
}

/// The lock of the newest frozen minor version.
fn newest_frozen_lock(root: &Path) -> Result<PathBuf> {
    let entries = std::fs::read_dir(root.join(FROZEN)).context(FROZEN)?.flatten();
    let minor = |path: &Path| -> Option<u32> { path.file_name()?.to_str()?.strip_prefix("1.")?.parse().ok() };
    let newest = entries.map(|entry| entry.path()).max_by_key(|path| minor(path));
    let newest = newest.filter(|path| minor(path).is_some());
    Ok(newest
        .with_context(|| format!("expected a version such as `{FROZEN}/1.0`, found none"))?
        .join("abi.lock"))
}

impl AbiDifference {
    fn render_text(&self) -> String {
        let mut text = format!("from {}\nto   {}\n\n", self.old, self.new);
        for change in &self.changes {
            text.push_str(&change.render_text());
        }
        text.push_str(match (self.breaks, self.changes.is_empty()) {
            (true, _) => "\nBinaries break, as the lines marked `breaks` say.\n",
            (false, true) => "Nothing changed.\n",
            (false, false) => {
                "\nNothing that a binary relies on changed: both sides work with each other, old or new.\n"
            }
        });
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(old: &str, new: &str) -> Vec<AbiChange> {
        describe_changes(&AbiFacts::parse(old), &AbiFacts::parse(new), &AbiFacts::default(), None)
    }

    #[test]
    fn what_each_minor_version_added_is_told_with_what_a_host_without_it_does() {
        let root = crate::root();
        let old = ContractVersion::read_lock(&root.join(FROZEN).join("1.1/abi.lock")).expect("a lock");
        let new = ContractVersion::read_tree(&root).expect("the contract");
        let changes = describe_changes(&old.facts, &new.facts, &AbiFacts::default(), new.contract.as_ref());
        assert!(!changes.iter().any(AbiChange::is_breaking), "{changes:#?}");
        let text: String = changes.iter().map(AbiChange::render_text).collect();
        assert!(text.contains("slot `host_table.stop_check` in 1.2, optional"), "{text}");
        assert!(text.contains("A host without it: work is never stopped"), "{text}");
        assert!(text.contains("flag `operand_flags.on_demand`, bit 4 in 1.2"), "{text}");
    }

    #[test]
    fn what_the_drafts_took_away_is_withdrawn_and_breaks_nobody() {
        let root = crate::root();
        let old = ContractVersion::read_lock(&root.join(FROZEN).join("1.0/abi.lock")).expect("a lock");
        let new = ContractVersion::read_tree(&root).expect("the contract");
        let withdrawn = std::fs::read_to_string(root.join(WITHDRAWN_FILE)).expect("the list");
        let changes = |withdrawn: &str| {
            describe_changes(&old.facts, &new.facts, &AbiFacts::parse(withdrawn), new.contract.as_ref())
        };
        assert!(!changes(&withdrawn).iter().any(AbiChange::is_breaking));
        assert!(changes("").iter().any(AbiChange::is_breaking));
    }

    #[test]
    fn a_fact_that_is_lost_moved_or_demanded_says_whom_it_breaks() {
        let slot = "field core_table.a #1 at 32 size 8 since 1.0: fn(device: u32) optional\n";
        let service = "field host_table.b #4 at 32 size 8 since 1.0: fn(text: str) required\n";
        let value = "enum code.fatal = 11 since 1.0\n";
        let old = [slot, service, value].concat();
        for (new, kind, whom) in [
            ([service, value].concat(), "removed", "plugins that fill it"),
            ([slot, value].concat(), "removed", "plugins that use it"),
            (
                old.replace("at 32 size 8 since 1.0: fn(text", "at 40 size 8 since 1.0: fn(text"),
                "changed",
                "plugins",
            ),
            (old.replace("= 11", "= 12"), "changed", "every binary"),
            (old.replace("optional", "required"), "changed", "plugins"),
            (
                format!("{old}field core_table.c #2 at 40 size 8 since 1.1: fn(device: u32) required\n"),
                "added",
                "built before",
            ),
        ] {
            let changes = difference(&old, &new);
            let text: String = changes.iter().map(AbiChange::render_text).collect();
            assert_eq!(changes.len(), 1, "{text}");
            assert!(changes[0].is_breaking() && text.starts_with(kind) && text.contains(whom), "{text}");
        }
        assert!(difference(&old, &old).is_empty());
    }

    #[test]
    fn a_table_that_is_new_may_demand_slots() {
        let new = "struct graph_table in 1.1: size 40 align 8\n\
                   field graph_table.run #4 at 32 size 8 since 1.1: fn(device: u32) required\n";
        let changes = difference("handle error u64\n", &format!("handle error u64\n{new}"));
        assert_eq!(changes.len(), 2);
        assert!(!changes.iter().any(AbiChange::is_breaking), "{changes:#?}");
    }
}
