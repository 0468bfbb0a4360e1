//! The part of the book for vendors covers every rule of the contract and every check of the conformance suite.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use oarlock_contract::model::ItemKind;
use oarlock_contract::{CONTRACT_SOURCE, read_contract};

/// The pages about mistakes, joined.
fn mistake_pages() -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/vendor/mistakes");
    let pages = fs::read_dir(&directory).expect("the pages about mistakes");
    pages.map(|page| fs::read_to_string(page.expect("an entry").path()).expect("a page")).collect()
}

/// The rules that the headings name: two in `## E-5, E-6: …`.
fn explained_rules(pages: &str) -> BTreeSet<&str> {
    let headings = pages.lines().filter_map(|line| line.strip_prefix("## "));
    headings.filter_map(|heading| heading.split_once(": ")).flat_map(|(rules, _)| rules.split(", ")).collect()
}

#[test]
fn every_rule_of_the_contract_has_a_heading_on_a_page_about_mistakes() {
    let pages = mistake_pages();
    let explained = explained_rules(&pages);
    let contract = read_contract(CONTRACT_SOURCE).expect("the contract");
    let rules = contract.items.iter().filter(|item| matches!(item.kind, ItemKind::Rule(_)));
    let missing: Vec<&str> =
        rules.map(|rule| rule.name.as_str()).filter(|rule| !explained.contains(rule)).collect();
    assert!(missing.is_empty(), "expected a heading such as `## M-5: …` for each of {missing:?}");
}

#[test]
fn every_slot_that_a_check_is_about_is_explained_on_a_page_about_mistakes() {
    let pages = mistake_pages();
    let explained = explained_rules(&pages);
    let missing: BTreeSet<&str> = oarlock_conformance::list_checks()
        .map(|(_, rule, _)| rule)
        .filter(|rule| !explained.contains(rule) && !pages.contains(&format!("`{rule}`")))
        .collect();
    assert!(missing.is_empty(), "expected a sentence about each of {missing:?} in docs/src/vendor/mistakes");
}
