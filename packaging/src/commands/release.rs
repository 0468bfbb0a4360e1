//! `oarlock-pack release`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use oarlock_formats::file_packer::CompressionEffort;
use oarlock_formats::openpgp::OpenPgpKey;
use oarlock_formats::{date, file};
use oarlock_image::image_builder::ImageBuilder as ImageWorkshop;
use oarlock_image::image_index;
use oarlock_image::images::{ImageKind, ImageSpec};
use oarlock_image::local_packages::LocalPackages;
use oarlock_image::lock::LockedPackage;
use oarlock_image::{ImageName, ImageSources, PackageCache};
use oarlock_matrix::WheelMatrix;
use oarlock_pack::apt_repository::{AptRepository, SuiteRelease};
use oarlock_pack::build::{BuildStep, PackagePlan, WorkspaceBuilder};
use oarlock_pack::build_plan::WheelPlan;
use oarlock_pack::index::WheelIndex;
use oarlock_pack::packages::{self, PackageCatalog};
use oarlock_pack::release::release_sboms::SbomDocument;
use oarlock_pack::release::{
    self, ReleaseContents, ReleaseDescription, ReleaseItem, ReleaseItemKind, SourceRevision,
};
use oarlock_pack::verify::FoundParts;

use super::image::{MirrorChoice, PoolChoice};
use super::progress::ProgressReporter;
use super::say::say;
use super::{MatrixChoice, count_label};
use clap::Args;
use serde_json::json;

#[derive(Args, Debug)]
pub(crate) struct ReleaseArguments {
    #[command(flatten)]
    choice: MatrixChoice,
    /// A secret key from `apt-key new` to sign with; if you give several, all of them sign
    #[arg(long = "key", value_name = "FILE", required = true)]
    keys: Vec<PathBuf>,
    /// A row of the matrix, such as `OpenCL`; may be given several times. Packages and images follow. By default, every row that
    /// can be built
    #[arg(long = "row", value_name = "LABEL")]
    rows: Vec<String>,
    /// An image, such as `slim` or `dev`; may be given several times. By default, all production images whose packages are built
    #[arg(long = "image", value_name = "NAME")]
    images: Vec<String>,
    /// The directory to write, replacing an older release
    #[arg(long, value_name = "DIRECTORY", default_value = "dist/release")]
    out: PathBuf,
    /// The address of the published release, for its page, repository and index; optional in a rehearsal
    #[arg(long, value_name = "URL")]
    host: Option<String>,
    /// The number of days until the repository expires, from the time of the commit
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    valid_for: u32,
    /// Accept sources without a release tag; the page then says so
    #[arg(long)]
    rehearsal: bool,
    /// Pack wheels quickly; the files are a few percent larger
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    pool: PoolChoice,
    #[command(flatten)]
    mirror: MirrorChoice,
}

/// Disk space that a release may need while it is built, in bytes: four rows with all their build output took 6 GB.
const REQUIRED_DISK_BYTES: u64 = 12_000_000_000;

/// The placeholder address of a rehearsal; it never resolves.
const REHEARSAL_HOST: &str = "https://oarlock.example";

const STAGE_COUNT: usize = 7;

pub(crate) fn run(call: &ReleaseArguments, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let host = release_host(call)?;
    let matrix = call.choice.read_matrix()?;
    let packages = PackageCatalog::from_toml("packaging/packages.toml", packages::OWN_PACKAGES)?;
    let images = ImageSources::of_all_architectures()?;
    let keys =
        call.keys.iter().map(|file| super::apt_repo::read_secret_key(file)).collect::<Result<Vec<_>, _>>()?;
    let plan = WheelPlan::new(&matrix, &call.rows)?;
    let public: Vec<u8> = keys.iter().flat_map(OpenPgpKey::to_public_packets).collect();
    let plan_packages = |it| PackagePlan::for_wheel_plan(&plan, &packages, it, public.clone());
    let package_plans = plan.architectures().into_iter().map(plan_packages).collect::<Result<Vec<_>, _>>()?;
    let chosen = select_images(&images, &package_plans, &call.images)?;
    let builder = WorkspaceBuilder::new(".".as_ref())?;
    let version = package_plans.first().map(PackagePlan::version).unwrap_or_default();
    // Run all checks that need no build before building anything.
    let source = SourceRevision::of_directory(".".as_ref(), version, call.rehearsal)?;
    let suite = apt_suite(call, host, &source);
    suite.check_usable(&keys, date::seconds_now())?;
    WheelIndex::default().with_address(&wheel_index_address(host))?;
    release::check_target(&call.out)?;
    package_plans.iter().try_for_each(|it| builder.check_package_machine(it))?;
    for place in [&builder.release_path(""), &call.out] {
        file::check_disk_space(place, REQUIRED_DISK_BYTES)?;
    }
    let about = ReleaseDescription {
        version,
        source,
        host,
        rows: plan.rows().iter().map(|row| row.label.clone()).collect(),
        images: chosen.iter().flat_map(ImagesOfArchitecture::labels).collect(),
    };
    if dry_run {
        show_plan(&plan, &package_plans, &about, json);
        return Ok(());
    }
    let _alone = builder.lock_release_build()?;
    let builder = ReleaseBuilder {
        call,
        host,
        matrix: &matrix,
        packages: &packages,
        images: &images,
        builder: &builder,
    };
    let contents = builder.build_contents(&plan, &package_plans, &chosen, suite)?;
    let items = contents.write_release(&call.out, &about, &keys)?;
    show_release(call, &about, &items, began, json);
    Ok(())
}

/// The images of a release for an architecture.
struct ImagesOfArchitecture<'i> {
    sources: &'i ImageSources,
    chosen: Vec<&'i ImageSpec>,
}

impl ImagesOfArchitecture<'_> {
    /// The names of the images, such as `slim:arm64`.
    fn labels(&self) -> impl Iterator<Item = String> {
        let architecture = self.sources.images.architecture.debian_name();
        self.chosen.iter().map(move |image| format!("{}:{architecture}", image.label()))
    }

    /// The Debian packages in the images.
    fn debian_packages(&self) -> Vec<&LockedPackage> {
        self.sources.lock.packages_of_images(&self.chosen)
    }
}

/// The named images, or all, for each architecture whose packages are built.
fn select_images<'i>(
    sources: &'i [ImageSources],
    plans: &[PackagePlan<'_>],
    named: &[String],
) -> Result<Vec<ImagesOfArchitecture<'i>>, Box<dyn Error>> {
    let mut selected = Vec::new();
    let mut missing = BTreeMap::new();
    for sources in sources {
        let images = &sources.images;
        let is_of_images = |it: &&PackagePlan<'_>| it.architecture() == images.architecture;
        let built: Vec<&str> = plans.iter().filter(is_of_images).flat_map(PackagePlan::names).collect();
        let mut chosen = Vec::new();
        for image in &images.images {
            let is_named =
                named.iter().any(|name| images.find_image(name).is_some_and(|it| it.suffix == image.suffix));
            let is_usual = named.is_empty() && images.kind_of_image(image)? != ImageKind::Dev;
            if is_named || is_usual {
                match images.own_packages(image)?.into_iter().find(|own| !built.contains(own)) {
                    None => chosen.push(image),
                    Some(package) => _ = missing.entry(image.label()).or_insert(package),
                }
            }
        }
        selected.push(ImagesOfArchitecture { sources, chosen });
    }
    selected.retain(|it| !it.chosen.is_empty());
    for name in named {
        let label = name.trim_start_matches('-');
        let mut chosen = selected.iter().flat_map(|it| &it.chosen);
        if chosen.any(|image| image.label() == label) {
            continue;
        }
        if let Some(package) = missing.get(label) {
            return Err(format!(
                "expected rows of the matrix that provide the package `{package}`, which the image `{label}` has; found none"
            )
            .into());
        }
        // Says which names there are.
        sources.iter().try_for_each(|it| it.images.select_images(std::slice::from_ref(name)).map(drop))?;
    }
    Ok(selected)
}

/// The address where the release will be published.
fn release_host(call: &ReleaseArguments) -> Result<&str, String> {
    match &call.host {
        Some(host) => Ok(host.trim_end_matches('/')),
        None if call.rehearsal => Ok(REHEARSAL_HOST),
        None => Err("expected `--host URL`, the address at which the release will be, which its page, its repository and its index \
             name; found none, which only `--rehearsal` may do without"
            .to_owned()),
    }
}

/// The address of the wheel index within a release.
fn wheel_index_address(host: &str) -> String {
    format!("{host}/wheels")
}

fn apt_suite(call: &ReleaseArguments, host: &str, source: &SourceRevision) -> SuiteRelease {
    SuiteRelease {
        suite: "stable".to_owned(),
        codename: "stable".to_owned(),
        origin: "Oarlock".to_owned(),
        host: format!("{host}/apt"),
        made: source.seconds,
        ends: source.seconds.saturating_add(u64::from(call.valid_for) * date::SECONDS_PER_DAY),
    }
}

struct ReleaseBuilder<'b> {
    call: &'b ReleaseArguments,
    host: &'b str,
    matrix: &'b WheelMatrix,
    packages: &'b PackageCatalog,
    images: &'b [ImageSources],
    builder: &'b WorkspaceBuilder,
}

impl ReleaseBuilder<'_> {
    /// Builds all contents. It reuses everything that was compiled, packed or fetched before, so an interrupted run resumes
    /// where it stopped.
    fn build_contents(
        &self,
        plan: &WheelPlan<'_>,
        package_plans: &[PackagePlan<'_>],
        images: &[ImagesOfArchitecture<'_>],
        suite: SuiteRelease,
    ) -> Result<ReleaseContents, Box<dyn Error>> {
        let progress = ProgressReporter::new();
        let stage = |number: usize, text: &str| progress.begin_stage(number, STAGE_COUNT, text);
        let [wheels, debs, archives, book] =
            ["wheels", "packages", "images", "book"].map(|what| self.builder.release_path(what));
        for place in [&wheels, &debs, &archives, &book] {
            if place.exists() {
                std::fs::remove_dir_all(place)?;
            }
        }
        let pool = self.call.pool.open_pool(&self.call.mirror);
        // Fetching comes first: whether it succeeds does not depend on anything that is built.
        stage(1, "fetching Debian packages and tools");
        for images in images {
            super::image::fetch_packages(&pool, &images.debian_packages(), &progress)?;
        }
        self.builder.prepare_tools(&plan.architectures())?;
        stage(2, "the command, which queries plugins");
        let report = |step: &BuildStep| progress.begin_step(step.done, step.all, &step.text);
        let builder =
            self.builder.clone().with_command(Some(self.builder.build_command(self.matrix, &report)?));
        stage(3, "wheels");
        let effort = if self.call.quick { CompressionEffort::Usual } else { CompressionEffort::Most };
        let outcome = builder.build_wheels(plan, &wheels, effort, &report)?;
        if let Some(note) = outcome.notes.first() {
            return Err(note.clone().into());
        }
        stage(4, "packages for Debian");
        for package_plan in package_plans {
            builder.build_packages(package_plan, &debs, &report)?;
        }
        stage(5, "images");
        let made = self.build_images(images, &debs, &archives, &pool, &progress)?;
        stage(6, "the book");
        self.builder.build_book(&book)?;
        stage(7, "checking that everything matches");
        let mut found = FoundParts::default();
        for (file, _) in &outcome.wheels {
            found.add_wheel(self.matrix, file)?;
        }
        for file in AptRepository::package_files(&debs)? {
            found.add_package(self.matrix, self.packages, &file)?;
        }
        for (file, _) in &made {
            found.add_image(self.matrix, self.packages, self.images, file)?;
        }
        found.check_sets(self.packages)?;
        found.identical_parts()?;
        let count = |done, all| progress.count_step(done, all, "reading what was built");
        Ok(ReleaseContents {
            wheels: WheelIndex::of_directory(&wheels, self.matrix, &[].into(), count)?
                .with_address(&wheel_index_address(self.host))?,
            packages: AptRepository::of_files(&AptRepository::package_files(&debs)?, count)?,
            suite,
            images: made,
            book,
            materials: self.builder.collect_materials(self.locked_packages(), &plan.architectures())?,
        })
    }
}

impl ReleaseBuilder<'_> {
    /// Builds the images for all architectures, and archives of those for several, each with its SBOM.
    fn build_images(
        &self,
        images: &[ImagesOfArchitecture<'_>],
        debs: &Path,
        out: &Path,
        pool: &PackageCache,
        progress: &ProgressReporter,
    ) -> Result<Vec<(PathBuf, SbomDocument)>, Box<dyn Error>> {
        let scratch = self.builder.release_path("scratch");
        let count: usize = images.iter().map(|it| it.chosen.len()).sum();
        let (mut finished, mut made) = (Vec::new(), Vec::new());
        let mut components: Vec<(ImageName, SbomDocument)> = Vec::new();
        for ImagesOfArchitecture { sources: ImageSources { images, lock }, chosen } in images {
            let architecture = images.architecture;
            let own = LocalPackages::in_directory(debs, architecture.debian_name())?;
            let mut layers = ImageWorkshop::new(images, lock, pool, &own, &scratch);
            layers.set_runner(self.builder.program_runner(architecture)?);
            for image in chosen {
                let name = layers.image_name(image)?;
                let report = |layer: &str| {
                    let text = format!("{name} for {}, layer {layer}", architecture.debian_name());
                    progress.begin_step(finished.len(), count, &text);
                };
                let built = layers.build_image(image, out, false, &report)?;
                let (ours, debian) = layers.packages_of_image(image)?;
                let sbom = SbomDocument::of_image(&ours, &debian)?;
                made.push((built.file.clone(), sbom.clone()));
                match components.iter_mut().find(|(it, _)| *it == name) {
                    Some((_, all)) => all.add_components(&sbom),
                    None => components.push((name, sbom)),
                }
                finished.push(built);
            }
        }
        for index in image_index::write_indexes(&finished, out)? {
            let all = components.iter().find(|(name, _)| *name == index.name);
            made.extend(all.map(|(_, sbom)| (index.file, sbom.clone())));
        }
        Ok(made)
    }

    /// The Debian packages of all images, each once.
    fn locked_packages(&self) -> Vec<LockedPackage> {
        let locked = self.images.iter().flat_map(|it| &it.lock.packages);
        let by_path: BTreeMap<_, _> = locked.map(|package| (&package.path, package)).collect();
        by_path.into_values().cloned().collect()
    }
}

fn show_plan(plan: &WheelPlan<'_>, packages: &[PackagePlan<'_>], about: &ReleaseDescription<'_>, json: bool) {
    let wheels: Vec<String> = plan.rows().iter().map(|row| row.name.to_string()).collect();
    let with_architecture = |plan: &PackagePlan<'_>| {
        let architecture = plan.architecture().debian_name();
        plan.names().map(|name| format!("{name}:{architecture}")).collect::<Vec<_>>()
    };
    let packages: Vec<String> = packages.iter().flat_map(with_architecture).collect();
    if json {
        say!(
            "{:#}",
            json!({ "source": about.source.display_name(), "wheels": wheels, "packages": packages, "images": about.images })
        );
        return;
    }
    say!("would release {} of {}", about.version, about.source.display_name());
    wheels.iter().for_each(|name| say!("would build {name}"));
    packages.iter().for_each(|name| say!("would build the package {name}"));
    about.images.iter().for_each(|name| say!("would build the image {name}"));
}

fn show_release(
    call: &ReleaseArguments,
    about: &ReleaseDescription<'_>,
    items: &[ReleaseItem],
    began: Instant,
    json: bool,
) {
    let took = began.elapsed().as_secs_f64();
    if json {
        let said = json!({ "release": call.out, "source": about.source.display_name(), "files": items, "seconds": took });
        say!("{said:#}");
        return;
    }
    let all = |kind: ReleaseItemKind| items.iter().filter(move |item| item.kind == kind);
    for (kind, name) in [
        (ReleaseItemKind::Wheel, "wheel"),
        (ReleaseItemKind::Package, "package"),
        (ReleaseItemKind::Image, "image"),
    ] {
        let bytes: u64 = all(kind).map(|item| item.bytes).sum();
        say!("{}, {:.1} MB", count_label(all(kind).count(), name), bytes as f64 / 1e6);
    }
    if call.host.is_none() {
        say!("note: it refers to the placeholder {REHEARSAL_HOST}; `--host URL` sets its real address");
    }
    let what = if about.source.tag.is_some() { "the release" } else { "a rehearsal of the release" };
    say!(
        "{} is {what} {} of {}, built in {took:.0} s",
        call.out.display(),
        about.version,
        about.source.display_name()
    );
}
