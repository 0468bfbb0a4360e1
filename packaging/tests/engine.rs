//! The local engine loads our images, builds our Dockerfiles, and reports errors in those of users.
//!
//! Works with Docker and podman, at `DOCKER_HOST` or at a default socket. Without one there is one ignored test that says why.

#[path = "common/image.rs"]
mod image;
#[path = "common/trials.rs"]
mod trials;

use std::path::Path;
use std::process::{Command, ExitCode};

use oarlock_formats::Error;
use oarlock_image::ImageName;
use oarlock_pack::container_engine::{ContainerEngine, ProgressEvent};

use crate::image::{IMAGE_CATALOG, ImageFixture};
use bollard::Docker;
use bollard::models::ImageInspect;
use serde_json::Value;

const TESTS: &[(&str, fn())] = &[
    (
        "an_image_is_loaded_and_built_with_the_same_settings",
        an_image_is_loaded_and_built_with_the_same_settings,
    ),
    ("a_program_of_a_user_becomes_an_image", a_program_of_a_user_becomes_an_image),
    ("a_broken_text_of_a_user_is_said_with_its_line", a_broken_text_of_a_user_is_said_with_its_line),
    ("an_archive_that_is_none_is_refused", an_archive_that_is_none_is_refused),
];

fn main() -> ExitCode {
    let missing = find_engine().err().map(|error| error.to_string());
    if let Ok(engine) = find_engine() {
        eprintln!("with {}", engine.description());
    }
    trials::run_trials(TESTS, missing)
}

fn find_engine() -> Result<ContainerEngine, Error> {
    ContainerEngine::find_local(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

fn require_engine() -> ContainerEngine {
    find_engine().expect("the engine that was there a moment ago")
}

/// An image with a unique name, removed on drop.
struct TestImage {
    place: ImageFixture,
    name: String,
}

impl TestImage {
    fn new(of: &str) -> Self {
        Self { place: ImageFixture::new(), name: format!("oarlock-test-{of}-{}", std::process::id()) }
    }

    fn image_repository(&self) -> String {
        IMAGE_CATALOG.replace("name = \"example\"", &format!("name = \"{}\"", self.name))
    }

    /// All names under which an engine may have the image; podman also stores loaded images under a registry host of its own.
    fn image_names(&self) -> impl Iterator<Item = String> {
        ["1.0-small", "built", "latest"]
            .into_iter()
            .flat_map(|tag| [format!("{}:{tag}", self.name), format!("localhost/{}:{tag}", self.name)])
    }

    fn name_with_tag(&self, tag: &str) -> ImageName {
        ImageName::new(&self.name, tag).expect("a name")
    }
}

impl Drop for TestImage {
    fn drop(&mut self) {
        query_engine(async |docker| {
            for name in self.image_names() {
                // The test may have failed before it created the image.
                _ = docker
                    .remove_image(&name, None::<bollard::query_parameters::RemoveImageOptions>, None)
                    .await;
            }
        });
    }
}

/// Queries the engine without code of ours in between.
fn query_engine<T>(question: impl AsyncFnOnce(Docker) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let described = require_engine().description();
    let address = described.rsplit(' ').next().expect("an address").to_owned();
    runtime.block_on(question(Docker::connect_with_host(&address).expect("an engine")))
}

fn image_settings(name: &ImageName) -> Value {
    let inspected: ImageInspect =
        query_engine(async |docker| docker.inspect_image(&name.to_string()).await.expect("an image"));
    let mut config = serde_json::to_value(inspected.config).expect("JSON");
    // Engines may move special variables to the front.
    if let Some(environment) = config["Env"].as_array_mut() {
        environment.sort_by_key(ToString::to_string);
    }
    // Engines represent unset values differently: as missing or as empty.
    let mut message = |key: &str| config[key].take();
    let message = ["User", "Env", "Cmd", "Entrypoint", "WorkingDir"].map(&mut message).into_iter();
    message.map(|it| if it == Value::Array(Vec::new()) { Value::Null } else { it }).collect()
}

fn an_image_is_loaded_and_built_with_the_same_settings() {
    let ours = TestImage::new("load");
    let engine = require_engine();
    let finished =
        ours.place.build_first_image(&ours.image_repository(), &ours.place.path("out")).expect("an image");
    assert_eq!(engine.image_id(&finished.name), Ok(None));
    let (mut sent, mut steps) = (Vec::new(), Vec::new());
    let id = engine
        .load_image(&finished.file, &finished.name, &mut |heard| {
            if let ProgressEvent::Sent(_, all) = heard {
                sent.push(all);
            }
        })
        .expect("loaded");
    assert!(id.starts_with("sha256:") && engine.image_id(&finished.name) == Ok(Some(id)));
    assert!(sent.iter().all(|all| *all == finished.file.metadata().expect("a file").len()));
    let directory = finished.dockerfile.expect("a directory");
    let built = ours.name_with_tag("built");
    engine
        .build_image(&directory, &built, &mut |heard| {
            if let ProgressEvent::Step(number, count, text) = heard {
                steps.push((number, count, text.split(' ').next().unwrap_or_default().to_owned()));
            }
        })
        .expect("built");
    let first: Vec<_> = steps.iter().take(3).map(|(number, _, word)| (*number, word.as_str())).collect();
    assert_eq!(first, [(1, "FROM"), (2, "ADD"), (3, "ADD")]);
    assert!(steps.iter().all(|(_, count, _)| *count == steps.len()));
    assert_eq!(image_settings(&finished.name), image_settings(&built));
}

/// Runs `oarlock-pack app --build` for a program on one of our images.
fn build_app(ours: &TestImage, base: &ImageName, directory: &Path) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock-pack"));
    let (base, image) = (base.to_string(), ours.name_with_tag("latest").to_string());
    command.args(["app", "--build", "--base", &base, "--image", &image, "a.py"]).current_dir(directory);
    let output = command.output().expect("the command");
    let message = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success(), message.into_owned())
}

fn a_program_of_a_user_becomes_an_image() {
    let ours = TestImage::new("app");
    let finished =
        ours.place.build_first_image(&ours.image_repository(), &ours.place.path("out")).expect("an image");
    require_engine().load_image(&finished.file, &finished.name, &mut |_| ()).expect("loaded");
    let directory = ours.place.path("app");
    std::fs::create_dir(&directory).expect("a directory");
    std::fs::write(directory.join("a.py"), "print(1)").expect("a file");
    let (is_well, message) = build_app(&ours, &finished.name, &directory);
    assert!(
        is_well && message.contains(&format!("built {}, sha256:", ours.name_with_tag("latest"))),
        "{message}"
    );
    assert_eq!(image_settings(&ours.name_with_tag("latest"))[2], serde_json::json!(["a.py"]));
    // A file that the user changed is kept, and is used for the build.
    let file = directory.join("Dockerfile");
    let text = std::fs::read_to_string(&file).expect("a file").replace("CMD [\"a.py\"]", "CMD [\"b.py\"]");
    std::fs::write(&file, text).expect("a file");
    let (is_well, message) = build_app(&ours, &finished.name, &directory);
    assert!(is_well && message.contains("kept ./Dockerfile"), "{message}");
    assert_eq!(image_settings(&ours.name_with_tag("latest"))[2], serde_json::json!(["b.py"]));
}

fn a_broken_text_of_a_user_is_said_with_its_line() {
    let ours = TestImage::new("broken");
    let directory = ours.place.path("broken");
    std::fs::create_dir(&directory).expect("a directory");
    for (text, expected) in [
        ("FROM scratch\n\nRUNN a\n", "line 3: expected an instruction such as `RUN`, found `RUNN`"),
        ("FROM scratch\n# note\nCOPY nothing /\n", "line 3: expected `COPY nothing /` to succeed, found: "),
        ("FROM scratch\nENV a\n", "line 2: "),
        (&format!("FROM {}:none\n", ours.name), "has to be on this engine"),
    ] {
        std::fs::write(directory.join("Dockerfile"), text).expect("a file");
        let error = require_engine()
            .build_image(&directory, &ours.name_with_tag("built"), &mut |_| ())
            .expect_err(text)
            .to_string();
        assert!(error.contains("Dockerfile`: line ") && error.contains(expected), "{error}");
    }
    assert_eq!(require_engine().image_id(&ours.name_with_tag("built")), Ok(None));
}

fn an_archive_that_is_none_is_refused() {
    let ours = TestImage::new("none");
    let file = ours.place.path("none.tar");
    std::fs::write(&file, "no archive").expect("a file");
    let error = require_engine()
        .load_image(&file, &ours.name_with_tag("built"), &mut |_| ())
        .expect_err("a refusal")
        .to_string();
    assert!(error.contains(&format!("`{}`", file.display())), "{error}");
}
