//! A wheel index for pip and uv.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use oarlock_matrix::WheelMatrix;
use oarlock_pack::index::WheelIndex;

use crate::common::{file_names, put_wheel};
use tempfile::TempDir;

const MATRIX_TEXT: &str = r#"
host = "https://example.org"
[axes]
python = ["py3-none"]
blas = ["mkl", "openblas"]
[[channels]]
name = "release"
version = "1.0"
[[wheels]]
python = "*"
tag = "any"
names.release = { label = "plain", distribution = "example" }
[[wheels]]
python = "*"
blas = "*"
tag = "any"
names.release = { label = "{blas}", directory = "/cpu/{blas}", distribution = "example", suffix = "+{blas}" }
"#;

fn test_matrix() -> WheelMatrix {
    WheelMatrix::from_toml("matrix.toml", MATRIX_TEXT).expect("a matrix")
}

/// An index of two projects, with two wheels of one variant each.
fn written_index() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let wheels = directory.path().join("wheels");
    std::fs::create_dir(&wheels).expect("a directory");
    for (distribution, version) in [
        ("example", "1.0"),
        ("example", "1.0+mkl"),
        ("example", "1.0+openblas"),
        ("example", "0.9"),
        ("other", "2"),
    ] {
        put_wheel(&wheels, distribution, version);
    }
    index_of(&wheels, &[]).expect("an index").write_index(&directory.path().join("index")).expect("files");
    directory
}

fn index_of(wheels: &Path, yanked: &[(&str, &str)]) -> Result<WheelIndex, oarlock_formats::Error> {
    let yanked: BTreeMap<String, String> =
        yanked.iter().map(|(name, reason)| ((*name).to_owned(), (*reason).to_owned())).collect();
    WheelIndex::of_directory(wheels, &test_matrix(), &yanked, |_, _| ())
}

fn refusal_of(wheels: &Path) -> String {
    index_of(wheels, &[]).expect_err("an index of what is wrong").to_string()
}

fn read_file(directory: &TempDir, path: &str) -> String {
    let file = directory.path().join("index").join(path);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

#[test]
fn projects_list_what_is_for_everybody_and_directories_the_rest() {
    let directory = written_index();
    let projects = read_file(&directory, "simple/index.html");
    assert!(
        projects.contains("<a href=\"example/\">example</a>") && projects.contains("<a href=\"other/\">")
    );
    let links = |path: &str| {
        let page = read_file(&directory, path);
        let lines = page.lines().filter(|line| line.starts_with("<a "));
        lines.map(|line| line.split(['>', '<']).nth(2).expect("a text").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        links("simple/example/index.html"),
        ["example-0.9-py3-none-any.whl", "example-1.0-py3-none-any.whl"]
    );
    assert_eq!(links("cpu/mkl/index.html"), ["example-1.0+mkl-py3-none-any.whl"]);
    assert!(
        read_file(&directory, "cpu/mkl/index.html")
            .contains("href=\"../../files/example-1.0%2Bmkl-py3-none-any.whl#sha256=")
    );
}

#[test]
fn index_links_carry_the_metadata_that_installers_need() {
    let directory = written_index();
    let page = read_file(&directory, "simple/other/index.html");
    for attribute in [
        "data-requires-python=\"&gt;=3.9\"",
        "data-core-metadata=\"sha256=",
        "data-dist-info-metadata=\"sha256=",
    ] {
        assert!(page.contains(attribute), "{attribute}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&read_file(&directory, "json/other/index.json")).expect("JSON");
    let file = &json["files"][0];
    assert_eq!((&json["meta"]["api-version"], &json["versions"][0]), (&"1.1".into(), &"2".into()));
    assert_eq!(file["url"], "../../files/other-2-py3-none-any.whl");
    let metadata = file["core-metadata"]["sha256"].as_str().expect("a hash");
    assert!(page.contains(&format!("data-core-metadata=\"sha256={metadata}\"")));
    assert_eq!(file.get("dist-info-metadata"), None, "pip 22.3 to 23.1.2 read it, and fail");
    let bytes = std::fs::metadata(directory.path().join("index/files/other-2-py3-none-any.whl"))
        .expect("a wheel")
        .len();
    assert_eq!(file["size"], bytes);
    let hash = file["hashes"]["sha256"].as_str().expect("a hash");
    assert!(page.contains(&format!("#sha256={hash}\"")));
    assert!(
        read_file(&directory, "files/other-2-py3-none-any.whl.metadata")
            .starts_with("Metadata-Version: 2.1\nName: other\n")
    );
}

#[test]
fn a_directory_without_wheels_makes_no_index() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join(".DS_Store"), "of a file manager").expect("a file");
    assert!(refusal_of(directory.path()).ends_with("`: expected wheels, found none"));
}

#[test]
fn directories_beside_the_wheels_and_hidden_files_are_passed_over() {
    let directory = tempfile::tempdir().expect("a directory");
    put_wheel(directory.path(), "example", "1.0");
    std::fs::write(directory.path().join(".DS_Store"), "of a file manager").expect("a file");
    std::fs::create_dir(directory.path().join("debug")).expect("a directory");
    for _ in 0..2 {
        let index = index_of(directory.path(), &[]).expect("an index");
        index.write_index(&directory.path().join("index")).expect("files");
        assert_eq!(index.wheel_count(), 1);
    }
}

#[test]
fn the_core_comes_with_what_installs_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let wheels = directory.path().join("wheels");
    std::fs::create_dir(&wheels).expect("a directory");
    put_wheel(&wheels, "other", "1.0");
    let written = || {
        let target = directory.path().join("index");
        index_of(&wheels, &[]).expect("an index").write_index(&target).expect("files");
        std::fs::read_to_string(target.join("install.sh"))
    };
    assert!(written().is_err(), "nothing of ours is there");
    put_wheel(&wheels, "oarlock", "1.0");
    let script = written().expect("a script");
    assert!(script.starts_with("#!/bin/sh\n") && script.contains("\nhost=https://oarlock.example/wheels\n"));
    let elsewhere = index_of(&wheels, &[]).expect("an index").with_address("https://example.org/a/");
    elsewhere.expect("an address").write_index(&directory.path().join("index")).expect("files");
    let changed = std::fs::read_to_string(directory.path().join("index/install.sh")).expect("a script");
    assert_eq!(
        changed,
        script.replace("host=https://oarlock.example/wheels\n", "host='https://example.org/a'\n")
    );
    for wrong in ["example.org", "https://example.org/'; rm", "https://example.org/$x", "ftp://example.org"] {
        let error =
            index_of(&wheels, &[]).expect("an index").with_address(wrong).expect_err(wrong).to_string();
        assert!(error.starts_with("expected an address such as "), "{error}");
    }
}

#[test]
fn what_is_yanked_stays_with_its_reason() {
    let directory = written_index();
    let wheels = directory.path().join("wheels");
    let yanked = [("example-0.9-py3-none-any.whl", "loses \"files\"")];
    index_of(&wheels, &yanked)
        .expect("an index")
        .write_index(&directory.path().join("index"))
        .expect("files");
    let page = read_file(&directory, "simple/example/index.html");
    assert_eq!(page.matches("data-yanked=\"loses &quot;files&quot;\"").count(), 1);
    assert!(read_file(&directory, "json/example/index.json").contains(r#""yanked":"loses \"files\"""#));
    let error = index_of(&wheels, &[("nothing.whl", "")]).expect_err("a yanked wheel that is not there");
    assert_eq!(error.to_string(), "expected wheels of the directory to be yanked, found `nothing.whl`");
}

#[test]
fn what_is_no_wheel_is_refused_by_name() {
    let directory = written_index();
    let wheels = directory.path().join("wheels");
    let stray = wheels.join("notes.txt");
    std::fs::write(&stray, "").expect("a file");
    assert!(refusal_of(&wheels).contains("notes.txt`: expected a name such as"));
    std::fs::remove_file(&stray).expect("the file");
    let wheel = wheels.join("other-2-py3-none-any.whl");
    let bytes = std::fs::read(&wheel).expect("a wheel");
    std::fs::write(&wheel, &bytes[..bytes.len() - 30]).expect("a file");
    assert!(
        refusal_of(&wheels).contains("other-2-py3-none-any.whl`: expected a wheel, which is a ZIP archive")
    );
    std::fs::write(&wheel, &bytes).expect("a file");
    std::fs::rename(&wheel, wheels.join("other-3-py3-none-any.whl")).expect("a file");
    assert!(refusal_of(&wheels).contains("expected what its name says, other==3; found other==2"));
}

#[test]
fn an_index_replaces_an_index_but_no_other_directory() {
    let directory = written_index();
    let (wheels, place) = (directory.path().join("wheels"), directory.path().join("index"));
    let write = |to: &Path| index_of(&wheels, &[]).expect("an index").write_index(to);
    std::fs::remove_file(wheels.join("other-2-py3-none-any.whl")).expect("the file");
    write(&place).expect("files");
    assert!(!place.join("simple/other").exists());
    let error = write(&wheels).expect_err("a directory of something else").to_string();
    assert!(error.contains("expected no directory, an empty one or an index, found `example-"), "{error}");
    std::fs::write(place.join("simple/notes.txt"), "mine").expect("a file");
    let error = write(&place).expect_err("an index with a file of somebody").to_string();
    assert!(error.ends_with("found `simple/notes.txt` in it, which no index put there"), "{error}");
    assert!(place.join("simple/notes.txt").exists());
    assert_eq!(file_names(directory.path()), ["index", "wheels"]);
}

#[test]
fn local_versions_are_on_the_page_of_their_row_in_every_release_and_nowhere_without_a_row() {
    let directory = written_index();
    let (wheels, place) = (directory.path().join("wheels"), directory.path().join("index"));
    put_wheel(&wheels, "example", "0.9+mkl");
    index_of(&wheels, &[]).expect("an index").write_index(&place).expect("files");
    assert!(!read_file(&directory, "simple/example/index.html").contains('+'));
    assert_eq!(read_file(&directory, "cpu/mkl/index.html").matches("<a href").count(), 2);
    // Wheels that are not in the matrix may have any version.
    put_wheel(&wheels, "torch", "2.9.0+cpu");
    index_of(&wheels, &[]).expect("an index").write_index(&place).expect("files");
    assert!(read_file(&directory, "simple/torch/index.html").contains("torch-2.9.0%2Bcpu-py3-none-any.whl"));
    put_wheel(&wheels, "example", "1.0+own");
    assert!(refusal_of(&wheels).contains("expected a row of the matrix that says which page 1.0+own is on"));
}

#[test]
fn a_directory_that_an_index_needs_itself_is_refused() {
    let directory = written_index();
    for taken in ["simple", "json", "files"] {
        let text = MATRIX_TEXT.replace("/cpu/{blas}", &format!("/{taken}/{{blas}}"));
        let matrix = WheelMatrix::from_toml("matrix.toml", &text).expect("a matrix");
        let wheels = directory.path().join("wheels");
        let error =
            WheelIndex::of_directory(&wheels, &matrix, &BTreeMap::new(), |_, _| ()).expect_err("no place");
        assert!(error.to_string().ends_with(&format!("found `{taken}`")), "{error}");
    }
}

#[test]
fn wheels_of_others_are_listed_under_the_names_they_have() {
    let directory = tempfile::tempdir().expect("a directory");
    let wheels = directory.path().join("wheels");
    std::fs::create_dir(&wheels).expect("a directory");
    put_wheel(&wheels, "Zope.Interface", "8.7");
    let name = "Zope.Interface-8.7-1-py2.py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl";
    std::fs::rename(wheels.join("Zope.Interface-8.7-py3-none-any.whl"), wheels.join(name)).expect("a file");
    index_of(&wheels, &[(name, "why")])
        .expect("an index")
        .write_index(&directory.path().join("index"))
        .expect("files");
    let page = read_file(&directory, "simple/zope-interface/index.html");
    assert!(page.contains(&format!("href=\"../../files/{name}#")) && page.contains("data-yanked=\"why\""));
    assert!(directory.path().join("index/files").join(name).exists());
}

#[test]
fn an_index_is_written_where_a_link_leads() {
    let directory = written_index();
    let (place, link) = (directory.path().join("index"), directory.path().join("link"));
    std::os::unix::fs::symlink(&place, &link).expect("a link");
    std::fs::remove_file(directory.path().join("wheels/other-2-py3-none-any.whl")).expect("the file");
    index_of(&directory.path().join("wheels"), &[]).expect("an index").write_index(&link).expect("files");
    assert!(link.is_symlink() && !place.join("simple/other").exists());
    assert_eq!(file_names(directory.path()), ["index", "link", "wheels"]);
}

#[test]
fn what_of_the_matrix_is_not_there_is_named() {
    let directory = written_index();
    let wheels = directory.path().join("wheels");
    assert!(index_of(&wheels, &[]).expect("an index").missing_wheels(&test_matrix()).is_empty());
    std::fs::remove_file(wheels.join("example-1.0+mkl-py3-none-any.whl")).expect("the file");
    let missing: Vec<String> = index_of(&wheels, &[])
        .expect("an index")
        .missing_wheels(&test_matrix())
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(missing, ["example-1.0+mkl-py3-none-any.whl"]);
}

/// The head and the body of an HTTP response.
fn http_get(port: u16, path: &str, accept: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\nAccept: {accept}\r\nConnection: close\r\n\r\n")
        .expect("a request");
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).expect("a line") > 0 {}
    let mut body = Vec::new();
    reader.read_to_end(&mut body).expect("a body");
    (head, String::from_utf8_lossy(&body).into_owned())
}

/// Serves a directory, and returns the port.
fn serve_index(place: PathBuf) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || oarlock_pack::serve::serve_directory(&place, listener, |_| ()));
    port
}

#[test]
fn a_server_answers_as_it_is_asked() {
    let directory = written_index();
    let port = serve_index(directory.path().join("index"));
    let json =
        "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01";
    let (head, body) = http_get(port, "/simple/example/", json);
    assert!(head.contains("content-type: application/vnd.pypi.simple.v1+json"), "{head}");
    assert!(head.contains("vary: accept"), "{head}");
    assert!(body.starts_with('{'));
    let (head, body) = http_get(port, "/simple/example/", "text/html");
    assert!(head.contains("content-type: text/html") && body.starts_with("<!DOCTYPE html>"), "{head}");
    assert!(head.contains("vary: accept"), "{head}");
    let (head, _) = http_get(port, "/files/example-1.0%2Bmkl-py3-none-any.whl", "*/*");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let (head, _) = http_get(port, "/", "text/html");
    assert!(head.starts_with("HTTP/1.1 307") && head.contains("location: /simple/"), "{head}");
    for outside in [
        "/../wheels/example-1.0-py3-none-any.whl",
        "/%2e%2e/wheels/example-1.0-py3-none-any.whl",
        "/simple/nothing/",
    ] {
        let (head, _) = http_get(port, outside, json);
        assert!(head.starts_with("HTTP/1.1 404") || head.starts_with("HTTP/1.1 400"), "{outside}: {head}");
    }
}

#[test]
fn what_begins_with_a_dot_is_not_served() {
    let directory = written_index();
    let index = directory.path().join("index");
    assert!(index.join(".oarlock-index").is_file(), "what the index keeps for itself");
    std::fs::create_dir(index.join("simple/.git")).expect("a directory");
    std::fs::write(index.join("simple/.git/config"), "secret").expect("a file");
    std::fs::write(index.join("simple/more.html"), "served").expect("a file");
    let port = serve_index(index);
    for hidden in [
        "/.oarlock-index",
        "/%2eoarlock-index",
        "/%2Eoarlock-index",
        "/simple/.git/config",
        "/simple%2f.git/config",
        "//.oarlock-index",
    ] {
        let (head, body) = http_get(port, hidden, "*/*");
        assert!(head.starts_with("HTTP/1.1 404") && body.is_empty(), "{hidden}: {head}{body}");
    }
    assert_eq!(http_get(port, "/simple/more.html", "*/*").1, "served");
}

#[test]
fn a_repository_is_served_too_and_begins_with_what_apt_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(directory.path().join("dists")).expect("a directory");
    std::fs::write(directory.path().join("oarlock.sources"), "Types: deb\n").expect("a file");
    let port = serve_index(directory.path().to_owned());
    let (head, _) = http_get(port, "/", "text/html");
    assert!(head.starts_with("HTTP/1.1 307") && head.contains("location: /oarlock.sources"), "{head}");
    let (head, body) = http_get(port, "/oarlock.sources", "*/*");
    assert!(head.starts_with("HTTP/1.1 200") && body == "Types: deb\n", "{head}");
}

#[test]
fn what_is_no_index_is_not_served() {
    let directory = tempfile::tempdir().expect("a directory");
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let error = oarlock_pack::serve::serve_directory(directory.path(), listener, |_| ())
        .expect_err("an empty directory");
    assert!(error.to_string().contains("expected an index"));
}

#[test]
fn an_index_keeps_its_wheels_when_the_source_wheels_change() {
    let directory = tempfile::tempdir().expect("a directory");
    let (pool, elsewhere) = (directory.path().join("wheels"), directory.path().join("elsewhere"));
    std::fs::create_dir_all(&elsewhere).expect("a directory");
    put_wheel(&elsewhere, "example", "1.0");
    std::fs::create_dir(&pool).expect("a directory");
    let (name, link) = ("example-1.0-py3-none-any.whl", pool.join("example-1.0-py3-none-any.whl"));
    std::os::unix::fs::symlink("../elsewhere/example-1.0-py3-none-any.whl", &link).expect("a link");
    let out = directory.path().join("index");
    index_of(&pool, &[]).expect("an index").write_index(&out).expect("files");
    let listed = out.join("files").join(name);
    let before = std::fs::read(&listed).expect("a file");
    std::fs::write(elsewhere.join(name), "something else").expect("a file");
    assert!(!listed.is_symlink());
    assert_eq!(std::fs::read(&listed).expect("a file"), before);
}
