//! Installs as PaddlePaddle documented it, from pages as it published them, except that they name our server; each wheel only
//! contains its path.

use oarlock_formats::file;
use oarlock_formats::file_packer::CompressionEffort;
use oarlock_matrix::link_page;
use oarlock_matrix::{LinkPage, MatrixRow, WheelMatrix};

use crate::served_index::{ServedIndex, pinned_requirement, small_wheel};
use crate::tools::{PythonEnvironment, newest_pip};

/// Without all pins, the number of pages to try per era, each with the wheel in its middle.
const MAX_TRIED_PAGES: usize = 9;

/// The wheels and pages of an era, while they are served.
struct ServedEra {
    served: ServedIndex,
    matrix: WheelMatrix,
    pages: Vec<LinkPage>,
}

/// The contents of a row's wheel.
fn wheel_bytes(row: &MatrixRow) -> Vec<u8> {
    let tags = format!("{}-{}", row.name.python, row.name.platform);
    let (version, path) = (row.name.version.to_string(), row.file_path());
    let wheel = small_wheel(&row.name.distribution, &version, &tags, &[path.trim_start_matches('/')]);
    wheel.to_bytes(&CompressionEffort::Usual.into()).expect("a wheel")
}

impl ServedEra {
    fn new(version: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let index = directory.path().join("index");
        std::fs::create_dir_all(index.join("simple")).expect("a directory");
        let served = ServedIndex::start_serving(directory);
        let mut matrix = WheelMatrix::historical(version).expect("the matrix of an era");
        matrix.host.clone_from(&served.address);
        for row in &matrix.wheels {
            file::write_file(&index.join(row.file_path().trim_start_matches('/')), &wheel_bytes(row))
                .expect("a file");
        }
        let pages = match std::mem::take(&mut matrix.pages) {
            none if none.is_empty() => directory_pages(&matrix),
            pages => pages,
        };
        for page in &pages {
            let html = link_page::render_link_page(&matrix, page);
            file::write_file(&index.join(page.path.trim_start_matches('/')), html.as_bytes())
                .expect("a file");
        }
        Self { served, matrix, pages }
    }

    /// The wheels of a page whose names pip accepts.
    fn installable_rows(&self, page: &LinkPage) -> Vec<&MatrixRow> {
        page.wheels
            .iter()
            .map(|place| &self.matrix.wheels[*place])
            .filter(|row| row.name.is_valid())
            .collect()
    }

    /// The pip arguments for a wheel, as on a machine of its kind.
    fn pip_arguments(&self, page: &LinkPage, row: &MatrixRow) -> Vec<String> {
        let (interpreter, abi) = row.name.python.split_once('-').expect("two tags");
        let version = interpreter.strip_prefix("cp").expect("CPython");
        let page = format!("{}{}", self.served.address, page.path);
        let (requirement, platform) = (pinned_requirement(row), &row.name.platform);
        let line = format!(
            "download --only-binary=:all: --no-deps --dest got --no-index --find-links {page} --implementation cp \
             --python-version {version} --abi {abi} --platform {platform} {requirement}"
        );
        line.split(' ').map(str::to_owned).collect()
    }
}

/// A page for each directory, for eras that linked to wheels directly.
fn directory_pages(matrix: &WheelMatrix) -> Vec<LinkPage> {
    let mut pages: Vec<LinkPage> = Vec::new();
    for (place, row) in matrix.wheels.iter().enumerate() {
        let path = format!("{}/links.html", row.directory);
        match pages.iter_mut().find(|page| page.path == path) {
            Some(page) => page.wheels.push(place),
            None => pages.push(LinkPage { path, wheels: vec![place] }),
        }
    }
    pages
}

/// Asserts that pip finds each wheel of an era, or some of them, on its page and no other wheel.
fn assert_all_found(version: &str, pages: usize, count: usize) {
    let era = ServedEra::new(version);
    let rows = || {
        era.pages.iter().map(|page| (page, era.installable_rows(page))).filter(|(_, rows)| !rows.is_empty())
    };
    assert_eq!((rows().count(), rows().map(|(_, rows)| rows.len()).sum()), (pages, count));
    let all = std::env::var_os("OARLOCK_ALL_PINS").is_some();
    let environment = PythonEnvironment::new();
    for (page, rows) in rows().step_by(if all { 1 } else { pages.div_ceil(MAX_TRIED_PAGES) }) {
        let some = &rows[rows.len() / 2..=rows.len() / 2];
        for row in if all { &rows[..] } else { some } {
            assert_downloads(&era, &environment, page, row);
        }
    }
}

/// Asserts that pip downloads a wheel and nothing else.
fn assert_downloads(era: &ServedEra, environment: &PythonEnvironment, page: &LinkPage, row: &MatrixRow) {
    let arguments = era.pip_arguments(page, row);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    environment.run_successfully(&newest_pip(), &arguments);
    let got = environment.path().join("got");
    let files = std::fs::read_dir(&got).expect("what was downloaded").count();
    let found = std::fs::read(got.join(row.name.to_string())).expect("the wheel of the row");
    assert!(files == 1 && found == wheel_bytes(row), "{}", row.file_path());
    std::fs::remove_dir_all(got).expect("a directory");
}

pub(crate) fn pip_finds_what_1_5_published() {
    assert_all_found("1.5", 7, 34);
}

pub(crate) fn pip_finds_what_2_2_1_published() {
    assert_all_found("2.2.1", 42, 125);
}

pub(crate) fn pip_finds_what_2_3_2_published() {
    assert_all_found("2.3.2", 9, 71);
}

pub(crate) fn pip_says_where_there_is_no_wheel_for_a_python_and_refuses_a_word_for_a_version() {
    let (era, environment) = (ServedEra::new("2.3.2"), PythonEnvironment::new());
    let page = era.pages.iter().find(|page| page.path.contains("noavx")).expect("a page");
    let mut other = era.installable_rows(page)[0].clone();
    other.name.python = "cp36-cp36m".into();
    let arguments = era.pip_arguments(page, &other);
    let message =
        environment.run_to_failure(&newest_pip(), &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(message.contains("No matching distribution found"), "{message}");

    let era = ServedEra::new("1.5");
    let row = era.matrix.wheels.iter().find(|row| !row.name.is_valid()).expect("a row of `latest`");
    let page = era.pages.iter().find(|page| page.path.starts_with(&row.directory)).expect("its page");
    let mut arguments = era.pip_arguments(page, row);
    *arguments.last_mut().expect("a requirement") = row.name.distribution.clone();
    let message =
        environment.run_to_failure(&newest_pip(), &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(message.contains("No matching distribution found"), "{message}");
}
