//! The metadata of a package: control fields, licenses, changelog and maintainer scripts.

use std::fmt::Write as _;
use std::fs;

use oarlock_formats::date;
use oarlock_formats::deb::DebPackage;
use oarlock_formats::deb::control::ControlParagraph;
use oarlock_formats::error::Error;
use oarlock_formats::file_packer::compress_gzip;
use oarlock_formats::tree::{FileTree, TreeEntry};

use super::catalog::PackageArchitecture;
use super::shared_libraries::PackageNeeds;
use super::{PackageBuilder, PackageContent, PackageSpec};
use crate::build_artifact::BuildArtifact;
use crate::library_requirements::build_id_path;

/// The source package of all our packages.
const SOURCE_PACKAGE: &str = "oarlock";

/// Explains the overrides below it.
const LINTIAN_OVERRIDES_HEADER: &str =
    "# These packages are not part of Debian, so they close no bugs in its tracker.\n";

const KEYRING_DESCRIPTION: &str =
    "# apt of Debian 12 reads the keys of a single repository only from files with this suffix or `.asc`.\n";

/// The width of lines in a description.
const DESCRIPTION_WIDTH: usize = 78;

impl PackageBuilder<'_> {
    pub(super) fn control_fields(&self, about: &PackageSpec, needs: &PackageNeeds) -> ControlParagraph {
        let mut control = self.common_fields(&about.name, &about.section, self.debian_architecture(about));
        let mut depends = needs.package_dependencies();
        depends.extend(about.depends.iter().cloned());
        let mut set = |name: &str, value: &str| {
            if !value.is_empty() {
                control.set(name, &self.fill_placeholders(value));
            }
        };
        set("Multi-Arch", about.multi_arch.as_deref().unwrap_or_default());
        set("Depends", &depends.join(", "));
        set("Recommends", &about.recommends.join(", "));
        set("Suggests", &about.suggests.join(", "));
        set("Provides", &about.provides.join(", "));
        set("Conflicts", &about.conflicts.join(", "));
        set("Replaces", &about.replaces.join(", "));
        set("Homepage", &self.packages.homepage);
        set("Description", &format_description(&about.summary, &about.description));
        control
    }

    /// The fields that all packages start with.
    fn common_fields(&self, name: &str, section: &str, architecture: &str) -> ControlParagraph {
        let mut control = ControlParagraph::default();
        for (field, value) in [
            ("Package", name),
            ("Source", SOURCE_PACKAGE),
            ("Version", &self.package_version()),
            ("Architecture", architecture),
            ("Maintainer", &self.packages.maintainer),
            ("Section", section),
            ("Priority", "optional"),
        ] {
            if field != "Source" || value != name {
                control.set(field, value);
            }
        }
        control
    }

    /// The value of the field `Architecture`.
    fn debian_architecture(&self, about: &PackageSpec) -> &'static str {
        match about.architecture {
            PackageArchitecture::All => "all",
            PackageArchitecture::Any => self.architecture.debian_name(),
        }
    }

    /// Adds licenses, the changelog and the SBOMs of compiled contents.
    pub(super) fn add_documentation(
        &self,
        about: &PackageSpec,
        compiled: &[&BuildArtifact],
        contents: &mut FileTree,
    ) -> Result<(), Error> {
        let place = format!("usr/share/doc/{}", about.name);
        let mut licenses =
            "Oarlock is under the Apache License 2.0, which lies in /usr/share/common-licenses/Apache-2.0.\n"
                .to_owned();
        _ = write!(
            licenses,
            "\nCopyright 2026 The Oarlock developers\nUpstream: {}\n",
            self.packages.homepage
        );
        for made in compiled {
            let built = made.compiled_part();
            let text = built.licenses.replace("which lies beside this file", "which is there too");
            _ = write!(licenses, "\n{}\nIn {}.\n\n{text}", "=".repeat(80), built.package);
            let sbom = compress_gzip(built.sbom.as_bytes())?;
            contents.insert_entry(
                &format!("{place}/{}.cyclonedx.json.gz", built.package),
                TreeEntry::file(sbom),
            )?;
        }
        contents.insert_entry(&format!("{place}/copyright"), TreeEntry::file(licenses.into_bytes()))?;
        let mut overrides =
            format!("{LINTIAN_OVERRIDES_HEADER}{}: initial-upload-closes-no-bugs\n", about.name);
        if about.contents.iter().any(|content| matches!(content, PackageContent::Keys { .. })) {
            _ = writeln!(
                overrides,
                "{KEYRING_DESCRIPTION}{}: openpgp-file-has-implementation-specific-extension",
                about.name
            );
        }
        contents.insert_entry(
            &format!("usr/share/lintian/overrides/{}", about.name),
            TreeEntry::file(overrides.into_bytes()),
        )?;
        let changes = compress_gzip(self.changelog().as_bytes())?;
        contents.insert_entry(&format!("{place}/changelog.Debian.gz"), TreeEntry::file(changes))
    }

    /// The Debian changelog; for changes of Oarlock itself, it refers to Oarlock's changelog.
    fn changelog(&self) -> String {
        format!(
            "{SOURCE_PACKAGE} ({}) unstable; urgency=medium\n\n  * Oarlock {}.\n\n -- {}  {}\n",
            self.package_version(),
            self.version,
            self.packages.maintainer,
            date::format_rfc2822(self.seconds).replace("UTC", "+0000")
        )
    }

    /// Adds maintainer scripts, and the files that dependent programs need to link the library.
    pub(super) fn add_maintainer_scripts(
        &self,
        about: &PackageSpec,
        package: &mut DebPackage,
    ) -> Result<(), Error> {
        for script in &about.scripts {
            let file = format!("packaging/debian/{}.{script}", about.name);
            let text = fs::read(self.root.join(&file)).map_err(|error| Error::from(error).in_file(&file))?;
            package.scripts.insert_entry(script, TreeEntry::program(text))?;
        }
        let Some(soname) = &about.soname else { return Ok(()) };
        let (library, number) = soname
            .split_once(".so.")
            .ok_or_else(|| Error::new(format!("expected a name such as `libx.so.1`, found `{soname}`")))?;
        let symbols = super::shared_libraries::exported_symbols(&package.contents, soname)?;
        // A symbols file states the version that introduced each symbol; all present symbols date from the first version.
        let lines: String = symbols.iter().map(|symbol| format!(" {symbol}@Base 0.1.0\n")).collect();
        let symbols = format!("{soname} {} #MINVER#\n{lines}", about.name);
        let lines = [
            ("shlibs", format!("{library} {number} {} (>= 0.1.0)\n", about.name)),
            ("symbols", symbols),
            ("triggers", "activate-noawait ldconfig\n".to_owned()),
        ];
        lines.into_iter().try_for_each(|(name, text)| {
            package.scripts.insert_entry(name, TreeEntry::file(text.into_bytes()))
        })
    }

    /// The debug package of another package, if that contains compiled files.
    pub(super) fn debug_package(
        &self,
        about: &PackageSpec,
        needs: &PackageNeeds,
    ) -> Result<Option<DebPackage>, Error> {
        if needs.build_ids.is_empty() {
            return Ok(None);
        }
        let mut contents = FileTree::default();
        for id in &needs.build_ids {
            let path = build_id_path(id);
            let file = self.debug.join(".build-id").join(&path);
            let bytes = fs::read(&file).map_err(|error| Error::from(error).in_file(file.display()))?;
            contents.insert_entry(&format!("usr/lib/debug/.build-id/{path}"), TreeEntry::file(bytes))?;
        }
        let name = format!("{}-dbgsym", about.name);
        contents.insert_entry(&format!("usr/share/doc/{name}"), TreeEntry::link(&about.name))?;
        let section = about
            .section
            .split_once('/')
            .map_or_else(|| "debug".to_owned(), |(area, _)| format!("{area}/debug"));
        let mut control = self.common_fields(&name, &section, self.debian_architecture(about));
        for (field, value) in [
            ("Multi-Arch", about.multi_arch.clone().filter(|value| value == "same").unwrap_or_default()),
            ("Depends", format!("{} (= {})", about.name, self.package_version())),
            ("Auto-Built-Package", "debug-symbols".to_owned()),
            ("Build-Ids", needs.build_ids.join(" ")),
            ("Description", format!("debug symbols for {}", about.name)),
        ] {
            if !value.is_empty() {
                control.set(field, &value);
            }
        }
        Ok(Some(DebPackage { control, contents, ..DebPackage::default() }))
    }
}

/// A description: the summary and a wrapped text.
fn format_description(summary: &str, text: &str) -> String {
    let mut lines = vec![summary.to_owned()];
    for (place, paragraph) in text.trim().split("\n\n").enumerate() {
        if place > 0 {
            lines.push(String::new());
        }
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && line.len() + 1 + word.len() > DESCRIPTION_WIDTH {
                lines.push(std::mem::take(&mut line));
            }
            line += if line.is_empty() { "" } else { " " };
            line += word;
        }
        lines.push(line);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_has_short_lines_and_its_paragraphs() {
        let text = format_description("short", &format!("{}\n\nend", "word ".repeat(40)));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[4], lines[5]), ("short", "", "end"));
        assert!(lines.iter().all(|line| line.len() <= DESCRIPTION_WIDTH), "{text}");
    }
}
