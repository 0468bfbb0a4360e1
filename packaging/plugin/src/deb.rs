//! The Debian package of a plugin.

use std::fmt::Write as _;

use oarlock_formats::date;
use oarlock_formats::deb::DebPackage;
use oarlock_formats::deb::control::ControlParagraph;
use oarlock_formats::error::Error;
use oarlock_formats::file_packer::compress_gzip;
use oarlock_formats::tree::{FileTree, TreeEntry};

use crate::audit::PackageNeeds;
use crate::package::{PackagedFile, PluginIdentity, PluginPackage};

/// The virtual package that all packages of plugins provide.
const VIRTUAL_PACKAGE: &str = "oarlock-plugin";

/// The licenses whose texts every Debian has.
const COMMON_LICENSES: [(&str, &str); 1] = [("Apache-2.0", "Apache-2.0")];

/// The width of lines in a description.
const DESCRIPTION_WIDTH: usize = 78;

impl PluginPackage {
    /// The Debian package as a file. Its bytes only depend on what is in the package, and on its time.
    ///
    /// # Errors
    ///
    /// When the manifest says what a Debian package cannot, or memory runs out.
    pub fn build_deb(&self, needs: &PackageNeeds) -> Result<PackagedFile, Error> {
        let identity = self.identity()?;
        let package = DebPackage {
            control: self.control_fields(&identity, needs),
            contents: self.deb_contents(&identity, needs)?,
            ..DebPackage::default()
        };
        Ok(PackagedFile { name: package.file_name()?, bytes: package.to_bytes(self.seconds)? })
    }

    fn deb_contents(&self, identity: &PluginIdentity, needs: &PackageNeeds) -> Result<FileTree, Error> {
        let mut tree = FileTree::default();
        let place = format!("usr/lib/{}/oarlock/plugins", identity.architecture.library_directory);
        for file in self.installed_files() {
            tree.insert_entry(&format!("{place}/{}", file.name), TreeEntry::file(file.bytes.clone()))?;
        }
        let name = &self.recipe.package;
        let documents = format!("usr/share/doc/{name}");
        let mut insert = |path: String, bytes: Vec<u8>| tree.insert_entry(&path, TreeEntry::file(bytes));
        insert(format!("{documents}/copyright"), self.copyright_text()?.into_bytes())?;
        insert(
            format!("{documents}/changelog.Debian.gz"),
            compress_gzip(self.changelog(identity).as_bytes())?,
        )?;
        let sbom = compress_gzip(self.render_sbom(needs)?.as_bytes())?;
        insert(format!("{documents}/{name}.cyclonedx.json.gz"), sbom)?;
        let overrides = format!(
            "# This package is not part of Debian, so it closes no bugs in its tracker.\n{name}: initial-upload-closes-no-bugs\n"
        );
        insert(format!("usr/share/lintian/overrides/{name}"), overrides.into_bytes())?;
        Ok(tree)
    }

    fn control_fields(&self, identity: &PluginIdentity, needs: &PackageNeeds) -> ControlParagraph {
        let recipe = &self.recipe;
        let mut depends = Vec::new();
        depends.extend(needs.glibc_symbols.map(|(major, minor)| format!("libc6 (>= {major}.{minor})")));
        // The version that introduced the present ABI.
        depends.extend(needs.libraries.contains("libgcc_s.so.1").then(|| "libgcc-s1 (>= 4.2)".to_owned()));
        depends.extend(needs.libstdcxx_package.map(|version| format!("libstdc++6 (>= {version})")));
        depends.extend(recipe.libraries.iter().filter_map(|provider| provider.debian.clone()));
        let is_free = !recipe.license.contains("LicenseRef-");
        let mut control = ControlParagraph::default();
        for (field, value) in [
            ("Package", recipe.package.as_str()),
            ("Version", &identity.version.debian()),
            ("Architecture", identity.architecture.debian),
            ("Maintainer", &recipe.maintainer),
            ("Section", if is_free { "libs" } else { "non-free/libs" }),
            ("Priority", "optional"),
            ("Multi-Arch", "same"),
            ("Depends", &depends.join(", ")),
            ("Recommends", "oarlock"),
            ("Provides", VIRTUAL_PACKAGE),
            ("Homepage", recipe.homepage.as_deref().unwrap_or_default()),
            ("Description", &format_description(&recipe.summary, &recipe.description)),
        ] {
            if !value.is_empty() {
                control.set(field, value);
            }
        }
        control
    }

    /// The license as Debian's machines read it.
    fn copyright_text(&self) -> Result<String, Error> {
        let recipe = &self.recipe;
        let holder = recipe.maintainer.split(" <").next().unwrap_or_default();
        let year = &date::format_iso8601(self.seconds)[..4];
        let mut text = format!(
            "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: {}\n\
             Upstream-Contact: {}\n\nFiles: *\nCopyright: {year} {holder}\nLicense: {}\n",
            recipe.package,
            recipe.maintainer,
            recipe.license.replace(' ', "-"),
        );
        if let Some((_, file)) = COMMON_LICENSES.iter().find(|(expression, _)| *expression == recipe.license)
        {
            _ = writeln!(text, " The text of this license is in /usr/share/common-licenses/{file}.");
            return Ok(text);
        }
        for license in &self.licenses {
            let license_text = std::str::from_utf8(&license.bytes)
                .map_err(|_| Error::new("expected UTF-8").in_file(&license.name))?;
            for line in license_text.trim_end().lines() {
                _ = writeln!(text, " {}", if line.trim().is_empty() { "." } else { line.trim_end() });
            }
        }
        Ok(text)
    }

    fn changelog(&self, identity: &PluginIdentity) -> String {
        format!(
            "{} ({}) unstable; urgency=medium\n\n  * Version {} of the plugin `{}`.\n\n -- {}  {}\n",
            self.recipe.package,
            identity.version.debian(),
            identity.version.python(),
            identity.name,
            self.recipe.maintainer,
            date::format_rfc2822(self.seconds).replace("UTC", "+0000")
        )
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
