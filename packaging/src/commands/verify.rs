//! `oarlock-pack verify`.

use std::error::Error;
use std::path::{Path, PathBuf};

use oarlock_image::ImageSources;
use oarlock_pack::packages::{OWN_PACKAGES, PackageCatalog};
use oarlock_pack::verify::FoundParts;

use super::say::say;
use super::{MatrixChoice, count_label};
use clap::Args;
use serde_json::json;

#[derive(Args, Debug)]
pub(crate) struct VerifyArguments {
    #[command(flatten)]
    choice: MatrixChoice,
    /// Wheels, packages and images, or directories of them; by default `dist`, `dist/deb` and `dist/images`
    #[arg(value_name = "PATH")]
    places: Vec<PathBuf>,
}

pub(crate) fn run(call: &VerifyArguments, json: bool) -> Result<(), Box<dyn Error>> {
    let matrix = call.choice.read_matrix()?;
    let packages = PackageCatalog::from_toml("packaging/packages.toml", OWN_PACKAGES)?;
    let images = ImageSources::of_all_architectures()?;
    let mut found = FoundParts::default();
    let mut looked_at = 0;
    let usual = ["dist", "dist/deb", "dist/images"].map(PathBuf::from).into_iter().filter(|it| it.is_dir());
    let places = if call.places.is_empty() { usual.collect() } else { call.places.clone() };
    for place in &places {
        for file in list_files(place)? {
            let is_published =
                file.extension().is_some_and(|it| ["whl", "tar", "deb"].iter().any(|kind| it == *kind));
            if is_published && !file.is_file() {
                return Err(format!("`{}`: expected a file, found something else", file.display()).into());
            }
            match file.extension().and_then(|it| it.to_str()) {
                Some("whl") => found.add_wheel(&matrix, &file)?,
                Some("tar") => found.add_image(&matrix, &packages, &images, &file)?,
                Some("deb") => found.add_package(&matrix, &packages, &file)?,
                _ => continue,
            }
            looked_at += 1;
        }
    }
    found.check_sets(&packages)?;
    let same = found.identical_parts()?;
    if same.is_empty() {
        return Err("expected wheels, packages or images with something compiled in them, found none".into());
    }
    if json {
        let parts: Vec<_> =
            same.iter().map(|it| json!({ "part": it.part, "sha256": it.sha256, "in": it.places })).collect();
        say!("{:#}", json!({ "parts": parts }));
        return Ok(());
    }
    let width = same.iter().map(|it| it.part.len()).max().unwrap_or_default();
    for it in &same {
        say!("{:width$}  {:.16}  {}", it.part, it.sha256, count_kinds(&it.places));
    }
    say!(
        "{}, each the same wherever it is, in {}",
        count_label(same.len(), "part"),
        count_label(looked_at, "file")
    );
    Ok(())
}

/// The files in a directory, or the single file.
fn list_files(place: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    if place.is_file() {
        return Ok(vec![place.to_owned()]);
    }
    let listed = std::fs::read_dir(place).map_err(|error| format!("`{}`: {error}", place.display()))?;
    let mut files = listed.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    files.sort();
    Ok(files)
}

/// Counts the files of each kind.
fn count_kinds(places: &[&Path]) -> String {
    let count =
        |ending: &str| places.iter().filter(|it| it.extension().is_some_and(|it| it == ending)).count();
    let kinds = [(count("whl"), "wheel"), (count("deb"), "package"), (count("tar"), "image")];
    let descriptions: Vec<String> =
        kinds.iter().filter(|(count, _)| *count > 0).map(|(count, kind)| count_label(*count, kind)).collect();
    descriptions.join(", ")
}
