//! The documentation, and what everything is built of: what a release has beside wheels, packages and images.

use std::path::Path;
use std::process::Command;

use super::Workshop;
use super::tools::{self, Tools};
use crate::crates::{self, Compiler};
use crate::error::Error;
use crate::image::Lock;
use crate::release::provenance::Materials;

/// What makes the documentation, and the script that builds that and knows in which version.
pub(crate) const MAKER: &str = "mdbook";
pub(crate) const SCRIPT: &str = "scripts/tools";

impl Workshop {
    /// Gets the tools that a build needs, and what makes the documentation, where they are missing.
    ///
    /// # Errors
    ///
    /// When one cannot be got.
    pub fn prepare(&self) -> Result<(), Error> {
        let tools = Tools::new(&self.root, &self.target)?;
        tools.run(Command::new(self.root.join(SCRIPT)).arg(MAKER), MAKER).map(drop)
    }

    /// Writes the documentation as pages into a directory.
    ///
    /// # Errors
    ///
    /// When something in it is wrong.
    pub fn book(&self, out: &Path) -> Result<(), Error> {
        let maker = self.target.with_file_name("tools").join("bin").join(MAKER);
        // What it is given it takes from where the book lies.
        let out = std::path::absolute(out)?;
        let mut command = Command::new(maker);
        command.args(["build", "docs", "--dest-dir"]).arg(out);
        Tools::in_directory(&self.root, &self.target).run(&mut command, "book").map(drop)
    }

    /// What everything is built of, with the packages of Debian in images.
    ///
    /// # Errors
    ///
    /// When there is no compiler, or no lock of crates.
    pub fn materials(&self, lock: &Lock) -> Result<Materials, Error> {
        Ok(Materials {
            crates: crates::locked(&self.root)?,
            debian: lock.packages.clone(),
            tools: tools::names(),
            compiler: Compiler::of(&self.root)?,
        })
    }
}
