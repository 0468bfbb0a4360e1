//! Builds the wheels of the matrix. What they are put together of is compiled once for all of them, by cargo with zig for an
//! older glibc than that of the builder; putting together and packing is kept too, so that a run that was interrupted goes on
//! where it stood.

pub(crate) mod book;
mod compile;
mod debs;
mod library_check;
mod parallel_jobs;
mod plan;
pub(crate) mod tools;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) use compile::CORE_LIBRARY_PREFIX;
pub use debs::PackagePlan;
pub use plan::{BuildRecipe, WheelPlan};
pub(crate) use plan::{CORE_PART, is_without_avx, recipe_for_part};

use crate::assemble::{self, BuildArtifact, BuiltPlugin};
use crate::check;
use crate::error::Error;
use crate::file;
use crate::file_packer::{CompressionEffort, FilePacker};
use crate::matrix::MatrixRow as Row;
use crate::wheel::Wheel;
use compile::PartCompiler;
use parallel_jobs::{JobEvent, run_jobs};

/// Where things are built.
#[derive(Clone, Debug)]
pub struct WorkspaceBuilder {
    /// The root of the workspace.
    root: PathBuf,
    /// Where everything that is built and can be built again lies.
    target: PathBuf,
    /// The command `oarlock`, which asks plugins what they are.
    command: Option<PathBuf>,
}

/// What is done next, of all that there is to do.
#[derive(Debug)]
pub struct BuildStep {
    /// How many steps began before it.
    pub done: usize,
    /// How many there are.
    pub all: usize,
    /// What it is.
    pub text: String,
}

/// What came of a recipe.
struct RecipeOutput {
    made: BuildArtifact,
    /// How long compiling it took when cargo last had something to compile for it.
    took: Duration,
    /// What has to be known of it, such as that a plugin has no manifest.
    note: Option<String>,
}

/// What came of a plan.
#[derive(Debug)]
pub struct BuildOutcome {
    /// The wheels, with their sizes in bytes.
    pub wheels: Vec<(PathBuf, u64)>,
    /// How long all of it took.
    pub took: Duration,
    /// How long putting together, packing and judging took of that.
    pub packing: Duration,
    /// How long it takes to compile each part once, as measured when cargo last had something to compile for it, beside others.
    pub once: Duration,
    /// The same if each wheel compiled its parts for itself.
    pub apart: Duration,
    /// What has to be known of what was built, such as that a plugin has no manifest.
    pub notes: Vec<String>,
}

impl WorkspaceBuilder {
    /// In a workspace.
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

    /// The same with the command `oarlock`, which asks plugins what they are. Without it cargo builds one where it is needed.
    #[must_use]
    pub fn with_command(self, command: Option<PathBuf>) -> Self {
        Self { command, ..self }
    }

    /// Builds all of a plan and writes the wheels, each whole or not at all, and beside them in `debug` what debuggers find by
    /// build id; `tell` hears what happens next.
    ///
    /// # Errors
    ///
    /// When a part does not compile or is not what it should be.
    pub fn build_wheels(
        &self,
        plan: &WheelPlan<'_>,
        out: &Path,
        effort: CompressionEffort,
        tell: &dyn Fn(&BuildStep),
    ) -> Result<BuildOutcome, Error> {
        let begin = Instant::now();
        let mut steps = StepCounter::new(1 + plan.recipes().len() + plan.rows().len(), tell);
        steps.next("installing maturin, zig and what checks wheels".to_owned());
        let compiler = PartCompiler::new(&self.root, &self.target, self.command.as_deref())?;
        let recipes: Vec<&BuildRecipe> = plan.recipes().iter().collect();
        let parts = self.compile_recipes(&compiler, &recipes, &out.join("debug"), &mut steps)?;
        let once = parts.iter().map(|part| part.took).sum();
        let notes = parts.iter().filter_map(|part| part.note.clone()).collect();
        let packer = FilePacker::from(effort).with_cache(&self.target.join("packed"));
        let packing = Instant::now();
        let mut needed: Vec<(&Row, Vec<&RecipeOutput>)> = Vec::new();
        for row in plan.rows() {
            let of_row = plan::recipes_for_row(plan.matrix, row)?;
            let is_needed = |(recipe, part)| of_row.contains(recipe).then_some(part);
            needed.push((row, plan.recipes().iter().zip(&parts).filter_map(is_needed).collect()));
        }
        let apart = needed.iter().flat_map(|(_, parts)| parts).map(|part| part.took).sum();
        let tell = steps.count_jobs(|(row, _): &(&Row, Vec<&RecipeOutput>)| format!("packing {}", row.name));
        let wheels = run_jobs(
            &needed,
            |_, _| false,
            tell,
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
        Ok(BuildOutcome { wheels, took: begin.elapsed(), packing: packing.elapsed(), once, apart, notes })
    }

    /// Has this program alone build a release here, for as long as the file is open.
    ///
    /// # Errors
    ///
    /// When another one does.
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

    /// Where something that a release is put together of lies for as long as that takes.
    #[must_use]
    pub fn release_path(&self, what: &str) -> PathBuf {
        self.target.join("release").join(what)
    }

    /// Compiles parts, and gives what comes of each.
    fn compile_recipes(
        &self,
        compiler: &PartCompiler<'_>,
        recipes: &[&BuildRecipe],
        debug: &Path,
        steps: &mut StepCounter<'_>,
    ) -> Result<Vec<RecipeOutput>, Error> {
        let tell_of = steps.count_jobs(|recipe: &&BuildRecipe| self.compiling_message(compiler, recipe));
        // Two cargos wait for each other where they write into one directory.
        let in_the_way = |one: &&BuildRecipe, other: &&BuildRecipe| {
            compiler.cargo_directory(one) == compiler.cargo_directory(other)
        };
        run_jobs(recipes, in_the_way, tell_of, |recipe, tell| compile_recipe(compiler, recipe, debug, tell))
    }

    /// What is said before a part is compiled.
    fn compiling_message(&self, compiler: &PartCompiler<'_>, recipe: &BuildRecipe) -> String {
        format!("compiling {recipe}; it is told in `{}`", self.display_path(&compiler.log_path(recipe)))
    }

    /// A file as it is called from the root of the workspace.
    fn display_path<'f>(&self, file: &'f Path) -> std::path::Display<'f> {
        file.strip_prefix(&self.root).unwrap_or(file).display()
    }
}

/// Counts what is told of long work.
struct StepCounter<'t> {
    begun: usize,
    all: usize,
    tell: &'t dyn Fn(&BuildStep),
}

impl<'t> StepCounter<'t> {
    fn new(all: usize, tell: &'t dyn Fn(&BuildStep)) -> Self {
        Self { begun: 0, all, tell }
    }

    /// The next one begins.
    fn next(&mut self, text: String) {
        (self.tell)(&BuildStep { done: self.begun, all: self.all, text });
        self.begun += 1;
    }

    /// What tells of works that go on side by side, of which each is a step; `text` is what is told as it begins.
    fn count_jobs<W>(&mut self, text: impl Fn(&W) -> String) -> impl FnMut(JobEvent<'_, W>) {
        move |heard| match heard {
            JobEvent::Begins(work) => self.next(text(work)),
            JobEvent::Beside(text) => {
                (self.tell)(&BuildStep { done: self.begun.saturating_sub(1), all: self.all, text });
            }
        }
    }
}

/// Compiles a part; `tell` hears of what takes long beside.
fn compile_recipe(
    compiler: &PartCompiler<'_>,
    recipe: &BuildRecipe,
    debug: &Path,
    tell: &dyn Fn(String),
) -> Result<RecipeOutput, Error> {
    let part = match (&recipe.python, &recipe.part.file) {
        (Some(_), _) => compiler.compile_core(recipe, debug),
        (None, Some(file)) => compiler.compile_file(recipe, file, debug),
        (None, None) => compiler.compile_plugin(recipe, debug, tell),
    };
    part.map_err(|error| Error::new(format!("{recipe}: {error}")))
}

/// The wheel of a row, of what was compiled for it.
fn assemble_row(plan: &WheelPlan<'_>, row: &Row, parts: &[&RecipeOutput]) -> Result<Wheel, Error> {
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
