//! A page of the book, parsed so that a program can follow it.

use std::collections::BTreeSet;
use std::path::Path;

/// A page of the book.
pub(crate) struct RecipePage {
    pub(crate) name: String,
    /// Code blocks after a line that ends with a file and a colon, each with that file.
    pub(crate) excerpts: Vec<(String, String)>,
    /// Files and directories that the page names in backticks, relative to the root.
    pub(crate) files: BTreeSet<String>,
    /// Tests that the page's commands name after `--test`.
    pub(crate) tests: BTreeSet<String>,
}

impl RecipePage {
    pub(crate) fn new(file: &Path, text: &str) -> Self {
        let mut page = Self {
            name: file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            excerpts: Vec::new(),
            files: BTreeSet::new(),
            tests: BTreeSet::new(),
        };
        let (mut last, mut block) = ("", None::<(Option<String>, String)>);
        for line in text.lines() {
            match (&mut block, line.starts_with("```")) {
                (None, true) => block = Some((referenced_file(last), String::new())),
                (None, false) => page.parse_prose(line),
                (Some(_), true) => {
                    if let Some((Some(file), excerpt)) = block.take() {
                        page.excerpts.push((file, excerpt));
                    }
                    block = None;
                }
                (Some((_, excerpt)), false) => *excerpt += &format!("{line}\n"),
            }
            if !line.trim().is_empty() {
                last = line;
            }
        }
        assert!(block.is_none(), "{}: a block without an end", page.name);
        page
    }

    fn parse_prose(&mut self, line: &str) {
        let is_file = |name: &&str| {
            // Build output need not exist yet, and `CARGO_TARGET_DIR` may place it elsewhere.
            !name.starts_with("target/")
                && name.contains('/')
                && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-".contains(letter))
        };
        self.files.extend(backtick_spans(line).filter(is_file).map(str::to_owned));
        let mut words = line.split([' ', '`']);
        while words.any(|word| word == "--test") {
            self.tests.extend(words.next().map(str::to_owned));
        }
    }
}

/// The file in backticks at the end of a line that introduces an excerpt, as in "In `src/lib.rs`:".
fn referenced_file(line: &str) -> Option<String> {
    let (_, file) = line.strip_suffix("`:")?.rsplit_once('`')?;
    Some(file.to_owned())
}

/// The spans in backticks.
fn backtick_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// True if the lines of an excerpt follow each other in a text, at any indentation. A line of `…` matches any number of lines.
pub(crate) fn contains_excerpt(excerpt: &str, text: &str) -> bool {
    let text: Vec<&str> = text.lines().map(str::trim).collect();
    let excerpt: Vec<&str> = excerpt.lines().map(str::trim).collect();
    let mut from = 0;
    excerpt.split(|line| *line == "…").filter(|part| !part.is_empty()).all(|part| {
        let found = text[from..].windows(part.len()).position(|lines| lines == part);
        from += found.map_or(0, |at| at + part.len());
        found.is_some()
    })
}

#[test]
fn an_excerpt_is_found_by_its_lines() {
    let text = "fn a() {\n    one();\n    two();\n}\nfn b() {}\n";
    for excerpt in ["one();\ntwo();\n", "fn a() {\n…\n}\nfn b() {}\n", "  two();\n"] {
        assert!(contains_excerpt(excerpt, text), "{excerpt}");
    }
    for excerpt in ["two();\none();\n", "fn b() {}\n…\none();\n", "one()\n"] {
        assert!(!contains_excerpt(excerpt, text), "{excerpt}");
    }
}

#[test]
fn a_page_names_files_tests_and_excerpts() {
    let text = "The file `a/b.rs`, not `a b`, `c` or `target/d`.\n\nIn `a/c.rs`:\n\n```rust\nx\n```\n\n```rust\ny\n```\n\n\
                Run `cargo test --workspace --test d` then.\n";
    let page = RecipePage::new(Path::new("docs/add-x.md"), text);
    assert_eq!(page.name, "add-x.md");
    assert_eq!(page.excerpts, [("a/c.rs".to_owned(), "x\n".to_owned())]);
    assert_eq!(page.files, BTreeSet::from(["a/b.rs".to_owned(), "a/c.rs".to_owned()]));
    assert_eq!(page.tests, BTreeSet::from(["d".to_owned()]));
}
