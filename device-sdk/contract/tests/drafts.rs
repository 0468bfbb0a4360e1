//! Valid and invalid drafts; a locked declaration never becomes a draft again.

use oarlock_contract::{CONTRACT_SOURCE, Contract, lock, read_contract};

/// Declarations that every contract needs, and a plugin with one locked profile.
const BASICS: &str = "contract 1.1
/// F.
flags header_flags : u32 { must_understand = 0 }
/// E.
struct extension { kind: u64 }
/// H.
handle block
/// P.
table core profile core 1 {
    /// F.
    required fn take(out taken: block)
}
/// P.
struct plugin { core: *core_table }
";

/// A profile with an enum, a struct and a callback that nothing else uses.
const GRAPH: &str = "
/// T.
draft table graph profile graph 1 {
    /// F.
    required fn run(in job: job, sink: callback sink, block: block)
}
/// S.
draft struct job { how: how reserved: u32 }
/// E.
draft enum how { fast = 1 }
/// C.
draft callback sink(bytes: u64)
";

fn read_with(more: &str) -> Result<Contract, oarlock_contract::ContractError> {
    read_contract(&format!("{BASICS}{more}"))
}

fn refusal_of(more: &str) -> String {
    read_with(more).expect_err("the contract is not valid").to_string()
}

fn lock_of(more: &str) -> String {
    lock::lock_text(&read_with(more).expect("the contract is valid"))
}

fn draft_of(more: &str) -> String {
    lock::draft_text(&read_with(more).expect("the contract is valid"))
}

/// The same text with all draft marks removed.
fn without_draft_marks(text: &str) -> String {
    text.replace("draft ", "")
}

#[test]
fn nothing_of_a_draft_is_in_the_lock_and_all_of_it_is_among_the_drafts() {
    assert_eq!(lock_of(GRAPH), lock_of(""));
    let drafts = draft_of(GRAPH);
    let facts: Vec<&str> = drafts.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(facts.iter().all(|fact| fact.starts_with("graph 1: ")), "{facts:?}");
    for fact in ["graph_table.run #4", "struct job in 1.0: size 24", "enum how.fast = 1", "callback sink("] {
        assert!(facts.iter().any(|found| found.contains(fact)), "no `{fact}` in {facts:?}");
    }
    assert!(!facts.iter().any(|found| found.contains("handle block")), "a locked handle is no draft");
}

#[test]
fn a_profile_that_gets_locked_only_adds_to_the_lock() {
    assert_eq!(lock::lost_lines(&lock_of(GRAPH), &lock_of(&without_draft_marks(GRAPH))), Vec::<&str>::new());
}

#[test]
fn a_profile_that_was_locked_cannot_become_a_draft_again() {
    let once_locked = lock_of(&without_draft_marks(GRAPH));
    let lost = lock::lost_lines(&once_locked, &lock_of(GRAPH)).join("\n");
    for fact in
        ["struct graph_table", "field graph_table.run", "struct job", "enum how.fast", "callback sink"]
    {
        assert!(lost.contains(fact), "`{fact}` left the lock unnoticed: {lost}");
    }
}

#[test]
fn what_is_locked_uses_no_draft() {
    let more = format!("{GRAPH}\n/// S.\nstruct later {{ how: how reserved: u32 }}");
    let error = refusal_of(&more);
    assert!(error.ends_with("since this is locked, found the draft `how`"), "{error}");
    let core = BASICS.replace("table core", "draft table core").replace("handle block", "draft handle block");
    let error = read_contract(&core).expect_err("the plugin is locked and leads to `core`").to_string();
    assert!(error.contains("in `plugin`") && error.contains("the draft `core`"), "{error}");
}

#[test]
fn what_only_drafts_use_is_a_draft() {
    for (item, name) in [("enum how", "how"), ("struct job", "job"), ("callback sink", "sink")] {
        let error = refusal_of(&GRAPH.replace(&format!("draft {item}"), item));
        let expected = match name {
            // Locks the struct, which uses the enum, which is a draft.
            "job" => "nothing that may still change".to_owned(),
            _ => format!("in `{name}`: `draft` before what only drafts use"),
        };
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn a_draft_is_a_profile_or_used_by_one() {
    let error = refusal_of("/// R.\ndraft enum rank { any = 1 }");
    assert!(error.contains("a draft that is a profile, or that the draft of one uses"), "{error}");
    let error = refusal_of("/// T.\ndraft table loose {\n  /// F.\n  required fn f()\n}");
    assert!(error.contains("a draft that is a profile"), "{error}");
}

#[test]
fn a_draft_has_a_number_and_no_additions() {
    assert!(refusal_of(&GRAPH.replace("graph 1", "graph 0")).contains("the number of a draft, from 1 on"));
    for (from, to) in
        [("fast = 1", "fast = 1 since 1.1"), ("reserved: u32", "reserved: u32 later: u64 since 1.1")]
    {
        let error = refusal_of(&GRAPH.replace(from, to));
        assert!(error.contains("a draft without additions; it gets a new number instead"), "{error}");
    }
}

#[test]
fn only_the_table_of_a_profile_is_on_trial() {
    assert!(read_with(&GRAPH.replace("draft table", "trial table")).is_ok());
    let error = refusal_of(&GRAPH.replace("draft enum", "trial enum"));
    assert!(error.contains("`trial` before a table of a profile"), "{error}");
}

#[test]
fn the_drafts_of_the_contract_say_nothing_of_plugins_that_bring_none() {
    let contract = read_contract(CONTRACT_SOURCE).expect("the contract is valid");
    let lock = lock::lock_text(&contract);
    for (table, profile, _) in contract.draft_profiles() {
        assert!(!lock.contains(&table.type_name()), "the lock names the draft `{profile}`");
    }
    let locked: Vec<_> = contract.locked_profiles().map(|(_, profile, version)| (profile, version)).collect();
    assert_eq!(locked, [("core", 1), ("async", 1)]);
}
