//! Builds images layer by layer; images that start with the same layers share them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use oarlock_formats::deb::DebPackage;
use oarlock_formats::error::Error;
use oarlock_formats::file;
use oarlock_formats::output_directory::DirectoryKind;
use oarlock_matrix::CpuArchitecture;

use super::archive;
use super::bytecode;
use super::config::{DescribedLayer, ImageConfig};
use super::dockerfile;
use super::image_root::ImageRoot;
use super::images::{self, ImageCatalog, ImageSpec};
use super::layer::PackedLayer;
use super::loader;
use super::local_packages::LocalPackages;
use super::lock::{self, DebianLock, LockedPackage};
use super::name::ImageName;
use super::package_cache::PackageCache;

/// Builds images from packages.
pub struct ImageBuilder<'w> {
    images: &'w ImageCatalog,
    lock: &'w DebianLock,
    pool: &'w PackageCache,
    own: &'w LocalPackages,
    repository: &'w str,
    /// The time of everything in the images, in seconds since 1970.
    seconds: u64,
    /// The directory for temporary files.
    scratch: PathBuf,
    /// Runs programs of the images, if they are for another architecture than this machine's.
    runner: Option<PathBuf>,
    /// Finished stages, by the names of the layers up to each.
    stages: BTreeMap<Vec<&'w str>, Rc<LayerStage>>,
}

/// A directory with a Dockerfile and its layers.
const IMAGE_DIRECTORY: DirectoryKind =
    DirectoryKind { list: ".oarlock-image", one: "an image", none: "no image" };

/// The file system after a layer, and that layer.
struct LayerStage {
    root: ImageRoot,
    packed: PackedLayer,
}

/// An image that was built.
pub struct FinishedImage {
    /// The name and tag.
    pub name: ImageName,
    /// The architecture of its programs.
    pub architecture: CpuArchitecture,
    /// The archive.
    pub file: PathBuf,
    /// The directory with the Dockerfile, if it was requested.
    pub dockerfile: Option<PathBuf>,
    /// The digest that identifies it in registries.
    pub digest: String,
    /// Name, compressed size and uncompressed size of each layer, in bytes.
    pub layers: Vec<(String, u64, u64)>,
    /// The limit on the compressed size, in bytes.
    pub budget: u64,
}

impl FinishedImage {
    /// The total compressed size of the layers, in bytes.
    #[must_use]
    pub fn layer_bytes(&self) -> u64 {
        self.layers.iter().map(|(_, packed, _)| packed).sum()
    }
}

impl<'w> ImageBuilder<'w> {
    /// Creates a builder; build output goes to `target`.
    #[must_use]
    pub fn new(
        images: &'w ImageCatalog,
        lock: &'w DebianLock,
        pool: &'w PackageCache,
        own: &'w LocalPackages,
        target: &Path,
    ) -> Self {
        Self {
            images,
            lock,
            pool,
            own,
            repository: &images.name,
            seconds: lock.date,
            scratch: target.to_owned(),
            runner: None,
            stages: BTreeMap::new(),
        }
    }

    /// Uses another repository name.
    #[must_use]
    pub fn with_repository(self, repository: &'w str) -> Self {
        Self { repository, ..self }
    }

    /// Uses a timestamp other than that of the lock.
    #[must_use]
    pub fn with_time(self, seconds: u64) -> Self {
        Self { seconds, ..self }
    }

    /// Sets a program that runs those of the images, which this machine cannot run itself.
    pub fn set_runner(&mut self, runner: Option<PathBuf>) {
        self.runner = runner;
    }

    /// The catalog that it builds from.
    #[must_use]
    pub fn catalog(&self) -> &'w ImageCatalog {
        self.images
    }

    /// Our own packages that an image needs and that have not been built.
    ///
    /// # Errors
    ///
    /// When the image names an unknown layer.
    pub fn missing_packages(&self, image: &ImageSpec) -> Result<Vec<&'w str>, Error> {
        Ok(self.images.own_packages(image)?.into_iter().filter(|name| !self.own.has_package(name)).collect())
    }

    /// The name and tag of an image.
    ///
    /// # Errors
    ///
    /// When a package is missing, or engines would reject the name.
    pub fn image_name(&self, image: &ImageSpec) -> Result<ImageName, Error> {
        let own = self.images.own_packages(image)?;
        let version = match own.is_empty() {
            // Build images contain none of our packages; they have the version of these sources.
            true => env!("CARGO_PKG_VERSION").to_owned(),
            false => self.own.upstream_version(own.into_iter())?,
        };
        // Tags allow fewer characters than versions.
        ImageName::new(self.repository, &format!("{}{}", version.replace(['+', '~'], "-"), image.suffix))
    }

    /// The Debian packages that images contain.
    #[must_use]
    pub fn debian_packages(&self, images: &[&ImageSpec]) -> Vec<&'w LockedPackage> {
        self.lock.packages_of_images(images)
    }

    /// The packages of an image: our own, and those of Debian.
    ///
    /// # Errors
    ///
    /// When one of our own is missing or damaged.
    pub fn packages_of_image(
        &self,
        image: &ImageSpec,
    ) -> Result<(Vec<DebPackage>, Vec<&'w LockedPackage>), Error> {
        let own = self
            .images
            .own_packages(image)?
            .into_iter()
            .map(|name| self.own.read_package(name))
            .collect::<Result<_, _>>()?;
        Ok((own, self.debian_packages(&[image])))
    }

    /// Builds an image as an archive in a directory and, on request, a directory with a Dockerfile beside it. `tell` is called
    /// for each layer. Nothing is written before the image is complete.
    ///
    /// # Errors
    ///
    /// When a package is missing, damaged or incompatible, or the image exceeds its size limit.
    pub fn build_image(
        &mut self,
        image: &'w ImageSpec,
        out: &Path,
        with_dockerfile: bool,
        tell: &dyn Fn(&str),
    ) -> Result<FinishedImage, Error> {
        let name = self.image_name(image)?;
        let file = out.join(name.archive_file_name(self.images.architecture));
        let directory = file.with_extension("");
        if with_dockerfile {
            // Fail early if the directory may not be replaced.
            IMAGE_DIRECTORY.check_directory(&directory)?;
        }
        let layers: Vec<&str> = image.layers.iter().map(String::as_str).collect();
        let mut stages = Vec::new();
        for count in 1..=layers.len() {
            stages.push(self.build_stage(&layers[..count], tell)?);
        }
        self.check_dependencies(image, &stages)?;
        let mut described = Vec::new();
        for (layer, stage) in layers.iter().zip(&stages) {
            let purpose = &self.images.find_layer(layer)?.purpose;
            described.push(DescribedLayer { name: layer, purpose, packed: &stage.packed });
        }
        let version = name.tag().strip_suffix(image.suffix.as_str()).unwrap_or(name.tag());
        let config = ImageConfig::for_image(self.images, image, version, self.seconds)?;
        let archive = archive::write_archive(&name, &config, &described)?;
        let finished = FinishedImage {
            architecture: self.images.architecture,
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
        if finished.layer_bytes() > finished.budget {
            let sizes = finished
                .layers
                .iter()
                .map(|(name, bytes, _)| format!("`{name}` {:.1} MB", *bytes as f64 / 1e6));
            return Err(Error::new(format!(
                "`{}`: expected at most {} MB, packed; found {:.1} MB: {}",
                finished.name,
                image.budget_mb,
                finished.layer_bytes() as f64 / 1e6,
                sizes.collect::<Vec<_>>().join(", ")
            )));
        }
        file::write_file(&finished.file, &archive.bytes)?;
        if let Some(directory) = &finished.dockerfile {
            let text = dockerfile::render_dockerfile(&finished.name, &config, &described)?;
            IMAGE_DIRECTORY.write_directory(directory, |files| {
                for layer in &described {
                    files.write_file(&dockerfile::layer_file_name(layer.name), &layer.packed.bytes)?;
                }
                files.write_file(dockerfile::DOCKERFILE_NAME, text.as_bytes())
            })?;
        }
        Ok(finished)
    }

    /// The stage after the last of these layers, built or reused.
    fn build_stage(&mut self, layers: &[&'w str], tell: &dyn Fn(&str)) -> Result<Rc<LayerStage>, Error> {
        if let Some(stage) = self.stages.get(layers) {
            return Ok(Rc::clone(stage));
        }
        let Some((name, below)) = layers.split_last() else {
            return Err(Error::new("expected a layer, found none"));
        };
        tell(name);
        let layer = self.images.find_layer(name)?;
        let (before, mut root) = match self.stages.get(below) {
            Some(stage) => (stage.root.tree().clone(), stage.root.clone()),
            None => (oarlock_formats::tree::FileTree::default(), ImageRoot::new()?),
        };
        if let Some(root) =
            layer.debian.iter().find(|root| !self.lock.packages_of_layer(name).any(|it| it.name == **root))
        {
            return Err(Error::new(format!(
                "expected `{root}` among the packages of the layer `{name}`, found none: run `oarlock-pack image lock`"
            ))
            .in_file(lock::lock_path(self.images.architecture)));
        }
        let is_below =
            |package: &&LockedPackage| package.layers.iter().any(|it| below.contains(&it.as_str()));
        let left_out = self.images.excluded_paths(layer.kind);
        for package in self.lock.packages_of_layer(name).filter(|package| !is_below(package)) {
            let read = DebPackage::from_bytes(&self.pool.read_package(package)?);
            let read = read.map_err(|error| error.in_file(package.file_name()))?;
            root.install_package(read, &left_out)?;
        }
        for package in &layer.own {
            root.install_package(self.own.read_package(package)?, &left_out)?;
        }
        if layer.entry {
            root.put_entry_point(layer.kind)?;
        }
        if layer.notebook {
            root.put_notebook()?;
        }
        root.finish_layer()?;
        root.add_links(&layer.links)?;
        let new = root.tree().difference_from(&before);
        let runner = self.runner.as_deref();
        root.overlay_tree(bytecode::compile_bytecode(root.tree(), &new, &self.scratch, runner)?)?;
        root.overlay_tree(loader::build_loader_cache(root.tree(), &self.scratch, runner)?)?;
        let packed = PackedLayer::new(&root.tree().difference_from(&before), self.seconds, layer.kind)?;
        let stage = Rc::new(LayerStage { root, packed });
        self.stages.insert(layers.to_vec(), Rc::clone(&stage));
        Ok(stage)
    }

    /// Checks that the dependencies of our own packages are installed.
    fn check_dependencies(&self, image: &ImageSpec, stages: &[Rc<LayerStage>]) -> Result<(), Error> {
        let Some(last) = stages.last() else { return Ok(()) };
        for name in self.images.own_packages(image)? {
            let lacking = last.root.missing_dependencies(name, &self.images.debian.left_out)?;
            if let Some(lacking) = lacking.first() {
                return Err(Error::new(format!(
                    "`{name}` depends on `{lacking}`, which no layer of the image `{}` has: name it there, and run \
                     `oarlock-pack image lock`",
                    image.label()
                ))
                .in_file(images::CATALOG_PATH));
            }
        }
        Ok(())
    }
}
