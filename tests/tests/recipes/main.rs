//! Follows the book's pages about adding something: their excerpts appear in the files that they name, they name every relevant
//! file, and their programs run.

mod kernel;
mod recipe_page;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::recipe_page::{RecipePage, contains_excerpt};

fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read_text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages that begin with "Add".
fn recipe_pages() -> Vec<RecipePage> {
    let directory = repository_root().join("docs/src/contributor");
    let files = fs::read_dir(&directory).expect("the book").map(|entry| entry.expect("a page").path());
    let is_recipe =
        |file: &PathBuf| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("add-"));
    files.filter(is_recipe).map(|file| RecipePage::new(&file, &read_text(&file))).collect()
}

fn find_page(name: &str) -> RecipePage {
    recipe_pages().into_iter().find(|page| page.name == name).unwrap_or_else(|| panic!("no page `{name}`"))
}

/// Text files below a directory that contain one of these words, relative to the root.
fn files_containing(directory: &str, words: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(repository_root().join(directory)).expect("a directory") {
        let entry = entry.expect("a directory that can be read");
        let name = format!("{directory}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            found.extend(files_containing(&name, words));
        } else if fs::read_to_string(entry.path())
            .is_ok_and(|text| words.iter().any(|word| text.contains(word)))
        {
            found.insert(name);
        }
    }
    found
}

#[test]
fn what_a_page_quotes_stands_in_the_file_that_it_names() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in recipe_pages() {
        for (file, excerpt) in &page.excerpts {
            count += 1;
            if !contains_excerpt(excerpt, &read_text(&repository_root().join(file))) {
                wrong.push(format!("{}: not in `{file}`:\n{excerpt}", page.name));
            }
        }
    }
    assert!(count > 5, "expected pages that quote files, found {count} excerpts");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_and_every_test_that_a_page_names_is_there() {
    for page in recipe_pages() {
        for file in &page.files {
            assert!(repository_root().join(file).exists(), "{}: no `{file}`", page.name);
        }
        for test in &page.tests {
            let directory = repository_root().join("tests/tests");
            let is_there = directory.join(format!("{test}.rs")).exists() || directory.join(test).is_dir();
            assert!(is_there, "{}: no test `{test}` in tests/tests", page.name);
        }
    }
}

#[test]
fn the_page_of_an_op_names_every_file_that_names_its_op() {
    let page = find_page("add-an-op.md");
    let directories = ["device-sdk", "packaging", "plugins", "runtime", "tests/operators", "tests/tests"];
    let mut there: BTreeSet<String> =
        directories.iter().flat_map(|directory| files_containing(directory, &["HardSwish"])).collect();
    // These tests mention the words because the pages do.
    there.retain(|file| !file.starts_with("tests/tests/recipes/"));
    let named: BTreeSet<String> = page.files.iter().filter(|file| there.contains(*file)).cloned().collect();
    assert_eq!(named, there);
}

#[test]
fn the_page_of_a_pass_names_every_file_that_names_its_pass() {
    let page = find_page("add-a-pass.md");
    let there = files_containing("runtime/engine/src", &["activation::PASS", "mod activation;"]);
    let passes: BTreeSet<String> = there.into_iter().filter(|file| file.contains("/passes/")).collect();
    assert_eq!(passes, BTreeSet::from(["runtime/engine/src/passes/mod.rs".to_owned()]));
    assert!(passes.is_subset(&page.files), "{:?}", page.files);
}

#[test]
fn the_guide_of_contributors_leads_to_every_page() {
    let guide = read_text(&repository_root().join("CONTRIBUTING.md"));
    for page in recipe_pages() {
        assert!(guide.contains(&format!("docs/src/contributor/{}", page.name)), "{}", page.name);
    }
}
