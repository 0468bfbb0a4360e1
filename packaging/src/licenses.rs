//! The third-party licenses of compiled code, in one text with the notices that each license requires.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use oarlock_formats::error::Error;

use crate::crates::CratePackage;

/// Our own license, whose text is in each wheel anyway.
const OWN_LICENSE: &str = "Apache-2.0";

/// The prefixes of license file names.
const LICENSE_FILE_PREFIXES: [&str; 5] = ["licen", "copying", "copyright", "unlicense", "notice"];

/// Collects the texts for crates that were compiled together. For a crate available under our own license it only adds notices.
///
/// # Errors
///
/// When the files of a crate cannot be read.
pub fn collect_licenses(packages: &[&CratePackage]) -> Result<String, Error> {
    let others = packages.iter().filter(|package| package.source.is_some());
    let (mut like_ours, mut own) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
    for package in others {
        let is_like_ours = is_available_under(package, OWN_LICENSE);
        if is_like_ours {
            like_ours.push(crate_title(package));
        }
        for text in license_texts(package, is_like_ours)? {
            own.entry(text).or_default().push(crate_title(package));
        }
    }
    let mut text = "Licenses of the third-party crates that are compiled into the library in this directory, and of the Rust \
                    standard library (MIT OR Apache-2.0).\n"
        .to_owned();
    if !like_ours.is_empty() {
        // Writing to a `String` cannot fail.
        _ = write!(
            text,
            "\nUnder the Apache License 2.0, which is in this directory: {}.\n",
            like_ours.join(", ")
        );
    }
    let mut own: Vec<(String, Vec<String>)> = own.into_iter().collect();
    own.sort_by(|(_, one), (_, other)| one.cmp(other));
    for (license, of) in own {
        _ = write!(text, "\n{}\n{}:\n\n{}\n", "=".repeat(80), of.join(", "), license.trim_end());
    }
    Ok(text)
}

fn crate_title(package: &CratePackage) -> String {
    format!("{} {}", package.name, package.version)
}

/// True if a crate is available under this license alone.
fn is_available_under(package: &CratePackage, license: &str) -> bool {
    package.license().is_some_and(|text| {
        !text.contains(['(', ')']) && !text.contains(" AND ") && text.split(" OR ").any(|it| it == license)
    })
}

/// The license files of a crate, or a statement of its license if it has none.
fn license_texts(package: &CratePackage, notices_alone: bool) -> Result<Vec<String>, Error> {
    let mut files: Vec<_> = std::fs::read_dir(package.directory())?
        .collect::<Result<Vec<_>, _>>()?
        .iter()
        .map(|it| it.path())
        .collect();
    files.sort();
    let mut texts = Vec::new();
    for file in files.iter().filter(|file| file.is_file()) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let is_wanted = if notices_alone {
            name.starts_with("notice")
        } else {
            LICENSE_FILE_PREFIXES.iter().any(|it| name.starts_with(it))
        };
        if is_wanted {
            texts.push(String::from_utf8_lossy(&std::fs::read(file)?).replace("\r\n", "\n"));
        }
    }
    if texts.is_empty() && !notices_alone {
        let license = package.license().unwrap_or_else(|| "no license".to_owned());
        let place = package.repository.as_deref().unwrap_or("its registry");
        texts.push(format!("It states the license {license}, but contains no license file; see {place}."));
    }
    Ok(texts)
}
