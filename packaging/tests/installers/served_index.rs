//! Small wheels of our own matrix, their index, and the command that serves it.

use std::path::PathBuf;
use std::process::Stdio;

use oarlock_pack::assemble::{self, BuiltPlugin};
use oarlock_pack::file_packer::CompressionEffort;
use oarlock_pack::matrix::wheel_name::WheelVersion;
use oarlock_pack::matrix::{MatrixRow as Row, OWN_MATRIX, WheelMatrix};
use oarlock_pack::wheel::Wheel;
use tempfile::TempDir;

use crate::built::{self, loadable_plugin};
use crate::server::{PackServer, pack_command};

/// The version of what is built.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Our own wheels that can be built.
pub(crate) fn buildable_rows() -> Vec<Row> {
    let matrix = WheelMatrix::from_toml("matrix.toml", OWN_MATRIX).expect("our own matrix");
    matrix.wheels.into_iter().filter(|row| row.planned.is_none()).collect()
}

/// What asks an installer for just this wheel.
pub(crate) fn pinned_requirement(row: &Row) -> String {
    format!("{}=={}", row.name.distribution, row.name.version)
}

/// A wheel of these files that is small and whole.
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

/// A wheel as a row of the matrix says, with small libraries.
fn wheel_of_row(row: &Row) -> Wheel {
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

/// All wheels that can be built of our matrix, by name.
fn named_wheels() -> impl Iterator<Item = (String, Wheel)> {
    buildable_rows().into_iter().map(|row| (row.name.to_string(), wheel_of_row(&row)))
}

/// A wheel of one file for all machines, by name.
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
    /// Where it is, without a slash at its end.
    pub(crate) address: String,
}

impl ServedIndex {
    /// All wheels that can be built of our matrix.
    pub(crate) fn own_matrix() -> Self {
        Self::of_wheels(named_wheels(), "", &[])
    }

    /// The same, with variants.
    pub(crate) fn with_variants() -> Self {
        Self::of_wheels(named_wheels(), "", &["--variants"])
    }

    /// The core in this version and in an older one; `yanked` says which of them should not be installed any more.
    pub(crate) fn with_two_releases(yanked: &str) -> Self {
        let wheels = ["0.0.9", VERSION].map(|version| {
            let mut row = buildable_rows().swap_remove(0);
            row.name.version = version.parse().map(WheelVersion::Valid).expect("a version");
            (row.name.to_string(), wheel_of_row(&row))
        });
        Self::of_wheels(wheels, yanked, &[])
    }

    /// An index as PyPI is, with packages of NVIDIA.
    pub(crate) fn public_index() -> Self {
        Self::of_wheels(public_wheels(), "", &[])
    }

    /// The same, where somebody has put a plugin of our name and version, which our own matrix would refuse.
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

    /// Serves the directory `index` of a directory.
    pub(crate) fn start_serving(directory: TempDir) -> Self {
        let server = PackServer::start_serving(directory.path(), "index");
        let address = server.address.strip_suffix("/simple/").expect("the address of an index").to_owned();
        Self { directory, server, address }
    }

    pub(crate) fn simple_address(&self) -> String {
        format!("{}/simple/", self.address)
    }

    /// The same as files, of which installers read the pages.
    pub(crate) fn simple_file_address(&self) -> String {
        format!("file://{}/", self.directory.path().join("index/simple").display())
    }

    /// The page of a directory of the matrix.
    pub(crate) fn page_address(&self, directory: &str) -> String {
        format!("{}{directory}/", self.address)
    }

    /// A wheel as it was made.
    pub(crate) fn built_wheel_path(&self, name: &str) -> PathBuf {
        self.directory.path().join("wheels").join(name)
    }

    /// A wheel as it is served.
    pub(crate) fn served_wheel_path(&self, name: &str) -> PathBuf {
        self.directory.path().join("index/files").join(name)
    }

    /// What was asked for so far, with the status of each answer.
    pub(crate) fn request_log(&self) -> String {
        self.server.request_log()
    }
}
