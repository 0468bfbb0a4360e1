//! Selects the images that `oarlock-pack image` makes.

use std::error::Error;
use std::path::Path;

use oarlock_image::image_builder::ImageBuilder;
use oarlock_image::images::{ImageKind, ImageSpec};
use oarlock_image::lock::LockedPackage;

/// An image to make, and the number of the builder for its architecture.
pub(super) type ChosenImage<'w> = (usize, &'w ImageSpec);

/// The images to make, and those that lack packages, with the names of these.
#[derive(Default)]
pub(super) struct ImageSelection<'w> {
    pub(super) wanted: Vec<ChosenImage<'w>>,
    pub(super) passed_over: Vec<(ChosenImage<'w>, Vec<&'w str>)>,
}

impl<'w> ImageSelection<'w> {
    /// Selects the images with these names for each builder's architecture. Without a name, it selects those to run programs, and
    /// with `all` those for building too: they are large, and few users want them.
    pub(super) fn of_names(
        names: &[String],
        all: bool,
        builders: &[ImageBuilder<'w>],
    ) -> Result<Self, Box<dyn Error>> {
        let is_unknown = |name: &&String| builders.iter().all(|it| it.catalog().find_image(name).is_none());
        if let (Some(unknown), Some(first)) = (names.iter().find(is_unknown), builders.first()) {
            // Says which names there are.
            first.catalog().select_images(std::slice::from_ref(unknown))?;
        }
        let mut selection = Self::default();
        for (number, builder) in builders.iter().enumerate() {
            let catalog = builder.catalog();
            let known: Vec<String> =
                names.iter().filter(|name| catalog.find_image(name).is_some()).cloned().collect();
            if known.is_empty() && !names.is_empty() {
                continue;
            }
            for image in catalog.select_images(&known)? {
                if names.is_empty() && !all && catalog.kind_of_image(image)? == ImageKind::Dev {
                    continue;
                }
                let missing = builder.missing_packages(image)?;
                if missing.is_empty() {
                    builder.image_name(image)?;
                    selection.wanted.push((number, image));
                } else {
                    selection.passed_over.push(((number, image), missing));
                }
            }
        }
        Ok(selection)
    }

    /// Checks that there is an image to make: each that was named, for some architecture or for `every` one. `debs` is the directory
    /// of packages.
    pub(super) fn check_complete(&self, names: &[String], every: bool, debs: &Path) -> Result<(), String> {
        let is_wanted = |label: &str| self.wanted.iter().any(|(_, image)| image.label() == label);
        let is_error = |image: &ImageSpec| !names.is_empty() && (every || !is_wanted(image.label()));
        match self.passed_over.iter().find(|((_, image), _)| is_error(image)) {
            Some(((_, image), missing)) => Err(format!(
                "`{}`: expected the packages {} of the image `{}`, found none",
                debs.display(),
                quote_names(missing),
                image.label()
            )),
            None if self.wanted.is_empty() => Err(format!(
                "`{}`: expected the packages of an image, found those of none; `--list` says which each needs",
                debs.display()
            )),
            None => Ok(()),
        }
    }

    /// Forgets what lacks packages, except for architectures with some image, if no image was named.
    pub(super) fn forget_unexpected(&mut self, names: &[String]) {
        let Self { wanted, passed_over } = self;
        let is_made = |number: usize| wanted.iter().any(|(it, _)| *it == number);
        passed_over.retain(|((number, _), _)| names.is_empty() && is_made(*number));
    }
}

/// The Debian packages of images, each once.
pub(super) fn debian_packages<'w>(
    wanted: &[ChosenImage<'w>],
    builders: &[ImageBuilder<'w>],
) -> Vec<&'w LockedPackage> {
    let mut needed: Vec<&LockedPackage> =
        wanted.iter().flat_map(|(number, image)| builders[*number].debian_packages(&[image])).collect();
    needed.sort_by_key(|package| &package.path);
    needed.dedup_by_key(|package| &package.path);
    needed
}

pub(super) fn quote_names(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
