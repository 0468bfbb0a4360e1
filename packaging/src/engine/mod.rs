//! The engine of this machine, Docker or podman, through the interface that both answer to: it is given images, and builds them.
//!
//! Nothing else here needs one. What can be wrong with it is found when it is looked for, before anything that takes long.

mod address;
mod context;
mod ignored;
mod said;
mod steps;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bollard::models::{BuildInfo, SystemVersion};
use bollard::query_parameters::{BuildImageOptionsBuilder, ImportImageOptions, TagImageOptionsBuilder};
use bollard::{API_DEFAULT_VERSION, Docker, body_try_stream};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use tokio::runtime::{Builder, Runtime};

pub use self::address::{Address, Environment};
use self::said::{Told, problem};
use crate::error::Error;
use crate::image::{Name, dockerfile};

/// An engine that answers.
pub struct Engine {
    docker: Docker,
    runtime: Runtime,
    address: Address,
    name: String,
}

/// What is heard of work that takes long.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Heard<'h> {
    /// So many bytes of all have been sent.
    Sent(u64, u64),
    /// A step of all begins, and what it does.
    Step(usize, usize, &'h str),
    /// A line that the step wrote.
    Line(&'h str),
}

/// What hears of it.
pub type Tell<'t> = &'t mut dyn FnMut(Heard<'_>);

/// The oldest interface that this was tried with, of Docker 20.10 and podman 4.3.
const OLDEST: (usize, usize) = (1, 41);

/// For how long an engine may think about who it is, and about an image, until it says the first word of it.
const PATIENCE: Duration = Duration::from_secs(10);
const LONG_PATIENCE: Duration = Duration::from_secs(1800);

/// How often somebody hears how much has been sent, and how much is sent at once.
const EVERY: Duration = Duration::from_millis(200);
const PIECE: usize = 1 << 16;

impl Engine {
    /// The engine of this machine.
    ///
    /// # Errors
    ///
    /// When there is none, it does not let this user in, is too old or too new, or what answers is no engine.
    pub fn find(environment: Environment<'_>) -> Result<Self, Error> {
        Self::at(Address::find(environment)?)
    }

    /// The engine at an address.
    ///
    /// # Errors
    ///
    /// As `find`.
    pub fn at(address: Address) -> Result<Self, Error> {
        let at = address.to_string();
        let of_address = |error: Error| error.of_part(&at);
        let docker = match &address {
            Address::Socket(_) => {
                Docker::connect_with_unix(&at, LONG_PATIENCE.as_secs(), API_DEFAULT_VERSION)
            }
            Address::Host(_) => Docker::connect_with_http(&at, LONG_PATIENCE.as_secs(), API_DEFAULT_VERSION),
        };
        let docker = docker.map_err(|error| of_address(problem(&error)))?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let asked = runtime.block_on(async { tokio::time::timeout(PATIENCE, docker.version()).await });
        let version = asked
            .map_err(|_| {
                Error::new(format!("expected an answer within {} s, found none", PATIENCE.as_secs()))
            })
            .and_then(|version| version.map_err(|error| problem(&error)))
            .map_err(of_address)?;
        let name = of_version(&version).map_err(of_address)?;
        Ok(Self { docker, runtime, address, name })
    }

    /// What it is and where, such as `Docker 28.2.2 at unix:///var/run/docker.sock`.
    #[must_use]
    pub fn described(&self) -> String {
        format!("{} at {}", self.name, self.address)
    }

    /// That there is room for images of some bytes, unpacked, where that can be known: on the disk of an engine of this machine.
    ///
    /// # Errors
    ///
    /// When there is less.
    pub fn check_room(&self, bytes: u64) -> Result<(), Error> {
        if matches!(self.address, Address::Host(_)) {
            return Ok(());
        }
        let info = self.ask(self.docker.info())?;
        let Some(root) = info.docker_root_dir else { return Ok(()) };
        // Where it lies may be closed to this user, or be the name of another machine's directory.
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
            said::MAKE_ROOM
        )))
    }

    /// The number by which the engine knows an image, if it has one of that name.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub fn id(&self, name: &Name) -> Result<Option<String>, Error> {
        match self.runtime.block_on(self.docker.inspect_image(&name.to_string())) {
            Err(bollard::errors::Error::DockerResponseServerError { status_code: 404, .. }) => Ok(None),
            Err(error) => Err(problem(&error).of_part(self.described())),
            Ok(image) => Ok(image.id),
        }
    }

    /// Gives it an image as an archive, and says by which number the engine knows it.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or the engine does not take it.
    pub fn load(&self, archive: &Path, name: &Name, tell: Tell<'_>) -> Result<String, Error> {
        let file = File::open(archive).map_err(|error| Error::from(error).of_file(archive.display()))?;
        let sent = Sent::new(file)?;
        let body = sent.body()?;
        let mut told = Told::default();
        let answers = self.docker.import_image(ImportImageOptions::default(), body_try_stream(body), None);
        self.listen(answers, &sent, tell, &mut told)
            .map_err(|error| error.of_part(archive.display()).of_part(self.described()))?;
        // podman puts some names under a host of its own, where it does not look for them.
        if let Some(other) = told.loaded().filter(|other| *other != name.to_string()) {
            let called = TagImageOptionsBuilder::default().repo(name.repository()).tag(name.tag()).build();
            self.ask(self.docker.tag_image(other, Some(called)))?;
        }
        self.finished(name, &told)
    }

    /// Has it build an image from a directory, and says by which number the engine knows that.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read, has no text to build from or a broken one, or a step of that fails.
    pub fn build(&self, directory: &Path, name: &Name, tell: Tell<'_>) -> Result<String, Error> {
        let file = directory.join(dockerfile::FILE);
        let text =
            std::fs::read_to_string(&file).map_err(|error| Error::from(error).of_file(file.display()))?;
        let steps = steps::read(&text).map_err(|error| error.of_file(file.display()))?;
        let sent = Sent::new(context::pack(directory)?)?;
        self.check_room(sent.all)?;
        let body = sent.body()?;
        let options = BuildImageOptionsBuilder::default()
            .dockerfile(dockerfile::FILE)
            .t(&name.to_string())
            .rm(true)
            .forcerm(true)
            .build();
        let mut told = Told::default();
        let answers = self.docker.build_image(options, None, Some(body_try_stream(body)));
        self.listen(answers, &sent, tell, &mut told)
            .map_err(|error| told.of_step(&steps, error).of_file(file.display()))?;
        self.finished(name, &told)
    }

    /// Hears all that the engine says of its work.
    fn listen(
        &self,
        answers: impl Stream<Item = Result<BuildInfo, bollard::errors::Error>>,
        sent: &Sent,
        tell: Tell<'_>,
        told: &mut Told,
    ) -> Result<(), Error> {
        self.runtime.block_on(async {
            let mut answers = std::pin::pin!(answers);
            let mut ticks = tokio::time::interval(EVERY);
            loop {
                let answer = tokio::select! {
                    answer = answers.next() => answer,
                    _ = ticks.tick() => {
                        if !sent.is_over() {
                            tell(Heard::Sent(sent.count(), sent.all));
                        }
                        continue;
                    }
                };
                match answer {
                    None => {
                        told.end(tell);
                        return Ok(());
                    }
                    Some(Err(error)) => return Err(problem(&error)),
                    Some(Ok(answer)) => told.hear(answer, tell)?,
                }
            }
        })
    }

    /// The number of an image that is finished, if it is.
    fn finished(&self, name: &Name, told: &Told) -> Result<String, Error> {
        let id = if told.is_finished() { self.id(name)? } else { None };
        id.ok_or_else(|| {
            let last = told.last();
            Error::new(format!(
                "expected the image `{name}` to be there, found none; the engine said last: `{last}`"
            ))
            .of_part(self.described())
        })
    }

    fn ask<T>(&self, question: impl Future<Output = Result<T, bollard::errors::Error>>) -> Result<T, Error> {
        let answer = self.runtime.block_on(question);
        answer.map_err(|error| problem(&error).of_part(self.described()))
    }
}

/// A file on its way, and how much of it has been sent.
struct Sent {
    file: File,
    all: u64,
    done: Arc<AtomicU64>,
}

impl Sent {
    fn new(file: File) -> io::Result<Self> {
        let all = file.metadata()?.len();
        Ok(Self { file, all, done: Arc::default() })
    }

    /// Its bytes, which are counted as they are taken.
    fn body(&self) -> io::Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
        let (mut file, done) = (self.file.try_clone()?, Arc::clone(&self.done));
        let piece = move || {
            let mut bytes = vec![0; PIECE];
            let read = file.read(&mut bytes).map(|count| {
                bytes.truncate(count);
                done.fetch_add(count as u64, Ordering::Relaxed);
                Bytes::from(bytes)
            });
            Some(read).filter(|read| !read.as_ref().is_ok_and(Bytes::is_empty))
        };
        Ok(stream::iter(std::iter::from_fn(piece)))
    }

    fn count(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.count() >= self.all
    }
}

/// What an engine says it is, where it understands what is asked of it here.
fn of_version(version: &SystemVersion) -> Result<String, Error> {
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
    if newest < OLDEST || oldest > ours {
        let what_to_do = if newest < OLDEST { "use a newer engine" } else { "use a newer `oarlock-pack`" };
        return Err(Error::new(format!(
            "expected an engine with an interface from {} to {}, such as Docker 20.10 and newer or podman 4, found {kind} {number} \
             with {} to {}; {what_to_do}, or give it the archive: `docker load --input FILE`",
            show(OLDEST),
            show(ours),
            show(oldest),
            show(newest)
        )));
    }
    Ok(format!("{kind} {number}"))
}
