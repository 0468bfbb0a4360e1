//! Where images are made: their layers laid out one over the other, each once for all images that begin with the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::archive;
use super::bytecode;
use super::config::{Config, Described};
use super::dockerfile;
use super::images::{Image, Images};
use super::layer::Packed;
use super::loader;
use super::lock::{self, Lock, Locked};
use super::name::Name;
use super::own::Own;
use super::pool::Pool;
use super::root::Root;
use crate::deb::Package;
use crate::error::Error;
use crate::file;
use crate::place::Place;

/// What images are made of, and where.
pub struct Workshop<'w> {
    images: &'w Images,
    lock: &'w Lock,
    pool: &'w Pool,
    own: &'w Own,
    repository: &'w str,
    /// The time that everything is of, in seconds since 1970.
    seconds: u64,
    /// A directory for what is needed for a moment.
    scratch: PathBuf,
    /// What was made already, by the names of the layers up to it.
    stages: BTreeMap<Vec<&'w str>, Rc<Stage>>,
}

/// A directory from which an engine makes an image.
const PLACE: Place = Place { list: ".oarlock-image", one: "an image", none: "no image" };

/// A root after a layer, and that layer.
struct Stage {
    root: Root,
    packed: Packed,
}

/// An image that was made.
pub struct Finished {
    /// What it is called.
    pub name: Name,
    /// The file that holds it.
    pub file: PathBuf,
    /// The directory with the text from which an engine makes it, where that was asked for.
    pub dockerfile: Option<PathBuf>,
    /// The hash by which registries know it.
    pub digest: String,
    /// How many bytes its layers have, packed and not.
    pub layers: Vec<(String, u64, u64)>,
    /// How many it may have, packed.
    pub budget: u64,
}

impl Finished {
    /// How many bytes its layers have together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.layers.iter().map(|(_, packed, _)| packed).sum()
    }
}

impl<'w> Workshop<'w> {
    /// A workshop in a directory for what can be made again.
    #[must_use]
    pub fn new(images: &'w Images, lock: &'w Lock, pool: &'w Pool, own: &'w Own, target: &Path) -> Self {
        Self {
            images,
            lock,
            pool,
            own,
            repository: &images.name,
            seconds: lock.date,
            scratch: target.to_owned(),
            stages: BTreeMap::new(),
        }
    }

    /// The same for images that are called otherwise.
    #[must_use]
    pub fn called(self, repository: &'w str) -> Self {
        Self { repository, ..self }
    }

    /// The same in which everything is of another time than the lock.
    #[must_use]
    pub fn of_time(self, seconds: u64) -> Self {
        Self { seconds, ..self }
    }

    /// The packages of our own that an image needs and that are not there.
    ///
    /// # Errors
    ///
    /// When it names a layer that there is not.
    pub fn missing(&self, image: &Image) -> Result<Vec<&'w str>, Error> {
        Ok(self.images.own_of(image)?.into_iter().filter(|name| !self.own.has(name)).collect())
    }

    /// What an image is called.
    ///
    /// # Errors
    ///
    /// When a package is missing, or no engine would take the name.
    pub fn name(&self, image: &Image) -> Result<Name, Error> {
        let own = self.images.own_of(image)?;
        let version = match own.is_empty() {
            // Tools go with the sources that this is built of.
            true => env!("CARGO_PKG_VERSION").to_owned(),
            false => self.own.version(own.into_iter())?,
        };
        // Tags have no room for all that versions have.
        Name::new(self.repository, &format!("{}{}", version.replace(['+', '~'], "-"), image.suffix))
    }

    /// The packages of Debian that images are made of.
    #[must_use]
    pub fn needed(&self, images: &[&Image]) -> Vec<&'w Locked> {
        self.lock.of_images(images)
    }

    /// The packages of an image: ours, and those of Debian.
    ///
    /// # Errors
    ///
    /// When one of ours is missing or broken.
    pub fn packages(&self, image: &Image) -> Result<(Vec<Package>, Vec<&'w Locked>), Error> {
        let own = self
            .images
            .own_of(image)?
            .into_iter()
            .map(|name| self.own.take(name))
            .collect::<Result<_, _>>()?;
        Ok((own, self.needed(&[image])))
    }

    /// Makes an image, as a file in a directory and, where that is asked for, as a directory beside it from which an engine makes
    /// it. `tell` hears of each layer that is laid out. Nothing is written before all of it is there.
    ///
    /// # Errors
    ///
    /// When a package is missing or broken, does not fit the others, or the image is larger than it may be.
    pub fn make(
        &mut self,
        image: &'w Image,
        out: &Path,
        with_dockerfile: bool,
        tell: &dyn Fn(&str),
    ) -> Result<Finished, Error> {
        let name = self.name(image)?;
        let file = out.join(name.file());
        let directory = file.with_extension("");
        if with_dockerfile {
            // Before anything that takes long.
            PLACE.check(&directory)?;
        }
        let layers: Vec<&str> = image.layers.iter().map(String::as_str).collect();
        let mut stages = Vec::new();
        for count in 1..=layers.len() {
            stages.push(self.stage(&layers[..count], tell)?);
        }
        self.check(image, &stages)?;
        let mut described = Vec::new();
        for (layer, stage) in layers.iter().zip(&stages) {
            let purpose = &self.images.layer(layer)?.purpose;
            described.push(Described { name: layer, purpose, packed: &stage.packed });
        }
        let version = name.tag().strip_suffix(image.suffix.as_str()).unwrap_or(name.tag());
        let config = Config::of(self.images, image, version, self.seconds)?;
        let archive = archive::write(&name, &config, &described)?;
        let finished = Finished {
            dockerfile: with_dockerfile.then_some(directory),
            file,
            digest: archive.digest,
            layers: described
                .iter()
                .map(|it| (it.name.to_owned(), it.packed.bytes.len() as u64, it.packed.unpacked))
                .collect(),
            budget: image.budget_mb * 1_000_000,
            name,
        };
        if finished.bytes() > finished.budget {
            let sizes = finished
                .layers
                .iter()
                .map(|(name, bytes, _)| format!("`{name}` {:.1} MB", *bytes as f64 / 1e6));
            return Err(Error::new(format!(
                "`{}`: expected at most {} MB, packed; found {:.1} MB: {}",
                finished.name,
                image.budget_mb,
                finished.bytes() as f64 / 1e6,
                sizes.collect::<Vec<_>>().join(", ")
            )));
        }
        file::write(&finished.file, &archive.bytes)?;
        if let Some(directory) = &finished.dockerfile {
            let text = dockerfile::render(&finished.name, &config, &described)?;
            PLACE.write(directory, |files| {
                for layer in &described {
                    files.write(&dockerfile::file_of(layer.name), &layer.packed.bytes)?;
                }
                files.write(dockerfile::FILE, text.as_bytes())
            })?;
        }
        Ok(finished)
    }

    /// The root after the last of some layers.
    fn stage(&mut self, layers: &[&'w str], tell: &dyn Fn(&str)) -> Result<Rc<Stage>, Error> {
        if let Some(stage) = self.stages.get(layers) {
            return Ok(Rc::clone(stage));
        }
        let Some((name, below)) = layers.split_last() else {
            return Err(Error::new("expected a layer, found none"));
        };
        tell(name);
        let layer = self.images.layer(name)?;
        let (before, mut root) = match self.stages.get(below) {
            Some(stage) => (stage.root.tree().clone(), stage.root.clone()),
            None => (crate::tree::Tree::default(), Root::new()?),
        };
        if let Some(root) =
            layer.debian.iter().find(|root| !self.lock.of_layer(name).any(|it| it.name == **root))
        {
            return Err(Error::new(format!(
                "expected `{root}` among the packages of the layer `{name}`, found none: run `oarlock-pack image lock`"
            ))
            .of_file(lock::FILE));
        }
        let is_below = |package: &&Locked| package.layers.iter().any(|it| below.contains(&it.as_str()));
        let left_out = self.images.left_out(layer.kind);
        for package in self.lock.of_layer(name).filter(|package| !is_below(package)) {
            let read = Package::read(&self.pool.take(package)?);
            let read = read.map_err(|error| error.of_file(package.file()))?;
            root.install(read, &left_out)?;
        }
        for package in &layer.own {
            root.install(self.own.take(package)?, &left_out)?;
        }
        if layer.entry {
            root.put_entry(layer.kind)?;
        }
        if layer.notebook {
            root.put_notebook()?;
        }
        root.settle()?;
        root.link(&layer.links)?;
        let new = root.tree().beyond(&before);
        root.lay(bytecode::of_modules(root.tree(), &new, &self.scratch)?)?;
        root.lay(loader::list(root.tree(), &self.scratch)?)?;
        let packed = Packed::new(&root.tree().beyond(&before), self.seconds, layer.kind)?;
        let stage = Rc::new(Stage { root, packed });
        self.stages.insert(layers.to_vec(), Rc::clone(&stage));
        Ok(stage)
    }

    /// That our own packages find all that they depend on.
    fn check(&self, image: &Image, stages: &[Rc<Stage>]) -> Result<(), Error> {
        let Some(last) = stages.last() else { return Ok(()) };
        for name in self.images.own_of(image)? {
            let lacking = last.root.lacks(name, &self.images.debian.left_out)?;
            if let Some(lacking) = lacking.first() {
                return Err(Error::new(format!(
                    "`{name}` depends on `{lacking}`, which no layer of the image `{}` has: name it there, and run \
                     `oarlock-pack image lock`",
                    image.label()
                ))
                .of_file("packaging/images.toml"));
            }
        }
        Ok(())
    }
}
