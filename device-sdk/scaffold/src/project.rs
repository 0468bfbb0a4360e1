//! The files of a new plugin: sources from the templates, and around them what builds, tests and packs them.

use crate::license::ProjectLicense;
use crate::names::{PluginNames, check_device_type, check_plugin_name, check_vendor};
use crate::sdk_files::{CONTRACT_HEADERS, sdk_files};
use crate::templates::{ScaffoldKind, ScaffoldLanguage, template_sources};

/// Embeds a file of the directory of project files.
macro_rules! project_file {
    ($path:literal) => {
        include_str!(concat!("../../templates/project/", $path))
    };
}

/// A file to write, with its path below the new directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaffoldFile {
    /// The path, with `/` between its parts.
    pub path: String,
    /// What it contains.
    pub text: String,
}

/// Where a plugin in Rust has the SDK from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SdkSource<'a> {
    /// From sources in the new directory.
    Vendored,
    /// From the crate in this directory.
    Path(&'a str),
}

/// A plugin to make.
#[derive(Clone, Copy, Debug)]
pub struct PluginScaffold<'a> {
    /// What it is called.
    pub names: PluginNames<'a>,
    /// The language of its sources.
    pub language: ScaffoldLanguage,
    /// What it brings.
    pub kind: ScaffoldKind,
    /// The license of its sources.
    pub license: ProjectLicense,
    /// Where the SDK comes from, in Rust.
    pub sdk: SdkSource<'a>,
}

impl PluginScaffold<'_> {
    /// True if there is a template for this language and this kind.
    #[must_use]
    pub fn has_template(language: ScaffoldLanguage, kind: ScaffoldKind) -> bool {
        !template_sources(language, kind).is_empty()
    }

    /// All files of the plugin, sorted by path.
    ///
    /// # Errors
    ///
    /// A sentence, if a name is not possible or there is no such template.
    pub fn files(&self) -> Result<Vec<ScaffoldFile>, String> {
        check_plugin_name(self.names.name)?;
        check_device_type(self.names.device_type)?;
        check_vendor(self.names.vendor)?;
        let sources = template_sources(self.language, self.kind);
        if sources.is_empty() {
            return Err(format!(
                "expected a kind of plugin that the SDK for `{}` knows, found `{}`, whose profile is a draft; take the language \
                 `c` or `cpp`",
                self.language.name(),
                self.kind.name()
            ));
        }
        let mut files: Vec<ScaffoldFile> =
            sources.into_iter().map(|(name, text)| self.fill_file(&format!("src/{name}"), text)).collect();
        files.extend(self.project_files());
        files.extend(self.contract_files());
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// The directory of a build's results, and the command for a build.
    #[must_use]
    pub fn build_command(&self) -> &'static str {
        match self.language {
            ScaffoldLanguage::C | ScaffoldLanguage::Cpp => "make",
            ScaffoldLanguage::Rust => "cargo build --release",
        }
    }

    /// The shared object that a build makes.
    #[must_use]
    pub fn library_path(&self) -> String {
        let directory = match self.language {
            ScaffoldLanguage::C | ScaffoldLanguage::Cpp => "build",
            ScaffoldLanguage::Rust => "target/release",
        };
        format!("{directory}/lib{}.so", self.names.identifier())
    }

    fn project_files(&self) -> Vec<ScaffoldFile> {
        let own: &[(&str, &str)] = match self.language {
            ScaffoldLanguage::C => &[
                ("CMakeLists.txt", project_file!("c/CMakeLists.txt")),
                ("Makefile", project_file!("c/Makefile")),
                (".gitignore", project_file!("c/gitignore")),
            ],
            ScaffoldLanguage::Cpp => &[
                ("CMakeLists.txt", project_file!("cpp/CMakeLists.txt")),
                ("Makefile", project_file!("cpp/Makefile")),
                (".gitignore", project_file!("c/gitignore")),
            ],
            ScaffoldLanguage::Rust => &[
                ("Cargo.toml", project_file!("rust/Cargo.toml")),
                ("rustfmt.toml", project_file!("rust/rustfmt.toml")),
                ("tests/conformance.rs", project_file!("rust/tests/conformance.rs")),
                (".gitignore", project_file!("rust/gitignore")),
            ],
        };
        let shared = [
            ("LICENSE", self.license.text()),
            ("README.md", project_file!("README.md")),
            ("oarlock-plugin.toml", project_file!("oarlock-plugin.toml")),
            (".github/workflows/plugin.yml", project_file!("plugin.yml")),
        ];
        own.iter().chain(&shared).map(|(path, text)| self.fill_file(path, text)).collect()
    }

    /// What the sources are compiled against, unchanged.
    fn contract_files(&self) -> Vec<ScaffoldFile> {
        let unchanged = |directory: &str, (path, text): (&str, &str)| ScaffoldFile {
            path: format!("{directory}/{path}"),
            text: text.to_owned(),
        };
        match (self.language, self.sdk) {
            (ScaffoldLanguage::Rust, SdkSource::Path(_)) => Vec::new(),
            (ScaffoldLanguage::Rust, SdkSource::Vendored) => {
                sdk_files().map(|file| unchanged("vendor/oarlock", file)).collect()
            }
            (ScaffoldLanguage::C | ScaffoldLanguage::Cpp, _) => {
                CONTRACT_HEADERS.into_iter().map(|file| unchanged("include/oarlock", file)).collect()
            }
        }
    }

    fn fill_file(&self, path: &str, text: &str) -> ScaffoldFile {
        let sdk = match self.sdk {
            SdkSource::Vendored => "vendor/oarlock/sdk",
            SdkSource::Path(path) => path,
        };
        let check = match self.language {
            ScaffoldLanguage::C | ScaffoldLanguage::Cpp => "make check",
            ScaffoldLanguage::Rust => "cargo test --release",
        };
        let text = self.names.fill_template(text);
        let text = text
            .replace("@LICENSE@", self.license.expression())
            .replace("@SDK@", sdk)
            .replace("@BUILD@", self.build_command())
            .replace("@CHECK@", check)
            .replace("@LIBRARY@", &self.library_path())
            .replace("@SUMMARY@", self.kind.summary());
        ScaffoldFile { path: self.names.fill_template(path), text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaffold(language: ScaffoldLanguage, kind: ScaffoldKind) -> PluginScaffold<'static> {
        PluginScaffold {
            names: PluginNames { name: "acme-x1", device_type: "ACME", vendor: "Acme" },
            language,
            kind,
            license: ProjectLicense::Mit,
            sdk: SdkSource::Vendored,
        }
    }

    /// The files that a new plugin is made of, without those of Oarlock.
    fn own_files(scaffold: PluginScaffold<'_>) -> Vec<ScaffoldFile> {
        let mut files = scaffold.files().expect("a template");
        files.retain(|file| !file.path.starts_with("include/oarlock") && !file.path.starts_with("vendor/"));
        files
    }

    #[test]
    fn nothing_of_the_sample_and_no_mark_is_left() {
        for language in ScaffoldLanguage::ALL {
            for kind in
                ScaffoldKind::ALL.into_iter().filter(|kind| PluginScaffold::has_template(language, *kind))
            {
                for ScaffoldFile { path, text } in own_files(scaffold(language, kind)) {
                    let whole = format!("{path}\n{text}");
                    for word in ["sample", "Sample", "SAMPLE"] {
                        assert!(!whole.contains(word), "`{word}` in `{path}` of {language:?} {kind:?}");
                    }
                    let mut marks = whole.split('@').skip(1).step_by(2);
                    let is_mark =
                        |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase());
                    assert_eq!(marks.find(is_mark), None, "`{path}` of {language:?} {kind:?}");
                }
            }
        }
    }

    #[test]
    fn every_template_of_the_tree_is_part_of_a_plugin() {
        let templates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../templates");
        for language in ScaffoldLanguage::ALL {
            for kind in
                ScaffoldKind::ALL.into_iter().filter(|kind| PluginScaffold::has_template(language, *kind))
            {
                let source = if language == ScaffoldLanguage::Rust { "/src" } else { "" };
                let directory = templates.join(format!("{}/{}{source}", language.name(), kind.name()));
                let files = template_sources(language, kind);
                for entry in std::fs::read_dir(&directory).expect("a directory of templates").flatten() {
                    let name = entry.file_name().to_string_lossy().into_owned();
                    assert!(
                        files.iter().any(|(file, _)| *file == name),
                        "`{name}` in {}",
                        directory.display()
                    );
                }
            }
        }
    }

    #[test]
    fn a_draft_has_no_template_where_the_sdk_has_no_drafts() {
        let refusal = scaffold(ScaffoldLanguage::Rust, ScaffoldKind::Graph).files().expect_err("no template");
        assert!(refusal.contains("take the language `c` or `cpp`"), "{refusal}");
    }

    #[test]
    fn a_device_stays_as_short_as_the_guide_says() {
        let lines = |language| {
            let files = template_sources(language, ScaffoldKind::Device);
            let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
            files.iter().flat_map(|(_, text)| text.lines()).filter(is_code).count()
        };
        assert!(lines(ScaffoldLanguage::Cpp) <= 600, "{} lines of C++", lines(ScaffoldLanguage::Cpp));
        assert!(lines(ScaffoldLanguage::Rust) <= 420, "{} lines of Rust", lines(ScaffoldLanguage::Rust));
    }

    #[test]
    fn a_path_to_the_sdk_takes_the_place_of_its_sources() {
        let scaffold = PluginScaffold {
            sdk: SdkSource::Path("/src/sdk"),
            ..scaffold(ScaffoldLanguage::Rust, ScaffoldKind::Layer)
        };
        let files = scaffold.files().expect("a template");
        assert!(files.iter().all(|file| !file.path.starts_with("vendor")));
        let manifest = files.iter().find(|file| file.path == "Cargo.toml").expect("a manifest");
        assert!(manifest.text.contains("path = \"/src/sdk\""), "{}", manifest.text);
    }
}
