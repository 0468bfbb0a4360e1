//! `oarlock-pack image`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use oarlock_formats::{date, file};
use oarlock_pack::container_engine::ContainerEngine;
use oarlock_pack::image::image_builder::{FinishedImage, ImageBuilder};
use oarlock_pack::image::images::{self, ImageKind, ImageSpec};
use oarlock_pack::image::local_packages::LocalPackages;
use oarlock_pack::image::lock::LockedPackage;
use oarlock_pack::image::mirror::DebianMirror;
use oarlock_pack::image::{DebianLock, ImageCatalog, ImageName, PackageCache, dependency_resolution, lock};
use oarlock_pack::vendored_tree;

use super::container_engine;
use super::count_label;
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
    /// Update the lock of Debian packages to the newest versions, with all dependencies
    Lock(LockArguments),
}

#[derive(Args, Debug)]
struct LockArguments {
    #[command(flatten)]
    mirror: MirrorChoice,
    /// The lock file to write
    #[arg(long, value_name = "FILE", default_value = lock::LOCK_PATH)]
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

pub(crate) fn run(call: &ImageArguments, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let images = ImageCatalog::from_toml("packaging/images.toml", images::OWN_IMAGES)?;
    if let Some(ImageCommand::Lock(call)) = &call.command {
        return write_lock(&images, call, json, dry_run);
    }
    let lock = DebianLock::from_toml(lock::LOCK_PATH, lock::OWN_LOCK)?;
    if let Some(name) = &call.name {
        // Fails early on an invalid name.
        ImageName::new(name, "0")?;
    }
    let chosen = images.select_images(&call.images)?;
    let own = LocalPackages::in_directory(&call.debs, &images.debian.architecture)?;
    let pool = call.pool.open_pool(&call.mirror);
    let builder = ImageBuilder::new(&images, &lock, &pool, &own, Path::new(SCRATCH_DIRECTORY));
    let mut builder = match &call.name {
        Some(name) => builder.with_repository(name),
        None => builder,
    };
    if let Some(seconds) = date::source_date_epoch()? {
        builder = builder.with_time(seconds);
    }
    if call.list {
        return list_images(&chosen, &builder, json);
    }
    let mut wanted = Vec::new();
    let mut passed_over = Vec::new();
    for image in chosen {
        // Images for building are large, and few users want them.
        if call.images.is_empty() && images.kind_of_image(image)? == ImageKind::Dev {
            continue;
        }
        let missing = builder.missing_packages(image)?;
        if missing.is_empty() {
            builder.image_name(image)?;
            wanted.push(image);
        } else if call.images.is_empty() {
            passed_over.push((image, missing));
        } else {
            let missing = quote_names(&missing);
            return Err(format!(
                "`{}`: expected the packages {missing} of the image `{}`, found none",
                call.debs.display(),
                image.label()
            )
            .into());
        }
    }
    if wanted.is_empty() {
        return Err(format!(
            "`{}`: expected the packages of an image, found those of none; `--list` says which each needs",
            call.debs.display()
        )
        .into());
    }
    if dry_run {
        return show_plan(&wanted, &builder, &pool, call, json);
    }
    let began = Instant::now();
    // Report problems with the engine before the slow work.
    let engine = call
        .engine
        .map(|how| Ok::<_, Box<dyn Error>>((how, container_engine::find_engine()?)))
        .transpose()?;
    if let Some((_, engine)) = &engine {
        engine.check_disk_space(wanted.iter().map(|image| image.budget_mb * 1_000_000).sum())?;
    }
    file::check_disk_space(&call.out, wanted.iter().map(|image| image.budget_mb * 1_000_000).sum())?;
    let finished = make_images(&wanted, &mut builder, &pool, call)?;
    let known = engine.map(|(how, engine)| deliver_images(&finished, how, &engine)).transpose()?;
    show_images(&finished, known.as_deref(), &passed_over, began, json);
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
    wanted: &[&'w ImageSpec],
    builder: &mut ImageBuilder<'w>,
    pool: &PackageCache,
    call: &ImageArguments,
) -> Result<Vec<FinishedImage>, Box<dyn Error>> {
    let progress = ProgressReporter::new();
    // Fetches for all images first, so that a damaged package is found before anything is built.
    fetch_packages(pool, &builder.debian_packages(wanted), &progress)?;
    let mut finished = Vec::new();
    for (done, image) in wanted.iter().enumerate() {
        let name = builder.image_name(image)?;
        let report = |layer: &str| progress.begin_step(done, wanted.len(), &format!("{name}, layer {layer}"));
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

fn write_lock(
    images: &ImageCatalog,
    call: &LockArguments,
    json: bool,
    dry_run: bool,
) -> Result<(), Box<dyn Error>> {
    let mirror = call.mirror.find_mirror()?;
    let progress = ProgressReporter::new();
    let mut indexes = Vec::new();
    let suites: Vec<&String> = images.debian.all_suites().collect();
    for (done, &suite) in suites.iter().enumerate() {
        progress.begin_step(done, suites.len(), &format!("reading the index of {suite}"));
        indexes.push((suite.clone(), mirror.fetch_index(suite, &images.debian.architecture)?));
    }
    drop(progress);
    let lock = dependency_resolution::resolve_lock(images, &indexes)?;
    let text = lock.to_toml()?;
    if !dry_run {
        file::write_file(&call.out, text.as_bytes())?;
    }
    let bytes: u64 = lock.packages.iter().map(|package| package.size).sum();
    if json {
        say!("{:#}", json!({ "lock": call.out, "packages": lock.packages.len(), "bytes": bytes }));
    } else {
        let verb = if dry_run { "would name" } else { "names" };
        let (count, megabytes) = (count_label(lock.packages.len(), "package"), bytes as f64 / 1e6);
        say!("{} {verb} {count} of {megabytes:.1} MB", call.out.display());
    }
    Ok(())
}

fn list_images(chosen: &[&ImageSpec], builder: &ImageBuilder<'_>, json: bool) -> Result<(), Box<dyn Error>> {
    let mut described = Vec::new();
    for image in chosen {
        let missing = builder.missing_packages(image)?;
        if json {
            described.push(json!({
                "image": image.label(),
                "title": image.title,
                "layers": image.layers,
                "budget_mb": image.budget_mb,
                "missing": missing,
            }));
            continue;
        }
        say!("{}: {}", image.label(), image.title);
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

fn show_plan(
    wanted: &[&ImageSpec],
    builder: &ImageBuilder<'_>,
    pool: &PackageCache,
    call: &ImageArguments,
    json: bool,
) -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    for image in wanted {
        files.push(call.out.join(builder.image_name(image)?.file_name()));
    }
    let needed = builder.debian_packages(wanted).into_iter();
    let fetched: Vec<&str> =
        needed.filter(|package| !pool.has_package(package)).map(LockedPackage::file_name).collect();
    if json {
        say!("{:#}", json!({ "fetched": fetched, "images": files }));
        return Ok(());
    }
    fetched.iter().for_each(|file| say!("would fetch {file}"));
    files.iter().for_each(|file| say!("would write {}", file.display()));
    if call.engine.is_some() {
        wanted.iter().try_for_each(|image| {
            builder.image_name(image).map(|name| say!("would load {name} into the engine"))
        })?;
    }
    Ok(())
}

fn show_images(
    finished: &[FinishedImage],
    known: Option<&[String]>,
    passed_over: &[(&ImageSpec, Vec<&str>)],
    began: Instant,
    json: bool,
) {
    let took = began.elapsed().as_secs_f64();
    let known = |index: usize| known.and_then(|known| known.get(index));
    if json {
        let images = finished.iter().enumerate().map(|(index, image)| {
            let layers = image.layers.iter().map(
                |(name, packed, unpacked)| json!({ "layer": name, "bytes": packed, "unpacked": unpacked }),
            );
            json!({
                "name": image.name.to_string(),
                "file": image.file,
                "dockerfile": image.dockerfile,
                "engine": known(index),
                "digest": format!("sha256:{}", image.digest),
                "bytes": image.layer_bytes(),
                "budget": image.budget,
                "layers": layers.collect::<Vec<_>>(),
            })
        });
        let lacking =
            passed_over.iter().map(|(image, missing)| json!({ "image": image.label(), "missing": missing }));
        let (images, lacking): (Vec<_>, Vec<_>) = (images.collect(), lacking.collect());
        say!("{:#}", json!({ "images": images, "not_made": lacking, "seconds": took }));
        return;
    }
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    for (index, image) in finished.iter().enumerate() {
        say!("{} in {}", image.name, image.file.display());
        say!("  sha256:{}", image.digest);
        for (name, packed, unpacked) in &image.layers {
            say!("  {:6.2} MB packed, {:6.2} MB unpacked  {name}", megabytes(*packed), megabytes(*unpacked));
        }
        say!("  {:6.2} MB of at most {:.0} MB", megabytes(image.layer_bytes()), megabytes(image.budget));
        if let Some(id) = known(index) {
            say!("  the engine has it as {id}; docker run --rm {}", image.name);
        } else if let Some(directory) = &image.dockerfile {
            say!("  docker build --tag {} {}", image.name, directory.display());
        }
    }
    for (image, missing) in passed_over {
        say!("not made: {}, which lacks {}", image.label(), quote_names(missing));
    }
    say!("{} in {took:.0} s", count_label(finished.len(), "image"));
}

fn quote_names(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
