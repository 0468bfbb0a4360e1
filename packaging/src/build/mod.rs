//! Builds the wheels of the matrix. Each part is compiled once for all wheels, with zig as the linker, for a glibc older than
//! the builder's. Assembled and packed files are cached too, so an interrupted run resumes where it stopped.

mod book;
mod compile;
mod debs;
mod library_check;
mod parallel_jobs;
mod toolchain;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oarlock_formats::error::Error;
use oarlock_formats::file;
use oarlock_formats::file_packer::{CompressionEffort, FilePacker};
use oarlock_formats::wheel::Wheel;
use oarlock_matrix::{MatrixRow, WheelMatrix};

use crate::assemble;
use crate::build_artifact::{BuildArtifact, BuiltPlugin};
use crate::build_plan::{self, BuildRecipe, WheelPlan};
use crate::check;
use compile::PartCompiler;
pub use debs::PackagePlan;
use parallel_jobs::{JobEvent, run_jobs};

/// Builds wheels, packages and releases in a workspace.
#[derive(Clone, Debug)]
pub struct WorkspaceBuilder {
    root: PathBuf,
    /// The directory for everything that can be built again.
    target: PathBuf,
    /// The command `oarlock`, which queries plugins.
    command: Option<PathBuf>,
}

/// Progress: the step that starts, out of all steps.
#[derive(Debug)]
pub struct BuildStep {
    /// The number of steps before this one.
    pub done: usize,
    /// The number of steps in total.
    pub all: usize,
    /// A description of the step.
    pub text: String,
}

/// The output of a recipe.
struct RecipeOutput {
    made: BuildArtifact,
    /// Compile time of the last run in which cargo compiled something for it.
    took: Duration,
    /// A remark, such as that a plugin has no manifest.
    note: Option<String>,
}

/// The output of a plan.
#[derive(Debug)]
pub struct BuildOutcome {
    /// The wheels, with their sizes in bytes.
    pub wheels: Vec<(PathBuf, u64)>,
    /// The duration of the whole build.
    pub took: Duration,
    /// The share of it spent on assembling, packing and checking.
    pub packing: Duration,
    /// The time to compile each part once, as last measured, with other parts compiling in parallel.
    pub shared_compile_time: Duration,
    /// The time if each wheel compiled its parts separately.
    pub separate_compile_time: Duration,
    /// Remarks, such as that a plugin has no manifest.
    pub notes: Vec<String>,
}

impl WorkspaceBuilder {
    /// Opens a workspace.
    ///
    /// # Errors
    ///
    /// When the directory is not the root of the workspace.
    pub fn new(root: &Path) -> Result<Self, Error> {
        let root = root.canonicalize().map_err(Error::from).map_err(|error| error.in_file(root.display()))?;
        if !root.join("packaging/matrix.toml").is_file() {
            return Err(Error::new("expected the root of the sources of Oarlock").in_file(root.display()));
        }
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root.join("target"), |directory| root.join(directory))
            .join("pack");
        Ok(Self { root, target, command: None })
    }

    /// Uses this `oarlock` command to query plugins for this machine's architecture. Without it, cargo builds one on demand.
    #[must_use]
    pub fn with_command(self, command: Option<PathBuf>) -> Self {
        Self { command, ..self }
    }

    /// Builds a plan and writes each wheel atomically, with debug information by build id in `debug` beside them; `report` is
    /// called for each step.
    ///
    /// # Errors
    ///
    /// When a part fails to compile or fails its checks.
    pub fn build_wheels(
        &self,
        plan: &WheelPlan<'_>,
        out: &Path,
        effort: CompressionEffort,
        report: &dyn Fn(&BuildStep),
    ) -> Result<BuildOutcome, Error> {
        let begin = Instant::now();
        let mut steps = StepCounter::new(1 + plan.recipes().len() + plan.rows().len(), report);
        steps.next("installing maturin, zig and the wheel checkers".to_owned());
        let recipes: Vec<&BuildRecipe> = plan.recipes().iter().collect();
        let compiler = self.part_compiler(plan.matrix, &recipes)?;
        let parts = self.compile_recipes(&compiler, &recipes, &out.join("debug"), &mut steps)?;
        let shared_compile_time = parts.iter().map(|part| part.took).sum();
        let notes = parts.iter().filter_map(|part| part.note.clone()).collect();
        let packer = FilePacker::from(effort).with_cache(&self.target.join("packed"));
        let packing = Instant::now();
        let mut needed: Vec<(&MatrixRow, Vec<&RecipeOutput>)> = Vec::new();
        for row in plan.rows() {
            let of_row = build_plan::recipes_for_row(plan.matrix, row)?;
            let is_needed = |(recipe, part)| of_row.contains(recipe).then_some(part);
            needed.push((row, plan.recipes().iter().zip(&parts).filter_map(is_needed).collect()));
        }
        let separate_compile_time = needed.iter().flat_map(|(_, parts)| parts).map(|part| part.took).sum();
        let report =
            steps.count_jobs(|(row, _): &(&MatrixRow, Vec<&RecipeOutput>)| format!("packing {}", row.name));
        let wheels = run_jobs(
            &needed,
            |_, _| false,
            report,
            |(row, parts), _| {
                let wheel = assemble_row(plan, row, parts)?;
                let target = out.join(row.name.to_string());
                let bytes = wheel.to_bytes(&packer)?;
                check::check_size(row, &wheel, bytes.len() as u64)?;
                compiler.audit_wheel(row, &bytes)?;
                file::write_file(&target, &bytes)?;
                Ok((target, bytes.len() as u64))
            },
        )?;
        Ok(BuildOutcome {
            wheels,
            took: begin.elapsed(),
            packing: packing.elapsed(),
            shared_compile_time,
            separate_compile_time,
            notes,
        })
    }

    /// Takes the lock for building a release here, held for as long as the file is open.
    ///
    /// # Errors
    ///
    /// When another process holds it.
    pub fn lock_release_build(&self) -> Result<File, Error> {
        let place = self.release_path("building");
        let open = || {
            std::fs::create_dir_all(self.release_path(""))?;
            File::create(&place)
        };
        let file = open().map_err(|error| Error::from(error).in_file(place.display()))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Error::new(
                "expected no other release that is built of these sources now, found one; wait for its end",
            ),
            TryLockError::Error(error) => Error::from(error).in_file(place.display()),
        })?;
        Ok(file)
    }

    /// The path of an intermediate product of a release.
    #[must_use]
    pub fn release_path(&self, what: &str) -> PathBuf {
        self.target.join("release").join(what)
    }

    fn part_compiler<'w>(
        &'w self,
        matrix: &'w WheelMatrix,
        recipes: &[&BuildRecipe],
    ) -> Result<PartCompiler<'w>, Error> {
        PartCompiler::new(&self.root, &self.target, matrix, self.command.as_deref(), recipes.iter().copied())
    }

    /// Compiles parts and returns their outputs.
    fn compile_recipes(
        &self,
        compiler: &PartCompiler<'_>,
        recipes: &[&BuildRecipe],
        debug: &Path,
        steps: &mut StepCounter<'_>,
    ) -> Result<Vec<RecipeOutput>, Error> {
        let report_of = steps.count_jobs(|recipe: &&BuildRecipe| self.compiling_message(compiler, recipe));
        // Two cargo processes block each other on a shared target directory.
        let in_the_way = |one: &&BuildRecipe, other: &&BuildRecipe| {
            compiler.cargo_directory(one) == compiler.cargo_directory(other)
        };
        run_jobs(recipes, in_the_way, report_of, |recipe, report| {
            compile_recipe(compiler, recipe, debug, report)
        })
    }

    /// The progress message for a part.
    fn compiling_message(&self, compiler: &PartCompiler<'_>, recipe: &BuildRecipe) -> String {
        format!("compiling {recipe}; see `{}`", self.display_path(&compiler.log_path(recipe)))
    }

    /// A path relative to the root of the workspace.
    fn display_path<'f>(&self, file: &'f Path) -> std::path::Display<'f> {
        file.strip_prefix(&self.root).unwrap_or(file).display()
    }
}

/// Counts the steps of long work for progress reports.
struct StepCounter<'t> {
    begun: usize,
    all: usize,
    report: &'t dyn Fn(&BuildStep),
}

impl<'t> StepCounter<'t> {
    fn new(all: usize, report: &'t dyn Fn(&BuildStep)) -> Self {
        Self { begun: 0, all, report }
    }

    /// Reports the next step.
    fn next(&mut self, text: String) {
        (self.report)(&BuildStep { done: self.begun, all: self.all, text });
        self.begun += 1;
    }

    /// Returns a callback for parallel jobs that counts each as one step; `text` describes a job when it starts.
    fn count_jobs<W>(&mut self, text: impl Fn(&W) -> String) -> impl FnMut(JobEvent<'_, W>) {
        move |event| match event {
            JobEvent::Begins(work) => self.next(text(work)),
            JobEvent::SideStep(text) => {
                (self.report)(&BuildStep { done: self.begun.saturating_sub(1), all: self.all, text });
            }
        }
    }
}

/// Compiles a part; `report` is called for slow side work.
fn compile_recipe(
    compiler: &PartCompiler<'_>,
    recipe: &BuildRecipe,
    debug: &Path,
    report: &dyn Fn(String),
) -> Result<RecipeOutput, Error> {
    let part = match (&recipe.python, &recipe.part.file) {
        (Some(_), _) => compiler.compile_core(recipe, debug),
        (None, Some(file)) => compiler.compile_file(recipe, file, debug),
        (None, None) => compiler.compile_plugin(recipe, debug, report),
    };
    part.map_err(|error| Error::new(format!("{recipe}: {error}")))
}

/// Assembles the wheel of a row from its compiled parts.
fn assemble_row(plan: &WheelPlan<'_>, row: &MatrixRow, parts: &[&RecipeOutput]) -> Result<Wheel, Error> {
    let core = parts.iter().find_map(|part| match &part.made {
        BuildArtifact::Core(core) => Some(core),
        BuildArtifact::Plugin(_) | BuildArtifact::Other(_) => None,
    });
    let plugins = parts.iter().filter_map(|part| match &part.made {
        BuildArtifact::Core(_) | BuildArtifact::Other(_) => None,
        BuildArtifact::Plugin(plugin) => Some(plugin.clone()),
    });
    let plugins: Vec<BuiltPlugin> = plugins.collect();
    match (core, &plugins[..]) {
        (Some(core), plugins) => assemble::assemble_core_wheel(plan.matrix, row, core, plugins),
        (None, [plugin]) => assemble::assemble_plugin_wheel(row, plugin),
        (None, several) => {
            let found = several.len();
            Err(Error::new(format!("expected one plugin in `{}` of the matrix, found {found}", row.label)))
        }
    }
}
