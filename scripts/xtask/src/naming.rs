//! Statistics on how easily names can be found: `cargo xtask naming`. `docs/glossary.md` has the rules.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;
use syn::visit::{self, Visit};

#[derive(Args)]
pub(crate) struct NamingArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// List the types that share a name with another type of their crate, with their files
    #[arg(long, conflicts_with = "json")]
    shared: bool,
}

/// The names that each crate declares, and those of all crates together.
fn read_tree(root: &Path) -> Result<(BTreeMap<PathBuf, DeclaredNames>, DeclaredNames)> {
    let mut crates = BTreeMap::<PathBuf, DeclaredNames>::new();
    let mut whole = DeclaredNames::default();
    for file in source_files(root)? {
        let home = crate_of(root, &file);
        let text = fs::read_to_string(root.join(&file)).with_context(|| file.display().to_string())?;
        crates.entry(home).or_default().read_file(&file, &text)?;
        whole.read_file(&file, &text)?;
    }
    Ok((crates, whole))
}

/// A line for each type name that a crate declares more than once, with the files.
fn shared_types(crates: &BTreeMap<PathBuf, DeclaredNames>) -> Vec<String> {
    let types = crates.iter().flat_map(|(home, names)| names.types.iter().map(move |it| (home, it)));
    let shared = types.filter(|(_, (_, places))| places.len() > 1);
    shared
        .map(|(home, (name, places))| format!("{:24} {name:24} {}", home.display(), places.join(" ")))
        .collect()
}

#[derive(Default, Serialize)]
struct NamingFigures {
    lines: usize,
    comment_lines: usize,
    type_declarations: usize,
    distinct_types: usize,
    one_word_types: usize,
    function_declarations: usize,
    one_word_functions: usize,
    longest_file: usize,
}

#[derive(Default)]
struct DeclaredNames {
    types: BTreeMap<String, Vec<String>>,
    functions: Vec<String>,
    lines: usize,
    comment_lines: usize,
    longest_file: usize,
    file: String,
}

pub(crate) fn run(arguments: &NamingArguments) -> Result<()> {
    let (crates, whole) = read_tree(&crate::root())?;
    if arguments.shared {
        shared_types(&crates).iter().for_each(|line| println!("{line}"));
        return Ok(());
    }
    let mut rows: BTreeMap<String, NamingFigures> =
        crates.iter().map(|(home, names)| (home.display().to_string(), names.figures())).collect();
    rows.insert("all".to_owned(), whole.figures());
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    println!(
        "{:28} {:>7} {:>12} {:>8} {:>9} {:>13} {:>9} {:>14} {:>8}",
        "crate",
        "lines",
        "longest file",
        "types",
        "one word",
        "declarations",
        "functions",
        "one word",
        "comments"
    );
    for (home, figures) in &rows {
        println!("{home:28} {}", figures.row());
    }
    Ok(())
}

/// All Rust files except generated ones.
fn source_files(root: &Path) -> Result<Vec<PathBuf>> {
    // The sources of frozen plugins are alike in each version, and nobody may change them.
    let sources = ["ls-files", "*.rs", ":!tests/frozen"];
    let output = Command::new("git").arg("-C").arg(root).args(sources).output()?;
    ensure!(output.status.success(), "expected `git ls-files` to list the sources, found {}", output.status);
    let generated = ["generated.rs", "draft.rs", "messages.rs"];
    let files = String::from_utf8(output.stdout)?;
    Ok(files
        .lines()
        .map(PathBuf::from)
        .filter(|file| !generated.iter().any(|name| file.ends_with(name)) && root.join(file).exists())
        .collect())
}

/// The directory of the crate that contains a file, relative to the root. Integration tests are crates of their own.
fn crate_of(root: &Path, file: &Path) -> PathBuf {
    let is_crate = |directory: &&Path| root.join(directory).join("Cargo.toml").exists();
    let home = file.ancestors().skip(1).find(is_crate).unwrap_or(Path::new(""));
    let tests = home.join("tests");
    if file.starts_with(&tests) { tests } else { home.to_owned() }
}

impl DeclaredNames {
    fn read_file(&mut self, file: &Path, text: &str) -> Result<()> {
        let parsed = syn::parse_file(text).with_context(|| file.display().to_string())?;
        self.file = file.display().to_string();
        self.visit_file(&parsed);
        let lines = text.lines().count();
        self.lines += lines;
        self.longest_file = self.longest_file.max(lines);
        self.comment_lines += text.lines().filter(|line| is_plain_comment(line)).count();
        Ok(())
    }

    fn figures(&self) -> NamingFigures {
        NamingFigures {
            lines: self.lines,
            comment_lines: self.comment_lines,
            type_declarations: self.types.values().map(Vec::len).sum(),
            distinct_types: self.types.len(),
            one_word_types: self.types.keys().filter(|name| is_one_word_type(name)).count(),
            function_declarations: self.functions.len(),
            one_word_functions: self.functions.iter().filter(|name| !name.contains('_')).count(),
            longest_file: self.longest_file,
        }
    }

    fn add_type(&mut self, name: &syn::Ident) {
        let place = format!("{}:{}", self.file, name.span().start().line);
        self.types.entry(name.to_string()).or_default().push(place);
    }
}

impl<'ast> Visit<'ast> for DeclaredNames {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add_type(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add_type(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.add_type(&item.ident);
        visit::visit_item_union(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add_type(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.functions.push(signature.ident.to_string());
        visit::visit_signature(self, signature);
    }
}

impl NamingFigures {
    fn row(&self) -> String {
        format!(
            "{:>7} {:>12} {:>8} {:>8}% {:>13.2} {:>9} {:>13}% {:>7.1}%",
            self.lines,
            self.longest_file,
            self.distinct_types,
            percent(self.one_word_types, self.distinct_types).round(),
            self.type_declarations as f64 / self.distinct_types.max(1) as f64,
            self.function_declarations,
            percent(self.one_word_functions, self.function_declarations).round(),
            percent(self.comment_lines, self.lines),
        )
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// True if a type's name has one capital, at its start.
fn is_one_word_type(name: &str) -> bool {
    name.chars().filter(|letter| letter.is_uppercase()).count() == 1
}

/// True for a comment that is not documentation, including `SAFETY` arguments.
fn is_plain_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") && !line.starts_with("///") && !line.starts_with("//!")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_wherever_they_are_declared() {
        let text = "
            // Why.
            pub struct Panel;
            pub trait PanelLayout { fn len(&self) -> usize; }
            mod inner { enum Panel {} impl Panel { fn write_rows() {} } }
            fn outer() { struct Local; fn inner() {} }
        ";
        let mut names = DeclaredNames::default();
        names.read_file(Path::new("lib.rs"), text).unwrap();
        assert_eq!(names.types["Panel"], ["lib.rs:3", "lib.rs:5"]);
        let figures = names.figures();
        assert_eq!((figures.distinct_types, figures.one_word_types, figures.type_declarations), (3, 2, 4));
        assert_eq!((figures.function_declarations, figures.one_word_functions), (4, 3));
        assert_eq!((figures.lines, figures.comment_lines, figures.longest_file), (7, 1, 7));
    }

    #[test]
    fn names_of_the_tree_can_be_found_with_grep() {
        let (crates, whole) = read_tree(&crate::root()).expect("the tree");
        let shared = shared_types(&crates);
        assert!(
            shared.is_empty(),
            "expected types of a crate to differ in name, found\n{}",
            shared.join("\n")
        );
        let figures = whole.figures();
        let types = percent(figures.one_word_types, figures.distinct_types);
        let functions = percent(figures.one_word_functions, figures.function_declarations);
        assert!(
            types <= 10.0,
            "expected names that say what a type is, found one word in {types:.0} % of them"
        );
        assert!(
            functions <= 25.0,
            "expected verbs with objects, found one word in {functions:.0} % of functions"
        );
    }

    #[test]
    fn no_crate_and_no_file_is_too_large_to_know() {
        const MAX_CRATE_LINES: usize = 15_500;
        const MAX_FILE_LINES: usize = 600;
        let root = crate::root();
        let mut crates = BTreeMap::<PathBuf, usize>::new();
        for file in source_files(&root).expect("git") {
            let lines = fs::read_to_string(root.join(&file)).expect("a source").lines().count();
            assert!(lines <= MAX_FILE_LINES, "{}: {lines} lines of at most {MAX_FILE_LINES}", file.display());
            if file.components().any(|part| part.as_os_str() == "src") {
                *crates.entry(crate_of(&root, &file)).or_default() += lines;
            }
        }
        for (home, lines) in crates {
            assert!(
                lines <= MAX_CRATE_LINES,
                "{}: {lines} lines of at most {MAX_CRATE_LINES}",
                home.display()
            );
        }
    }

    #[test]
    fn a_file_belongs_to_the_nearest_crate() {
        let root = crate::root();
        assert_eq!(crate_of(&root, Path::new("tests/tests/house.rs")), Path::new("tests/tests"));
        assert_eq!(crate_of(&root, Path::new("runtime/core/src/lib.rs")), Path::new("runtime/core"));
    }
}
