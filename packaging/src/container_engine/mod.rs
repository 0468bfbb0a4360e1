//! The local engine, Docker or podman, through the API that both offer: it loads and builds images.
//!
//! The other modules need no engine. Problems with it are detected when it is located, before any slow work.

mod address;
mod context;
mod engine_log;
mod ignore_rules;
mod steps;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oarlock_formats::error::Error;
use oarlock_image::{ImageName, dockerfile};

pub use self::address::{EngineAddress, EnvironmentLookup};
use self::engine_log::{EngineLog, engine_error};
use bollard::models::{BuildInfo, SystemVersion};
use bollard::query_parameters::{BuildImageOptionsBuilder, ImportImageOptions, TagImageOptionsBuilder};
use bollard::{API_DEFAULT_VERSION, Docker, body_try_stream};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use tokio::runtime::{Builder, Runtime};

/// An engine that responds.
pub struct ContainerEngine {
    docker: Docker,
    runtime: Runtime,
    address: EngineAddress,
    name: String,
}

/// Progress of long work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProgressEvent<'h> {
    /// Bytes sent, and bytes in total.
    Sent(u64, u64),
    /// A step starts: its number, the number of steps, and a description.
    Step(usize, usize, &'h str),
    /// A line of the current step's output.
    Line(&'h str),
}

/// Receives progress.
pub type ProgressSink<'t> = &'t mut dyn FnMut(ProgressEvent<'_>);

/// The oldest supported API, of Docker 20.10 and podman 4.3.
const OLDEST_API_VERSION: (usize, usize) = (1, 41);

/// Timeouts: for short queries, and for the first response to an upload.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const WORK_TIMEOUT: Duration = Duration::from_secs(1800);

/// The interval of progress reports, and the size of a chunk.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
const UPLOAD_CHUNK: usize = 1 << 16;

impl ContainerEngine {
    /// Finds and queries the engine of this machine.
    ///
    /// # Errors
    ///
    /// When there is none, this user has no permission, its version is unsupported, or the server is not an engine.
    pub fn find_local(environment: EnvironmentLookup<'_>) -> Result<Self, Error> {
        Self::connect_to(EngineAddress::find_listening(environment)?)
    }

    /// Connects to the engine at an address.
    ///
    /// # Errors
    ///
    /// As [`find_local`](Self::find_local).
    pub fn connect_to(address: EngineAddress) -> Result<Self, Error> {
        let at = address.to_string();
        let of_address = |error: Error| error.in_part(&at);
        let docker = match &address {
            EngineAddress::Socket(_) => {
                Docker::connect_with_unix(&at, WORK_TIMEOUT.as_secs(), API_DEFAULT_VERSION)
            }
            EngineAddress::Host(_) => {
                Docker::connect_with_http(&at, WORK_TIMEOUT.as_secs(), API_DEFAULT_VERSION)
            }
        };
        let docker = docker.map_err(|error| of_address(engine_error(&error)))?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let asked = runtime.block_on(async { tokio::time::timeout(ANSWER_TIMEOUT, docker.version()).await });
        let version = asked
            .map_err(|_| {
                Error::new(format!("expected an answer within {} s, found none", ANSWER_TIMEOUT.as_secs()))
            })
            .and_then(|version| version.map_err(|error| engine_error(&error)))
            .map_err(of_address)?;
        let name = describe_version(&version).map_err(of_address)?;
        Ok(Self { docker, runtime, address, name })
    }

    /// Name, version and address, such as `Docker 28.2.2 at unix:///var/run/docker.sock`.
    #[must_use]
    pub fn description(&self) -> String {
        format!("{} at {}", self.name, self.address)
    }

    /// Checks the disk space for this many unpacked bytes, if it is known: for an engine on this machine.
    ///
    /// # Errors
    ///
    /// When there is too little.
    pub fn check_disk_space(&self, bytes: u64) -> Result<(), Error> {
        if matches!(self.address, EngineAddress::Host(_)) {
            return Ok(());
        }
        let info = self.block_on(self.docker.info())?;
        let Some(root) = info.docker_root_dir else { return Ok(()) };
        // The directory may be inaccessible to this user, or be a path on another machine.
        let Ok(disk) = rustix::fs::statvfs(&root) else { return Ok(()) };
        let free = disk.f_bavail * disk.f_frsize;
        if free >= bytes {
            return Ok(());
        }
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        Err(Error::new(format!(
            "expected {:.0} MB on the disk of the engine, in `{root}`, found {:.0} MB; {}",
            megabytes(bytes),
            megabytes(free),
            engine_log::NO_SPACE_ADVICE
        )))
    }

    /// The engine's id of an image, if it has one with this name.
    ///
    /// # Errors
    ///
    /// When the engine does not respond.
    pub fn image_id(&self, name: &ImageName) -> Result<Option<String>, Error> {
        match self.runtime.block_on(self.docker.inspect_image(&name.to_string())) {
            Err(bollard::errors::Error::DockerResponseServerError { status_code: 404, .. }) => Ok(None),
            Err(error) => Err(engine_error(&error).in_part(self.description())),
            Ok(image) => Ok(image.id),
        }
    }

    /// Loads an image archive and returns the engine's id of the image.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or the engine rejects it.
    pub fn load_image(
        &self,
        archive: &Path,
        name: &ImageName,
        tell: ProgressSink<'_>,
    ) -> Result<String, Error> {
        let file = File::open(archive).map_err(|error| Error::from(error).in_file(archive.display()))?;
        let sent = FileUpload::new(file)?;
        let body = sent.body_stream()?;
        let mut log = EngineLog::default();
        let answers = self.docker.import_image(ImportImageOptions::default(), body_try_stream(body), None);
        self.follow_messages(answers, &sent, tell, &mut log)
            .map_err(|error| error.in_part(archive.display()).in_part(self.description()))?;
        // podman stores some names under a registry host that it then does not find.
        if let Some(other) = log.loaded_image().filter(|other| *other != name.to_string()) {
            let called = TagImageOptionsBuilder::default().repo(name.repository()).tag(name.tag()).build();
            self.block_on(self.docker.tag_image(other, Some(called)))?;
        }
        self.finished_image_id(name, &log)
    }

    /// Builds an image from a directory and returns the engine's id of it.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read, the Dockerfile is missing or invalid, or a step fails.
    pub fn build_image(
        &self,
        directory: &Path,
        name: &ImageName,
        tell: ProgressSink<'_>,
    ) -> Result<String, Error> {
        let file = directory.join(dockerfile::DOCKERFILE_NAME);
        let text =
            std::fs::read_to_string(&file).map_err(|error| Error::from(error).in_file(file.display()))?;
        let steps = steps::read_steps(&text).map_err(|error| error.in_file(file.display()))?;
        let sent = FileUpload::new(context::pack_context(directory)?)?;
        self.check_disk_space(sent.all)?;
        let body = sent.body_stream()?;
        let options = BuildImageOptionsBuilder::default()
            .dockerfile(dockerfile::DOCKERFILE_NAME)
            .t(&name.to_string())
            .rm(true)
            .forcerm(true)
            .build();
        let mut log = EngineLog::default();
        let answers = self.docker.build_image(options, None, Some(body_try_stream(body)));
        self.follow_messages(answers, &sent, tell, &mut log)
            .map_err(|error| log.error_in_step(&steps, error).in_file(file.display()))?;
        self.finished_image_id(name, &log)
    }

    /// Reads the engine's messages to the end.
    fn follow_messages(
        &self,
        answers: impl Stream<Item = Result<BuildInfo, bollard::errors::Error>>,
        sent: &FileUpload,
        tell: ProgressSink<'_>,
        log: &mut EngineLog,
    ) -> Result<(), Error> {
        self.runtime.block_on(async {
            let mut answers = std::pin::pin!(answers);
            let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
            loop {
                let answer = tokio::select! {
                    answer = answers.next() => answer,
                    _ = ticks.tick() => {
                        if !sent.is_complete() {
                            tell(ProgressEvent::Sent(sent.sent_bytes(), sent.all));
                        }
                        continue;
                    }
                };
                match answer {
                    None => {
                        log.flush_open_line(tell);
                        return Ok(());
                    }
                    Some(Err(error)) => return Err(engine_error(&error)),
                    Some(Ok(answer)) => log.handle_message(answer, tell)?,
                }
            }
        })
    }

    /// The id of the image, or an error if the engine did not finish it.
    fn finished_image_id(&self, name: &ImageName, log: &EngineLog) -> Result<String, Error> {
        let id = if log.is_finished() { self.image_id(name)? } else { None };
        id.ok_or_else(|| {
            let last = log.last_line();
            Error::new(format!(
                "expected the image `{name}` to be there, found none; the engine said last: `{last}`"
            ))
            .in_part(self.description())
        })
    }

    fn block_on<T>(
        &self,
        question: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<T, Error> {
        let answer = self.runtime.block_on(question);
        answer.map_err(|error| engine_error(&error).in_part(self.description()))
    }
}

/// An upload that counts the bytes sent.
struct FileUpload {
    file: File,
    all: u64,
    done: Arc<AtomicU64>,
}

impl FileUpload {
    fn new(file: File) -> io::Result<Self> {
        let all = file.metadata()?.len();
        Ok(Self { file, all, done: Arc::default() })
    }

    /// The bytes as a stream; each chunk is counted when the client reads it.
    fn body_stream(&self) -> io::Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
        let (mut file, done) = (self.file.try_clone()?, Arc::clone(&self.done));
        let piece = move || {
            let mut bytes = vec![0; UPLOAD_CHUNK];
            let read = file.read(&mut bytes).map(|count| {
                bytes.truncate(count);
                done.fetch_add(count as u64, Ordering::Relaxed);
                Bytes::from(bytes)
            });
            Some(read).filter(|read| !read.as_ref().is_ok_and(Bytes::is_empty))
        };
        Ok(stream::iter(std::iter::from_fn(piece)))
    }

    fn sent_bytes(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    fn is_complete(&self) -> bool {
        self.sent_bytes() >= self.all
    }
}

/// Name and version of the engine, or an error if its API is not compatible.
fn describe_version(version: &SystemVersion) -> Result<String, Error> {
    let read = |text: Option<&String>| {
        let (major, minor) = text?.split_once('.')?;
        Some((major.parse::<usize>().ok()?, minor.parse::<usize>().ok()?))
    };
    let kind = version.components.as_ref().and_then(|parts| parts.first()).map(|part| part.name.as_str());
    let kind = if kind == Some("Podman Engine") { "podman" } else { "Docker" };
    let number: String = version
        .version
        .iter()
        .flat_map(|it| it.chars())
        .filter(|it| it.is_ascii_graphic())
        .take(40)
        .collect();
    let Some(newest) = read(version.api_version.as_ref()) else {
        return Err(Error::new(
            "expected an engine that says which interface it has, found an answer without a version",
        ));
    };
    let oldest = read(version.min_api_version.as_ref()).unwrap_or(newest);
    let ours = (API_DEFAULT_VERSION.major_version, API_DEFAULT_VERSION.minor_version);
    let show = |(major, minor): (usize, usize)| format!("{major}.{minor}");
    if newest < OLDEST_API_VERSION || oldest > ours {
        let what_to_do =
            if newest < OLDEST_API_VERSION { "use a newer engine" } else { "use a newer `oarlock-pack`" };
        return Err(Error::new(format!(
            "expected an engine with an interface from {} to {}, such as Docker 20.10 and newer or podman 4, found {kind} {number} \
             with {} to {}; {what_to_do}, or give it the archive: `docker load --input FILE`",
            show(OLDEST_API_VERSION),
            show(ours),
            show(oldest),
            show(newest)
        )));
    }
    Ok(format!("{kind} {number}"))
}
