//! The documentation, and what everything is built of: what a release has beside wheels, packages and images.

use std::path::Path;
use std::process::Command;

use super::{Workshop, tools};
use crate::crates;
use crate::error::Error;
use crate::image::Lock;
use crate::release::provenance::Materials;

/// What builds what makes the documentation.
const SCRIPT: &str = "scripts/tools";
const MAKER: &str = "mdbook";

impl Workshop {
    /// Builds what makes the documentation, where it is missing.
    ///
    /// # Errors
    ///
    /// When it cannot be built.
    pub fn prepare_book(&self) -> Result<(), Error> {
        let tools = tools::Tools::new(&self.root, &self.target)?;
        tools.run(Command::new(self.root.join(SCRIPT)).arg(MAKER), MAKER).map(drop)
    }

    /// Writes the documentation as pages into a directory.
    ///
    /// # Errors
    ///
    /// When something in it is wrong.
    pub fn book(&self, out: &Path) -> Result<(), Error> {
        let tools = tools::Tools::new(&self.root, &self.target)?;
        let maker = self.target.with_file_name("tools").join("bin").join(MAKER);
        // What it is given it takes from where the book lies.
        let out = std::path::absolute(out)?;
        tools.run(Command::new(maker).args(["build", "docs", "--dest-dir"]).arg(out), "book").map(drop)
    }

    /// What everything is built of, with the packages of Debian in images.
    ///
    /// # Errors
    ///
    /// When there is no compiler, or no lock of crates.
    pub fn materials(&self, lock: &Lock) -> Result<Materials, Error> {
        let said = Command::new("rustc").arg("-vV").current_dir(&self.root).output()?;
        Ok(Materials {
            crates: crates::locked(&self.root)?,
            debian: lock.packages.clone(),
            tools: tools::names(),
            compiler: String::from_utf8_lossy(&said.stdout).into_owned(),
        })
    }

    /// Where something that a release is put together of lies for as long as that takes.
    #[must_use]
    pub fn place_for(&self, what: &str) -> std::path::PathBuf {
        self.target.join("release").join(what)
    }
}
