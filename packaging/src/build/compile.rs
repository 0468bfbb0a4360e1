//! Compiles with cargo and with zig as the linker, so that the output runs on a glibc older than the builder's and contains no
//! path of the builder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use oarlock_formats::build_id;
use oarlock_formats::error::Error;
use oarlock_formats::wheel::Wheel;
use oarlock_matrix::{CpuArchitecture, MatrixRow, WheelMatrix};

use crate::assemble::plugin_file_name;
use crate::build::RecipeOutput;
use crate::build::toolchain::TargetToolchain;
use crate::build_artifact::{BuildArtifact, BuiltCore, BuiltFile, BuiltPlugin, CompiledPart};
use crate::build_plan::{BuildRecipe, CORE_LIBRARY_PREFIX, command_recipe};
use crate::build_tools::BuildTools;
use crate::library_requirements::{self, LibraryLimits};
use crate::licenses;
use crate::part_sbom;

/// Keeps AVX out of all code, including third-party crates.
const RUSTFLAGS_WITHOUT_AVX: [&str; 6] = [
    "--cfg",
    "oarlock_no_avx",
    "--cfg",
    "sha2_backend=\"soft\"",
    "--cfg",
    "curve25519_dalek_backend=\"serial\"",
];

/// The rustc wrapper for builds without AVX, relative to the root of the workspace.
const RUSTC_WRAPPER_WITHOUT_AVX: &str = "packaging/rustc-without-avx";

/// The profile in `Cargo.toml` for published builds.
const CARGO_PROFILE: &str = "dist";

/// The line that cargo prints when it compiles a crate instead of reusing it.
const COMPILING_PREFIX: &str = "   Compiling ";

pub(crate) struct PartCompiler<'w> {
    root: &'w Path,
    target: &'w Path,
    tools: BuildTools<'w>,
    license: String,
    matrix: &'w WheelMatrix,
    /// The command that queries plugins for this machine, if it is already built.
    command: Option<&'w Path>,
    toolchains: BTreeMap<CpuArchitecture, TargetToolchain>,
}

impl<'w> PartCompiler<'w> {
    /// Installs the tools for recipes that are missing.
    pub(crate) fn new<'r>(
        root: &'w Path,
        target: &'w Path,
        matrix: &'w WheelMatrix,
        command: Option<&'w Path>,
        recipes: impl Iterator<Item = &'r BuildRecipe>,
    ) -> Result<Self, Error> {
        let tools = BuildTools::new(root, target)?;
        let mut toolchains = BTreeMap::new();
        for BuildRecipe { architecture, .. } in recipes {
            if !toolchains.contains_key(architecture) {
                toolchains.insert(*architecture, TargetToolchain::new(root, target, &tools, *architecture)?);
            }
        }
        let license = fs::read_to_string(root.join("LICENSE"))?;
        Ok(Self { root, target, tools, license, matrix, command, toolchains })
    }

    /// The toolchain for a recipe, which is one of those that this compiler is for.
    pub(super) fn toolchain(&self, recipe: &BuildRecipe) -> &TargetToolchain {
        &self.toolchains[&recipe.architecture]
    }

    /// The log of compiling a part.
    pub(crate) fn log_path(&self, recipe: &BuildRecipe) -> PathBuf {
        self.tools.log_path(&recipe.directory_name())
    }

    pub(super) fn compile_core(&self, recipe: &BuildRecipe, debug: &Path) -> Result<RecipeOutput, Error> {
        let made = self.target.join("made").join(recipe.directory_name());
        if made.exists() {
            fs::remove_dir_all(&made)?;
        }
        let mut maturin = self.tool_command("maturin", recipe);
        maturin.args(["build", "--profile", CARGO_PROFILE, "--locked", "--zig", "--no-default-features"]);
        maturin.args(["--manifest-path", "runtime/python/Cargo.toml"]);
        maturin.args(["--compatibility", &format!("manylinux_{}", recipe.glibc), "--out"]).arg(&made);
        maturin
            .args(self.toolchain(recipe).cross_target().into_iter().flat_map(|target| ["--target", target]));
        if recipe.is_free_threaded() {
            maturin.args(["--interpreter", "python3.14t"]);
        }
        let took = self.run_compiler(recipe, &mut maturin)?;
        let found = fs::read_dir(&made)?.collect::<Result<Vec<_>, _>>()?;
        let [one] = &found[..] else {
            let found = found.len();
            return Err(Error::new(format!("expected one wheel, found {found}")).in_file(made.display()));
        };
        let mut wheel = Wheel::read_file(&one.path())?;
        let path = wheel.paths().find(|path| path.starts_with(CORE_LIBRARY_PREFIX) && path.ends_with(".so"));
        let path = path.ok_or_else(|| {
            Error::new(format!("expected a library `{CORE_LIBRARY_PREFIX}…so`, found none"))
        })?;
        let path = path.to_owned();
        let library = self.finish_library(recipe, wheel.file_bytes(&path)?, debug)?;
        wheel.add_executable(&path, library);
        let made = BuildArtifact::Core(BuiltCore { built: self.describe_compiled_part(recipe)?, wheel });
        Ok(RecipeOutput { made, took, note: None })
    }

    /// Compiles a plugin. If this machine cannot write a manifest for it, the note explains why. `report` is called for slow side
    /// work.
    pub(super) fn compile_plugin(
        &self,
        recipe: &BuildRecipe,
        debug: &Path,
        report: &dyn Fn(String),
    ) -> Result<RecipeOutput, Error> {
        let file = plugin_file_name(&recipe.part.package);
        let (library, took) = self.run_cargo_build(recipe, &file, debug)?;
        let place = self.target.join("made").join(recipe.directory_name()).join(&file);
        oarlock_formats::file::write_file(&place, &library)?;
        let (manifest, note) = match self.plugin_manifest(recipe, &place, report) {
            Ok(text) => (Some(text), None),
            Err(why) => (
                None,
                Some(format!(
                    "`{file}` has no manifest, without which `check` and `index` refuse its wheels: {why}"
                )),
            ),
        };
        let made = BuildArtifact::Plugin(BuiltPlugin {
            built: self.describe_compiled_part(recipe)?,
            library,
            manifest,
        });
        Ok(RecipeOutput { made, took, note })
    }

    pub(super) fn compile_file(
        &self,
        recipe: &BuildRecipe,
        file: &str,
        debug: &Path,
    ) -> Result<RecipeOutput, Error> {
        let (bytes, took) = self.run_cargo_build(recipe, file, debug)?;
        let made = BuildArtifact::Other(BuiltFile { built: self.describe_compiled_part(recipe)?, bytes });
        Ok(RecipeOutput { made, took, note: None })
    }

    /// Runs cargo for a recipe and returns the finished library or program.
    fn run_cargo_build(
        &self,
        recipe: &BuildRecipe,
        file: &str,
        debug: &Path,
    ) -> Result<(Vec<u8>, Duration), Error> {
        let (built, took) = self.run_cargo(recipe, file)?;
        Ok((self.finish_library(recipe, &fs::read(built)?, debug)?, took))
    }

    /// Runs cargo for a recipe and returns the file as cargo leaves it, with its debug information.
    fn run_cargo(&self, recipe: &BuildRecipe, file: &str) -> Result<(PathBuf, Duration), Error> {
        let mut cargo = self.tool_command("cargo-zigbuild", recipe);
        let is_program = recipe.part.file.is_some() && !file.ends_with(".so");
        cargo.args([
            "rustc",
            "--profile",
            CARGO_PROFILE,
            "--locked",
            "--package",
            &recipe.part.package,
            "--no-default-features",
            "--features",
            &cargo_features(recipe).join(","),
        ]);
        let triple = recipe.architecture.target_triple();
        cargo.args(["--target", &format!("{triple}.{}", recipe.glibc.replace('_', "."))]);
        if is_program {
            // A system's unwinder may use newer glibc symbols; the glibc of that system provides them.
            cargo.args(["--bin", file, "--", "-C", "link-arg=-Wl,--allow-shlib-undefined"]);
        } else {
            // Builds the library alone: the crate may have other targets, such as part of the command.
            cargo.args(["--lib", "--crate-type", "cdylib"]);
        }
        let took = self.run_compiler(recipe, &mut cargo)?;
        Ok((self.cargo_directory(recipe).join(triple).join(CARGO_PROFILE).join(file), took))
    }

    /// Loads a plugin to get its manifest; if it does not load, tries again with its vendor's libraries.
    fn plugin_manifest(
        &self,
        recipe: &BuildRecipe,
        library: &Path,
        report: &dyn Fn(String),
    ) -> Result<String, Error> {
        let first = self.query_plugin_manifest(recipe, library, None);
        if first.is_ok() || recipe.part.libraries.is_empty() {
            return first;
        }
        let place = self.target.join("libraries").join(&recipe.name);
        if !place.exists() {
            // A virtual environment, because `pip install --target` drops files outside of packages.
            let libraries = recipe.part.libraries.join(", ");
            report(format!("installing {libraries}, to query the plugin `{}`", recipe.name));
            let new = place.with_extension("new");
            let log = format!("libraries-{}", recipe.name);
            self.tools.create_environment(&new, &log)?;
            self.tools.run_tool(self.tools.pip_command(&new).args(&recipe.part.libraries), &log)?;
            fs::rename(new, &place)?;
        }
        self.query_plugin_manifest(recipe, library, Some(&place))
    }

    /// Queries a plugin through the command; libraries may be anywhere below `libraries`.
    fn query_plugin_manifest(
        &self,
        recipe: &BuildRecipe,
        library: &Path,
        libraries: Option<&Path>,
    ) -> Result<String, Error> {
        let mut command = self.querying_command(recipe)?;
        command.args(["plugin", "manifest"]).arg(library).current_dir(self.root);
        if let Some(libraries) = libraries {
            command.env(
                "LD_LIBRARY_PATH",
                std::env::join_paths(library_directories(libraries)).unwrap_or_default(),
            );
        }
        let output = command.output()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(Error::new(complaint.lines().next().unwrap_or_default()))
    }

    /// The command `oarlock` for the architecture of a plugin. For another architecture than this machine's it is the one that packages
    /// ship: it has most crates in common with the plugin, and qemu is slow with unoptimized programs.
    fn querying_command(&self, recipe: &BuildRecipe) -> Result<Command, Error> {
        if self.toolchain(recipe).cross_target().is_some() {
            let shipped = command_recipe(self.matrix, recipe.architecture)?;
            let (file, _) =
                self.run_cargo(&shipped, shipped.part.file.as_deref().unwrap_or(&shipped.name))?;
            let words = self.toolchain(recipe).program_words(file);
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            return Ok(command);
        }
        if let Some(given) = self.command {
            return Ok(Command::new(given));
        }
        let mut command = Command::new("cargo");
        command.args(["run", "--quiet", "--locked", "--package", "oarlock-cli", "--"]);
        Ok(command)
    }

    /// Strips a library, files its debug information under its build id, and checks it against its recipe.
    fn finish_library(&self, recipe: &BuildRecipe, bytes: &[u8], debug: &Path) -> Result<Vec<u8>, Error> {
        let directory = self.target.join("made");
        fs::create_dir_all(&directory)?;
        let scratch = tempfile::tempdir_in(&directory)?;
        let [whole, stripped, symbols] =
            ["whole", "stripped", "symbols"].map(|name| scratch.path().join(name));
        fs::write(&whole, bytes)?;
        let log = format!("strip-{}", recipe.directory_name());
        let toolchain = self.toolchain(recipe);
        self.tools.run_tool(
            toolchain
                .binutils("strip")
                .args(["--strip-unneeded", "--remove-section=.comment", "-o"])
                .arg(&stripped)
                .arg(&whole),
            &log,
        )?;
        self.tools.run_tool(
            toolchain.binutils("objcopy").arg("--only-keep-debug").arg(&whole).arg(&symbols),
            &log,
        )?;
        let (mut library, mut symbols) = (fs::read(&stripped)?, fs::read(&symbols)?);
        build_id::set_build_id(&mut library, &mut symbols)?;
        let platform = &format!("manylinux_{}_{}", recipe.glibc, recipe.architecture.name());
        let limits = LibraryLimits { platform, part: Some(&recipe.part), without_avx: recipe.without_avx };
        let needs = library_requirements::check_library(&library, bytes, limits)?;
        let id =
            needs.build_id.ok_or_else(|| Error::new("expected a library with a build id, found none"))?;
        let place = debug.join(".build-id").join(library_requirements::build_id_path(&id));
        oarlock_formats::file::write_file(&place, &symbols)?;
        Ok(library)
    }

    fn describe_compiled_part(&self, recipe: &BuildRecipe) -> Result<CompiledPart, Error> {
        let package = recipe.part.package.clone();
        let graph = &self.toolchain(recipe).crates;
        let crates = graph.linked_crates(&package, &cargo_features(recipe))?;
        Ok(CompiledPart {
            part: recipe.name.clone(),
            opens: recipe.part.opens.clone(),
            sbom: part_sbom::render_sbom(graph, &crates, &recipe.part.opens),
            licenses: licenses::collect_licenses(&crates)?,
            license: self.license.clone(),
            package,
        })
    }

    /// Runs third-party audits of a wheel: `auditwheel` checks the platform tag, and `abi3audit` checks that it only uses the
    /// stable ABI of Python.
    pub(crate) fn audit_wheel(&self, row: &MatrixRow, bytes: &[u8]) -> Result<(), Error> {
        let scratch = tempfile::tempdir_in(self.target)?;
        let wheel = &scratch.path().join(row.name.to_string());
        fs::write(wheel, bytes)?;
        let log = format!("audit-{}", row.name);
        let output =
            self.tools.run_tool(self.tools.tool_command("auditwheel").arg("show").arg(wheel), &log)?;
        // `auditwheel` reports the oldest compatible system, which may be older than the requested one.
        let found = parse_platform_tag(&output);
        if found
            .as_deref()
            .and_then(library_requirements::glibc_version)
            .is_none_or(|oldest| Some(oldest) > library_requirements::glibc_version(&row.name.platform))
        {
            let found = found.unwrap_or(output);
            let wanted = &row.name.platform;
            let message = format!("expected auditwheel to find `{wanted}` or older, found `{found}`");
            return Err(Error::new(message).in_file(&row.name));
        }
        if row.name.python.ends_with("abi3") {
            let mut audit = self.tools.tool_command("abi3audit");
            self.tools.run_tool(audit.args(["--strict", "--summary"]).arg(wheel), &log)?;
        }
        Ok(())
    }

    /// Compiles a part. Returns the duration of the last run in which cargo compiled something for it.
    fn run_compiler(&self, recipe: &BuildRecipe, command: &mut Command) -> Result<Duration, Error> {
        let begin = Instant::now();
        let output = self.tools.run_tool(command, &recipe.directory_name())?;
        let took = begin.elapsed();
        let place = self.target.join("took").join(recipe.directory_name());
        let before = fs::read_to_string(&place).ok().and_then(|text| text.parse().ok());
        match before.map(Duration::from_millis) {
            Some(before) if !output.lines().any(|line| line.starts_with(COMPILING_PREFIX)) => Ok(before),
            _ => {
                oarlock_formats::file::write_file(&place, took.as_millis().to_string().as_bytes())?;
                Ok(took)
            }
        }
    }

    /// A target directory for each set of flags. Flags affect every crate, and maturin and cargo-zigbuild each add their own, so
    /// with a shared directory each build would invalidate the other's.
    pub(super) fn cargo_directory(&self, recipe: &BuildRecipe) -> PathBuf {
        let kind = match (&recipe.python, recipe.leaves_out_avx()) {
            (Some(_), _) => recipe.directory_name(),
            (None, false) if recipe.architecture == CpuArchitecture::Aarch64 => "plugins-aarch64".to_owned(),
            (None, false) => "plugins".to_owned(),
            (None, true) => "plugins-without-avx".to_owned(),
        };
        self.target.join("cargo").join(kind)
    }

    /// The command of a build tool with the environment of a recipe.
    fn tool_command(&self, name: &str, recipe: &BuildRecipe) -> Command {
        let mut command = self.tools.tool_command(name);
        command.env("CARGO_TARGET_DIR", self.cargo_directory(recipe));
        command
            .env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only")
            .env("CARGO_PROFILE_RELEASE_STRIP", "none");
        // zig compiles parts of the C library while it links, and debug information would record zig's path. zig caches these
        // objects, so builds of this kind get a separate cache.
        command.env("CCC_OVERRIDE_OPTIONS", "#+-g0").env("ZIG_GLOBAL_CACHE_DIR", self.target.join("zig"));
        let toolchain = self.toolchain(recipe);
        toolchain.set_environment(&mut command);
        let mut flags = toolchain.flags.clone();
        if recipe.leaves_out_avx() {
            flags.extend(RUSTFLAGS_WITHOUT_AVX.map(str::to_owned));
            command.env("RUSTC_WRAPPER", self.root.join(RUSTC_WRAPPER_WITHOUT_AVX));
        }
        command.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        command
    }
}

/// The cargo features of a package. A plugin needs the one that exports the symbols that hosts look up.
fn cargo_features(recipe: &BuildRecipe) -> Vec<String> {
    let is_plugin = recipe.python.is_none() && recipe.part.file.is_none();
    let own = is_plugin.then(|| "shared-object".to_owned());
    own.into_iter().chain(recipe.part.features.iter().cloned()).collect()
}

/// The tag that `auditwheel show` reports, such as `manylinux_2_17_x86_64`. Its output breaks lines at any word.
fn parse_platform_tag(output: &str) -> Option<String> {
    let text = output.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, after) = text.split_once("is consistent with the following platform tag: \"")?;
    Some(after.split_once('"')?.0.to_owned())
}

/// All directories below `root` that contain shared objects.
fn library_directories(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = left.pop() {
        let entries: Vec<PathBuf> =
            fs::read_dir(&directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        let is_library = |file: &PathBuf| file.to_string_lossy().contains(".so");
        if entries.iter().any(is_library) {
            found.push(directory);
        }
        left.extend(entries.into_iter().filter(|entry| entry.is_dir() && !entry.is_symlink()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_is_found_in_what_auditwheel_says() {
        let output = "\nx.whl is consistent with the\nfollowing platform tag: \"manylinux_2_17_x86_64\".\n\nThe wheel\n";
        assert_eq!(parse_platform_tag(output).as_deref(), Some("manylinux_2_17_x86_64"));
        assert_eq!(parse_platform_tag("x.whl is no wheel"), None);
    }
}
