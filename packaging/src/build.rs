//! Builds what wheels are put together of: each part once for all wheels that it is in.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::assemble::{self, Plugin};
use crate::error::Error;
use crate::file;
use crate::matrix::{Axis, Matrix, Wheel as Row};
use crate::wheel::{Effort, Wheel};

/// What the tools are that a build needs beside cargo, as pip installs them.
const TOOLS: [&str; 3] = ["maturin==1.16.0", "ziglang==0.17.1", "cargo-zigbuild==0.24.0"];

/// What compiles no instruction of AVX, in the crates of others too.
const WITHOUT_AVX: &str =
    "--cfg oarlock_no_avx --cfg sha2_backend=\"soft\" --cfg curve25519_dalek_backend=\"serial\"";

/// Something that is compiled.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Part {
    /// What the matrix calls it: `core`, or the name of a plugin.
    name: String,
    /// Whether no instruction of AVX may lie in it.
    without_avx: bool,
    /// The oldest glibc that it runs with, such as `2_28`.
    glibc: String,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for glibc {}", self.name, self.glibc.replace('_', "."))?;
        if self.without_avx { f.write_str(", without AVX") } else { Ok(()) }
    }
}

/// What is to be built: rows of the matrix, and the parts that they are put together of.
#[derive(Debug)]
pub struct Plan<'m> {
    rows: Vec<&'m Row>,
    parts: Vec<Part>,
}

impl<'m> Plan<'m> {
    /// All rows of the matrix that can be built here, or those of these labels.
    ///
    /// # Errors
    ///
    /// When there is no row of a label, or one that cannot be built.
    pub fn new(matrix: &'m Matrix, labels: &[String]) -> Result<Self, Error> {
        let mut rows = Vec::new();
        for label in labels {
            let row = matrix.wheels.iter().find(|row| row.label == *label).ok_or_else(|| {
                let all = matrix.wheels.iter().map(|row| row.label.as_str()).collect::<Vec<_>>().join("; ");
                Error::new(format!("expected a row of the matrix, one of {all}; found `{label}`"))
            })?;
            if let Some(why) = obstacle(row) {
                return Err(Error::new(format!("expected a row that can be built, found `{label}`: {why}")));
            }
            rows.push(row);
        }
        if labels.is_empty() {
            rows = matrix.wheels.iter().filter(|row| obstacle(row).is_none()).collect();
        }
        let mut parts: Vec<Part> = rows
            .iter()
            .map(|row| parts_of(row))
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect();
        parts.sort();
        parts.dedup();
        Ok(Self { rows, parts })
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &[&'m Row] {
        &self.rows
    }

    /// What is compiled, each once.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

/// Why a row cannot be built.
fn obstacle(row: &Row) -> Option<&str> {
    let needs_python =
        row.name.python.ends_with('t').then_some("it needs a Python without a lock to be built with");
    row.planned.as_deref().or(needs_python)
}

fn parts_of(row: &Row) -> Result<Vec<Part>, Error> {
    let tag = &row.name.platform;
    let glibc = tag.strip_prefix("manylinux_").and_then(|rest| rest.strip_suffix("_x86_64"));
    let glibc = glibc.ok_or_else(|| {
        Error::new(format!(
            "expected a platform such as `manylinux_2_28_x86_64`, which alone is built here; found `{tag}`"
        ))
    })?;
    let without_avx = row.combination.get(&Axis::Isa).is_some_and(|isa| isa == "noavx");
    let part = |name: &String| Part {
        // Plugins are compiled for the least processor anyway.
        without_avx: without_avx && name == "core",
        name: name.clone(),
        glibc: glibc.to_owned(),
    };
    Ok(row.parts.iter().map(part).collect())
}

/// Where things are built.
#[derive(Debug)]
pub struct Workshop {
    /// The root of the workspace.
    root: PathBuf,
    /// Where everything that is built and can be built again lies.
    target: PathBuf,
}

impl Workshop {
    /// In a workspace.
    ///
    /// # Errors
    ///
    /// When the directory is not the root of the workspace.
    pub fn new(root: &Path) -> Result<Self, Error> {
        let root = root.canonicalize().map_err(Error::from).map_err(|error| error.of_file(root.display()))?;
        if !root.join("packaging/matrix.toml").is_file() {
            return Err(Error::new("expected the root of the sources of Oarlock").of_file(root.display()));
        }
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root.join("target"), PathBuf::from)
            .join("pack");
        Ok(Self { root, target })
    }

    /// Builds all of a plan and writes the wheels, each whole or not at all; `tell` hears what happens next.
    ///
    /// # Errors
    ///
    /// When a part does not compile or is not what it should be.
    pub fn build(
        &self,
        plan: &Plan<'_>,
        out: &Path,
        effort: Effort,
        tell: &dyn Fn(&str),
    ) -> Result<Vec<PathBuf>, Error> {
        tell("installing maturin, zig and cargo-zigbuild");
        self.install_tools()?;
        let mut cores = BTreeMap::new();
        let mut plugins = BTreeMap::new();
        for part in &plan.parts {
            tell(&format!("compiling {part}"));
            if part.name == "core" {
                cores.insert(part, self.core(part)?);
            } else {
                plugins.insert(part, self.plugin(part, tell)?);
            }
        }
        let licence = std::fs::read(self.root.join("LICENSE"))?;
        let mut written = Vec::new();
        for row in &plan.rows {
            let parts = parts_of(row)?;
            let beside: Vec<Plugin> = parts.iter().filter_map(|part| plugins.get(part).cloned()).collect();
            let core = parts.iter().find_map(|part| cores.get(part));
            let wheel = match core {
                Some(core) => &assemble::one_file(row, core, &beside)?,
                None => &assemble::plugin(row, &beside[0], &licence)?,
            };
            let target = out.join(row.name.to_string());
            tell(&format!("packing {}", row.name));
            let bytes = wheel.to_bytes(effort)?;
            if let Some(budget) = row.budget.filter(|budget| bytes.len() as u64 > *budget) {
                let found = bytes.len();
                return Err(
                    Error::new(format!("expected at most {budget} bytes, found {found}")).of_file(&row.name)
                );
            }
            file::write(&target, &bytes)?;
            written.push(target);
        }
        Ok(written)
    }

    fn install_tools(&self) -> Result<(), Error> {
        let tools = self.target.join("tools");
        if !tools.join("bin/python").exists() {
            self.run(Command::new("python3").args(["-m", "venv"]).arg(&tools))?;
        }
        let mut pip = Command::new(tools.join("bin/python"));
        self.run(pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(TOOLS))
    }

    /// Compiles the core.
    fn core(&self, part: &Part) -> Result<Wheel, Error> {
        let made = self.target.join(part.directory());
        if made.exists() {
            std::fs::remove_dir_all(&made)?;
        }
        let mut maturin = self.tool("maturin", part);
        maturin.args([
            "build",
            "--release",
            "--locked",
            "--zig",
            "--quiet",
            "--manifest-path",
            "runtime/python/Cargo.toml",
        ]);
        maturin.args(["--compatibility", &format!("manylinux_{}", part.glibc), "--out"]).arg(&made);
        self.run(&mut maturin)?;
        let found = std::fs::read_dir(&made)?.collect::<Result<Vec<_>, _>>()?;
        match &found[..] {
            [one] => Wheel::read(&one.path()),
            _ => {
                Err(Error::new(format!("expected one wheel, found {}", found.len())).of_file(made.display()))
            }
        }
    }

    /// Compiles a plugin, and has the command write its manifest, for which the plugin has to start.
    fn plugin(&self, part: &Part, tell: &dyn Fn(&str)) -> Result<Plugin, Error> {
        let Part { name, glibc, .. } = part;
        let package = format!("oarlock-plugin-{name}");
        let mut cargo = self.tool("cargo-zigbuild", part);
        cargo.args([
            "zigbuild",
            "--release",
            "--locked",
            "--quiet",
            "--package",
            &package,
            "--features",
            "shared-object",
        ]);
        cargo.args(["--target", &format!("x86_64-unknown-linux-gnu.{}", glibc.replace('_', "."))]);
        self.run(&mut cargo)?;
        let file = format!("liboarlock_plugin_{name}.so");
        let built = self.target.join("cargo/x86_64-unknown-linux-gnu/release").join(&file);
        let directory = self.target.join(part.directory());
        std::fs::create_dir_all(&directory)?;
        let stripped = directory.join(&file);
        self.run(Command::new("strip").args(["--strip-unneeded", "-o"]).arg(&stripped).arg(&built))?;
        let mut command = Command::new("cargo");
        command.args(["run", "--quiet", "--locked", "--package", "oarlock-cli", "--", "plugin", "manifest"]);
        let manifest = command.arg(&stripped).current_dir(&self.root).output()?;
        let text = String::from_utf8_lossy(&manifest.stdout).into_owned();
        if !manifest.status.success() {
            let said = String::from_utf8_lossy(&manifest.stderr);
            let first = said.lines().next().unwrap_or_default();
            tell(&format!("`{file}` has no manifest, so hosts will ask it: {first}"));
        }
        Ok(Plugin {
            name: name.clone(),
            library: std::fs::read(&stripped)?,
            manifest: manifest.status.success().then_some(text),
        })
    }

    /// A tool that compiles for a part.
    fn tool(&self, name: &str, part: &Part) -> Command {
        let tools = self.target.join("tools/bin");
        let mut command = Command::new(tools.join(name));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(tools).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(paths).unwrap_or(path));
        // Flags change everything that is compiled, so each set of them has a directory of its own.
        let directory = if part.without_avx { "cargo-without-avx" } else { "cargo" };
        command.env("CARGO_TARGET_DIR", self.target.join(directory));
        if part.without_avx {
            command.env("RUSTFLAGS", WITHOUT_AVX);
        }
        command
    }

    fn run(&self, command: &mut Command) -> Result<(), Error> {
        let program = command.get_program().to_string_lossy().into_owned();
        let status = command.current_dir(&self.root).status();
        let status = status.map_err(|error| Error::new(format!("expected to start `{program}`: {error}")))?;
        if status.success() { Ok(()) } else { Err(Error::new(format!("`{program}` failed: {status}"))) }
    }
}

impl Part {
    /// A name for what is built of it.
    fn directory(&self) -> String {
        let without = if self.without_avx { "-without-avx" } else { "" };
        format!("{}-{}{without}", self.name, self.glibc)
    }
}
