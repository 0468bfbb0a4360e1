//! Deploys a user's program to a cluster: the Dockerfile of an image on top of ours, and a Kubernetes job manifest.

use oarlock_formats::error::Error;
use oarlock_image::name::ImageName;

use serde_json::json;
use tera::{Context, Tera};

const DOCKERFILE_TEMPLATE: (&str, &str) = ("Dockerfile", include_str!("../../../docker/app/Dockerfile.tera"));
const JOB_TEMPLATE: (&str, &str) = ("job.yaml", include_str!("../../../docker/app/job.yaml.tera"));

/// Paths to exclude from the build context.
const DOCKERIGNORE_TEXT: &str = ".git\n**/__pycache__\n**/*.pyc\n.venv\n# Secrets.\n**/.env\n.aws\n.netrc\n.ssh\n\
                       Dockerfile\n.dockerignore\njob.yaml\n";

/// The maximum length of a DNS label.
const MAX_LABEL_LENGTH: usize = 63;

/// The maximum number of hosts of an indexed Kubernetes job.
const MAX_HOSTS: u32 = 100_000;

/// A user's program and how to run it.
#[derive(Clone, Debug)]
pub struct AppDeployment {
    /// The name of the job.
    pub name: String,
    /// The base image.
    pub base: String,
    /// The name of the program's own image.
    pub image: String,
    /// A Python program or another command, with its arguments.
    pub command: Vec<String>,
    /// The pip requirements file, if the program has one.
    pub requirements: Option<String>,
    /// The port that the program listens on.
    pub port: Option<u16>,
    /// The number of hosts that run it in parallel.
    pub hosts: u32,
    /// GPUs per host.
    pub gpus: u32,
    /// The Kubernetes resource name of a GPU, such as `nvidia.com/gpu`.
    pub gpu_resource: String,
    /// CPU request per host, such as `2` or `500m`.
    pub cpu: String,
    /// Memory request per host, such as `4Gi`.
    pub memory: String,
    /// The number of failures that the cluster tolerates.
    pub retries: u32,
    /// The namespace to run in, if it is not the user's default one.
    pub namespace: Option<String>,
}

impl AppDeployment {
    /// Renders the files of the deployment, by name.
    ///
    /// # Errors
    ///
    /// When a name or an amount is one that a cluster or an engine rejects.
    pub fn render_files(&self) -> Result<Vec<(&'static str, String)>, Error> {
        self.validate_app()?;
        let quoted = |words: &[String]| json!(words).to_string();
        let mut context = Context::new();
        context.insert("name", &self.name);
        context.insert("base", &self.base);
        context.insert("image", &self.image);
        context.insert("command", &quoted(&self.command));
        // Kubernetes expands `$(NAME)`, while an engine passes it through unchanged.
        let as_written: Vec<String> = self.command.iter().map(|word| word.replace("$(", "$$(")).collect();
        context.insert("arguments", &quoted(&as_written));
        context.insert("requirements", &self.requirements);
        context.insert("port", &self.port);
        context.insert("hosts", &self.hosts);
        context.insert("gpus", &self.gpus);
        context.insert("gpu_resource", &self.gpu_resource);
        context.insert("cpu", &self.cpu);
        context.insert("memory", &self.memory);
        context.insert("retries", &self.retries);
        context.insert("namespace", &self.namespace);
        let mut templates = Tera::new();
        let mut files = vec![(".dockerignore", DOCKERIGNORE_TEXT.to_owned())];
        for (name, text) in [DOCKERFILE_TEMPLATE, JOB_TEMPLATE] {
            let failed =
                |error: tera::Error| Error::new(error.to_string()).in_file(format!("docker/app/{name}.tera"));
            templates.add_raw_template(name, text).map_err(failed)?;
            files.push((name, templates.render(name, &context).map_err(failed)?));
        }
        Ok(files)
    }

    fn validate_app(&self) -> Result<(), Error> {
        if self.command.first().is_none_or(String::is_empty) {
            return Err(Error::new("expected a program, found one without a name"));
        }
        // The host name of a pod is the job's name, a dash and the pod's index.
        let room = if self.hosts > 1 { 1 + (self.hosts - 1).to_string().len() } else { 0 };
        check_label("the name of a job", &self.name, MAX_LABEL_LENGTH - room)?;
        if self.hosts > 1 && self.name.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(Error::new(format!(
                "expected a name that begins with a letter, which clusters require because hosts are named after it; found `{}`",
                self.name
            )));
        }
        if let Some(namespace) = &self.namespace {
            check_label("a namespace", namespace, MAX_LABEL_LENGTH)?;
        }
        ImageName::parse_name(&self.image)?;
        self.check_base()?;
        if !(1..=MAX_HOSTS).contains(&self.hosts) {
            return Err(Error::new(format!("expected 1 to {MAX_HOSTS} hosts, found {}", self.hosts)));
        }
        check_amount("processors such as `2` or `500m`", &self.cpu, &["m"])?;
        check_amount(
            "memory such as `512Mi` or `4Gi`",
            &self.memory,
            &["Ki", "Mi", "Gi", "Ti", "k", "M", "G", "T"],
        )?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
        if !self.gpu_resource.bytes().all(is_plain) || self.gpu_resource.split('/').count() != 2 {
            let found = self.gpu_resource.escape_debug();
            return Err(Error::new(format!(
                "expected the resource name of a GPU, such as `nvidia.com/gpu`; found `{found}`"
            )));
        }
        if let Some(file) = self
            .requirements
            .as_ref()
            .filter(|file| file.contains(|letter: char| letter.is_whitespace() || letter.is_control()))
        {
            return Err(Error::new(format!(
                "expected a file whose name has no space, found `{}`",
                file.escape_debug()
            )));
        }
        if let Some(file) = self
            .requirements
            .as_ref()
            .filter(|it| it.starts_with('/') || it.split('/').any(|part| part == ".."))
        {
            return Err(Error::new(format!(
                "expected a file below the directory that the image is made of, found `{file}`; copy it there"
            )));
        }
        Ok(())
    }

    /// Checks that the base image has a tag or a digest and can run the program.
    fn check_base(&self) -> Result<(), Error> {
        let is_hash =
            |hash: &str| hash.len() == 64 && hash.bytes().all(|byte| b"0123456789abcdef".contains(&byte));
        let by_digest = self.base.split_once("@sha256:").filter(|(_, hash)| is_hash(hash));
        let base = ImageName::parse_name(by_digest.map_or(self.base.as_str(), |(name, _)| name))?;
        let is_ours = base.repository().rsplit('/').next() == Some("oarlock");
        let is_python = self.command.first().is_some_and(|program| program.ends_with(".py"));
        if is_ours && is_python && base.tag().ends_with("-slim") {
            return Err(Error::new(format!(
                "expected an image with Python to run a program in it, found `{}`; the one without `-slim` has it",
                self.base
            )));
        }
        Ok(())
    }
}

/// Checks that a name is a valid DNS label.
fn check_label(what: &str, name: &str, longest: usize) -> Result<(), Error> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = !name.is_empty()
        && name.len() <= longest
        && name.bytes().all(is_plain)
        && !name.starts_with('-')
        && !name.ends_with('-');
    if is_label {
        return Ok(());
    }
    let found = name.escape_debug();
    Err(Error::new(format!(
        "expected {what} of at most {longest} lower-case letters, digits and `-` within, found `{found}`"
    )))
}

/// Checks a Kubernetes quantity: a number with one of `units` or with none.
fn check_amount(what: &str, text: &str, units: &[&str]) -> Result<(), Error> {
    let number = units.iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text);
    if number.parse::<f64>().is_ok_and(|it| it > 0.0 && it.is_finite()) && !number.contains(['e', 'E', '+']) {
        return Ok(());
    }
    Err(Error::new(format!("expected {what}, found `{}`", text.escape_debug())))
}

/// Derives a job name from a program, such as `fit-a-line` from `examples/fit_a_line.py`.
#[must_use]
pub fn derive_job_name(program: &str) -> String {
    let file = program.rsplit('/').next().unwrap_or(program);
    let stem = file.split_once('.').map_or(file, |(stem, _)| stem).to_lowercase();
    let plain: String =
        stem.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let plain = plain.trim_matches('-');
    match plain {
        "" | "oarlock" => "app".to_owned(),
        plain => plain.chars().take(MAX_LABEL_LENGTH / 2).collect(),
    }
}

#[cfg(test)]
mod tests;
