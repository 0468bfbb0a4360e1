//! What a release needs besides wheels and packages: tools, the documentation and the list of build materials.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use oarlock_formats::error::Error;
use oarlock_image::lock::LockedPackage;
use oarlock_matrix::CpuArchitecture;

use super::WorkspaceBuilder;
use super::toolchain::TargetToolchain;
use crate::build_tools::{self as tools, BOOK_TOOL, BuildTools, TOOL_SCRIPT};
use crate::crates::{self, RustCompiler};
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

    /// The program that runs those for an architecture other than this machine's, laid out if it is missing; `None` if they run here.
    ///
    /// # Errors
    ///
    /// When it cannot be laid out.
    pub fn program_runner(&self, architecture: CpuArchitecture) -> Result<Option<PathBuf>, Error> {
        let tools = BuildTools::in_directory(&self.root, &self.target);
        let place = TargetToolchain::lay_out(&self.root, &self.target, &tools, architecture)?;
        Ok(place.map(|place| TargetToolchain::runner(&place)))
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

    /// Everything that goes into a build for architectures; `debian` are the packages in images.
    ///
    /// # Errors
    ///
    /// When there is no compiler or no `Cargo.lock`.
    pub fn collect_materials(
        &self,
        debian: Vec<LockedPackage>,
        architectures: &BTreeSet<CpuArchitecture>,
    ) -> Result<BuildMaterials, Error> {
        let compiler_for = |architecture: &CpuArchitecture| {
            let place = TargetToolchain::cross_directory(&self.target, *architecture);
            RustCompiler::of_workspace(&self.root, place.map(|it| it.join("bin/rustc")).as_deref())
        };
        Ok(BuildMaterials {
            crates: crates::locked_crates(&self.root)?,
            debian,
            tools: tools::tool_requirements(),
            compilers: architectures.iter().map(compiler_for).collect::<Result<_, _>>()?,
        })
    }
}
