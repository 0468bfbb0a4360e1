//! A profile of the contract is locked if and only if a device in the tree implements it, the host calls it and the conformance
//! suite checks it. The three facts are read from the tree: from the answers of its devices, and from the sources of host and
//! suite.

use std::fs;
use std::path::Path;

use oarlock_contract::model::{ContractItem, ItemKind};
use oarlock_contract::{CONTRACT_SOURCE, Contract, read_contract};
use oarlock_host::{BuiltInPlugin, Host, PluginInfo};
use oarlock_sdk::abi;
use oarlock_tests::bare_host::{CPU_PLUGIN, SIM_PLUGIN, host_options};

/// Devices of the tree that start on every machine. A device that implements a draft belongs here too.
const TREE_DEVICES: [BuiltInPlugin; 2] = [CPU_PLUGIN, SIM_PLUGIN];

/// The facts that make a profile fit to be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProfileUse {
    is_implemented: bool,
    is_called: bool,
    is_checked: bool,
}

/// The mistake, if a profile used like this is locked too early or not locked yet.
fn lock_mistake(profile: &str, is_locked: bool, found: ProfileUse) -> Option<String> {
    let ProfileUse { is_implemented, is_called, is_checked } = found;
    let facts = [
        (is_implemented, "no device in the tree provides it"),
        (is_called, "the host does not call each of its required slots"),
        (is_checked, "the conformance suite has no check for it, or leaves out a required slot"),
    ];
    let missing: Vec<&str> = facts.iter().filter(|(is_there, _)| !is_there).map(|(_, what)| *what).collect();
    match (is_locked, missing.is_empty()) {
        (true, false) => Some(format!(
            "expected the profile `{profile}`, which is locked, to be in use, found that {}; put that back, since what is locked \
             stays so",
            missing.join(", and that ")
        )),
        (false, true) => Some(format!(
            "expected the profile `{profile}` to be locked, since a device provides it, the host calls it and the suite checks \
             it, found a draft; lock it, as CONTRIBUTING.md says under \"Draft a profile\""
        )),
        _ => None,
    }
}

/// The parts of the tree that concern profiles.
struct SourceTree {
    contract: Contract,
    plugins: Vec<PluginInfo>,
    generated_calls: String,
    host: String,
    suite: String,
}

impl SourceTree {
    fn read_tree() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let generated = root.join("runtime/host/src/generated.rs");
        Self {
            contract: read_contract(CONTRACT_SOURCE).expect("the contract is valid"),
            plugins: device_answers(),
            host: rust_sources(&root.join("runtime/host/src"), &generated),
            suite: rust_sources(&root.join("device-sdk/conformance/src"), &generated),
            generated_calls: fs::read_to_string(generated).expect("the calls of the host"),
        }
    }

    fn profile_use(&self, profile: &str, number: u32, table: &ContractItem) -> ProfileUse {
        let is_brought = |info: &PluginInfo| {
            let mut drafts = info.drafts.iter().map(|draft| (draft.profile.as_str(), draft.number));
            info.profiles.iter().any(|known| known == profile)
                || drafts.any(|draft| draft == (profile, number))
        };
        let is_named_after = |(_, _, of): &(&str, &str, &str)| *of == profile;
        ProfileUse {
            is_implemented: self.plugins.iter().any(is_brought),
            // The host writes `calls.slot(…)`, the suite `slot!(…, slot(…))`.
            is_called: self.has_caller(table) && calls_required_slots(&self.host, ".", table),
            is_checked: oarlock_conformance::list_checks().any(|check| is_named_after(&check))
                && calls_required_slots(&self.suite, ", ", table),
        }
    }

    /// True if a caller is generated for the table and used somewhere.
    fn has_caller(&self, table: &ContractItem) -> bool {
        let (head, tail) = table.name.split_at(1);
        let caller = format!("{}{tail}Calls", head.to_uppercase());
        self.generated_calls.contains(&format!("struct {caller} ")) && self.host.contains(&caller)
    }
}

/// Answers of the tree's devices to a host.
fn device_answers() -> Vec<PluginInfo> {
    let host = Host::start(&host_options("tests 1.0", "", &TREE_DEVICES)).expect("a host");
    let plugins: Vec<_> = host.report().loaded_plugins().map(|(_, loaded)| loaded.info.clone()).collect();
    assert_eq!(plugins.len(), TREE_DEVICES.len(), "{:?}", host.report());
    plugins
}

/// The Rust sources of a directory without one subdirectory, without comments, on one line.
fn rust_sources(directory: &Path, without: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(directory).expect("a directory of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            text.push_str(&rust_sources(&path, without));
        } else if path != without && path.extension().is_some_and(|ending| ending == "rs") {
            let source = fs::read_to_string(&path).expect("a source");
            let code = source.lines().map(str::trim).filter(|line| !line.starts_with("//"));
            code.for_each(|line| text.extend([line, " "]));
        }
    }
    text
}

/// True if each slot that a profile requires appears in the sources as an argument list after `before`.
fn calls_required_slots(sources: &str, before: &str, table: &ContractItem) -> bool {
    let ItemKind::Table(table) = &table.kind else { return false };
    let mut required = table.slots().filter(|slot| slot.required);
    required.all(|slot| sources.contains(&format!("{before}{}(", slot.name)))
}

#[test]
fn a_profile_is_locked_when_it_is_in_use_and_not_before() {
    let tree = SourceTree::read_tree();
    let locked = tree.contract.locked_profiles().map(|profile| (true, profile));
    let drafts = tree.contract.draft_profiles().map(|profile| (false, profile));
    let mistakes: Vec<String> = locked
        .chain(drafts)
        .filter_map(|(is_locked, (table, profile, number))| {
            lock_mistake(profile, is_locked, tree.profile_use(profile, number, table))
        })
        .collect();
    assert_eq!(mistakes, Vec::<String>::new());
}

#[test]
fn profile_use_distinguishes_used_from_unused_profiles() {
    let tree = SourceTree::read_tree();
    let of = |wanted: &str| {
        let mut all = tree.contract.locked_profiles().chain(tree.contract.draft_profiles());
        let (table, profile, number) = all.find(|(_, profile, _)| *profile == wanted).expect("a profile");
        tree.profile_use(profile, number, table)
    };
    let used = ProfileUse { is_implemented: true, is_called: true, is_checked: true };
    assert_eq!([of("core"), of("async")], [used, used]);
    let unused = ProfileUse { is_implemented: false, is_called: false, is_checked: false };
    assert_eq!([of("graph"), of("collective"), of("profile"), of("interop")], [unused; 4]);
}

#[test]
fn a_profile_is_locked_with_all_three_facts_and_a_draft_without_one_of_them() {
    for bits in 0..8 {
        let bit = |number: u32| bits & (1 << number) != 0;
        let found = ProfileUse { is_implemented: bit(0), is_called: bit(1), is_checked: bit(2) };
        let is_in_use = bits == 7;
        assert_eq!(lock_mistake("a", true, found).is_none(), is_in_use, "locked, {found:?}");
        assert_eq!(lock_mistake("a", false, found).is_some(), is_in_use, "a draft, {found:?}");
    }
    let found = ProfileUse { is_implemented: true, is_called: false, is_checked: true };
    let message = lock_mistake("a", true, found).expect("it is not called");
    assert!(
        message.contains("found that the host does not call each of its required slots; put"),
        "{message}"
    );
}

/// The host is built with the same profiles that this test reads.
#[test]
fn the_bindings_have_the_profiles_of_the_contract() {
    let contract = read_contract(CONTRACT_SOURCE).expect("the contract is valid");
    let locked: Vec<_> = contract.locked_profiles().map(|(_, profile, version)| (profile, version)).collect();
    assert_eq!(locked, abi::PROFILES);
    let drafts: Vec<_> = contract.draft_profiles().map(|(_, profile, number)| (profile, number)).collect();
    let bound: Vec<_> = abi::draft::PROFILES.iter().map(|(profile, number, _)| (*profile, *number)).collect();
    assert_eq!(drafts, bound);
}
