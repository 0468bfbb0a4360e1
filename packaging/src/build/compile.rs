//! Compiling: cargo with zig as its linker, so that what is built runs with an older glibc than that of the builder, and with
//! no path of the builder in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::assemble::{Built, Core, Made, Other, Plugin, file_of};
use crate::bill;
use crate::build::Part;
use crate::build::plan::Recipe;
use crate::build::tools::Tools;
use crate::build_id;
use crate::crates::Crates;
use crate::error::Error;
use crate::library::{self, Limits};
use crate::licences;
use crate::matrix::Wheel as Row;
use crate::vendor;
use crate::wheel::Wheel;

/// What compiles no instruction of AVX, in the crates of others too.
const WITHOUT_AVX: [&str; 6] = [
    "--cfg",
    "oarlock_no_avx",
    "--cfg",
    "sha2_backend=\"soft\"",
    "--cfg",
    "curve25519_dalek_backend=\"serial\"",
];

/// What stands before the compiler then, from the root of the workspace.
const COMPILER_WITHOUT_AVX: &str = "packaging/rustc-without-avx";

/// How the path of the library in the wheel of the core begins; how it ends depends on the Python.
pub(crate) const CORE_LIBRARY: &str = "oarlock/_oarlock.";

/// The profile in `Cargo.toml` of what is published.
const PROFILE: &str = "dist";

/// What cargo says of a crate that it does not have yet.
const COMPILING: &str = "   Compiling ";

/// What compiles parts.
pub(crate) struct Compiler<'w> {
    root: &'w Path,
    target: &'w Path,
    tools: Tools<'w>,
    crates: Crates,
    licence: String,
    /// The command that asks plugins, where it is built already.
    command: Option<&'w Path>,
    /// Flags of every part: no path of this machine, and a name for what debuggers need.
    flags: Vec<String>,
}

impl<'w> Compiler<'w> {
    /// Installs the tools where they are missing.
    pub(crate) fn new(root: &'w Path, target: &'w Path, command: Option<&'w Path>) -> Result<Self, Error> {
        Ok(Self {
            root,
            target,
            tools: Tools::new(root, target)?,
            crates: Crates::of_workspace(root)?,
            licence: fs::read_to_string(root.join("LICENSE"))?,
            command,
            flags: [flags(root, target)?, unwinder(root)?].concat(),
        })
    }

    /// Where what is said while a part is compiled can be read.
    pub(crate) fn log(&self, recipe: &Recipe) -> PathBuf {
        self.tools.log(&recipe.directory())
    }

    /// Compiles the core.
    pub(super) fn core(&self, recipe: &Recipe, debug: &Path) -> Result<Part, Error> {
        let made = self.target.join("made").join(recipe.directory());
        if made.exists() {
            fs::remove_dir_all(&made)?;
        }
        let mut maturin = self.tool("maturin", recipe);
        maturin.args(["build", "--profile", PROFILE, "--locked", "--zig", "--no-default-features"]);
        maturin.args(["--manifest-path", "runtime/python/Cargo.toml"]);
        maturin.args(["--compatibility", &format!("manylinux_{}", recipe.glibc), "--out"]).arg(&made);
        if recipe.is_without_lock() {
            maturin.args(["--interpreter", "python3.14t"]);
        }
        let took = self.compile(recipe, &mut maturin)?;
        let found = fs::read_dir(&made)?.collect::<Result<Vec<_>, _>>()?;
        let [one] = &found[..] else {
            let found = found.len();
            return Err(Error::new(format!("expected one wheel, found {found}")).of_file(made.display()));
        };
        let mut wheel = Wheel::read(&one.path())?;
        let path = wheel.paths().find(|path| path.starts_with(CORE_LIBRARY) && path.ends_with(".so"));
        let path =
            path.ok_or_else(|| Error::new(format!("expected a library `{CORE_LIBRARY}…so`, found none")))?;
        let path = path.to_owned();
        let library = self.finish(recipe, wheel.file(&path)?, debug)?;
        wheel.add_executable(&path, library);
        let made = Made::Core(Core { built: self.built(recipe)?, wheel });
        Ok(Part { made, took, note: None })
    }

    /// Compiles a plugin, and notes why it has no manifest where that cannot be written here. `tell` hears of what takes long beside.
    pub(super) fn plugin(&self, recipe: &Recipe, debug: &Path, tell: &dyn Fn(String)) -> Result<Part, Error> {
        let file = file_of(&recipe.part.package);
        let (library, took) = self.cargo(recipe, &file, debug)?;
        let place = self.target.join("made").join(recipe.directory()).join(&file);
        crate::file::write(&place, &library)?;
        let (manifest, note) = match self.manifest(recipe, &place, tell) {
            Ok(text) => (Some(text), None),
            Err(why) => (
                None,
                Some(format!(
                    "`{file}` has no manifest, without which `check` and `index` refuse its wheels: {why}"
                )),
            ),
        };
        let made = Made::Plugin(Plugin { built: self.built(recipe)?, library, manifest });
        Ok(Part { made, took, note })
    }

    /// Compiles a program or a library.
    pub(super) fn other(&self, recipe: &Recipe, file: &str, debug: &Path) -> Result<Part, Error> {
        let (bytes, took) = self.cargo(recipe, file, debug)?;
        let made = Made::Other(Other { built: self.built(recipe)?, bytes });
        Ok(Part { made, took, note: None })
    }

    /// What cargo makes under a name, finished.
    fn cargo(&self, recipe: &Recipe, file: &str, debug: &Path) -> Result<(Vec<u8>, Duration), Error> {
        let mut cargo = self.tool("cargo-zigbuild", recipe);
        let is_program = recipe.part.file.is_some() && !file.ends_with(".so");
        cargo.args([
            "rustc",
            "--profile",
            PROFILE,
            "--locked",
            "--package",
            &recipe.part.package,
            "--no-default-features",
            "--features",
            &features(recipe).join(","),
        ]);
        cargo.args(["--target", &format!("x86_64-unknown-linux-gnu.{}", recipe.glibc.replace('_', "."))]);
        if is_program {
            // The unwinder that every system has may call what only a newer glibc has; the one that it is beside then does.
            cargo.args(["--bin", file, "--", "-C", "link-arg=-Wl,--allow-shlib-undefined"]);
        } else {
            // Whatever else the crate can be, such as part of the command, is not compiled.
            cargo.args(["--lib", "--crate-type", "cdylib"]);
        }
        let took = self.compile(recipe, &mut cargo)?;
        let built = self.cargo_directory(recipe).join("x86_64-unknown-linux-gnu").join(PROFILE).join(file);
        Ok((self.finish(recipe, &fs::read(built)?, debug)?, took))
    }

    /// What a plugin says of itself, for which it has to start; where it cannot, with the libraries of its vendor.
    fn manifest(&self, recipe: &Recipe, library: &Path, tell: &dyn Fn(String)) -> Result<String, Error> {
        let first = self.ask(library, None);
        if first.is_ok() || recipe.part.libraries.is_empty() {
            return first;
        }
        let place = self.target.join("libraries").join(&recipe.name);
        if !place.exists() {
            // An environment, for what pip installs with `--target` lacks the files that lie outside of packages.
            let libraries = recipe.part.libraries.join(", ");
            tell(format!("installing {libraries}, to ask the plugin `{}` who it is", recipe.name));
            let new = place.with_extension("new");
            let log = format!("libraries-{}", recipe.name);
            self.tools.environment(&new, &log)?;
            self.tools.run(self.tools.pip(&new).args(&recipe.part.libraries), &log)?;
            fs::rename(new, &place)?;
        }
        self.ask(library, Some(&place))
    }

    /// Has the command ask a plugin; libraries lie anywhere below `libraries`.
    fn ask(&self, library: &Path, libraries: Option<&Path>) -> Result<String, Error> {
        let mut command = Command::new(self.command.unwrap_or(Path::new("cargo")));
        if self.command.is_none() {
            command.args(["run", "--quiet", "--locked", "--package", "oarlock-cli", "--"]);
        }
        command.args(["plugin", "manifest"]).arg(library).current_dir(self.root);
        if let Some(libraries) = libraries {
            command.env(
                "LD_LIBRARY_PATH",
                std::env::join_paths(directories_of_libraries(libraries)).unwrap_or_default(),
            );
        }
        let said = command.output()?;
        if said.status.success() {
            return Ok(String::from_utf8_lossy(&said.stdout).into_owned());
        }
        let complaint = String::from_utf8_lossy(&said.stderr).into_owned();
        Err(Error::new(complaint.lines().next().unwrap_or_default()))
    }

    /// Strips a library, keeps what was stripped by its build id, and holds it to what its recipe says.
    fn finish(&self, recipe: &Recipe, bytes: &[u8], debug: &Path) -> Result<Vec<u8>, Error> {
        let directory = self.target.join("made");
        fs::create_dir_all(&directory)?;
        let scratch = tempfile::tempdir_in(&directory)?;
        let [whole, stripped, symbols] =
            ["whole", "stripped", "symbols"].map(|name| scratch.path().join(name));
        fs::write(&whole, bytes)?;
        let log = format!("strip-{}", recipe.directory());
        self.tools.run(
            Command::new("strip")
                .args(["--strip-unneeded", "--remove-section=.comment", "-o"])
                .arg(&stripped)
                .arg(&whole),
            &log,
        )?;
        self.tools.run(Command::new("objcopy").arg("--only-keep-debug").arg(&whole).arg(&symbols), &log)?;
        let (mut library, mut symbols) = (fs::read(&stripped)?, fs::read(&symbols)?);
        build_id::set(&mut library, &mut symbols)?;
        let platform = &format!("manylinux_{}_x86_64", recipe.glibc);
        let limits = Limits { platform, part: Some(&recipe.part), without_avx: recipe.without_avx };
        let needs = library::check(&library, bytes, limits)?;
        let id =
            needs.build_id.ok_or_else(|| Error::new("expected a library with a build id, found none"))?;
        let place = debug.join(".build-id").join(library::build_id_path(&id));
        crate::file::write(&place, &symbols)?;
        Ok(library)
    }

    fn built(&self, recipe: &Recipe) -> Result<Built, Error> {
        let package = recipe.part.package.clone();
        let crates = self.crates.of_package(&package, &features(recipe))?;
        Ok(Built {
            part: recipe.name.clone(),
            opens: recipe.part.opens.clone(),
            bill: bill::of_packages(&self.crates, &crates, &recipe.part.opens),
            licences: licences::of_packages(&crates)?,
            licence: self.licence.clone(),
            package,
        })
    }

    /// Has the tools of others judge a wheel: `auditwheel` whether it runs where its name says, and `abi3audit` whether it uses
    /// of Python what every version has.
    pub(crate) fn audit(&self, row: &Row, bytes: &[u8]) -> Result<(), Error> {
        let scratch = tempfile::tempdir_in(self.target)?;
        let wheel = &scratch.path().join(row.name.to_string());
        fs::write(wheel, bytes)?;
        let log = format!("audit-{}", row.name);
        let said = self.tools.run(self.tools.command("auditwheel").arg("show").arg(wheel), &log)?;
        // It names the oldest system that the wheel runs on, which may be older than what was asked for.
        let found = tag_found(&said);
        if found
            .as_deref()
            .and_then(library::glibc)
            .is_none_or(|oldest| Some(oldest) > library::glibc(&row.name.platform))
        {
            let found = found.unwrap_or(said);
            let wanted = &row.name.platform;
            let message = format!("expected auditwheel to find `{wanted}` or older, found `{found}`");
            return Err(Error::new(message).of_file(&row.name));
        }
        if row.name.python.ends_with("abi3") {
            let mut audit = self.tools.command("abi3audit");
            self.tools.run(audit.args(["--strict", "--summary"]).arg(wheel), &log)?;
        }
        Ok(())
    }

    /// Compiles a part; gives how long that took when cargo last had something to compile for it.
    fn compile(&self, recipe: &Recipe, command: &mut Command) -> Result<Duration, Error> {
        let begin = Instant::now();
        let said = self.tools.run(command, &recipe.directory())?;
        let took = begin.elapsed();
        let place = self.target.join("took").join(recipe.directory());
        let before = fs::read_to_string(&place).ok().and_then(|text| text.parse().ok());
        match before.map(Duration::from_millis) {
            Some(before) if !said.lines().any(|line| line.starts_with(COMPILING)) => Ok(before),
            _ => {
                crate::file::write(&place, took.as_millis().to_string().as_bytes())?;
                Ok(took)
            }
        }
    }

    /// Flags change everything that is compiled, and maturin and cargo-zigbuild each add some, so what differs in them has a
    /// directory of its own: otherwise each would undo what the other did.
    pub(super) fn cargo_directory(&self, recipe: &Recipe) -> PathBuf {
        let kind = match (&recipe.python, recipe.leaves_out_avx()) {
            (Some(_), _) => recipe.directory(),
            (None, false) => "plugins".to_owned(),
            (None, true) => "plugins-without-avx".to_owned(),
        };
        self.target.join("cargo").join(kind)
    }

    /// A tool that compiles for a recipe.
    fn tool(&self, name: &str, recipe: &Recipe) -> Command {
        let mut command = self.tools.command(name);
        command.env("CARGO_TARGET_DIR", self.cargo_directory(recipe));
        command
            .env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only")
            .env("CARGO_PROFILE_RELEASE_STRIP", "none");
        // The parts of the C library that zig compiles while it links would tell debuggers where zig lies. It keeps them, so
        // not beside those of others.
        command.env("CCC_OVERRIDE_OPTIONS", "#+-g0").env("ZIG_GLOBAL_CACHE_DIR", self.target.join("zig"));
        let mut flags = self.flags.clone();
        if recipe.leaves_out_avx() {
            flags.extend(WITHOUT_AVX.map(str::to_owned));
            command.env("RUSTC_WRAPPER", self.root.join(COMPILER_WITHOUT_AVX));
        }
        command.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        command
    }
}

/// The features of a package: a plugin exports what hosts ask for.
fn features(recipe: &Recipe) -> Vec<String> {
    let is_plugin = recipe.python.is_none() && recipe.part.file.is_none();
    let own = is_plugin.then(|| "shared-object".to_owned());
    own.into_iter().chain(recipe.part.features.iter().cloned()).collect()
}

/// The tag that `auditwheel show` finds for a wheel, such as `manylinux_2_17_x86_64`. It breaks its lines anywhere.
fn tag_found(said: &str) -> Option<String> {
    let text = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, after) = text.split_once("is consistent with the following platform tag: \"")?;
    Some(after.split_once('"')?.0.to_owned())
}

/// Flags that leave no path of this machine in what is compiled: the same sources are the same bytes wherever they lie.
fn flags(root: &Path, target: &Path) -> Result<Vec<String>, Error> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo"))).unwrap_or_default();
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim());
    let mut renamed = vec![
        (home, "/cargo".to_owned()),
        (sysroot.join("lib/rustlib/src/rust"), "/rust".to_owned()),
        (root.to_owned(), "/oarlock".to_owned()),
        (target.to_owned(), "/target".to_owned()),
    ];
    // The directories that crates of registries lie in are called after their hosts. The last that matches counts.
    let registries = fs::read_dir(renamed[0].0.join("registry/src")).into_iter().flatten().flatten();
    renamed.extend(registries.map(|registry| (registry.path(), "/crates".to_owned())));
    renamed.extend(vendor::crates(root).map(|crates| (crates, "/crates".to_owned())));
    let mut flags: Vec<String> = renamed
        .into_iter()
        .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
        .collect();
    flags.extend(["-C", "link-arg=-Wl,--build-id=sha1"].map(str::to_owned));
    Ok(flags)
}

/// Flags that leave unwinding to the library that every system has. Zig would link one of its own, and two in a process do not
/// understand each other: a thread that ends inside of a call, as Python's do when it exits, would end the process.
fn unwinder(root: &Path) -> Result<Vec<String>, Error> {
    let mut gcc = Command::new("gcc");
    gcc.arg("-print-file-name=libgcc_s.so.1").current_dir(root);
    let said =
        gcc.output().map_err(|error| Error::new(format!("expected to start `gcc`: {error}; install it")))?;
    let file = PathBuf::from(String::from_utf8_lossy(&said.stdout).trim());
    let file = file.canonicalize().map_err(Error::from).map_err(|error| error.of_file(file.display()))?;
    Ok(vec!["-C".to_owned(), format!("link-arg={}", file.display())])
}

/// All directories below one that shared objects lie in.
fn directories_of_libraries(root: &Path) -> Vec<PathBuf> {
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
        let said = "\nx.whl is consistent with the\nfollowing platform tag: \"manylinux_2_17_x86_64\".\n\nThe wheel\n";
        assert_eq!(tag_found(said).as_deref(), Some("manylinux_2_17_x86_64"));
        assert_eq!(tag_found("x.whl is no wheel"), None);
    }

    #[test]
    fn a_flag_names_each_place_that_paths_may_begin_with() {
        let flags = flags(Path::new("/somewhere"), Path::new("/elsewhere")).expect("flags");
        for flag in ["--remap-path-prefix=/somewhere=/oarlock", "--remap-path-prefix=/elsewhere=/target"] {
            assert!(flags.iter().any(|it| it == flag), "{flag} in {flags:?}");
        }
    }
}
