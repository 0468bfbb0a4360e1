//! Which images there are, as it is written down.
//!
//! ```toml
//! name = "oarlock"
//!
//! [debian]                                 # where the packages of Debian come from
//! suites = ["trixie", "trixie-security"]
//! architecture = "amd64"
//!
//! [debian.only]                            # suites of which nothing is taken but what is built of these sources
//! trixie-backports = ["rustc"]
//! "trixie/non-free" = ["nvidia-cuda-toolkit"]   # another part of a suite than `main`
//!
//! [debian.left_out]                        # what packages depend on and images to run programs do without
//! awk = "no script of a package is run"
//!
//! [[left_out]]                             # what packages bring and images do without
//! kinds = ["prod", "dev"]                  # those to run programs alone, where nothing is said
//! below = ["usr/share/man"]
//! why = "nobody reads manuals in a container"
//!
//! [layers.base]
//! purpose = "the C library"
//! debian = ["libc6"]                       # with all that they depend on
//!
//! [layers.library]
//! purpose = "the library"
//! own = ["liboarlock1"]
//!
//! [layers.compiler]
//! kind = "dev"                             # to build the sources with
//! purpose = "a compiler"
//! debian = ["gcc"]
//! links = { "usr/bin/cc" = "gcc" }         # what scripts of packages would make
//!
//! [[images]]
//! suffix = "-slim"
//! title = "the library alone"
//! layers = ["base", "library"]
//! budget_mb = 12
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::error::Error;

/// A file that describes images.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageCatalog {
    /// What they are called, before the colon.
    pub name: String,
    /// Where the packages of Debian come from.
    pub debian: DebianSources,
    /// What packages bring and images do without.
    #[serde(default)]
    pub left_out: Vec<ExcludedPaths>,
    /// What they are made of, by name.
    pub layers: BTreeMap<String, LayerSpec>,
    /// All of them.
    pub images: Vec<ImageSpec>,
}

/// Where packages of Debian come from, and which are not wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebianSources {
    /// The suites; of each package the newest is taken, whichever has it.
    pub suites: Vec<String>,
    /// Suites of which nothing is taken but what is built of these sources.
    #[serde(default)]
    pub only: BTreeMap<String, Vec<String>>,
    /// The kind of machine, as Debian calls it.
    pub architecture: String,
    /// What packages depend on and images to run programs do without, and why.
    #[serde(default)]
    pub left_out: BTreeMap<String, String>,
}

/// What an image is for.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum ImageKind {
    /// To run programs, with nothing in it that they do without.
    #[default]
    Prod,
    /// To build the sources, with all that packages depend on, so that `apt` can add to it.
    Dev,
}

/// Directories and files that images do without.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExcludedPaths {
    /// The kinds of images that do without them.
    #[serde(default = "default_excluded_kinds")]
    pub kinds: Vec<ImageKind>,
    /// Directories with all in them, or files.
    pub below: Vec<String>,
    /// What is kept nevertheless: files whose names begin so.
    #[serde(default)]
    pub but: Vec<String>,
    /// Why nobody misses it.
    pub why: String,
}

/// What an image is made of.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerSpec {
    /// What the images are for that have it.
    #[serde(default)]
    pub kind: ImageKind,
    /// What it is for.
    pub purpose: String,
    /// Packages of Debian, which bring what they depend on.
    #[serde(default)]
    pub debian: Vec<String>,
    /// Packages of our own.
    #[serde(default)]
    pub own: Vec<String>,
    /// Whether it brings the program that decides what a container does, for which it needs a shell.
    #[serde(default)]
    pub entry: bool,
    /// Links that scripts of its packages would make, by their paths.
    #[serde(default)]
    pub links: BTreeMap<String, String>,
    /// Whether it brings the tutorial as notebooks and the program that serves them, which a container then does.
    #[serde(default)]
    pub notebook: bool,
    /// Variables of the environment.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// An image.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageSpec {
    /// What stands behind the version in its tag, such as `-noavx`.
    pub suffix: String,
    /// What it is, in a few words.
    pub title: String,
    /// The names of its layers, from the lowest.
    pub layers: Vec<String>,
    /// Variables of the environment, beside those of its layers.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// How large it may be, packed, in millions of bytes.
    pub budget_mb: u64,
}

/// The images of Oarlock.
pub const OWN_IMAGES: &str = include_str!("../../images.toml");

impl ImageCatalog {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// When it is not such a file, or names what it does not have.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, Error> {
        let images: Self = toml::from_str(text).map_err(|error| Error::from_toml(file, text, &error))?;
        images.check_references().map_err(|error| error.in_file(file))?;
        Ok(images)
    }

    fn check_references(&self) -> Result<(), Error> {
        let mut suffixes = BTreeSet::new();
        for ImageSpec { suffix, layers, .. } in &self.images {
            if !suffixes.insert(suffix) {
                return Err(Error::new(format!("expected one image with the suffix `{suffix}`, found two")));
            }
            super::ImageName::new(&self.name, &format!("0{suffix}"))?;
            if layers.is_empty() {
                return Err(Error::new(format!("expected layers of the image `{suffix}`, found none")));
            }
            for layer in layers {
                self.find_layer(layer)?;
            }
            let kinds = layers.iter().filter_map(|layer| Some(self.layers.get(layer)?.kind));
            if kinds.clone().any(|kind| Some(kind) != kinds.clone().next()) {
                return Err(Error::new(format!(
                    "expected layers of one kind in the image `{suffix}`, found such to run programs and such to build them"
                )));
            }
        }
        let used: BTreeSet<&String> = self.images.iter().flat_map(|image| &image.layers).collect();
        match self.layers.keys().find(|layer| !used.contains(layer)) {
            Some(layer) => Err(Error::new(format!("expected an image with the layer `{layer}`, found none"))),
            None => Ok(()),
        }
    }

    /// A layer by its name.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn find_layer(&self, name: &str) -> Result<&LayerSpec, Error> {
        let layer = self.layers.get(name);
        layer.ok_or_else(|| Error::new(format!("expected the name of a layer, found `{name}`")))
    }

    /// The packages of our own in an image.
    ///
    /// # Errors
    ///
    /// When it names a layer that there is not.
    pub fn own_packages(&self, image: &ImageSpec) -> Result<Vec<&str>, Error> {
        let mut names = Vec::new();
        for layer in &image.layers {
            names.extend(self.find_layer(layer)?.own.iter().map(String::as_str));
        }
        Ok(names)
    }

    /// The image that a tag is of, whatever the version in it.
    #[must_use]
    pub fn image_of_tag(&self, tag: &str) -> Option<&ImageSpec> {
        let of_it = self.images.iter().filter(|image| tag.ends_with(&image.suffix));
        of_it.max_by_key(|image| image.suffix.len())
    }

    /// What an image is for.
    ///
    /// # Errors
    ///
    /// When it has no layers, or one that there is not.
    pub fn kind_of_image(&self, image: &ImageSpec) -> Result<ImageKind, Error> {
        Ok(self.find_layer(image.layers.first().map_or("", String::as_str))?.kind)
    }

    /// What packages bring and images of a kind do without.
    #[must_use]
    pub fn excluded_paths(&self, kind: ImageKind) -> Vec<&ExcludedPaths> {
        self.left_out.iter().filter(|it| it.kinds.contains(&kind)).collect()
    }

    /// The images whose suffixes these are, with or without the line in front, or all where none is said. The plain image is
    /// `plain`.
    ///
    /// # Errors
    ///
    /// When there is none with such a suffix.
    pub fn select_images(&self, wanted: &[String]) -> Result<Vec<&ImageSpec>, Error> {
        if wanted.is_empty() {
            return Ok(self.images.iter().collect());
        }
        let mut chosen: Vec<&ImageSpec> = Vec::new();
        for name in wanted {
            let image = self.images.iter().find(|image| image.label() == name.trim_start_matches('-'));
            let image = image.ok_or_else(|| {
                let labels: Vec<String> =
                    self.images.iter().map(|image| format!("`{}`", image.label())).collect();
                Error::new(format!("expected one of {}; found `{name}`", labels.join(", ")))
            })?;
            if !chosen.iter().any(|it| it.suffix == image.suffix) {
                chosen.push(image);
            }
        }
        Ok(chosen)
    }
}

impl DebianSources {
    /// All suites, also those of which little is taken.
    pub fn all_suites(&self) -> impl Iterator<Item = &String> {
        self.suites.iter().chain(self.only.keys())
    }
}

fn default_excluded_kinds() -> Vec<ImageKind> {
    vec![ImageKind::Prod]
}

impl ImageSpec {
    /// What it is called among the images.
    #[must_use]
    pub fn label(&self) -> &str {
        if self.suffix.is_empty() { "plain" } else { self.suffix.trim_start_matches('-') }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal_after(change: impl Fn(&str) -> String) -> String {
        let text = "name = \"x\"\n[debian]\nsuites = [\"s\"]\narchitecture = \"amd64\"\n\
                    [layers.base]\npurpose = \"p\"\n[[images]]\nsuffix = \"\"\ntitle = \"t\"\n\
                    layers = [\"base\"]\nbudget_mb = 1\n";
        assert!(ImageCatalog::from_toml("images.toml", text).is_ok());
        ImageCatalog::from_toml("images.toml", &change(text)).expect_err("a mistake").to_string()
    }

    #[test]
    fn a_mistake_is_named_with_its_file() {
        let unknown = refusal_after(|text| text.replace("[\"base\"]", "[\"other\"]"));
        assert_eq!(unknown, "`images.toml`: expected the name of a layer, found `other`");
        let unused =
            refusal_after(|text| text.replace("[[images]]", "[layers.more]\npurpose = \"q\"\n[[images]]"));
        assert!(unused.contains("expected an image with the layer `more`"), "{unused}");
        let name = refusal_after(|text| text.replace("name = \"x\"", "name = \"X\""));
        assert!(name.contains("lower-case"), "{name}");
        assert!(refusal_after(|text| text.replace("budget_mb", "budget")).contains("line 11"));
        let mixed = refusal_after(|text| {
            text.replace("[[images]]", "[layers.tools]\nkind = \"dev\"\npurpose = \"q\"\n[[images]]")
                .replace("[\"base\"]", "[\"base\", \"tools\"]")
        });
        assert!(mixed.contains("expected layers of one kind in the image ``"), "{mixed}");
    }

    #[test]
    fn our_own_images_are_found_by_their_suffixes() {
        let images = ImageCatalog::from_toml("images.toml", OWN_IMAGES).expect("our own images");
        let chosen = images.select_images(&["plain".into(), "-slim".into()]).expect("two images");
        assert_eq!(chosen.iter().map(|image| image.suffix.as_str()).collect::<Vec<_>>(), ["", "-slim"]);
        assert!(
            images
                .select_images(&["fat".into()])
                .expect_err("no image")
                .to_string()
                .contains("`plain`, `slim`")
        );
    }
}
