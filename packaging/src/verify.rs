//! Whether what is published in several forms is the same: of each part, the same bytes in every wheel, package and image that has
//! it; and whether all of it is as small as it has to be, and images are of the packages that they should be of, and of nothing else.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::build::{CORE_LIBRARY_PREFIX, CORE_PART, recipe_for_part};
use crate::check;
use crate::deb::DebPackage;
use crate::error::Error;
use crate::image::image_reader::LoadedImage;
use crate::image::images::ImageSpec as About;
use crate::image::{DebianLock, ImageCatalog, contents};
use crate::library::is_compiled;
use crate::matrix::{MatrixRow as Row, WheelMatrix};
use crate::packages::{self, PackageCatalog, PackageContent, PackagePart};
use crate::wheel::{Wheel, sha256_hex};

/// Parts as they were found, by how they are compiled, such as `cpu for glibc 2.28`.
#[derive(Debug, Default)]
pub struct FoundParts {
    parts: BTreeMap<String, Vec<PartLocation>>,
    /// The packages, with how many bytes each has.
    packages: Vec<(PathBuf, u64)>,
    /// The files of packages of ours, by the names of those.
    brought: BTreeMap<String, Vec<PackageFiles>>,
}

/// What a package of ours brought, where it lies or into an image.
#[derive(Debug)]
struct PackageFiles {
    file: PathBuf,
    is_image: bool,
    /// The hashes of its files by their paths.
    files: BTreeMap<String, String>,
}

impl PackageFiles {
    /// A file that an image has otherwise than this package, if there is one.
    fn first_difference<'i>(&self, image: &'i Self) -> Option<&'i String> {
        let is_other = |(path, hash): &(&String, &String)| self.files.get(*path) != Some(*hash);
        image.files.iter().find(is_other).map(|(path, _)| path)
    }
}

/// Where a part was found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PartLocation {
    /// The wheel, the package or the image.
    pub file: PathBuf,
    /// The hash of its bytes there.
    pub sha256: String,
}

/// A part, which is the same everywhere.
#[derive(Debug)]
pub struct IdenticalPart<'f> {
    /// How it is compiled.
    pub part: &'f str,
    /// The hash of its bytes.
    pub sha256: &'f str,
    /// Where it was found.
    pub places: Vec<&'f Path>,
}

impl FoundParts {
    /// Looks into a wheel of the matrix.
    ///
    /// # Errors
    ///
    /// When it is none, or not what its row says.
    pub fn add_wheel(&mut self, matrix: &WheelMatrix, file: &Path) -> Result<(), Error> {
        check::check_wheels(matrix, &[file])?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let Some(row) = matrix.wheels.iter().find(|row| row.name.to_string() == name) else { return Ok(()) };
        let wheel = Wheel::read_file(file)?;
        for (path, bytes) in wheel.files().filter(|(_, bytes)| is_compiled(bytes)) {
            let part = check::part_of_library(matrix, row, path);
            let part =
                part.ok_or_else(|| Error::new(format!("expected a part of the matrix, found `{path}`")))?;
            self.add_part(matrix, row, part, file, bytes)?;
        }
        Ok(())
    }

    /// Looks into a package for Debian.
    ///
    /// # Errors
    ///
    /// When it is broken, or has something compiled that is not told of it.
    pub fn add_package(
        &mut self,
        matrix: &WheelMatrix,
        packages: &PackageCatalog,
        file: &Path,
    ) -> Result<(), Error> {
        let package = DebPackage::read_file(file)?;
        self.packages.push((file.to_owned(), file.metadata()?.len()));
        let name = package.name()?.to_owned();
        // What debuggers want of it was cut off those bytes, and others' packages are others' business.
        let Some(about) = packages.packages.iter().find(|about| about.name == name) else { return Ok(()) };
        self.add_package_files(&name, file, false, package.contents.files());
        let compiled = package.contents.files().filter(|(_, bytes)| is_compiled(bytes));
        let compiled: Vec<&[u8]> = compiled.map(|(_, bytes)| bytes).collect();
        let parts: Vec<&PackagePart> =
            about.contents.iter().filter_map(PackageContent::compiled_part).collect();
        if compiled.len() != parts.len() {
            let (wanted, found) = (parts.len(), compiled.len());
            return Err(Error::new(format!("expected {wanted} compiled files in `{name}`, found {found}"))
                .in_file(file.display()));
        }
        compiled.iter().zip(parts).try_for_each(|(bytes, part)| {
            self.add_part(matrix, matrix.core_row(part.without_avx)?, &part.part, file, bytes)
        })
    }

    /// Looks into an image, as an archive: at how large it is, at all that is in it, and at what packages of ours have there.
    ///
    /// # Errors
    ///
    /// When it is no archive of an image of ours, was changed, is larger than it may be, or has not just what it should.
    pub fn add_image(
        &mut self,
        matrix: &WheelMatrix,
        packages: &PackageCatalog,
        images: &ImageCatalog,
        lock: &DebianLock,
        file: &Path,
    ) -> Result<(), Error> {
        let look = || {
            let found = std::fs::read(file)
                .map_err(Error::from)
                .and_then(|bytes| LoadedImage::read_archive(&bytes))?;
            let image = images.image_of_tag(&found.tag).ok_or_else(|| unknown_image(images, &found.tag))?;
            check_image_size(image, found.packed_bytes())?;
            let tree = contents::ExpectedImage { images, image, lock }.check_image(&found)?;
            Ok((image, tree))
        };
        let (image, tree) = look().map_err(|error: Error| error.in_file(file.display()))?;
        let version = matrix.core_row(false)?.name.version.to_string();
        for name in images.own_packages(image)? {
            self.add_package_files(name, file, true, contents::package_files(&tree, name));
            let about = packages.packages.iter().find(|about| about.name == name);
            for content in about.iter().flat_map(|about| &about.contents) {
                let PackageContent::Part { compiled: part, at } = content else { continue };
                let mut path = packages::fill_path(at, &version);
                if part.part == CORE_PART {
                    path += &format!("/{CORE_LIBRARY_PREFIX}abi3.so");
                }
                let missing = || {
                    let message = format!("expected `{path}` in the image, found none");
                    Error::new(message).in_file(file.display())
                };
                let bytes = tree.file_bytes(&path).ok_or_else(missing)?;
                self.add_part(matrix, matrix.core_row(part.without_avx)?, &part.part, file, bytes)?;
            }
        }
        Ok(())
    }

    /// That packages are together no larger than they may be.
    ///
    /// # Errors
    ///
    /// When a set of them is.
    pub fn check_sets(&self, packages: &PackageCatalog) -> Result<(), Error> {
        packages.check_set_sizes(&self.packages)
    }

    fn add_part(
        &mut self,
        matrix: &WheelMatrix,
        row: &Row,
        part: &str,
        file: &Path,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let place = PartLocation { file: file.to_owned(), sha256: sha256_hex(bytes) };
        self.parts.entry(recipe_for_part(matrix, row, part)?.to_string()).or_default().push(place);
        Ok(())
    }

    fn add_package_files<'b, P: Into<String>>(
        &mut self,
        name: &str,
        file: &Path,
        is_image: bool,
        files: impl Iterator<Item = (P, &'b [u8])>,
    ) {
        let files = files.map(|(path, bytes)| (path.into(), sha256_hex(bytes))).collect();
        self.brought.entry(name.to_owned()).or_default().push(PackageFiles {
            file: file.to_owned(),
            is_image,
            files,
        });
    }

    /// That images have of each package of ours what that brings. What it brings beside may be left out of them.
    fn check_image_files(&self) -> Result<(), Error> {
        for (name, all) in &self.brought {
            for image in all.iter().filter(|it| it.is_image) {
                let packages = all.iter().filter(|it| !it.is_image);
                let others: Vec<_> =
                    packages.map(|package| (package, package.first_difference(image))).collect();
                // Of packages of several versions an image has one.
                let has_one = others.iter().any(|(_, other)| other.is_none());
                let Some((package, Some(path))) = others.first().filter(|_| !has_one) else { continue };
                return Err(Error::new(format!(
                    "expected `{path}` as the package `{name}` in `{}` has it, found another one; make the image anew",
                    package.file.display()
                ))
                .in_file(image.file.display()));
            }
        }
        Ok(())
    }

    /// All parts, if each is the same wherever it was found, and so is all else that packages of ours brought into images.
    ///
    /// # Errors
    ///
    /// When one is not; the error says which files differ.
    pub fn identical_parts(&self) -> Result<Vec<IdenticalPart<'_>>, Error> {
        self.check_image_files()?;
        let mut all = Vec::new();
        for (part, places) in &self.parts {
            let Some(first) = places.first() else { continue };
            if let Some(other) = places.iter().find(|place| place.sha256 != first.sha256) {
                return Err(Error::new(format!(
                    "expected the same bytes of {part} everywhere, found {first} and {other}; build both anew of the same sources"
                )));
            }
            let places = places.iter().map(|place| place.file.as_path()).collect();
            all.push(IdenticalPart { part, sha256: &first.sha256, places });
        }
        Ok(all)
    }
}

/// Why nobody can say what an image should be.
fn unknown_image(images: &ImageCatalog, tag: &str) -> Error {
    let labels: Vec<&str> = images.images.iter().map(About::label).collect();
    Error::new(format!(
        "expected an image whose name ends in one of {}; found the tag `{tag}`",
        labels.join(", ")
    ))
}

/// That an image is not larger than it may be.
fn check_image_size(image: &About, packed: u64) -> Result<(), Error> {
    if packed <= image.budget_mb * 1_000_000 {
        return Ok(());
    }
    let (most, found) = (image.budget_mb, packed as f64 / 1e6);
    Err(Error::new(format!(
        "expected at most {most} MB, packed, of `{}`; found {found:.1} MB",
        image.label()
    )))
}

impl fmt::Display for PartLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in `{}`", self.sha256, self.file.display())
    }
}
