//! Tiny wheels of our own matrix, and the command that serves their index.

use std::path::PathBuf;
use std::process::Stdio;

use oarlock_formats::file_packer::CompressionEffort;
use oarlock_formats::wheel::Wheel;
use oarlock_matrix::wheel_name::WheelVersion;
use oarlock_matrix::{CpuArchitecture, MatrixRow, OWN_MATRIX, WheelMatrix};
use oarlock_pack::assemble;
use oarlock_pack::build_artifact::BuiltPlugin;

use crate::built::{self, loadable_plugin};
use crate::server::{PackServer, pack_command};
use tempfile::TempDir;

/// The current version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The rows of our matrix that can be built.
pub(crate) fn buildable_rows() -> Vec<MatrixRow> {
    let matrix = WheelMatrix::from_toml("matrix.toml", OWN_MATRIX).expect("our own matrix");
    matrix.wheels.into_iter().filter(|row| row.planned.is_none()).collect()
}

/// The requirement for exactly this wheel.
pub(crate) fn pinned_requirement(row: &MatrixRow) -> String {
    format!("{}=={}", row.name.distribution, row.name.version)
}

/// A tiny valid wheel of these files.
pub(crate) fn small_wheel(distribution: &str, version: &str, tags: &str, files: &[&str]) -> Wheel {
    let mut wheel = Wheel::new(&format!("{}-{version}", distribution.replace('-', "_")));
    let about = format!("Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n");
    wheel.add_metadata("METADATA", about.into_bytes());
    wheel.add_metadata(
        "WHEEL",
        format!("Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tags}\n").into_bytes(),
    );
    files.iter().for_each(|file| wheel.add_file(file, format!("# {distribution} {version}\n").into_bytes()));
    wheel
}

/// A tiny wheel for a row of the matrix.
fn wheel_of_row(row: &MatrixRow) -> Wheel {
    if row.architecture() == Some(CpuArchitecture::Aarch64) {
        let (core, plugin) = (built::library_for_arm("core"), built::plugin_for_arm("cpu"));
        return built::core_wheel_of_row(row, "oarlock/_oarlock.abi3.so", core, &[plugin]);
    }
    let plugins: Vec<BuiltPlugin> =
        row.parts.iter().filter(|part| *part != "core").map(|it| loadable_plugin(it)).collect();
    if plugins.len() == row.parts.len() {
        return assemble::assemble_plugin_wheel(row, &plugins[0]).expect("a wheel");
    }
    let library = match row.name.python.as_str() {
        "cp314-cp314t" => "oarlock/_oarlock.cpython-314t-x86_64-linux-gnu.so",
        _ => "oarlock/_oarlock.abi3.so",
    };
    built::core_wheel_of_row(row, library, built::library_of_part("core"), &plugins)
}

/// All wheels of our matrix that can be built, by name.
fn named_wheels() -> impl Iterator<Item = (String, Wheel)> {
    buildable_rows().into_iter().map(|row| (row.name.to_string(), wheel_of_row(&row)))
}

/// A wheel of one file for all platforms, by name.
fn universal_wheel(distribution: &str, version: &str, file: &str) -> (String, Wheel) {
    let name = format!("{}-{version}-py3-none-any.whl", distribution.replace('-', "_"));
    (name, small_wheel(distribution, version, "py3-none-any", &[file]))
}

fn public_wheels() -> [(String, Wheel); 2] {
    [("nvidia-cuda-nvrtc-cu12", "nvrtc.py"), ("nvidia-cublas-cu12", "cublas.py")]
        .map(|(distribution, file)| universal_wheel(distribution, "12.9.1", file))
}

/// An index of wheels while it is served.
pub(crate) struct ServedIndex {
    directory: TempDir,
    server: PackServer,
    /// The address without a trailing slash.
    pub(crate) address: String,
}

impl ServedIndex {
    /// An index of all wheels of our matrix that can be built.
    pub(crate) fn own_matrix() -> Self {
        Self::of_wheels(named_wheels(), "", &[])
    }

    /// The same index with variants.
    pub(crate) fn with_variants() -> Self {
        Self::of_wheels(named_wheels(), "", &["--variants"])
    }

    /// An index of the core in this version and an older one; `yanked` selects the yanked wheels.
    pub(crate) fn with_two_releases(yanked: &str) -> Self {
        let wheels = ["0.0.9", VERSION].map(|version| {
            let mut row = buildable_rows().swap_remove(0);
            row.name.version = version.parse().map(WheelVersion::Valid).expect("a version");
            (row.name.to_string(), wheel_of_row(&row))
        });
        Self::of_wheels(wheels, yanked, &[])
    }

    /// Stands for PyPI, with NVIDIA packages.
    pub(crate) fn public_index() -> Self {
        Self::of_wheels(public_wheels(), "", &[])
    }

    /// The public index with a stranger's package under the name and version of one of our plugins, which our own matrix would
    /// reject.
    pub(crate) fn public_index_with_stranger() -> Self {
        let stranger = universal_wheel("oarlock-cuda12", VERSION, "stranger.py");
        Self::of_wheels(public_wheels().into_iter().chain([stranger]), "", &["--era", "2.3.2"])
    }

    fn of_wheels(wheels: impl IntoIterator<Item = (String, Wheel)>, yanked: &str, more: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(directory.path().join("wheels")).expect("a directory");
        for (name, wheel) in wheels {
            let bytes = wheel.to_bytes(&CompressionEffort::Usual.into()).expect("a wheel");
            std::fs::write(directory.path().join("wheels").join(name), bytes).expect("a file");
        }
        std::fs::write(directory.path().join("yanked.toml"), yanked).expect("a file");
        let done = pack_command(directory.path())
            .args(["index", "--wheels", "wheels", "--out", "index", "--yanked", "yanked.toml"])
            .args(more)
            .stdout(Stdio::null())
            .status();
        assert!(done.expect("the command").success());
        Self::start_serving(directory)
    }

    /// Serves the subdirectory `index` of a directory.
    pub(crate) fn start_serving(directory: TempDir) -> Self {
        let server = PackServer::start_serving(directory.path(), "index");
        let address = server.address.strip_suffix("/simple/").expect("the address of an index").to_owned();
        Self { directory, server, address }
    }

    pub(crate) fn simple_address(&self) -> String {
        format!("{}/simple/", self.address)
    }

    /// A `file:` URL of the pages.
    pub(crate) fn simple_file_address(&self) -> String {
        format!("file://{}/", self.directory.path().join("index/simple").display())
    }

    /// The page of a directory of the matrix.
    pub(crate) fn page_address(&self, directory: &str) -> String {
        format!("{}{directory}/", self.address)
    }

    /// The path of a wheel as it was built.
    pub(crate) fn built_wheel_path(&self, name: &str) -> PathBuf {
        self.directory.path().join("wheels").join(name)
    }

    /// The path of a wheel as it is served.
    pub(crate) fn served_wheel_path(&self, name: &str) -> PathBuf {
        self.directory.path().join("index/files").join(name)
    }

    /// The requests so far, with the status of each response.
    pub(crate) fn request_log(&self) -> String {
        self.server.request_log()
    }
}
