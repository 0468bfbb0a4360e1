//! The catalog of images and layers.
//!
//! ```toml
//! name = "oarlock"
//!
//! [debian]                                 # the sources of Debian packages
//! suites = ["trixie", "trixie-security"]
//! architectures = ["amd64", "arm64"]
//!
//! [debian.only]                            # suites that are used only for packages built from these sources
//! trixie-backports = ["rustc"]
//! "trixie/non-free" = ["nvidia-cuda-toolkit"]   # a component of a suite other than `main`
//!
//! [debian.left_out]                        # dependencies that images for running programs omit
//! awk = "no script of a package is run"
//!
//! [[left_out]]                             # what packages provide and images do without
//! kinds = ["prod", "dev"]                  # those to run programs alone, where nothing is said
//! below = ["usr/share/man"]                # `{multiarch}` stands for an architecture's name such as `x86_64-linux-gnu`
//! why = "nobody reads manuals in a container"
//!
//! [layers.base]
//! purpose = "the C library"
//! debian = ["libc6"]                       # with all their dependencies
//!
//! [layers.library]
//! purpose = "the library"
//! own = ["liboarlock1"]
//!
//! [layers.compiler]
//! kind = "dev"                             # for building the sources
//! purpose = "a compiler"
//! debian = ["gcc"]
//! links = { "usr/bin/cc" = "gcc" }         # links that package scripts would create
//!
//! [[images]]
//! suffix = "-slim"
//! title = "the library alone"
//! layers = ["base", "library"]
//! architectures = ["amd64"]               # for some architectures alone
//! budget_mb = 12
//! ```

use std::collections::{BTreeMap, BTreeSet};

use oarlock_formats::error::Error;
use oarlock_matrix::CpuArchitecture;

use serde::Deserialize;

/// What a catalog says about the images of one architecture.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageCatalog {
    /// The repository name of all images.
    pub name: String,
    /// The sources of Debian packages.
    pub debian: DebianSources,
    /// Packaged files that images leave out.
    #[serde(default)]
    pub left_out: Vec<ExcludedPaths>,
    /// Layers by name.
    pub layers: BTreeMap<String, LayerSpec>,
    /// The images.
    pub images: Vec<ImageSpec>,
    /// The architecture.
    #[serde(skip)]
    pub architecture: CpuArchitecture,
}

/// The sources of Debian packages, and the packages to leave out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebianSources {
    /// The suites; the newest version of each package is used, from any suite.
    pub suites: Vec<String>,
    /// Suites restricted to packages built from these source packages.
    #[serde(default)]
    pub only: BTreeMap<String, Vec<String>>,
    /// The architectures that images are made for.
    pub architectures: Vec<CpuArchitecture>,
    /// Dependencies that `prod` images leave out, each with the reason.
    #[serde(default)]
    pub left_out: BTreeMap<String, String>,
}

/// The purpose of an image.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum ImageKind {
    /// Runs programs, and contains only what that needs.
    #[default]
    Prod,
    /// Builds the sources. It has all dependencies of its packages, so `apt` can add others.
    Dev,
}

/// Directories and files that images leave out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExcludedPaths {
    /// The kinds of images that leave them out.
    #[serde(default = "default_excluded_kinds")]
    pub kinds: Vec<ImageKind>,
    /// Directories with their contents, or files.
    pub below: Vec<String>,
    /// Exceptions: files with these name prefixes are kept.
    #[serde(default)]
    pub but: Vec<String>,
    /// The reason.
    pub why: String,
}

/// A layer of images.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerSpec {
    /// The purpose of the images that use it.
    #[serde(default)]
    pub kind: ImageKind,
    /// A short description.
    pub purpose: String,
    /// Debian packages; their dependencies are added.
    #[serde(default)]
    pub debian: Vec<String>,
    /// Our own packages.
    #[serde(default)]
    pub own: Vec<String>,
    /// True if it adds the entry point script, which needs a shell.
    #[serde(default)]
    pub entry: bool,
    /// Links that the scripts of its packages would create, by path.
    #[serde(default)]
    pub links: BTreeMap<String, String>,
    /// True if it adds the tutorial as notebooks with their server, which becomes the default command.
    #[serde(default)]
    pub notebook: bool,
    /// Environment variables.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// An image of the catalog.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageSpec {
    /// The suffix after the version in its tag, such as `-noavx`.
    pub suffix: String,
    /// A short description.
    pub title: String,
    /// The names of its layers, starting with the lowest.
    pub layers: Vec<String>,
    /// The architectures that it is made for; all if none is named.
    #[serde(default)]
    pub architectures: Vec<CpuArchitecture>,
    /// Environment variables in addition to those of its layers.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The limit on its compressed size, in millions of bytes.
    pub budget_mb: u64,
}

/// The path of the catalog of Oarlock's images in the sources.
pub const CATALOG_PATH: &str = "packaging/images.toml";

/// The catalog of Oarlock's images.
pub const OWN_IMAGES: &str = include_str!("../../images.toml");

/// What stands for the name of the directory of an architecture's libraries in a path.
const MULTIARCH_PLACEHOLDER: &str = "{multiarch}";

impl ImageCatalog {
    /// Reads what a catalog says about the images of an architecture, and the layers that they use.
    ///
    /// # Errors
    ///
    /// When the text is not a catalog, refers to something undefined, or has no images for the architecture.
    pub fn from_toml(file: &str, text: &str, architecture: CpuArchitecture) -> Result<Self, Error> {
        let mut images: Self = toml::from_str(text).map_err(|error| Error::from_toml(file, text, &error))?;
        images
            .check_references()
            .and_then(|()| images.restrict_to(architecture))
            .map_err(|error| error.in_file(file))?;
        Ok(images)
    }

    /// Leaves only what concerns an architecture, and fills its name in.
    fn restrict_to(&mut self, architecture: CpuArchitecture) -> Result<(), Error> {
        let has = |some: &[CpuArchitecture]| some.is_empty() || some.contains(&architecture);
        if !self.debian.architectures.contains(&architecture) {
            let names: Vec<&str> = self.debian.architectures.iter().map(|it| it.debian_name()).collect();
            return Err(Error::new(format!(
                "expected an architecture that there are images for, one of {}; found {}",
                names.join(", "),
                architecture.debian_name()
            )));
        }
        self.architecture = architecture;
        self.images.retain(|image| has(&image.architectures));
        let used: BTreeSet<&String> = self.images.iter().flat_map(|image| &image.layers).collect();
        self.layers.retain(|name, _| used.contains(name));
        let fill = |path: &str| path.replace(MULTIARCH_PLACEHOLDER, architecture.multiarch_name());
        for path in self.left_out.iter_mut().flat_map(|excluded| &mut excluded.below) {
            *path = fill(path);
        }
        for layer in self.layers.values_mut() {
            layer.links = layer.links.iter().map(|(path, target)| (fill(path), fill(target))).collect();
        }
        Ok(())
    }

    fn check_references(&self) -> Result<(), Error> {
        let mut suffixes = BTreeSet::new();
        for ImageSpec { suffix, layers, architectures, .. } in &self.images {
            if !suffixes.insert(suffix) {
                return Err(Error::new(format!("expected one image with the suffix `{suffix}`, found two")));
            }
            super::ImageName::new(&self.name, &format!("0{suffix}"))?;
            if let Some(other) = architectures.iter().find(|it| !self.debian.architectures.contains(it)) {
                let other = other.debian_name();
                return Err(Error::new(format!(
                    "expected architectures of `[debian]` for the image `{suffix}`, found `{other}`"
                )));
            }
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

    /// Finds a layer by name.
    ///
    /// # Errors
    ///
    /// When there is none of that name.
    pub fn find_layer(&self, name: &str) -> Result<&LayerSpec, Error> {
        let layer = self.layers.get(name);
        layer.ok_or_else(|| Error::new(format!("expected the name of a layer, found `{name}`")))
    }

    /// Our own packages in an image.
    ///
    /// # Errors
    ///
    /// When the image names an unknown layer.
    pub fn own_packages(&self, image: &ImageSpec) -> Result<Vec<&str>, Error> {
        let mut names = Vec::new();
        for layer in &image.layers {
            names.extend(self.find_layer(layer)?.own.iter().map(String::as_str));
        }
        Ok(names)
    }

    /// Finds an image by suffix, as [`ImageCatalog::select_images`] does.
    #[must_use]
    pub fn find_image(&self, name: &str) -> Option<&ImageSpec> {
        self.images.iter().find(|image| image.label() == name.trim_start_matches('-'))
    }

    /// Finds the image for a tag with any version.
    #[must_use]
    pub fn image_of_tag(&self, tag: &str) -> Option<&ImageSpec> {
        let of_it = self.images.iter().filter(|image| tag.ends_with(&image.suffix));
        of_it.max_by_key(|image| image.suffix.len())
    }

    /// The purpose of an image.
    ///
    /// # Errors
    ///
    /// When it has no layers or an unknown one.
    pub fn kind_of_image(&self, image: &ImageSpec) -> Result<ImageKind, Error> {
        Ok(self.find_layer(image.layers.first().map_or("", String::as_str))?.kind)
    }

    /// The paths that images of a kind leave out.
    #[must_use]
    pub fn excluded_paths(&self, kind: ImageKind) -> Vec<&ExcludedPaths> {
        self.left_out.iter().filter(|it| it.kinds.contains(&kind)).collect()
    }

    /// Selects images by suffix, with or without the leading dash, or all if none is given. The image without a suffix is
    /// `plain`.
    ///
    /// # Errors
    ///
    /// When no image has such a suffix.
    pub fn select_images(&self, wanted: &[String]) -> Result<Vec<&ImageSpec>, Error> {
        if wanted.is_empty() {
            return Ok(self.images.iter().collect());
        }
        let mut chosen: Vec<&ImageSpec> = Vec::new();
        for name in wanted {
            let image = self.find_image(name).ok_or_else(|| {
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
    /// All suites, including the restricted ones.
    pub fn all_suites(&self) -> impl Iterator<Item = &String> {
        self.suites.iter().chain(self.only.keys())
    }
}

fn default_excluded_kinds() -> Vec<ImageKind> {
    vec![ImageKind::Prod]
}

impl ImageSpec {
    /// The suffix without its dash, or `plain`.
    #[must_use]
    pub fn label(&self) -> &str {
        if self.suffix.is_empty() { "plain" } else { self.suffix.trim_start_matches('-') }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_example(text: &str) -> Result<ImageCatalog, Error> {
        ImageCatalog::from_toml("images.toml", text, CpuArchitecture::X86_64)
    }

    fn refusal_after(change: impl Fn(&str) -> String) -> String {
        let text = "name = \"x\"\n[debian]\nsuites = [\"s\"]\narchitectures = [\"amd64\"]\n\
                    [layers.base]\npurpose = \"p\"\n[[images]]\nsuffix = \"\"\ntitle = \"t\"\n\
                    layers = [\"base\"]\nbudget_mb = 1\n";
        assert!(read_example(text).is_ok());
        read_example(&change(text)).expect_err("a mistake").to_string()
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
        let elsewhere =
            refusal_after(|text| text.replace("budget_mb", "architectures = [\"arm64\"]\nbudget_mb"));
        assert!(elsewhere.contains("expected architectures of `[debian]` for the image ``"), "{elsewhere}");
        assert!(refusal_after(|text| text.replace("amd64", "i386")).contains("unknown variant `i386`"));
        let none = refusal_after(|text| text.replace("amd64", "arm64"));
        assert_eq!(
            none,
            "`images.toml`: expected an architecture that there are images for, one of arm64; found amd64"
        );
    }

    #[test]
    fn a_catalog_has_the_images_and_paths_of_its_architecture_alone() {
        let text = "name = \"x\"\n[debian]\nsuites = [\"s\"]\narchitectures = [\"amd64\", \"arm64\"]\n\
                    [[left_out]]\nbelow = [\"usr/lib/{multiarch}/gconv\"]\nwhy = \"w\"\n\
                    [layers.base]\npurpose = \"p\"\nlinks = { \"usr/lib/{multiarch}/a\" = \"{multiarch}/b\" }\n\
                    [layers.more]\npurpose = \"p\"\n\
                    [[images]]\nsuffix = \"\"\ntitle = \"t\"\nlayers = [\"base\"]\nbudget_mb = 1\n\
                    [[images]]\nsuffix = \"-more\"\ntitle = \"t\"\nlayers = [\"base\", \"more\"]\n\
                    architectures = [\"amd64\"]\nbudget_mb = 1\n";
        for (architecture, labels, layers, name) in [
            (CpuArchitecture::X86_64, &["plain", "more"][..], 2, "x86_64-linux-gnu"),
            (CpuArchitecture::Aarch64, &["plain"], 1, "aarch64-linux-gnu"),
        ] {
            let images = ImageCatalog::from_toml("images.toml", text, architecture).expect("images");
            assert_eq!(images.images.iter().map(ImageSpec::label).collect::<Vec<_>>(), labels);
            assert_eq!((images.architecture, images.layers.len()), (architecture, layers));
            assert_eq!(images.left_out[0].below, [format!("usr/lib/{name}/gconv")]);
            let links = images.layers["base"].links.iter().collect::<Vec<_>>();
            assert_eq!(links, [(&format!("usr/lib/{name}/a"), &format!("{name}/b"))]);
        }
    }

    #[test]
    fn our_own_images_are_found_by_their_suffixes() {
        let images = read_example(OWN_IMAGES).expect("our own images");
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
