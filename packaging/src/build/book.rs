//! The documentation and the list of build materials: the parts of a release that are not wheels, packages or images.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use oarlock_formats::error::Error;
use oarlock_matrix::CpuArchitecture;

use super::WorkspaceBuilder;
use super::toolchain::TargetToolchain;
use crate::build_tools::{self as tools, BOOK_TOOL, BuildTools, TOOL_SCRIPT};
use crate::crates::{self, RustCompiler};
use crate::image::DebianLock;
use crate::release::provenance::BuildMaterials;

impl WorkspaceBuilder {
    /// Installs the build tools for architectures and the documentation tool if they are missing.
    ///
    /// # Errors
    ///
    /// When a tool cannot be installed.
    pub fn prepare_tools(&self, architectures: &BTreeSet<CpuArchitecture>) -> Result<(), Error> {
        let tools = BuildTools::new(&self.root, &self.target)?;
        for architecture in architectures {
            TargetToolchain::new(&self.root, &self.target, &tools, *architecture)?;
        }
        tools.run_tool(Command::new(self.root.join(TOOL_SCRIPT)).arg(BOOK_TOOL), BOOK_TOOL).map(drop)
    }

    /// Renders the documentation as HTML pages into a directory.
    ///
    /// # Errors
    ///
    /// When the documentation has an error.
    pub fn build_book(&self, out: &Path) -> Result<(), Error> {
        let maker = self.target.with_file_name("tools").join("bin").join(BOOK_TOOL);
        // The tool resolves relative paths from the directory of the book.
        let out = std::path::absolute(out)?;
        let mut command = Command::new(maker);
        command.args(["build", "docs", "--dest-dir"]).arg(out);
        BuildTools::in_directory(&self.root, &self.target).run_tool(&mut command, "book").map(drop)
    }

    /// Everything that goes into a build for architectures, including the Debian packages of images.
    ///
    /// # Errors
    ///
    /// When there is no compiler or no `Cargo.lock`.
    pub fn collect_materials(
        &self,
        lock: &DebianLock,
        architectures: &BTreeSet<CpuArchitecture>,
    ) -> Result<BuildMaterials, Error> {
        let compiler_for = |architecture: &CpuArchitecture| {
            let place = TargetToolchain::cross_directory(&self.target, *architecture);
            RustCompiler::of_workspace(&self.root, place.map(|it| it.join("bin/rustc")).as_deref())
        };
        Ok(BuildMaterials {
            crates: crates::locked_crates(&self.root)?,
            debian: lock.packages.clone(),
            tools: tools::tool_requirements(),
            compilers: architectures.iter().map(compiler_for).collect::<Result<_, _>>()?,
        })
    }
}
