//! Verifies published files across formats: a part must have the same bytes in every wheel, package and image. Sizes must be
//! within limits, and images must contain exactly their packages.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use oarlock_formats::deb::DebPackage;
use oarlock_formats::digest::sha256_hex;
use oarlock_formats::error::Error;
use oarlock_formats::wheel::Wheel;
use oarlock_image::image_reader::LoadedImage;
use oarlock_image::images::{ImageCatalog, ImageSpec};
use oarlock_image::{ImageSources, contents};
use oarlock_matrix::{MatrixRow, WheelMatrix};

use crate::build_plan::{CORE_LIBRARY_PREFIX, CORE_PART, recipe_for_part};
use crate::check;
use crate::packages::{self, PackageCatalog, PackageContent, PackagePart};
use oarlock_formats::library_needs::is_compiled;

/// Parts that were found, by build settings such as `cpu for glibc 2.28`.
#[derive(Debug, Default)]
pub struct FoundParts {
    parts: BTreeMap<String, Vec<PartLocation>>,
    /// The packages with their sizes in bytes.
    packages: Vec<(PathBuf, u64)>,
    /// The files of our own packages, by package name.
    shipped: BTreeMap<String, Vec<PackageFiles>>,
}

/// The files of one of our packages, in its own archive or installed in an image.
#[derive(Debug)]
struct PackageFiles {
    file: PathBuf,
    is_image: bool,
    /// The architecture by Debian's name; that of a package may be `all`.
    architecture: String,
    /// File hashes by path.
    files: BTreeMap<String, String>,
}

impl PackageFiles {
    /// True for a package that an image for its architecture may contain.
    fn is_package_for(&self, image: &Self) -> bool {
        !self.is_image && [image.architecture.as_str(), "all"].contains(&self.architecture.as_str())
    }

    /// A file that differs between this package and an image, if any.
    fn first_difference<'i>(&self, image: &'i Self) -> Option<&'i String> {
        let is_other = |(path, hash): &(&String, &String)| self.files.get(*path) != Some(*hash);
        image.files.iter().find(is_other).map(|(path, _)| path)
    }
}

/// An occurrence of a part.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PartLocation {
    /// The wheel, package or image.
    pub file: PathBuf,
    /// The SHA-256 of the part in it.
    pub sha256: String,
}

/// A part with the same bytes everywhere.
#[derive(Debug)]
pub struct IdenticalPart<'f> {
    /// Its build settings.
    pub part: &'f str,
    /// The SHA-256 of its bytes.
    pub sha256: &'f str,
    /// The files that contain it.
    pub places: Vec<&'f Path>,
}

impl FoundParts {
    /// Adds a wheel of the matrix.
    ///
    /// # Errors
    ///
    /// When it is not a wheel, or differs from its row.
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

    /// Adds a Debian package.
    ///
    /// # Errors
    ///
    /// When it is damaged, or has compiled files that the catalog does not list.
    pub fn add_package(
        &mut self,
        matrix: &WheelMatrix,
        packages: &PackageCatalog,
        file: &Path,
    ) -> Result<(), Error> {
        let package = DebPackage::read_file(file)?;
        self.packages.push((file.to_owned(), file.metadata()?.len()));
        let name = package.name()?.to_owned();
        // Debug packages contain stripped-off data, and packages from elsewhere are not checked.
        let Some(about) = packages.packages.iter().find(|about| about.name == name) else { return Ok(()) };
        let named = package.control.get("Architecture").unwrap_or_default();
        self.add_package_files(&name, file, false, named, package.contents.files());
        let compiled = package.contents.files().filter(|(_, bytes)| is_compiled(bytes));
        let compiled: Vec<&[u8]> = compiled.map(|(_, bytes)| bytes).collect();
        let architecture = named.parse().unwrap_or_default();
        let parts: Vec<&PackagePart> =
            about.contents.iter().filter_map(PackageContent::compiled_part).collect();
        if compiled.len() != parts.len() {
            let (wanted, found) = (parts.len(), compiled.len());
            return Err(Error::new(format!("expected {wanted} compiled files in `{name}`, found {found}"))
                .in_file(file.display()));
        }
        compiled.iter().zip(parts).try_for_each(|(bytes, part)| {
            self.add_part(matrix, matrix.core_row(architecture, part.without_avx)?, &part.part, file, bytes)
        })
    }

    /// Adds an image archive, and checks for each architecture in it the size, the contents, and the files of our packages.
    ///
    /// # Errors
    ///
    /// When it is not one of our images, was modified, is too large, or has unexpected contents.
    pub fn add_image(
        &mut self,
        matrix: &WheelMatrix,
        packages: &PackageCatalog,
        sources: &[ImageSources],
        file: &Path,
    ) -> Result<(), Error> {
        let of_file = |error: Error| error.in_file(file.display());
        let bytes = std::fs::read(file).map_err(Error::from).map_err(of_file)?;
        for found in LoadedImage::read_archive(&bytes).map_err(of_file)? {
            self.add_loaded_image(matrix, packages, sources, file, &found)?;
        }
        Ok(())
    }

    /// Adds an image for one architecture.
    fn add_loaded_image(
        &mut self,
        matrix: &WheelMatrix,
        packages: &PackageCatalog,
        sources: &[ImageSources],
        file: &Path,
        found: &LoadedImage,
    ) -> Result<(), Error> {
        let look = || {
            let architecture = found.architecture()?;
            let ImageSources { images, lock } =
                sources.iter().find(|it| it.images.architecture == architecture).ok_or_else(|| {
                    let architecture = architecture.debian_name();
                    Error::new(format!(
                        "expected an architecture that there are images for, found {architecture}"
                    ))
                })?;
            let image = images.image_of_tag(&found.tag).ok_or_else(|| unknown_image(images, &found.tag))?;
            check_image_size(image, found.packed_bytes())?;
            let tree = contents::ExpectedImage { images, image, lock }.check_image(found)?;
            Ok((images, image, tree))
        };
        let (images, image, tree) = look().map_err(|error: Error| error.in_file(file.display()))?;
        let architecture = images.architecture;
        let version = matrix.core_row(architecture, false)?.name.version.to_string();
        for name in images.own_packages(image)? {
            let files = contents::package_files(&tree, name);
            self.add_package_files(name, file, true, architecture.debian_name(), files);
            let about = packages.packages.iter().find(|about| about.name == name);
            for content in about.iter().flat_map(|about| &about.contents) {
                let PackageContent::Part { compiled: part, at } = content else { continue };
                let mut path = packages::fill_path(at, &version, architecture);
                if part.part == CORE_PART {
                    path += &format!("/{CORE_LIBRARY_PREFIX}abi3.so");
                }
                let missing = || {
                    let message = format!("expected `{path}` in the image, found none");
                    Error::new(message).in_file(file.display())
                };
                let bytes = tree.file_bytes(&path).ok_or_else(missing)?;
                self.add_part(
                    matrix,
                    matrix.core_row(architecture, part.without_avx)?,
                    &part.part,
                    file,
                    bytes,
                )?;
            }
        }
        Ok(())
    }

    /// Checks the total size of each set of packages.
    ///
    /// # Errors
    ///
    /// When a set exceeds its limit.
    pub fn check_sets(&self, packages: &PackageCatalog) -> Result<(), Error> {
        packages.check_set_sizes(&self.packages)
    }

    fn add_part(
        &mut self,
        matrix: &WheelMatrix,
        row: &MatrixRow,
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
        architecture: &str,
        files: impl Iterator<Item = (P, &'b [u8])>,
    ) {
        let files = files.map(|(path, bytes)| (path.into(), sha256_hex(bytes))).collect();
        self.shipped.entry(name.to_owned()).or_default().push(PackageFiles {
            file: file.to_owned(),
            is_image,
            architecture: architecture.to_owned(),
            files,
        });
    }

    /// Checks that the files of our packages in images equal those in the packages. Images may leave files out.
    fn check_image_files(&self) -> Result<(), Error> {
        for (name, all) in &self.shipped {
            for image in all.iter().filter(|it| it.is_image) {
                let packages = all.iter().filter(|it| it.is_package_for(image));
                let others: Vec<_> =
                    packages.map(|package| (package, package.first_difference(image))).collect();
                // With several versions of a package, the image has one of them.
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

    /// All parts, provided that each is identical everywhere and that images contain our packages unchanged.
    ///
    /// # Errors
    ///
    /// When a part differs; the error names the files.
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

/// The error for a tag without an image in the catalog.
fn unknown_image(images: &ImageCatalog, tag: &str) -> Error {
    let labels: Vec<&str> = images.images.iter().map(ImageSpec::label).collect();
    Error::new(format!(
        "expected an image with one of the suffixes {}; found the tag `{tag}`",
        labels.join(", ")
    ))
}

/// Checks the compressed size of an image against its limit.
fn check_image_size(image: &ImageSpec, packed: u64) -> Result<(), Error> {
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
