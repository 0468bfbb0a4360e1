//! `oarlock-pack release`.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use oarlock_pack::build::{PackagePlan, Plan, Step, Workshop};
use oarlock_pack::image::images::{self, Image, Kind as ImageKind};
use oarlock_pack::image::own::Own;
use oarlock_pack::image::workshop::Workshop as ImageWorkshop;
use oarlock_pack::image::{Images, Lock, lock};
use oarlock_pack::index::Index;
use oarlock_pack::matrix::Matrix;
use oarlock_pack::openpgp::Key;
use oarlock_pack::packages::{self, Packages};
use oarlock_pack::packed::Effort;
use oarlock_pack::release::bills::Bill;
use oarlock_pack::release::{self, About, Contents, Item, Kind, Source};
use oarlock_pack::repository::{Release as Suite, Repository};
use oarlock_pack::verify::Found;
use oarlock_pack::{date, file};
use serde_json::json;

use super::image::{MirrorChoice, PoolChoice};
use super::progress::Progress;
use super::say::say;
use super::{MatrixChoice, counted};

#[derive(Args, Debug)]
pub(crate) struct Call {
    #[command(flatten)]
    choice: MatrixChoice,
    /// A secret key that signs it, as `apt-key new` makes it; with several, all of them do
    #[arg(long = "key", value_name = "FILE", required = true)]
    keys: Vec<PathBuf>,
    /// A row of the matrix, such as `OpenCL`; may be given several times, and packages and images follow. Without it all that can be
    /// built
    #[arg(long = "row", value_name = "LABEL")]
    rows: Vec<String>,
    /// An image, such as `slim` or `dev`; may be given several times. Without it all to run programs whose packages are built
    #[arg(long = "image", value_name = "NAME")]
    images: Vec<String>,
    /// Where the release is written, in place of an older one
    #[arg(long, value_name = "DIRECTORY", default_value = "dist/release")]
    out: PathBuf,
    /// The address at which it will be, which its page, its repository and its index name; a rehearsal may do without
    #[arg(long, value_name = "URL")]
    host: Option<String>,
    /// For how many days apt takes its repository for the newest, from when the sources were committed on
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    valid_for: u32,
    /// Also take sources that are not tagged as the release; the page says so
    #[arg(long)]
    rehearsal: bool,
    /// Pack wheels as other tools do, in a moment; the files are larger by some hundredths
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    pool: PoolChoice,
    #[command(flatten)]
    mirror: MirrorChoice,
}

/// What a release may take of a disk on the way, in bytes: four rows, with all that is compiled for them, took 6 GB.
const NEEDED: u64 = 12_000_000_000;

/// The address of a rehearsal that has none; nobody is ever there.
const NOWHERE: &str = "https://oarlock.example";

/// What is done, one after the other.
const STAGES: usize = 7;

pub(crate) fn run(call: &Call, json: bool, dry_run: bool) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    let host = host(call)?;
    let matrix = call.choice.read()?;
    let packages = Packages::read("packaging/packages.toml", packages::OWN)?;
    let images = Images::read("packaging/images.toml", images::OWN)?;
    let lock = Lock::read(lock::FILE, lock::OWN)?;
    let keys = call.keys.iter().map(|file| super::apt_repo::key(file)).collect::<Result<Vec<_>, _>>()?;
    let plan = Plan::new(&matrix, &call.rows)?;
    let public: Vec<u8> = keys.iter().flat_map(Key::public_bytes).collect();
    let package_plan = PackagePlan::beside(&plan, &packages, public)?;
    let chosen = chosen(&images, &package_plan, &call.images)?;
    let workshop = Workshop::new(".".as_ref())?;
    let version = package_plan.version().to_owned();
    // Everything that can be found wrong without building anything, before anything is built.
    let source = Source::of(".".as_ref(), &version, call.rehearsal)?;
    let suite = suite(call, host, &source);
    suite.check(&keys, date::now())?;
    Index::default().hosted_at(&wheels_at(host))?;
    release::check_place(&call.out)?;
    workshop.check_machine(&package_plan)?;
    for place in [&workshop.place_for(""), &call.out] {
        file::check_room(place, NEEDED)?;
    }
    let about = About {
        version: &version,
        source,
        host,
        rows: plan.rows().iter().map(|row| row.label.clone()).collect(),
        images: chosen.iter().map(|image| image.label().to_owned()).collect(),
    };
    if dry_run {
        show_plan(&plan, &package_plan, &about, json);
        return Ok(());
    }
    let _alone = workshop.alone()?;
    let builder = Builder {
        call,
        host,
        matrix: &matrix,
        packages: &packages,
        images: &images,
        lock: &lock,
        workshop: &workshop,
    };
    let contents = builder.build(&plan, &package_plan, &chosen, suite)?;
    let items = contents.write(&call.out, &about, &keys)?;
    show(call, &about, &items, began, json);
    Ok(())
}

/// The images that are named, or all whose packages are built.
fn chosen<'i>(
    images: &'i Images,
    plan: &PackagePlan<'_>,
    named: &[String],
) -> Result<Vec<&'i Image>, Box<dyn Error>> {
    let mut chosen = Vec::new();
    for image in images.chosen(named)? {
        if named.is_empty() && images.kind(image)? == ImageKind::Dev {
            continue;
        }
        match images.own_of(image)?.into_iter().find(|own| !plan.names().any(|it| it == *own)) {
            None => chosen.push(image),
            Some(_) if named.is_empty() => {}
            Some(missing) => {
                return Err(format!(
                    "expected rows of the matrix that bring the package `{missing}`, which the image `{}` has; found none",
                    image.label()
                )
                .into());
            }
        }
    }
    Ok(chosen)
}

/// The address at which a release will be.
fn host(call: &Call) -> Result<&str, String> {
    match &call.host {
        Some(host) => Ok(host.trim_end_matches('/')),
        None if call.rehearsal => Ok(NOWHERE),
        None => Err("expected `--host URL`, the address at which the release will be, which its page, its repository and its index \
             name; found none, which only `--rehearsal` may do without"
            .to_owned()),
    }
}

/// Where the index will be, of a release at an address.
fn wheels_at(host: &str) -> String {
    format!("{host}/wheels")
}

fn suite(call: &Call, host: &str, source: &Source) -> Suite {
    Suite {
        suite: "stable".to_owned(),
        codename: "stable".to_owned(),
        origin: "Oarlock".to_owned(),
        host: format!("{host}/apt"),
        made: source.seconds,
        ends: source.seconds.saturating_add(u64::from(call.valid_for) * date::DAY),
    }
}

/// What builds the contents of a release.
struct Builder<'b> {
    call: &'b Call,
    host: &'b str,
    matrix: &'b Matrix,
    packages: &'b Packages,
    images: &'b Images,
    lock: &'b Lock,
    workshop: &'b Workshop,
}

impl Builder<'_> {
    /// Builds all of it. What was compiled, packed or fetched before is not again, so that a run that was stopped goes on where it
    /// stood.
    fn build(
        &self,
        plan: &Plan<'_>,
        package_plan: &PackagePlan<'_>,
        images: &[&Image],
        suite: Suite,
    ) -> Result<Contents, Box<dyn Error>> {
        let progress = Progress::new();
        let stage = |number: usize, text: &str| progress.stage(number, STAGES, text);
        let [wheels, debs, archives, book] =
            ["wheels", "packages", "images", "book"].map(|what| self.workshop.place_for(what));
        for place in [&wheels, &debs, &archives, &book] {
            if place.exists() {
                std::fs::remove_dir_all(place)?;
            }
        }
        let pool = self.call.pool.open(&self.call.mirror);
        // What may be missing elsewhere comes first: whether it is there has nothing to do with what is built.
        stage(1, "taking packages of Debian, and tools");
        super::image::take(&pool, &self.lock.of_images(images), &progress)?;
        self.workshop.prepare()?;
        stage(2, "the command, which asks plugins who they are");
        let tell = |step: &Step| progress.step(step.done, step.all, &step.text);
        let workshop = self.workshop.clone().with_command(Some(self.workshop.command(self.matrix, &tell)?));
        stage(3, "wheels");
        let effort = if self.call.quick { Effort::Usual } else { Effort::Most };
        let outcome = workshop.build(plan, &wheels, effort, &tell)?;
        if let Some(note) = outcome.notes.first() {
            return Err(note.clone().into());
        }
        stage(4, "packages for Debian");
        workshop.packages(package_plan, &debs, &tell)?;
        stage(5, "images");
        let own = Own::of_directory(&debs, &self.images.debian.architecture)?;
        let scratch = self.workshop.place_for("scratch");
        let mut layers = ImageWorkshop::new(self.images, self.lock, &pool, &own, &scratch);
        let mut made = Vec::new();
        for (done, image) in images.iter().enumerate() {
            let name = layers.name(image)?;
            let tell = |layer: &str| progress.step(done, images.len(), &format!("{name}, layer {layer}"));
            let finished = layers.make(image, &archives, false, &tell)?;
            let (ours, debian) = layers.packages(image)?;
            made.push((finished.file, Bill::of_image(&ours, &debian)?));
        }
        stage(6, "the book");
        self.workshop.book(&book)?;
        stage(7, "whether everything goes together");
        let mut found = Found::default();
        for (file, _) in &outcome.wheels {
            found.wheel(self.matrix, file)?;
        }
        for file in Repository::files(&debs)? {
            found.package(self.matrix, self.packages, &file)?;
        }
        for (file, _) in &made {
            found.image(self.matrix, self.packages, self.images, self.lock, file)?;
        }
        found.check_sets(self.packages)?;
        found.same()?;
        let count = |done, all| progress.count(done, all, "reading what was built");
        Ok(Contents {
            wheels: Index::of_directory(&wheels, self.matrix, &[].into(), count)?
                .hosted_at(&wheels_at(self.host))?,
            packages: Repository::of_files(&Repository::files(&debs)?, count)?,
            suite,
            images: made,
            book,
            materials: self.workshop.materials(self.lock)?,
        })
    }
}

fn show_plan(plan: &Plan<'_>, packages: &PackagePlan<'_>, about: &About<'_>, json: bool) {
    let wheels: Vec<String> = plan.rows().iter().map(|row| row.name.to_string()).collect();
    let packages: Vec<&str> = packages.names().collect();
    if json {
        say!(
            "{:#}",
            json!({ "source": about.source.name(), "wheels": wheels, "packages": packages, "images": about.images })
        );
        return;
    }
    say!("would release {} of {}", about.version, about.source.name());
    wheels.iter().for_each(|name| say!("would build {name}"));
    packages.iter().for_each(|name| say!("would build the package {name}"));
    about.images.iter().for_each(|name| say!("would build the image {name}"));
}

fn show(call: &Call, about: &About<'_>, items: &[Item], began: Instant, json: bool) {
    let took = began.elapsed().as_secs_f64();
    if json {
        let said =
            json!({ "release": call.out, "source": about.source.name(), "files": items, "seconds": took });
        say!("{said:#}");
        return;
    }
    let all = |kind: Kind| items.iter().filter(move |item| item.kind == kind);
    for (kind, name) in [(Kind::Wheel, "wheel"), (Kind::Package, "package"), (Kind::Image, "image")] {
        let bytes: u64 = all(kind).map(|item| item.bytes).sum();
        say!("{}, {:.1} MB", counted(all(kind).count(), name), bytes as f64 / 1e6);
    }
    if call.host.is_none() {
        say!("note: nobody is at {NOWHERE}, which it names; `--host URL` says where it will be");
    }
    let what = if about.source.tag.is_some() { "the release" } else { "a rehearsal of the release" };
    say!(
        "{} is {what} {} of {}, built in {took:.0} s",
        call.out.display(),
        about.version,
        about.source.name()
    );
}
