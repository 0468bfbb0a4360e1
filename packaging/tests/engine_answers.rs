//! Errors for unexpected responses of an engine, with a fake engine of a few lines; `tests/engine.rs` uses a real one.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use oarlock_image::ImageName;
use oarlock_pack::container_engine::{ContainerEngine, EngineAddress};

/// A socket that gives fixed responses.
struct FakeEngine {
    directory: tempfile::TempDir,
}

const VERSION_ANSWER: &str = r#"{"Version":"1.2","ApiVersion":"1.41","MinAPIVersion":"1.24","Components":[{"Name":"Engine","Version":"1.2"}]}"#;

impl FakeEngine {
    /// A fake engine with a response for the version and one for all other requests, sent as they are.
    fn new(version: &str, other: &str) -> Self {
        Self::with_info(version, "{}", other)
    }

    /// A fake engine that also responds to info requests.
    fn with_info(version: &str, info: &str, other: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let listener = UnixListener::bind(directory.path().join("socket")).expect("a socket");
        let (version, info, other) = (version.to_owned(), ok_answer(info), other.to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("somebody who asks");
                // A probe only connects, without a request.
                let Some(asked) = read_request_line(&stream) else { continue };
                let answer = match asked.as_str() {
                    asked if asked.contains("/version ") => &version,
                    asked if asked.contains("/info ") => &info,
                    _ => &other,
                };
                // The client may have disconnected.
                _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { directory }
    }

    fn socket_path(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    fn connect_engine(&self) -> Result<ContainerEngine, String> {
        ContainerEngine::connect_to(EngineAddress::Socket(self.socket_path()))
            .map_err(|error| error.to_string())
    }

    /// The result of checking disk space.
    fn check_disk_space(&self, bytes: u64) -> Result<(), String> {
        self.connect_engine()?.check_disk_space(bytes).map_err(|error| error.to_string())
    }

    /// The error of loading an image.
    fn load_failure(&self) -> String {
        let file = self.directory.path().join("a.tar");
        std::fs::write(&file, "an archive").expect("a file");
        let name = ImageName::new("a", "1").expect("a name");
        let engine = self.connect_engine().expect("something that answers");
        engine.load_image(&file, &name, &mut |_| ()).expect_err("a refusal").to_string()
    }
}

/// Reads a request and returns its first line.
fn read_request_line(stream: &UnixStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|count| *count > 0)?;
    let mut is_chunked = false;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        is_chunked |= line.to_lowercase().starts_with("transfer-encoding: chunked");
        if line.trim().is_empty() {
            break;
        }
    }
    while is_chunked {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let length = usize::from_str_radix(line.trim(), 16).ok()?;
        reader.read_exact(&mut vec![0; length + 2]).ok()?;
        is_chunked = length > 0;
    }
    Some(first)
}

fn http_answer(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn ok_answer(body: &str) -> String {
    http_answer("200 OK", body)
}

#[test]
fn what_is_no_engine_or_one_of_another_time_is_refused_at_once() {
    for (version, expected) in [
        ("SSH-2.0-OpenSSH_9.2\r\n".to_owned(), "expected an engine to answer, found: "),
        (String::new(), "expected an engine to answer, found: "),
        (ok_answer("<html>"), "expected an answer as engines give it, found another: "),
        (ok_answer("[1]"), "expected an answer as engines give it, found another: "),
        (ok_answer("{}"), "found an answer without a version"),
        (http_answer("500 Oops", r#"{"message":"it broke"}"#), "it broke"),
        (http_answer("503 Busy", ""), "found the status 503 without a word"),
        (
            ok_answer(&VERSION_ANSWER.replace("1.41", "1.40")),
            "found Docker 1.2 with 1.24 to 1.40; use a newer engine",
        ),
        (
            ok_answer(&VERSION_ANSWER.replace("1.24", "9.0").replace("1.41", "9.9")),
            "use a newer `oarlock-pack`",
        ),
        (ok_answer(&VERSION_ANSWER.replace("1.41", "one")), "found an answer without a version"),
    ] {
        let socket = FakeEngine::new(&version, "");
        let error = socket.connect_engine().err().expect("a refusal");
        assert!(error.contains(expected), "{version:?}: {error}");
        assert!(error.starts_with(&format!("`unix://{}`: ", socket.socket_path().display())), "{error}");
    }
    let engine =
        FakeEngine::new(&ok_answer(VERSION_ANSWER), "").connect_engine().map(|engine| engine.description());
    assert!(engine.expect("an engine").starts_with("Docker 1.2 at unix://"));
}

#[test]
fn an_image_counts_as_loaded_only_where_the_engine_says_so() {
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"stream\":\"Loading\"}\n".to_owned();
    for (other, expected) in [
        (
            ok_answer("{\"stream\":\"Loading\\n\"}\n"),
            "expected the image `a:1` to be there, found none; the engine said last: `Loading`",
        ),
        (
            ok_answer("{\"stream\":\"a\"}\n{\"errorDetail\":{\"message\":\"broken\\u001b[2J off\"}}\n"),
            "broken off",
        ),
        (ok_answer("{\"errorDetail\":{}}\n"), "an error without a word"),
        (
            ok_answer("{\"errorDetail\":{\"message\":\"write /big: no space left on device\"}}\n"),
            "`docker system prune` frees",
        ),
        (ok_answer("no JSON\n"), "expected an answer as engines give it, found another: "),
        (cut, "expected an engine to answer, found: "),
        (http_answer("500 Oops", r#"{"message":"it broke"}"#), "it broke"),
    ] {
        let error = FakeEngine::new(&ok_answer(VERSION_ANSWER), &other).load_failure();
        assert!(error.contains(expected) && !error.contains('\u{1b}'), "{other:?}: {error}");
    }
}

#[test]
fn a_failing_step_is_reported_with_line_and_last_output() {
    for (message, expected) in [
        (
            "{\"stream\":\"Step 1/2 : FROM a\\n ---> 1234\\nStep 2/2 : RUN b\\n\\u001b[91mfirst\\n\\u001b[0mRemoving intermediate container 1\\nsec\"}\n{\"stream\":\"ond\\n\"}\n\
             {\"errorDetail\":{\"message\":\"it returned 1\"}}\n",
            "line 3: expected `RUN b && c` to succeed, found: it returned 1; it wrote last:\n    first\n    second",
        ),
        (
            "{\"stream\":\"STEP 1/2: FROM a\\n\"}\n{\"errorDetail\":{\"message\":\"no such image\"}}\n",
            "line 1: expected `FROM a` to succeed, found: no such image; the image that it begins with has to be on this engine",
        ),
        ("{\"errorDetail\":{\"message\":\"RUN is wrong\"}}\n", "line 3: RUN is wrong"),
        (
            "{\"stream\":\"Step 9/9 : RUN b\\n\"}\n{\"errorDetail\":{\"message\":\"odd\"}}\n",
            "Dockerfile`: odd",
        ),
        ("{\"stream\":\"Step 1/2 : FROM a\\n\"}\n", "expected the image `a:1` to be there, found none"),
    ] {
        let socket = FakeEngine::new(&ok_answer(VERSION_ANSWER), &ok_answer(message));
        let place = socket.directory.path().join("context");
        std::fs::create_dir(&place).expect("a directory");
        std::fs::write(place.join("Dockerfile"), "FROM a\n# note\nRUN b \\\n  && c\n").expect("a file");
        let name = ImageName::new("a", "1").expect("a name");
        let engine = socket.connect_engine().expect("something that answers");
        let error = engine.build_image(&place, &name, &mut |_| ()).expect_err("a refusal").to_string();
        assert!(error.contains(expected), "{message}: {error}");
    }
}

#[test]
fn low_disk_space_of_the_engine_is_reported() {
    let engine =
        |info: &str| FakeEngine::with_info(&ok_answer(VERSION_ANSWER), info, "").check_disk_space(u64::MAX);
    let error = engine(r#"{"DockerRootDir":"/"}"#).expect_err("a refusal");
    assert!(error.contains(" MB on the disk of the engine, in `/`, found "), "{error}");
    assert_eq!(engine(r#"{"DockerRootDir":"/nowhere"}"#), Ok(()));
    assert_eq!(engine("{}"), Ok(()));
}

#[test]
fn a_socket_that_lets_nobody_in_is_said_before_anything_is_written() {
    let socket = FakeEngine::new(&ok_answer(VERSION_ANSWER), "");
    let place = socket.directory.path();
    for (path, mode) in [(place.to_owned(), 0o777), (socket.socket_path(), 0o000)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }
    let program = place.join("oarlock-pack");
    // A copy made here would be open for writing in whatever another test starts meanwhile, and could not be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_oarlock-pack")).arg(&program).status();
    assert!(copied.expect("`cp`").success());
    let mut command = Command::new(&program);
    command.args(["app", "--build", "a.py"]).current_dir(place);
    command.env("DOCKER_HOST", format!("unix://{}", socket.socket_path().display()));
    // root ignores permissions.
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    let output = command.output().expect("the command");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(message.contains("error: `DOCKER_HOST`: expected to be let in at `"), "{message}");
    assert!(message.contains("mode 0; run this as `"), "{message}");
    assert!(!place.join("Dockerfile").exists());
}

#[test]
fn an_image_without_its_program_is_not_built() {
    let socket = FakeEngine::new(&ok_answer(VERSION_ANSWER), "");
    let place = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock-pack"));
    command.args(["app", "--build", "--requirements", "needs.txt", "a.py"]).current_dir(place.path());
    command.env("DOCKER_HOST", format!("unix://{}", socket.socket_path().display()));
    for missing in ["a.py", "needs.txt"] {
        let output = command.output().expect("the command");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(
            message.contains(&format!("expected `{missing}`, for the image is made of what is there")),
            "{message}"
        );
        assert!(!place.path().join("Dockerfile").exists());
        std::fs::write(place.path().join(missing), "").expect("a file");
    }
}
