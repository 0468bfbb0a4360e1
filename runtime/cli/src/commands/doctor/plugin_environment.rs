//! What a plugin depends on: configuration, variables, directories, processor.

use std::path::Path;

use oarlock_core::flags::{
    FlagValue, Flags, concerns_oarlock, has_effect, ignored_variable, take_ignored_variables,
};
use oarlock_host::{HostEnvironment, HostOptions, IsaFeatures, PluginOrigin};
use serde::Serialize;

use crate::output::CommandOutput;
use crate::render::{origin_text, print_sentence};
use oarlock_report::text::format_count;

#[derive(Serialize)]
pub(crate) struct PluginEnvironment {
    version: &'static str,
    contract: String,
    configuration: Vec<String>,
    variables: Vec<EnvironmentVariable>,
    plugin_places: Vec<PluginLocation>,
    trust: TrustSettings,
    processor_features: String,
    cpu_threads: CpuThreads,
    sanitizer: String,
    elevated: bool,
}

#[derive(Serialize)]
struct EnvironmentVariable {
    name: String,
    value: String,
    known: bool,
    /// Advice for a variable without effect.
    advice: Option<String>,
}

/// A file or directory that plugins are loaded from.
#[derive(Serialize)]
struct PluginLocation {
    path: String,
    origin: PluginOrigin,
    state: String,
}

/// The threads of kernels on the CPU.
#[derive(Serialize)]
struct CpuThreads {
    count: u64,
    /// False if this is what an affinity mask, a CPU quota and the machine permit.
    is_set: bool,
}

#[derive(Serialize)]
struct TrustSettings {
    allowed_files: usize,
    require_signature: bool,
    trusted_keys: usize,
}

impl PluginEnvironment {
    pub(crate) fn new(options: &HostOptions, flags: &Flags) -> Self {
        let HostOptions { environment, config, .. } = options;
        let features = IsaFeatures::detect_features();
        let features = match &environment.isa_mask {
            // A mask with unknown names has already kept the host from starting.
            Some(mask) => features.with_mask(mask).unwrap_or_default(),
            None => features,
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            contract: oarlock_abi::Versions::OURS.to_string(),
            configuration: config.files.iter().map(|file| file.display().to_string()).collect(),
            variables: relevant_variables(environment),
            plugin_places: plugin_locations(options),
            trust: TrustSettings {
                allowed_files: config.plugins.allow.len(),
                require_signature: config.plugins.require_signature,
                trusted_keys: config.keys.trusted.len(),
            },
            processor_features: features.to_string(),
            cpu_threads: CpuThreads::from_flags(flags),
            sanitizer: oarlock_abi::SANITIZER.name().unwrap_or("none").to_owned(),
            elevated: environment.elevated,
        }
    }

    pub(crate) fn print_environment(&self, output: &mut CommandOutput) {
        let none = |list: Vec<String>| if list.is_empty() { vec!["none".to_owned()] } else { list };
        let place = |place: &PluginLocation| {
            format!("{} ({}): {}", place.path, origin_text(place.origin), place.state)
        };
        let facts = [
            ("oarlock", vec![format!("{}, contract {}", self.version, self.contract)]),
            ("configuration", none(self.configuration.clone())),
            ("variables", none(self.variables.iter().map(EnvironmentVariable::to_string).collect())),
            ("plugins from", self.plugin_places.iter().map(place).collect()),
            ("trusted", vec![self.trust.to_string()]),
            ("processor", vec![self.processor_features.clone()]),
            ("threads", vec![self.cpu_threads.to_string()]),
            ("sanitizer", vec![self.sanitizer.clone()]),
        ];
        for (what, values) in facts {
            super::print_fact(output, what, &values);
        }
        if self.elevated {
            print_sentence(
                output,
                2,
                "this program has more rights than its caller, whose variables are not looked at",
            );
        }
    }
}

impl CpuThreads {
    fn from_flags(flags: &Flags) -> Self {
        match flags.get("threads") {
            Ok((FlagValue::Count(count), _)) if count > 0 => Self { count, is_set: true },
            _ => {
                let available = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
                Self { count: available, is_set: false }
            }
        }
    }
}

impl std::fmt::Display for CpuThreads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let origin = if self.is_set {
            "as the flag `threads` says"
        } else {
            "as many as this process may use at once"
        };
        write!(f, "{} for kernels on the CPU, {origin}", self.count)
    }
}

impl std::fmt::Display for TrustSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.allowed_files {
            0 => f.write_str("any file")?,
            files => write!(f, "{} by hash", format_count(files, "file", "files"))?,
        }
        f.write_str(" that nobody else can write to")?;
        if self.require_signature {
            write!(f, ", signed with one of {}", format_count(self.trusted_keys, "key", "keys"))?;
        }
        Ok(())
    }
}

impl std::fmt::Display for EnvironmentVariable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self { name, value, known: true, .. } => write!(f, "{name}={value}"),
            Self { name, advice: Some(advice), .. } => {
                write!(f, "{name}, which means nothing to Oarlock; {advice}")
            }
            Self { name, advice: None, .. } => write!(f, "{name}, which means nothing to Oarlock"),
        }
    }
}

/// Variables that are set and belong, or seem to belong, to Oarlock, its plugins or PaddlePaddle. What is reported here is
/// not warned about again when the runtime starts.
fn relevant_variables(environment: &HostEnvironment) -> Vec<EnvironmentVariable> {
    take_ignored_variables(environment);
    let mut found: Vec<EnvironmentVariable> = std::env::vars_os()
        .filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| concerns_oarlock(name))?;
            let value = value.to_string_lossy().into_owned();
            let (known, advice) =
                (has_effect(&name), ignored_variable(&name).map(|variable| variable.advice));
            Some(EnvironmentVariable { name, value, known, advice })
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// The places that are searched for plugins, and whether the host may use them.
fn plugin_locations(options: &HostOptions) -> Vec<PluginLocation> {
    let HostOptions { paths, wheels, config, environment, .. } = options;
    let places = oarlock_host::search_places(paths, wheels, config, environment).into_iter();
    places
        .map(|(path, origin)| PluginLocation {
            state: location_state(&path, environment),
            path: path.display().to_string(),
            origin,
        })
        .collect()
}

fn location_state(path: &Path, environment: &HostEnvironment) -> String {
    let checked = match path.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return "not there".to_owned(),
        Ok(metadata) if metadata.is_dir() => environment.identity.check_directory(path),
        _ => environment.identity.check_file(path),
    };
    match checked {
        Ok(_) => "nobody else can write to it".to_owned(),
        Err(refusal) => format!("not used: expected {}, found {}", refusal.expected, refusal.found),
    }
}
