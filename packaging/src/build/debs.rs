//! Builds Debian packages from the same parts as the wheels.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use oarlock_formats::date;
use oarlock_formats::error::Error;
use oarlock_formats::file;
use oarlock_matrix::{CpuArchitecture, WheelMatrix};

use super::compile::PartCompiler;
use super::parallel_jobs::run_jobs;
use super::{BuildStep, StepCounter, WorkspaceBuilder, compile_recipe, library_check};
use crate::build_artifact::BuildArtifact;
use crate::build_plan::{BuildRecipe, COMMAND_PART, WheelPlan, command_recipe, recipe_for_part};
use crate::packages::{PackageBuilder, PackageCatalog, PackageContent, PackagePart, PackageSpec};

/// Packages and the parts that they consist of.
#[derive(Debug)]
pub struct PackagePlan<'p> {
    matrix: &'p WheelMatrix,
    packages: &'p PackageCatalog,
    architecture: CpuArchitecture,
    chosen: Vec<&'p PackageSpec>,
    recipes: Vec<(BuildRecipe, PackagePart)>,
    version: String,
    keys: Vec<u8>,
}

impl<'p> PackagePlan<'p> {
    /// Plans the packages of these names for an architecture, or all that it has. `keys` are the public keys of the archive that will
    /// list them, if any.
    ///
    /// # Errors
    ///
    /// When there is no package of a name, or one of its parts is not in the matrix.
    pub fn new(
        matrix: &'p WheelMatrix,
        packages: &'p PackageCatalog,
        architecture: CpuArchitecture,
        names: &[String],
        keys: Vec<u8>,
    ) -> Result<Self, Error> {
        let mut chosen = packages.select_packages(names, !keys.is_empty())?;
        let is_built = |about: &&PackageSpec| about.is_built_for(matrix, architecture);
        if let Some(other) = chosen.iter().find(|about| !is_built(about) && !names.is_empty()) {
            let there = packages.packages.iter().filter(is_built).map(|about| about.name.as_str());
            return Err(Error::new(format!(
                "expected a package for {}, one of {}; found `{}`",
                architecture.debian_name(),
                there.collect::<Vec<_>>().join(", "),
                other.name
            )));
        }
        chosen.retain(is_built);
        let mut parts: Vec<PackagePart> = Vec::new();
        for content in chosen.iter().flat_map(|about| &about.contents) {
            let is_said = matches!(content, PackageContent::Says { .. } | PackageContent::Writes { .. });
            let said = is_said.then(|| PackagePart { part: COMMAND_PART.to_owned(), without_avx: false });
            parts.extend(content.compiled_part().cloned().or(said).filter(|part| !parts.contains(part)));
        }
        let of = |part: PackagePart| {
            Ok((recipe_for_part(matrix, matrix.core_row(architecture, part.without_avx)?, &part.part)?, part))
        };
        let recipes = parts.into_iter().map(of).collect::<Result<_, Error>>()?;
        let version = matrix.core_row(architecture, false)?.name.version.to_string();
        Ok(Self { matrix, packages, architecture, chosen, recipes, version, keys })
    }

    /// Plans the packages for an architecture that match wheels: each of their parts is either in one of the wheels or in no row of the matrix.
    ///
    /// # Errors
    ///
    /// As [`PackagePlan::new`].
    pub fn for_wheel_plan(
        plan: &WheelPlan<'p>,
        packages: &'p PackageCatalog,
        architecture: CpuArchitecture,
        keys: Vec<u8>,
    ) -> Result<Self, Error> {
        let is_in_wheels =
            |part: &PackagePart| plan.matrix.wheels.iter().any(|row| row.parts.contains(&part.part));
        let is_built = |part: &PackagePart| {
            let is_it = |it: &BuildRecipe| {
                it.name == part.part
                    && it.architecture == architecture
                    && it.leaves_out_avx() == part.without_avx
            };
            plan.recipes().iter().any(is_it)
        };
        let goes_with = |about: &&PackageSpec| {
            about
                .contents
                .iter()
                .filter_map(PackageContent::compiled_part)
                .all(|part| !is_in_wheels(part) || is_built(part))
        };
        let all = packages.select_packages(&[], !keys.is_empty())?;
        let names: Vec<String> = all.into_iter().filter(goes_with).map(|about| about.name.clone()).collect();
        Self::new(plan.matrix, packages, architecture, &names, keys)
    }

    /// The parts to compile, each once.
    pub fn recipes(&self) -> impl Iterator<Item = &BuildRecipe> {
        self.recipes.iter().map(|(recipe, _)| recipe)
    }

    /// The number of build steps: install tools, compile each part, pack each package.
    fn step_count(&self) -> usize {
        usize::from(!self.recipes.is_empty()) + self.recipes.len() + self.chosen.len()
    }

    /// The architecture that they are for.
    #[must_use]
    pub fn architecture(&self) -> CpuArchitecture {
        self.architecture
    }

    /// The version of Oarlock in the packages.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The names of the packages.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.chosen.iter().map(|about| about.name.as_str())
    }
}

impl WorkspaceBuilder {
    /// Checks that this machine has the libraries that plugins need to be queried.
    ///
    /// # Errors
    ///
    /// When a library is missing; the error names the library and the plugin.
    pub fn check_package_machine(&self, plan: &PackagePlan<'_>) -> Result<(), Error> {
        library_check::check_plugin_libraries(plan.recipes())
    }

    /// Compiles the command `oarlock` as packages ship it, to query plugins with it, and returns its file.
    ///
    /// # Errors
    ///
    /// When it fails to compile.
    pub fn build_command(&self, matrix: &WheelMatrix, report: &dyn Fn(&BuildStep)) -> Result<PathBuf, Error> {
        let recipe = command_recipe(matrix, CpuArchitecture::default())?;
        let compiler = PartCompiler::new(&self.root, &self.target, matrix, None, [&recipe].into_iter())?;
        report(&BuildStep { done: 0, all: 1, text: self.compiling_message(&compiler, &recipe) });
        let debug = self.target.join("debug");
        let file = self.command_path(&recipe);
        if let BuildArtifact::Other(made) = compile_recipe(&compiler, &recipe, &debug, &|_| ())?.made {
            file::write_program(&file, &made.bytes)?;
        }
        Ok(file)
    }

    /// Builds packages and writes each atomically; `report` is called for each step. Returns the files with their sizes in bytes.
    /// # Errors
    ///
    /// When a part fails to compile or a package fails its checks.
    pub fn build_packages(
        &self,
        plan: &PackagePlan<'_>,
        out: &Path,
        report: &dyn Fn(&BuildStep),
    ) -> Result<Vec<(PathBuf, u64)>, Error> {
        let mut steps = StepCounter::new(plan.step_count(), report);
        let seconds = date::source_time(&self.root)?;
        self.check_package_machine(plan)?;
        let debug = self.target.join("debug");
        let (made, command) = if plan.recipes.is_empty() {
            (BTreeMap::new(), Vec::new())
        } else {
            self.compile_package_parts(plan, &debug, &mut steps)?
        };
        let maker = PackageBuilder {
            root: &self.root,
            packages: plan.packages,
            architecture: plan.architecture,
            made,
            version: &plan.version,
            seconds,
            command: &command,
            keys: &plan.keys,
            debug: &debug,
        };
        let report = steps.count_jobs(|about: &&PackageSpec| format!("packing {}", about.name));
        let packed = run_jobs(
            &plan.chosen,
            |_, _| false,
            report,
            |about, _| {
                let packages = maker
                    .build_packages(about)
                    .map_err(|error| Error::new(format!("{}: {error}", about.name)))?;
                packages
                    .iter()
                    .map(|package| Ok((out.join(package.file_name()?), package.to_bytes(seconds)?)))
                    .collect::<Result<Vec<_>, Error>>()
            },
        )?;
        let packed: Vec<(PathBuf, Vec<u8>)> = packed.into_iter().flatten().collect();
        let sizes: Vec<(PathBuf, u64)> =
            packed.iter().map(|(file, bytes)| (file.clone(), bytes.len() as u64)).collect();
        plan.packages.check_set_sizes(&sizes)?;
        packed.iter().try_for_each(|(file, bytes)| file::write_file(file, bytes))?;
        Ok(sizes)
    }

    /// Compiles the parts of packages. Returns them, and the words that run the command if it is among them.
    fn compile_package_parts(
        &self,
        plan: &PackagePlan<'_>,
        debug: &Path,
        steps: &mut StepCounter<'_>,
    ) -> Result<(BTreeMap<PackagePart, BuildArtifact>, Vec<PathBuf>), Error> {
        steps.next("installing maturin, zig and the wheel checkers".to_owned());
        let recipes: Vec<&BuildRecipe> = plan.recipes().collect();
        let compiler = self.part_compiler(plan.matrix, &recipes)?;
        let parts = self.compile_recipes(&compiler, &recipes, debug, steps)?;
        // A wheel may contain a plugin without a manifest; a package may not.
        if let Some(note) = parts.iter().find_map(|part| part.note.clone()) {
            return Err(Error::new(note));
        }
        let (mut made, mut words) = (BTreeMap::new(), Vec::new());
        for ((recipe, compiled), part) in plan.recipes.iter().zip(parts) {
            if let BuildArtifact::Other(command) = &part.made
                && recipe.name == COMMAND_PART
            {
                let file = self.command_path(recipe);
                file::write_program(&file, &command.bytes)?;
                words = compiler.toolchain(recipe).program_words(file);
            }
            made.insert(compiled.clone(), part.made);
        }
        Ok((made, words))
    }

    fn command_path(&self, recipe: &BuildRecipe) -> PathBuf {
        self.target.join("made").join(recipe.directory_name()).join("oarlock")
    }
}
