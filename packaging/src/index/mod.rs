//! An index from which pip and uv install: pages, and the files that the pages link to.
//!
//! | where | what |
//! |---|---|
//! | `simple/` | the index as pages (PEP 503, with the attributes of PEP 592, 658 and 714) |
//! | `json/` | the same as JSON (PEP 691 and 700), for servers without content negotiation |
//! | `files/` | the wheels, each with its METADATA beside it |
//! | `cpu-mkl/` and the like | a page of links for each directory of the matrix |
//!
//! With variants (PEP 825, a draft) `files/` also has files such as `oarlock-1.0-variants.json`, to which the pages of the
//! projects link.
//!
//! If the matrix assigns a directory to a wheel, it is only on that directory's page: versions such as `1.0+cpu.mkl` sort after
//! the plain version, so pip would choose them for everybody.

mod json;
mod listed_wheel;
mod pages;
mod variants;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use oarlock_formats::error::Error;
use oarlock_matrix::checked_values::check_address;
use oarlock_matrix::wheel_name::{WheelName, WheelVersion};
use oarlock_matrix::{MatrixRow, WheelMatrix};

use self::listed_wheel::ListedWheel;
use pep440_rs::LocalSegment;

/// Wheels by project and by directory of the matrix.
#[derive(Debug, Default)]
pub struct WheelIndex {
    /// The default wheels of each project, sorted by version.
    projects: BTreeMap<String, Vec<ListedWheel>>,
    /// The wheels of each directory.
    directories: BTreeMap<String, Vec<ListedWheel>>,
    /// The variant metadata of each project, by file name.
    variants: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    /// The address where it will be published, if known.
    host: Option<String>,
}

impl WheelIndex {
    /// Reads and checks the wheels in a directory. `matrix` decides which of them get a separate page; `yanked` maps file names
    /// to the reason why they were yanked. `tell` is called with the number of wheels read and their total.
    ///
    /// # Errors
    ///
    /// When the directory has no wheel, an incomplete or mislabeled wheel, or another file.
    pub fn of_directory(
        directory: &Path,
        matrix: &WheelMatrix,
        yanked: &BTreeMap<String, String>,
        mut tell: impl FnMut(usize, usize),
    ) -> Result<Self, Error> {
        let at = |error: std::io::Error| Error::from(error).in_file(directory.display());
        let entries = std::fs::read_dir(directory).map_err(at)?.collect::<Result<Vec<_>, _>>().map_err(at)?;
        let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        // Subdirectories hold debug information and the index itself, and hidden files belong to other programs.
        files.retain(|file| !is_hidden(file) && !file.is_dir());
        if files.is_empty() {
            return Err(Error::new("expected wheels, found none").in_file(directory.display()));
        }
        files.sort();
        let mut index = Self::default();
        for (done, file) in files.iter().enumerate() {
            let mut listed =
                ListedWheel::read_wheel(file, matrix).map_err(|error| error.in_file(file.display()))?;
            listed.yanked = yanked.get(&listed.file_name).cloned();
            let place =
                match page_directory(matrix, &listed.name).map_err(|error| error.in_file(file.display()))? {
                    "" => index.projects.entry(listed.name.distribution.clone()).or_default(),
                    directory => index.directories.entry(directory.to_owned()).or_default(),
                };
            place.push(listed);
            tell(done + 1, files.len());
        }
        if let Some(unknown) = yanked.keys().find(|name| !index.all_wheels().any(|it| it.file_name == **name))
        {
            return Err(Error::new(format!(
                "expected wheels of the directory to be yanked, found `{unknown}`"
            )));
        }
        index.sort_wheels();
        Ok(index)
    }

    /// Sets the address where the index will be published, for links in its pages.
    ///
    /// # Errors
    ///
    /// When it is not a valid address.
    pub fn with_address(mut self, address: &str) -> Result<Self, Error> {
        check_address(address)?;
        self.host = Some(address.trim_end_matches('/').to_owned());
        Ok(self)
    }

    fn sort_wheels(&mut self) {
        let lists = self.projects.values_mut().chain(self.directories.values_mut());
        lists.for_each(|wheels| {
            wheels.sort_by(|one, other| (&one.name, &one.file_name).cmp(&(&other.name, &other.file_name)));
        });
    }

    /// The wheels of a matrix that can be built but are missing.
    #[must_use]
    pub fn missing_wheels<'a>(&self, matrix: &'a WheelMatrix) -> Vec<&'a WheelName> {
        let rows = matrix.wheels.iter().filter(|row| row.planned.is_none()).map(|row| &row.name);
        rows.filter(|name| !self.all_wheels().any(|wheel| wheel.name == **name)).collect()
    }

    /// The number of wheels, with and without directory.
    #[must_use]
    pub fn wheel_count(&self) -> usize {
        self.all_wheels().count()
    }

    fn all_wheels(&self) -> impl Iterator<Item = &ListedWheel> {
        self.projects.values().chain(self.directories.values()).flatten()
    }
}

fn is_hidden(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// The row of the matrix for a wheel of any release.
fn find_row<'a>(matrix: &'a WheelMatrix, name: &WheelName) -> Option<&'a MatrixRow> {
    let wanted = |row: &&MatrixRow| {
        row.name.distribution == name.distribution && local_segments(&row.name) == local_segments(name)
    };
    let tags = |name: &WheelName| format!("{}-{}", name.python, name.platform);
    let rows = || matrix.wheels.iter().filter(wanted);
    rows().find(|row| tags(&row.name) == tags(name)).or_else(|| rows().next())
}

/// The directory of the page that a wheel is on; empty for the default index.
fn page_directory<'a>(matrix: &'a WheelMatrix, name: &WheelName) -> Result<&'a str, Error> {
    let Some(row) = find_row(matrix, name) else {
        let is_ours = matrix.wheels.iter().any(|row| row.name.distribution == name.distribution);
        if !is_ours || local_segments(name).is_empty() {
            return Ok("");
        }
        return Err(Error::new(format!(
            "expected a row of the matrix that says which page {} is on, for pip prefers it to the plain version; found none",
            name.version
        )));
    };
    let page = row.directory.trim_matches('/');
    match page.split('/').next() {
        Some(taken @ ("simple" | "json" | "files")) => Err(Error::new(format!(
            "expected a directory in the matrix that an index does not need itself, found `{taken}`"
        ))),
        _ => Ok(page),
    }
}

/// The local part of the version.
fn local_segments(name: &WheelName) -> &[LocalSegment] {
    match &name.version {
        WheelVersion::Valid(version) => version.local(),
        WheelVersion::Word(_) => &[],
    }
}
