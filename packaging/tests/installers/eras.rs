//! What PaddlePaddle told people to install, from pages as it had them: they name our server instead of its own, and the
//! wheels hold nothing but their path.

use oarlock_pack::matrix::{Matrix, Page, Wheel as Row};
use oarlock_pack::packed::Effort;
use oarlock_pack::{file, page};

use crate::serving::{Served, requirement, small};
use crate::tools::{Environment, pip};

/// How many pages of an era are tried at most where not all pins are asked for, each with the wheel in its middle.
const SOME: usize = 9;

/// The wheels of an era and its pages, served.
struct Era {
    served: Served,
    matrix: Matrix,
    pages: Vec<Page>,
}

/// What is in the wheel of a row.
fn bytes(row: &Row) -> Vec<u8> {
    let tags = format!("{}-{}", row.name.python, row.name.platform);
    let (version, path) = (row.name.version.to_string(), row.path());
    let wheel = small(&row.name.distribution, &version, &tags, &[path.trim_start_matches('/')]);
    wheel.to_bytes(&Effort::Usual.into()).expect("a wheel")
}

impl Era {
    fn new(version: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let index = directory.path().join("index");
        std::fs::create_dir_all(index.join("simple")).expect("a directory");
        let served = Served::start(directory);
        let mut matrix = Matrix::of_era(version).expect("the matrix of an era");
        matrix.host.clone_from(&served.address);
        for row in &matrix.wheels {
            file::write(&index.join(row.path().trim_start_matches('/')), &bytes(row)).expect("a file");
        }
        let pages = match std::mem::take(&mut matrix.pages) {
            none if none.is_empty() => directories(&matrix),
            pages => pages,
        };
        for page in &pages {
            let html = page::html(&matrix, page);
            file::write(&index.join(page.path.trim_start_matches('/')), html.as_bytes()).expect("a file");
        }
        Self { served, matrix, pages }
    }

    /// The wheels of a page of which pip can read the names.
    fn rows(&self, page: &Page) -> Vec<&Row> {
        page.wheels
            .iter()
            .map(|place| &self.matrix.wheels[*place])
            .filter(|row| row.name.is_valid())
            .collect()
    }

    /// What pip is told for a wheel, on a machine of its kind.
    fn arguments(&self, page: &Page, row: &Row) -> Vec<String> {
        let (interpreter, abi) = row.name.python.split_once('-').expect("two tags");
        let version = interpreter.strip_prefix("cp").expect("CPython");
        let page = format!("{}{}", self.served.address, page.path);
        let (requirement, platform) = (requirement(row), &row.name.platform);
        let line = format!(
            "download --only-binary=:all: --no-deps --dest got --no-index --find-links {page} --implementation cp \
             --python-version {version} --abi {abi} --platform {platform} {requirement}"
        );
        line.split(' ').map(str::to_owned).collect()
    }
}

/// A page for each directory, where links led to wheels one by one.
fn directories(matrix: &Matrix) -> Vec<Page> {
    let mut pages: Vec<Page> = Vec::new();
    for (place, row) in matrix.wheels.iter().enumerate() {
        let path = format!("{}/links.html", row.directory);
        match pages.iter_mut().find(|page| page.path == path) {
            Some(page) => page.wheels.push(place),
            None => pages.push(Page { path, wheels: vec![place] }),
        }
    }
    pages
}

/// That pip finds each wheel of an era on its page, or some of them, and just this.
fn all_are_found(version: &str, pages: usize, count: usize) {
    let era = Era::new(version);
    let rows = || era.pages.iter().map(|page| (page, era.rows(page))).filter(|(_, rows)| !rows.is_empty());
    assert_eq!((rows().count(), rows().map(|(_, rows)| rows.len()).sum()), (pages, count));
    let all = std::env::var_os("OARLOCK_ALL_PINS").is_some();
    let environment = Environment::new();
    for (page, rows) in rows().step_by(if all { 1 } else { pages.div_ceil(SOME) }) {
        let some = &rows[rows.len() / 2..=rows.len() / 2];
        for row in if all { &rows[..] } else { some } {
            finds(&era, &environment, page, row);
        }
    }
}

/// That pip downloads a wheel and nothing else.
fn finds(era: &Era, environment: &Environment, page: &Page, row: &Row) {
    let arguments = era.arguments(page, row);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    environment.succeeds(&pip(), &arguments);
    let got = environment.path().join("got");
    let files = std::fs::read_dir(&got).expect("what was downloaded").count();
    let found = std::fs::read(got.join(row.name.to_string())).expect("the wheel of the row");
    assert!(files == 1 && found == bytes(row), "{}", row.path());
    std::fs::remove_dir_all(got).expect("a directory");
}

pub(crate) fn pip_finds_what_1_5_published() {
    all_are_found("1.5", 7, 34);
}

pub(crate) fn pip_finds_what_2_2_1_published() {
    all_are_found("2.2.1", 42, 125);
}

pub(crate) fn pip_finds_what_2_3_2_published() {
    all_are_found("2.3.2", 9, 71);
}

pub(crate) fn pip_says_where_there_is_no_wheel_for_a_python_and_refuses_a_word_for_a_version() {
    let (era, environment) = (Era::new("2.3.2"), Environment::new());
    let page = era.pages.iter().find(|page| page.path.contains("noavx")).expect("a page");
    let mut other = era.rows(page)[0].clone();
    other.name.python = "cp36-cp36m".into();
    let arguments = era.arguments(page, &other);
    let said = environment.fails(&pip(), &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(said.contains("No matching distribution found"), "{said}");

    let era = Era::new("1.5");
    let row = era.matrix.wheels.iter().find(|row| !row.name.is_valid()).expect("a row of `latest`");
    let page = era.pages.iter().find(|page| page.path.starts_with(&row.directory)).expect("its page");
    let mut arguments = era.arguments(page, row);
    *arguments.last_mut().expect("a requirement") = row.name.distribution.clone();
    let said = environment.fails(&pip(), &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(said.contains("No matching distribution found"), "{said}");
}
