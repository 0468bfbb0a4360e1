//! The configuration of an image: the command and user of a container, and metadata.

use std::collections::BTreeMap;

use oarlock_formats::date;
use oarlock_formats::error::Error;
use oarlock_matrix::CpuArchitecture;

use super::image_root::{self, CONTAINER_USER, SOURCE_DIRECTORY, WORK_DIRECTORY};
use super::images::{ImageCatalog, ImageKind, ImageSpec};
use super::layer::PackedLayer;
use super::notebook;
use serde_json::{Value, json};

/// The properties of an image.
#[derive(Clone, Debug)]
pub struct ImageConfig {
    /// The purpose of the image.
    pub kind: ImageKind,
    /// A short description.
    pub title: String,
    /// The version of the contents.
    pub version: String,
    /// The architecture of its programs.
    pub architecture: CpuArchitecture,
    /// True if an entry point script decides what a container runs.
    pub has_entry: bool,
    /// True if a container serves notebooks by default.
    pub has_notebook: bool,
    /// Environment variables, as `NAME=value`.
    pub environment: Vec<String>,
    /// The time of everything in the image, in seconds since 1970.
    pub seconds: u64,
}

/// A layer with its description.
pub struct DescribedLayer<'l> {
    /// The name of the layer.
    pub name: &'l str,
    /// The purpose of the layer.
    pub purpose: &'l str,
    /// The compressed layer.
    pub packed: &'l PackedLayer,
}

/// Interval and timeout of the health check, in nanoseconds.
const HEALTH_INTERVAL_NANOSECONDS: u64 = 60_000_000_000;
const HEALTH_TIMEOUT_NANOSECONDS: u64 = 10_000_000_000;

impl ImageConfig {
    /// The configuration of an image, with the settings that its layers request.
    ///
    /// # Errors
    ///
    /// When the image names an unknown layer.
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
            architecture: images.architecture,
            has_entry,
            has_notebook,
            environment: environment.into_iter().map(|(name, value)| format!("{name}={value}")).collect(),
            seconds,
        })
    }

    /// The default command of a container.
    #[must_use]
    pub fn command(&self) -> Vec<&'static str> {
        match (self.has_notebook, self.has_entry) {
            (true, _) => vec![notebook::NOTEBOOK_PROGRAM],
            (false, true) => Vec::new(),
            (false, false) => vec!["oarlock", "--help"],
        }
    }

    /// The program that receives the command of a container.
    #[must_use]
    pub fn entry_point(&self) -> Option<String> {
        self.has_entry.then(|| format!("/{}", image_root::entry_point_path(self.kind)))
    }

    /// The health check, for images that run Oarlock.
    #[must_use]
    pub fn health_check(&self) -> Option<Vec<&'static str>> {
        match self.kind {
            ImageKind::Dev => None,
            ImageKind::Prod if self.has_notebook => Some(vec![notebook::NOTEBOOK_PROGRAM, "--check"]),
            // Not `doctor`: it reports an error on a machine that lacks the driver of an installed plugin.
            ImageKind::Prod => Some(vec!["oarlock", "devices"]),
        }
    }

    /// The port that the default command listens on.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.has_notebook.then_some(notebook::NOTEBOOK_PORT)
    }

    /// User and group of the container. A build container starts as root and then switches to the owner of the sources.
    #[must_use]
    pub fn user(&self) -> String {
        let user = if self.kind == ImageKind::Prod { CONTAINER_USER } else { 0 };
        format!("{user}:{user}")
    }

    /// The initial working directory.
    #[must_use]
    pub fn working_directory(&self) -> String {
        format!("/{}", if self.kind == ImageKind::Prod { WORK_DIRECTORY } else { SOURCE_DIRECTORY })
    }

    /// Labels with the standard OCI names.
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

    /// The configuration in OCI's format. The health check is an extension that Docker's engines read.
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
            "architecture": self.architecture.debian_name(),
            "os": "linux",
            "config": config,
            "rootfs": { "type": "layers", "diff_ids": digests.collect::<Vec<_>>() },
            "history": history.collect::<Vec<_>>(),
        })
    }
}
