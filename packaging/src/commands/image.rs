//! `oarlock-pack image`.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use oarlock_formats::{date, file};
use oarlock_image::image_builder::{FinishedImage, ImageBuilder};
use oarlock_image::image_index;
use oarlock_image::images;
use oarlock_image::local_packages::LocalPackages;
use oarlock_image::lock::LockedPackage;
use oarlock_image::mirror::DebianMirror;
use oarlock_image::{ImageCatalog, ImageName, ImageSources, PackageCache, dependency_resolution, lock};
use oarlock_matrix::CpuArchitecture;
use oarlock_pack::build::WorkspaceBuilder;
use oarlock_pack::container_engine::ContainerEngine;
use oarlock_pack::vendored_tree;

use super::container_engine;
use super::count_label;
use super::image_report;
use super::image_selection::{ChosenImage, ImageSelection, debian_packages};
use super::progress::ProgressReporter;
use super::say::say;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ImageArguments {
    #[command(subcommand)]
    command: Option<ImageCommand>,
    /// Images by the suffix of their tag, such as `slim`, `dev` or `plain`. By default, all production images whose packages exist
    #[arg(value_name = "NAME")]
    images: Vec<String>,
    /// The architecture, by Debian's name, amd64 or arm64; may be given several times. By default, each whose packages exist; with
    /// `--engine`, that of this machine
    #[arg(long = "architecture", value_name = "NAME")]
    architectures: Vec<CpuArchitecture>,
    /// The directory of Oarlock's packages
    #[arg(long, value_name = "DIRECTORY", default_value = "dist/deb")]
    debs: PathBuf,
    /// The directory to write to
    #[arg(long, value_name = "DIRECTORY", default_value = "dist/images")]
    out: PathBuf,
    #[command(flatten)]
    pool: PoolChoice,
    #[command(flatten)]
    mirror: MirrorChoice,
    /// The image name before the colon, such as `registry.example.org/team/oarlock`
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Also write a directory with a Dockerfile and layers, from which `docker build` makes the same image
    #[arg(long)]
    dockerfile: bool,
    /// Pass the images to Docker or podman: `load` loads them, `build` builds them from their Dockerfiles
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "load")]
    engine: Option<EngineDelivery>,
    /// List the images, their layers, and what they still need
    #[arg(long)]
    list: bool,
}

/// How an engine receives an image.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum EngineDelivery {
    /// The engine reads the archive: the same image, byte for byte.
    Load,
    /// The engine builds the Dockerfile: the same files and settings, with layers that it packs itself.
    Build,
}

/// The directory of Debian packages.
#[derive(Args, Debug)]
pub(super) struct PoolChoice {
    /// A directory with the Debian packages; by default `vendor/debian` if it exists, otherwise they are downloaded from the
    /// machine's mirror and cached
    #[arg(long, value_name = "DIRECTORY")]
    pool: Option<PathBuf>,
}

/// The Debian mirror.
#[derive(Args, Debug)]
pub(super) struct MirrorChoice {
    /// The Debian mirror, instead of the machine's own
    #[arg(long, value_name = "URL", value_parser = parse_mirror_address)]
    mirror: Option<String>,
}

/// Validates the address of a mirror before anything is fetched.
fn parse_mirror_address(text: &str) -> Result<String, String> {
    DebianMirror::at_address(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

#[derive(Debug, Subcommand)]
enum ImageCommand {
    /// Update the locks of Debian packages to the newest versions, with all dependencies
    Lock(LockArguments),
}

#[derive(Args, Debug)]
struct LockArguments {
    #[command(flatten)]
    mirror: MirrorChoice,
    /// The directory to write the locks to, one for each architecture
    #[arg(long, value_name = "DIRECTORY", default_value = lock::LOCK_DIRECTORY)]
    out: PathBuf,
}

/// Caches for Debian packages and for intermediate files.
const POOL_DIRECTORY: &str = "target/pack/pool";
const SCRATCH_DIRECTORY: &str = "target/pack/scratch";

impl PoolChoice {
    pub(super) fn open_pool(&self, mirror: &MirrorChoice) -> PackageCache {
        match &self.pool {
            Some(directory) => PackageCache::in_directory(directory),
            None => match vendored_tree::debian_directory(Path::new(".")) {
                Some(directory) => PackageCache::in_directory(&directory),
                None => PackageCache::with_mirror(Path::new(POOL_DIRECTORY), mirror.find_mirror()),
            },
        }
    }
}

impl MirrorChoice {
    pub(super) fn find_mirror(&self) -> Result<DebianMirror, oarlock_formats::Error> {
        self.mirror.as_deref().map_or_else(DebianMirror::of_machine, DebianMirror::at_address)
    }
}

impl ImageArguments {
    /// The architectures to make images for.
    fn chosen_architectures(&self) -> Result<Vec<CpuArchitecture>, String> {
        match (&self.architectures[..], self.engine) {
            ([], None) => Ok(CpuArchitecture::ALL.to_vec()),
            ([], Some(_)) => Ok(vec![CpuArchitecture::of_machine().unwrap_or_default()]),
            ([_, _, ..], Some(_)) => {
                Err("expected one `--architecture`, that of the engine, found several".to_owned())
            }
            (named, _) => Ok(BTreeSet::from_iter(named.iter().copied()).into_iter().collect()),
        }
    }
}

pub(crate) fn run(call: &ImageArguments, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    if let Some(ImageCommand::Lock(call)) = &call.command {
        return write_locks(call, json, dry_run);
    }
    if let Some(name) = &call.name {
        // Fails early on an invalid name.
        ImageName::new(name, "0")?;
    }
    let mut sources = Vec::new();
    for architecture in call.chosen_architectures()? {
        let own = LocalPackages::in_directory(&call.debs, architecture.debian_name())?;
        sources.push((ImageSources::of_oarlock(architecture)?, own));
    }
    let pool = call.pool.open_pool(&call.mirror);
    let seconds = date::source_date_epoch()?;
    let mut builders = Vec::new();
    for (ImageSources { images, lock }, own) in &sources {
        let mut builder = ImageBuilder::new(images, lock, &pool, own, Path::new(SCRATCH_DIRECTORY));
        if let Some(name) = &call.name {
            builder = builder.with_repository(name);
        }
        if let Some(seconds) = seconds {
            builder = builder.with_time(seconds);
        }
        builders.push(builder);
    }
    let mut selection = ImageSelection::of_names(&call.images, call.list, &builders)?;
    if call.list {
        return image_report::list_images(&selection, &builders, json);
    }
    selection.check_complete(&call.images, !call.architectures.is_empty(), &call.debs)?;
    selection.forget_unexpected(&call.images);
    let wanted = &selection.wanted;
    if dry_run {
        return image_report::show_plan(wanted, &builders, &pool, &call.out, call.engine.is_some(), json);
    }
    let began = Instant::now();
    // Report problems with the engine before the slow work.
    let engine = call
        .engine
        .map(|how| Ok::<_, Box<dyn Error>>((how, container_engine::find_engine()?)))
        .transpose()?;
    let most: u64 = wanted.iter().map(|(_, image)| image.budget_mb * 1_000_000).sum();
    if let Some((_, engine)) = &engine {
        engine.check_disk_space(most)?;
    }
    file::check_disk_space(&call.out, most)?;
    let finished = make_images(wanted, &mut builders, &pool, call)?;
    let known = engine.map(|(how, engine)| deliver_images(&finished, how, &engine)).transpose()?;
    let indexes = image_index::write_indexes(&finished, &call.out)?;
    image_report::show_images(&finished, known.as_deref(), &indexes, &selection.passed_over, began, json);
    Ok(())
}

/// Loads images into an engine and prints the id of each.
fn deliver_images(
    finished: &[FinishedImage],
    how: EngineDelivery,
    engine: &ContainerEngine,
) -> Result<Vec<String>, Box<dyn Error>> {
    let unpacked = |image: &FinishedImage| image.layers.iter().map(|(_, _, unpacked)| unpacked).sum::<u64>();
    let mut known = Vec::new();
    for image in finished {
        engine.check_disk_space(unpacked(image))?;
        known.push(match (how, &image.dockerfile) {
            (EngineDelivery::Build, Some(directory)) => {
                container_engine::build_image(engine, directory, &image.name)?
            }
            _ => container_engine::load_image(engine, &image.file, &image.name)?,
        });
    }
    Ok(known)
}

/// Fetches missing packages and builds the images.
fn make_images<'w>(
    wanted: &[ChosenImage<'w>],
    builders: &mut [ImageBuilder<'w>],
    pool: &PackageCache,
    call: &ImageArguments,
) -> Result<Vec<FinishedImage>, Box<dyn Error>> {
    let progress = ProgressReporter::new();
    // Fetches for all images first, so that a damaged package is found before anything is built.
    fetch_packages(pool, &debian_packages(wanted, builders), &progress)?;
    for (number, builder) in builders.iter_mut().enumerate() {
        let architecture = builder.catalog().architecture;
        let is_foreign = Some(architecture) != CpuArchitecture::of_machine();
        if is_foreign && wanted.iter().any(|(it, _)| *it == number) {
            let text = format!("laying out what runs programs for {}", architecture.debian_name());
            progress.begin_step(0, wanted.len(), &text);
            builder.set_runner(WorkspaceBuilder::new(Path::new("."))?.program_runner(architecture)?);
        }
    }
    let mut finished = Vec::new();
    for (done, (number, image)) in wanted.iter().enumerate() {
        let builder = &mut builders[*number];
        let name = builder.image_name(image)?;
        let architecture = builder.catalog().architecture.debian_name();
        let report = |layer: &str| {
            progress.begin_step(done, wanted.len(), &format!("{name} for {architecture}, layer {layer}"));
        };
        let with_dockerfile = call.dockerfile || call.engine == Some(EngineDelivery::Build);
        finished.push(builder.build_image(image, &call.out, with_dockerfile, &report)?);
    }
    Ok(finished)
}

/// Fetches the Debian packages that are not cached yet, and verifies all of them.
pub(super) fn fetch_packages(
    pool: &PackageCache,
    needed: &[&LockedPackage],
    progress: &ProgressReporter,
) -> Result<(), oarlock_formats::Error> {
    let count = needed.iter().filter(|package| !pool.has_package(package)).count();
    let mut fetched = 0;
    for package in needed {
        if !pool.has_package(package) {
            progress.begin_step(fetched, count, &format!("taking {} {}", package.name, package.version));
            fetched += 1;
        }
        pool.read_package(package)?;
    }
    Ok(())
}

fn write_locks(call: &LockArguments, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let mirror = call.mirror.find_mirror()?;
    let mut locks = Vec::new();
    let progress = ProgressReporter::new();
    for architecture in CpuArchitecture::ALL {
        let images = ImageCatalog::from_toml(images::CATALOG_PATH, images::OWN_IMAGES, architecture)?;
        let mut indexes = Vec::new();
        let suites: Vec<&String> = images.debian.all_suites().collect();
        for (done, &suite) in suites.iter().enumerate() {
            let text = format!("reading the index of {suite} for {}", architecture.debian_name());
            progress.begin_step(done, suites.len(), &text);
            indexes.push((suite.clone(), mirror.fetch_index(suite, architecture.debian_name())?));
        }
        let lock = dependency_resolution::resolve_lock(&images, &indexes)?;
        locks.push((call.out.join(lock::lock_file_name(architecture)), lock.to_toml()?, lock));
    }
    drop(progress);
    if !dry_run {
        for (file, text, _) in &locks {
            file::write_file(file, text.as_bytes())?;
        }
    }
    let mut described = Vec::new();
    for (file, _, lock) in &locks {
        let bytes: u64 = lock.packages.iter().map(|package| package.size).sum();
        if json {
            described.push(json!({ "lock": file, "packages": lock.packages.len(), "bytes": bytes }));
        } else {
            let verb = if dry_run { "would name" } else { "names" };
            let (count, megabytes) = (count_label(lock.packages.len(), "package"), bytes as f64 / 1e6);
            say!("{} {verb} {count} of {megabytes:.1} MB", file.display());
        }
    }
    if json {
        say!("{:#}", Value::from(described));
    }
    Ok(())
}
