//! The documentation, and what everything is built of: what a release has beside wheels, packages and images.

use std::path::Path;
use std::process::Command;

use super::WorkspaceBuilder;
use super::tools::{self, BuildTools};
use crate::crates::{self, RustCompiler};
use crate::error::Error;
use crate::image::DebianLock;
use crate::release::provenance::BuildMaterials;

/// What makes the documentation, and the script that builds that and knows in which version.
pub(crate) const BOOK_TOOL: &str = "mdbook";
pub(crate) const TOOL_SCRIPT: &str = "scripts/tools";

impl WorkspaceBuilder {
    /// Gets the tools that a build needs, and what makes the documentation, where they are missing.
    ///
    /// # Errors
    ///
    /// When one cannot be got.
    pub fn prepare_tools(&self) -> Result<(), Error> {
        let tools = BuildTools::new(&self.root, &self.target)?;
        tools.run_tool(Command::new(self.root.join(TOOL_SCRIPT)).arg(BOOK_TOOL), BOOK_TOOL).map(drop)
    }

    /// Writes the documentation as pages into a directory.
    ///
    /// # Errors
    ///
    /// When something in it is wrong.
    pub fn build_book(&self, out: &Path) -> Result<(), Error> {
        let maker = self.target.with_file_name("tools").join("bin").join(BOOK_TOOL);
        // What it is given it takes from where the book lies.
        let out = std::path::absolute(out)?;
        let mut command = Command::new(maker);
        command.args(["build", "docs", "--dest-dir"]).arg(out);
        BuildTools::in_directory(&self.root, &self.target).run_tool(&mut command, "book").map(drop)
    }

    /// What everything is built of, with the packages of Debian in images.
    ///
    /// # Errors
    ///
    /// When there is no compiler, or no lock of crates.
    pub fn collect_materials(&self, lock: &DebianLock) -> Result<BuildMaterials, Error> {
        Ok(BuildMaterials {
            crates: crates::locked_crates(&self.root)?,
            debian: lock.packages.clone(),
            tools: tools::tool_requirements(),
            compiler: RustCompiler::of_workspace(&self.root)?,
        })
    }
}
