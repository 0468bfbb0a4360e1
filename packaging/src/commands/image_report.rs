//! What `oarlock-pack image` says: the list of images, what it would do, and what it did.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use oarlock_image::PackageCache;
use oarlock_image::image_builder::{FinishedImage, ImageBuilder};
use oarlock_image::image_index::FinishedIndex;
use oarlock_image::images::ImageSpec;
use oarlock_image::lock::LockedPackage;

use super::count_label;
use super::image_selection::{ChosenImage, ImageSelection, debian_packages, quote_names};
use super::say::say;
use serde_json::{Value, json};

pub(super) fn list_images(
    selection: &ImageSelection<'_>,
    builders: &[ImageBuilder<'_>],
    json: bool,
) -> Result<(), Box<dyn Error>> {
    let complete = selection.wanted.iter().map(|chosen| (chosen, &[][..]));
    let lacking = selection.passed_over.iter().map(|(chosen, missing)| (chosen, &missing[..]));
    let mut all: Vec<_> = complete.chain(lacking).collect();
    // In the order of the catalog.
    let position = |number: usize, image: &ImageSpec| {
        builders[number].catalog().images.iter().position(|it| it.suffix == image.suffix)
    };
    all.sort_by_key(|((number, image), _)| (*number, position(*number, image)));
    let mut described = Vec::new();
    for ((number, image), missing) in all {
        let architecture = builders[*number].catalog().architecture.debian_name();
        if json {
            described.push(json!({
                "image": image.label(),
                "architecture": architecture,
                "title": image.title,
                "layers": image.layers,
                "budget_mb": image.budget_mb,
                "missing": missing,
            }));
            continue;
        }
        say!("{} for {architecture}: {}", image.label(), image.title);
        say!("  layers: {}; at most {} MB", image.layers.join(", "), image.budget_mb);
        if !missing.is_empty() {
            say!("  lacks: {}", missing.join(", "));
        }
    }
    if json {
        say!("{:#}", Value::from(described));
    }
    Ok(())
}

pub(super) fn show_plan(
    wanted: &[ChosenImage<'_>],
    builders: &[ImageBuilder<'_>],
    pool: &PackageCache,
    out: &Path,
    with_engine: bool,
    json: bool,
) -> Result<(), Box<dyn Error>> {
    let (mut files, mut names) = (Vec::new(), Vec::new());
    for (number, image) in wanted {
        let name = builders[*number].image_name(image)?;
        files.push(out.join(name.archive_file_name(builders[*number].catalog().architecture)));
        if names.contains(&name) {
            files.push(out.join(name.index_file_name()));
        }
        names.push(name);
    }
    let needed = debian_packages(wanted, builders).into_iter();
    let fetched: Vec<&str> =
        needed.filter(|package| !pool.has_package(package)).map(LockedPackage::file_name).collect();
    if json {
        say!("{:#}", json!({ "fetched": fetched, "images": files }));
        return Ok(());
    }
    fetched.iter().for_each(|file| say!("would fetch {file}"));
    files.iter().for_each(|file| say!("would write {}", file.display()));
    if with_engine {
        names.iter().for_each(|name| say!("would load {name} into the engine"));
    }
    Ok(())
}

pub(super) fn show_images(
    finished: &[FinishedImage],
    known: Option<&[String]>,
    indexes: &[FinishedIndex],
    passed_over: &[(ChosenImage<'_>, Vec<&str>)],
    began: Instant,
    json: bool,
) {
    let took = began.elapsed().as_secs_f64();
    let known = |index: usize| known.and_then(|known| known.get(index));
    let architectures = |index: &FinishedIndex| {
        index.architectures.iter().map(|architecture| architecture.debian_name()).collect::<Vec<_>>()
    };
    if json {
        let images = finished.iter().enumerate().map(|(index, image)| {
            let layers = image.layers.iter().map(
                |(name, packed, unpacked)| json!({ "layer": name, "bytes": packed, "unpacked": unpacked }),
            );
            json!({
                "name": image.name.to_string(),
                "architecture": image.architecture.debian_name(),
                "file": image.file,
                "dockerfile": image.dockerfile,
                "engine": known(index),
                "digest": format!("sha256:{}", image.digest),
                "bytes": image.layer_bytes(),
                "budget": image.budget,
                "layers": layers.collect::<Vec<_>>(),
            })
        });
        let indexes = indexes.iter().map(|index| {
            json!({
                "name": index.name.to_string(),
                "architectures": architectures(index),
                "file": index.file,
                "digest": format!("sha256:{}", index.digest),
                "bytes": index.bytes,
            })
        });
        let lacking = passed_over
            .iter()
            .map(|((_, image), missing)| json!({ "image": image.label(), "missing": missing }));
        let (images, indexes, lacking): (Vec<_>, Vec<_>, Vec<_>) =
            (images.collect(), indexes.collect(), lacking.collect());
        let said = json!({ "images": images, "indexes": indexes, "not_made": lacking, "seconds": took });
        say!("{said:#}");
        return;
    }
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    for (index, image) in finished.iter().enumerate() {
        say!("{} for {} in {}", image.name, image.architecture.debian_name(), image.file.display());
        say!("  sha256:{}", image.digest);
        for (name, packed, unpacked) in &image.layers {
            say!("  {:6.2} MB packed, {:6.2} MB unpacked  {name}", megabytes(*packed), megabytes(*unpacked));
        }
        say!("  {:6.2} MB of at most {:.0} MB", megabytes(image.layer_bytes()), megabytes(image.budget));
        if let Some(id) = known(index) {
            say!("  the engine has it as {id}; docker run --rm {}", image.name);
        } else if let Some(directory) = &image.dockerfile {
            let platform = format!("linux/{}", image.architecture.debian_name());
            say!("  docker build --platform {platform} --tag {} {}", image.name, directory.display());
        }
    }
    for index in indexes {
        say!("{} for {} in {}", index.name, architectures(index).join(" and "), index.file.display());
        say!("  sha256:{}", index.digest);
    }
    for ((_, image), missing) in passed_over {
        say!("not made: {}, which lacks {}", image.label(), quote_names(missing));
    }
    say!("{} in {took:.0} s", count_label(finished.len(), "image"));
}
