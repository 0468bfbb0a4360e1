//! Checks the documentation: links are valid, whatever pages name exists, and the code that examples are about accepts them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use oarlock_host::{HostConfig, PluginManifest};
use oarlock_plugin_package::PackageRecipe;
use oarlock_plugin_sim::FaultScript;

fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read_text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The Markdown files of a directory, and of its subdirectories if `below` is set.
fn markdown_files(directory: &Path, below: bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("a directory that can be read").path()) {
        if path.is_dir() && below {
            found.extend(markdown_files(&path, below));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found
}

/// Every Markdown file of the project.
fn all_documents() -> Vec<PathBuf> {
    let mut found = markdown_files(&repository_root(), false);
    for directory in ["docs/src", "docs/measurements", "packaging", "docker", "device-sdk/templates", "tests"]
    {
        found.extend(markdown_files(&repository_root().join(directory), true));
    }
    found
}

/// Targets of the links on a page.
fn markdown_links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// Examples in a language, each with its page.
fn language_examples(language: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for page in all_documents() {
        for (index, part) in read_text(&page).split("```").enumerate() {
            if let Some(example) = part.strip_prefix(language).filter(|_| index % 2 == 1) {
                found.push((page.clone(), example.to_owned()));
            }
        }
    }
    assert!(!found.is_empty(), "no page has an example in {language}");
    found
}

#[test]
fn every_link_to_a_file_leads_to_one() {
    let mut broken = Vec::new();
    for page in all_documents() {
        for link in markdown_links(&read_text(&page)) {
            let file = link.split('#').next().unwrap_or_default();
            let is_elsewhere = link.contains("://") || file.is_empty();
            let directory = page.parent().expect("a page lies in a directory");
            if !is_elsewhere && !directory.join(file).exists() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn every_page_and_every_decision_is_in_the_book() {
    let book = repository_root().join("docs/src");
    let summary = read_text(&book.join("SUMMARY.md"));
    let listed: BTreeSet<PathBuf> = markdown_links(&summary).map(|link| book.join(link)).collect();
    let mut present: BTreeSet<PathBuf> = markdown_files(&book, true).into_iter().collect();
    present.remove(&book.join("SUMMARY.md"));
    assert_eq!(listed, present);
}

#[test]
fn every_term_of_the_glossary_names_where_it_lives() {
    let glossary = read_text(&repository_root().join("docs/glossary.md"));
    let rows = glossary.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let homes = rows.filter_map(|row| row.trim_end_matches(" |").rsplit_once("| `")?.1.strip_suffix('`'));
    let homes: Vec<&str> = homes.collect();
    assert!(homes.len() > 80, "{} homes", homes.len());
    let missing: Vec<&&str> = homes.iter().filter(|home| !repository_root().join(home).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The text between backticks on a page, outside of code blocks.
fn inline_code(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

/// The pages about the current state of the tree. Decisions and measurements describe the day of their date.
fn current_pages() -> impl Iterator<Item = (PathBuf, String)> {
    let is_dated = |path: &PathBuf| {
        path.components()
            .any(|part| ["decisions", "measurements"].map(AsRef::as_ref).contains(&part.as_os_str()))
    };
    all_documents()
        .into_iter()
        .filter(move |path| !is_dated(path))
        .map(|path| (path.clone(), read_text(&path)))
}

#[test]
fn every_rust_path_that_a_page_names_is_in_the_sources() {
    let roots = ["runtime", "device-sdk", "plugins", "packaging", "scripts", "tests"];
    let files = roots.into_iter().flat_map(|root| rust_files(&repository_root().join(root)));
    let sources: String = files.map(|file| read_text(&file)).collect();
    let words: BTreeSet<&str> = sources.split(|sign: char| !sign.is_alphanumeric() && sign != '_').collect();
    let mut named = 0;
    let mut missing = Vec::new();
    for (page, text) in current_pages() {
        let is_path = |code: &&str| {
            code.contains("::") && code.chars().all(|sign| sign.is_alphanumeric() || "_:()".contains(sign))
        };
        for path in inline_code(&text).into_iter().filter(is_path) {
            named += 1;
            if !path.trim_end_matches("()").split("::").all(|word| words.contains(word)) {
                missing.push(format!("{}: {path}", page.display()));
            }
        }
    }
    assert!(named > 20, "{named} paths");
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_file_that_a_page_names_exists() {
    let roots = [
        "runtime/",
        "device-sdk/",
        "plugins/",
        "packaging/",
        "scripts/",
        "tests/",
        "docs/",
        "docker/",
        "src/",
    ];
    let mut named = 0;
    let mut missing = Vec::new();
    for (page, text) in current_pages() {
        let is_file = |code: &&str| {
            roots.iter().any(|root| code.starts_with(root))
                && !code.contains("NNNN")
                && code.chars().all(|sign| sign.is_alphanumeric() || "_-./".contains(sign))
        };
        for file in inline_code(&text).into_iter().filter(is_file) {
            named += 1;
            let beside = page.parent().expect("pages are in directories").join(file);
            if !repository_root().join(file).exists() && !beside.exists() {
                missing.push(format!("{}: {file}", page.display()));
            }
        }
    }
    assert!(named > 100, "{named} files");
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_reason_of_a_refusal_is_in_the_reference() {
    let source = read_text(&repository_root().join("runtime/host/src/refusal.rs"));
    let (_, reasons) =
        source.split_once("pub enum RefusalReason {").expect("the host has an enum of reasons");
    let (reasons, _) = reasons.split_once("\n}").expect("the enum ends");
    let names = reasons.lines().filter_map(|line| line.trim().strip_suffix(','));
    let expected: BTreeSet<String> = names.map(to_kebab_case).collect();
    let page = read_text(&repository_root().join("docs/src/reference/refusals.md"));
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let documented: BTreeSet<String> =
        rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned())).collect();
    assert_eq!(documented, expected);
}

fn to_kebab_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// What a manifest has to have.
const MANIFEST_START: &str =
    "name = 'a'\nversion = '1'\nkind = 'device'\ndevice_type = 'a'\ncontract = '1.0'\narchitecture = 'any'\n";

#[test]
fn every_example_of_a_manifest_a_recipe_or_a_configuration_is_accepted() {
    for (page, example) in language_examples("toml\n") {
        let result = if page.ends_with("manifest.md") || page.ends_with("check.md") {
            // The page about the suite shows a part of a manifest.
            let start = if page.ends_with("check.md") { MANIFEST_START } else { "" };
            PluginManifest::parse_manifest(&page, format!("{start}{example}").as_bytes())
                .map(drop)
                .map_err(|refusal| refusal.to_string())
        } else if page.ends_with("pack.md") {
            PackageRecipe::from_toml("the recipe", &example).map(drop).map_err(|error| error.to_string())
        } else {
            HostConfig::parse_file(&page, example.as_bytes()).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(result, Ok(()), "{example}");
    }
}

#[test]
fn every_option_of_the_cpu_device_is_on_its_page() {
    let page = read_text(&repository_root().join("docs/src/user/cpu.md"));
    let row = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()
    };
    let table = |head: &str| -> Vec<Vec<String>> {
        let rows = page.lines().skip_while(|line| !line.starts_with(head)).skip(2);
        rows.take_while(|line| line.starts_with('|')).map(row).collect()
    };
    let sources = repository_root().join("plugins/cpu");
    let isa = read_text(&sources.join("base/src/isa.rs"));
    let read_by_it = requested_options(&sources);
    let options = table("| option |");
    assert_eq!(options.iter().map(|row| row[0].clone()).collect::<BTreeSet<_>>(), read_by_it);
    let (_, names) = isa.split_once("impl fmt::Display for Isa").expect("levels have names");
    let (names, _) = names.split_once("\n}").expect("the implementation ends");
    let names: Vec<&str> = names.split('"').skip(1).step_by(2).collect();
    assert_eq!(options[0][1].split(", ").collect::<Vec<_>>(), names);
    for flag in table("| flag |") {
        let known = oarlock_core::flags::FLAG_TABLE.iter().find(|known| known.name == flag[0]);
        assert_eq!(known.map(|known| known.default), Some(flag[1].as_str()), "{}", flag[0]);
    }
}

/// Options that a plugin's sources ask the host for.
fn requested_options(directory: &Path) -> BTreeSet<String> {
    let option = |rest: &str| Some(rest.split_once('"')?.0.to_owned());
    let asked = |path: &PathBuf| -> Vec<String> {
        read_text(path).split(".option(\"").skip(1).filter_map(option).collect()
    };
    rust_files(directory).iter().flat_map(asked).collect()
}

/// Rust files of a directory and its subdirectories.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("there are sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// A host built in another way would run the CPU kernels with the best ISA, whichever one is forced.
#[test]
fn tests_start_their_hosts_where_an_instruction_set_is_forced() {
    let tests = repository_root().join("tests/tests");
    let of_the_book = tests.join("library.rs");
    let starts_host = |file: &PathBuf| {
        let text = read_text(file);
        text.contains("oarlock::start(\"")
            || ["cpu", "sim"].iter().any(|plugin| text.contains(&format!("oarlock_plugin_{plugin}::QUERY")))
    };
    let found: Vec<PathBuf> = rust_files(&tests).into_iter().filter(starts_host).collect();
    assert_eq!(
        found,
        [of_the_book],
        "expected `oarlock_tests::bare_host::{{CPU, SIM}}` in the place of `QUERY`"
    );
}

#[test]
fn every_example_of_a_sim_script_is_accepted() {
    for (page, example) in language_examples("sim\n") {
        let result = FaultScript::parse_script(&example).map(drop).map_err(|error| error.to_string());
        assert_eq!(result, Ok(()), "{}: {example}", page.display());
    }
}
