//! What an image says of itself: what a container runs, as whom, and what the image is.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::image_root::{self, CONTAINER_USER, SOURCE_DIRECTORY, WORK_DIRECTORY};
use super::images::{ImageCatalog, ImageKind, ImageSpec};
use super::layer::PackedLayer;
use super::notebook;
use crate::date;
use crate::error::Error;

/// What is known of an image.
#[derive(Clone, Debug)]
pub struct ImageConfig {
    /// What it is for.
    pub kind: ImageKind,
    /// What it is, in a few words.
    pub title: String,
    /// The version of what is in it.
    pub version: String,
    /// The kind of machine, as Debian calls it.
    pub architecture: String,
    /// Whether a program decides what a container does.
    pub has_entry: bool,
    /// Whether a container serves notebooks where nothing is said.
    pub has_notebook: bool,
    /// Variables of the environment, as `NAME=value`.
    pub environment: Vec<String>,
    /// The time that everything in it is of, in seconds since 1970.
    pub seconds: u64,
}

/// A layer with what is said of it.
pub struct DescribedLayer<'l> {
    /// What it is called among the layers.
    pub name: &'l str,
    /// What it is for.
    pub purpose: &'l str,
    /// Its bytes.
    pub packed: &'l PackedLayer,
}

/// How often a container is asked whether it works, and for how long it may think about that, in nanoseconds.
const HEALTH_INTERVAL_NANOSECONDS: u64 = 60_000_000_000;
const HEALTH_TIMEOUT_NANOSECONDS: u64 = 10_000_000_000;

impl ImageConfig {
    /// That of an image, with what its layers ask for.
    ///
    /// # Errors
    ///
    /// When it names a layer that there is not.
    pub fn for_image(
        images: &ImageCatalog,
        image: &ImageSpec,
        version: &str,
        seconds: u64,
    ) -> Result<Self, Error> {
        let mut environment = BTreeMap::new();
        let (mut has_entry, mut has_notebook) = (false, false);
        for layer in &image.layers {
            let layer = images.find_layer(layer)?;
            environment.extend(&layer.environment);
            has_entry |= layer.entry;
            has_notebook |= layer.notebook;
        }
        environment.extend(&image.environment);
        Ok(Self {
            kind: images.kind_of_image(image)?,
            title: image.title.clone(),
            version: version.to_owned(),
            architecture: images.debian.architecture.clone(),
            has_entry,
            has_notebook,
            environment: environment.into_iter().map(|(name, value)| format!("{name}={value}")).collect(),
            seconds,
        })
    }

    /// What a container runs where nothing is said.
    #[must_use]
    pub fn command(&self) -> Vec<&'static str> {
        match (self.has_notebook, self.has_entry) {
            (true, _) => vec![notebook::NOTEBOOK_PROGRAM],
            (false, true) => Vec::new(),
            (false, false) => vec!["oarlock", "--help"],
        }
    }

    /// What stands before what a container is told to run.
    #[must_use]
    pub fn entry_point(&self) -> Option<String> {
        self.has_entry.then(|| format!("/{}", image_root::entry_point_path(self.kind)))
    }

    /// What says whether a container works, where it runs Oarlock.
    #[must_use]
    pub fn health_check(&self) -> Option<Vec<&'static str>> {
        match self.kind {
            ImageKind::Dev => None,
            ImageKind::Prod if self.has_notebook => Some(vec![notebook::NOTEBOOK_PROGRAM, "--check"]),
            // Not `doctor`, for which a machine without the driver of a plugin is one where something is wrong.
            ImageKind::Prod => Some(vec!["oarlock", "devices"]),
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.has_notebook.then_some(notebook::NOTEBOOK_PORT)
    }

    /// Whom a container runs as. One that builds becomes whom the sources belong to, for which it has to be root.
    #[must_use]
    pub fn user(&self) -> String {
        let user = if self.kind == ImageKind::Prod { CONTAINER_USER } else { 0 };
        format!("{user}:{user}")
    }

    /// Where a container begins.
    #[must_use]
    pub fn working_directory(&self) -> String {
        format!("/{}", if self.kind == ImageKind::Prod { WORK_DIRECTORY } else { SOURCE_DIRECTORY })
    }

    /// What programs that list images show.
    #[must_use]
    pub fn labels(&self) -> Vec<(String, String)> {
        let labels = [
            ("created", date::format_iso8601(self.seconds)),
            ("source", env!("CARGO_PKG_REPOSITORY").to_owned()),
            ("title", self.title.clone()),
            ("version", self.version.clone()),
        ];
        labels.into_iter().map(|(name, value)| (format!("org.opencontainers.image.{name}"), value)).collect()
    }

    /// The configuration of an image of these layers, in the form of OCI. Docker's engines read the check of health too.
    #[must_use]
    pub fn to_json(&self, layers: &[DescribedLayer<'_>]) -> Value {
        let created = date::format_iso8601(self.seconds);
        let labels = self.labels().into_iter().map(|(name, value)| (name, Value::from(value)));
        let mut config = json!({
            "User": self.user(),
            "Env": self.environment,
            "WorkingDir": self.working_directory(),
            "Labels": Value::Object(labels.collect()),
        });
        if let Some(health) = self.health_check() {
            let test: Vec<&str> = std::iter::once("CMD").chain(health).collect();
            config["Healthcheck"] = json!({ "Test": test, "Interval": HEALTH_INTERVAL_NANOSECONDS, "Timeout": HEALTH_TIMEOUT_NANOSECONDS });
        }
        if let Some(entry) = self.entry_point() {
            config["Entrypoint"] = json!([entry]);
        }
        if !self.command().is_empty() {
            config["Cmd"] = json!(self.command());
        }
        if let Some(port) = self.port() {
            config["ExposedPorts"] = json!({ format!("{port}/tcp"): {} });
        }
        let history = layers.iter().map(|layer| {
            json!({
                "created": created,
                "created_by": format!("oarlock-pack image: layer {}", layer.name),
                "comment": layer.purpose,
            })
        });
        let digests = layers.iter().map(|layer| format!("sha256:{}", layer.packed.unpacked_digest));
        json!({
            "created": created,
            "architecture": self.architecture,
            "os": "linux",
            "config": config,
            "rootfs": { "type": "layers", "diff_ids": digests.collect::<Vec<_>>() },
            "history": history.collect::<Vec<_>>(),
        })
    }
}
