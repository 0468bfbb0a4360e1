//! The configuration file: where to find plugins, which to trust, and their options.
//!
//! The user's file is `$OARLOCK_CONFIG`, otherwise `$XDG_CONFIG_HOME/oarlock/config.toml`; the system's is
//! `/etc/oarlock/config.toml`. The directory `keys` beside each has the keys that are trusted. Both files apply: in lists, the user's entries precede the system's, and the user's single values
//! override the system's. Trust is the exception. `require_signature` applies if either file sets it. If the system's file has
//! allowed hashes, requires signatures or has keys beside it, the user's hashes and keys are ignored: a user can tighten the
//! administrator's policy but not loosen it. Revocations of both always apply.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oarlock_isolation::IsolationLimits;
use serde::Deserialize;

use crate::files::regular_file::read_start;
use crate::text::name::check_name;
use crate::text::toml;
use crate::{Digest, HostEnvironment, KeyFiles, ProcessIdentity, TrustFileError};

/// Limit on the size of a configuration file.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

const SYSTEM_FILE: &str = "/etc/oarlock/config.toml";

/// The merged configuration files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostConfig {
    /// The files that were read, the user's first.
    pub files: Vec<PathBuf>,
    /// The `[plugins]` section.
    pub plugins: PluginsSection,
    /// The keys and revocations that apply.
    pub keys: KeyFiles,
    /// The options of each plugin, by plugin name. Values of all types are stored as text.
    pub options: BTreeMap<String, BTreeMap<String, String>>,
}

/// The `[plugins]` section: search, trust, layers and probing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PluginsSection {
    /// Files and directories to search for plugins.
    pub paths: Vec<PathBuf>,
    /// Plugins to leave out, by plugin or file name; `*` matches any characters.
    pub disable: Vec<String>,
    /// Hashes of the only files that may be loaded. If empty, any file may be loaded.
    pub allow: Vec<Digest>,
    /// True if every plugin needs a signature of a trusted key.
    pub require_signature: bool,
    /// Layers to put in front of every plugin, the outermost first.
    pub layers: Vec<String>,
    /// Time limit on a plugin's answer to a probe, in milliseconds.
    pub probe_timeout_ms: Option<u64>,
    /// Time limit on each phase of the start and the end of a plugin in a watched program, in milliseconds.
    pub start_timeout_ms: Option<u64>,
    /// Plugins to run in a process of their own, by name; `*` matches any characters.
    pub isolate: Vec<String>,
    /// The other plugins to run in a process of their own.
    pub isolation: IsolationPolicy,
    /// Hashes of files that the policy counts as known.
    pub trusted_files: Vec<Digest>,
    /// Limits of isolated plugins.
    pub isolated: IsolatedSection,
}

/// The plugins to isolate, besides those that are named. In the order of strictness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IsolationPolicy {
    /// None.
    #[default]
    Never,
    /// Those that are neither signed by a trusted key nor among the trusted files.
    Unknown,
    /// All that can be isolated.
    Always,
}

/// The `[plugins.isolated]` section: limits of each process. A limit that is left out does not apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IsolatedSection {
    /// The memory of a process, in MiB.
    pub memory_mib: Option<u64>,
    /// The files that a process may have open.
    pub open_files: Option<u64>,
    /// The processes and threads of the user.
    pub processes: Option<u64>,
    /// The time that a call may take, in milliseconds.
    pub call_timeout_ms: Option<u64>,
}

impl IsolatedSection {
    pub(crate) fn to_limits(&self) -> IsolationLimits {
        IsolationLimits {
            memory_bytes: self.memory_mib.map(|size| size.saturating_mul(1 << 20)),
            open_files: self.open_files,
            processes: self.processes,
            call_time: self.call_timeout_ms.map(Duration::from_millis),
        }
    }

    /// The lower of both limits each.
    fn merge_with(&mut self, other: &Self) {
        let lower =
            |mine: &mut Option<u64>, other: Option<u64>| *mine = mine.iter().copied().chain(other).min();
        lower(&mut self.memory_mib, other.memory_mib);
        lower(&mut self.open_files, other.open_files);
        lower(&mut self.processes, other.processes);
        lower(&mut self.call_timeout_ms, other.call_timeout_ms);
    }
}

/// The TOML structure of one file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigDocument {
    #[serde(default)]
    plugins: PluginsSection,
    #[serde(default)]
    plugin: BTreeMap<String, BTreeMap<String, OptionValue>>,
}

/// The value of a plugin's option. Plugins get all values as text.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string, a number or a boolean")]
enum OptionValue {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(String),
}

/// A configuration file, or a file that it names, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file at fault.
    pub file: PathBuf,
    /// The problem, in one line.
    pub problem: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}; correct the configuration", self.file.display(), self.problem)
    }
}

impl std::error::Error for ConfigError {}

impl From<TrustFileError> for ConfigError {
    fn from(error: TrustFileError) -> Self {
        Self { file: error.file, problem: format!("{}; {}", error.problem, error.remedy) }
    }
}

impl ConfigError {
    pub(crate) fn new(file: &Path, problem: impl ToString) -> Self {
        Self { file: file.to_path_buf(), problem: problem.to_string() }
    }
}

impl HostConfig {
    /// Reads the user's file and the system's. A missing file is empty, unless it was named explicitly.
    pub fn load(environment: &HostEnvironment) -> Result<Self, ConfigError> {
        let user = match (&environment.config, Self::user_file(environment)?) {
            (Some(_), Some(path)) => Self::read_file(&path, environment.identity)?,
            (_, Some(path)) => Self::read_if_present(&path, environment.identity)?,
            (_, None) => Self::default(),
        };
        let system = Self::read_if_present(Path::new(SYSTEM_FILE), environment.identity)?;
        Ok(user.merge_over(system))
    }

    /// The path of the user's file, which may not exist; `None` if the user has no home.
    pub fn user_file(environment: &HostEnvironment) -> Result<Option<PathBuf>, ConfigError> {
        match &environment.config {
            Some(path) if path.is_relative() => {
                Err(ConfigError::new(path, "expected `OARLOCK_CONFIG` to be an absolute path"))
            }
            Some(path) => Ok(Some(path.clone())),
            None => Ok(environment.config_home.as_ref().map(|home| home.join("oarlock/config.toml"))),
        }
    }

    /// The path of the system's file, which may not exist.
    pub fn system_file() -> &'static Path {
        Path::new(SYSTEM_FILE)
    }

    fn read_if_present(path: &Path, identity: ProcessIdentity) -> Result<Self, ConfigError> {
        match path.try_exists() {
            Ok(true) => Self::read_file(path, identity),
            Ok(false) => Ok(Self { keys: Self::list_keys(path, identity)?, ..Self::default() }),
            Err(error) => Err(ConfigError::new(
                path,
                format!(
                    "expected to see whether it is there, found: {error}; `HOME`, `XDG_CONFIG_HOME` or `OARLOCK_CONFIG` can say \
                     where else the configuration is"
                ),
            )),
        }
    }

    fn read_file(path: &Path, identity: ProcessIdentity) -> Result<Self, ConfigError> {
        identity.check_file(path).map_err(|refusal| {
            ConfigError::new(path, format!("expected {}, found {}", refusal.expected, refusal.found))
        })?;
        let bytes = read_start(path, MAX_CONFIG_BYTES).map_err(|error| ConfigError::new(path, error))?;
        if bytes.len() as u64 > MAX_CONFIG_BYTES {
            let problem = format!("expected a file of at most {MAX_CONFIG_BYTES} bytes, found a longer one");
            return Err(ConfigError::new(path, problem));
        }
        Ok(Self { keys: Self::list_keys(path, identity)?, ..Self::parse_file(path, &bytes)? })
    }

    fn list_keys(path: &Path, identity: ProcessIdentity) -> Result<KeyFiles, ConfigError> {
        Ok(KeyFiles::list_directory(&KeyFiles::directory_beside(path), identity)?)
    }

    /// Parses one file; `path` only appears in the error.
    pub fn parse_file(path: &Path, bytes: &[u8]) -> Result<Self, ConfigError> {
        let document: ConfigDocument =
            toml::parse_toml(bytes).map_err(|problem| ConfigError::new(path, problem))?;
        let limits = [
            ("probe_timeout_ms", document.plugins.probe_timeout_ms),
            ("start_timeout_ms", document.plugins.start_timeout_ms),
        ];
        if let Some((key, _)) = limits.iter().find(|(_, limit)| *limit == Some(0)) {
            return Err(ConfigError::new(path, format!("expected `{key}` to be at least 1, found 0")));
        }
        let mut options = BTreeMap::new();
        for (name, values) in document.plugin {
            check_name(&name, "")
                .map_err(|problem| ConfigError::new(path, format!("`[plugin.…]`: {problem}")))?;
            options.insert(name, values.into_iter().map(|(key, value)| (key, value.into_text())).collect());
        }
        Ok(Self {
            files: vec![path.to_path_buf()],
            plugins: document.plugins,
            keys: KeyFiles::default(),
            options,
        })
    }

    /// Merges two configurations; values set here take precedence over those of `lower`.
    fn merge_over(mut self, lower: Self) -> Self {
        let PluginsSection {
            paths,
            disable,
            allow,
            require_signature,
            layers,
            probe_timeout_ms,
            start_timeout_ms,
            isolate,
            isolation,
            trusted_files,
            isolated,
        } = lower.plugins;
        let plugins = &mut self.plugins;
        plugins.paths.extend(paths);
        plugins.disable.extend(disable);
        if !allow.is_empty() {
            plugins.allow = allow;
        }
        if require_signature || !lower.keys.trusted.is_empty() {
            self.keys.trusted = lower.keys.trusted;
        }
        self.keys.revocations.extend(lower.keys.revocations);
        plugins.require_signature |= require_signature;
        for layer in layers {
            if !plugins.layers.contains(&layer) {
                plugins.layers.push(layer);
            }
        }
        plugins.isolate.extend(isolate);
        if isolation != IsolationPolicy::Never {
            plugins.trusted_files = trusted_files;
        }
        plugins.isolation = plugins.isolation.max(isolation);
        plugins.isolated.merge_with(&isolated);
        plugins.probe_timeout_ms = plugins.probe_timeout_ms.or(probe_timeout_ms);
        plugins.start_timeout_ms = plugins.start_timeout_ms.or(start_timeout_ms);
        self.files.extend(lower.files);
        for (name, values) in lower.options {
            let mine = self.options.entry(name).or_default();
            for (key, value) in values {
                mine.entry(key).or_insert(value);
            }
        }
        self
    }
}

impl OptionValue {
    fn into_text(self) -> String {
        match self {
            Self::Boolean(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => value.to_string(),
            Self::Text(value) => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_config(text: &str) -> Result<HostConfig, String> {
        HostConfig::parse_file(Path::new("/etc/x.toml"), text.as_bytes()).map_err(|error| error.problem)
    }

    #[test]
    fn options_reach_the_plugin_as_text() {
        let config = parse_config("[plugin.npu]\na = true\nb = -3\nc = 0.5\nd = 'x'").unwrap();
        let values: Vec<&str> = config.options["npu"].values().map(String::as_str).collect();
        assert_eq!(values, ["true", "-3", "0.5", "x"]);
        assert!(parse_config("[plugin.npu]\na = [1]").unwrap_err().starts_with("line 2: expected a string"));
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_the_nearest() {
        let error = parse_config("[plugins]\nrequire_signatures = true").unwrap_err();
        assert!(error.starts_with("line 2: unknown field `require_signatures`"), "{error}");
        assert!(error.ends_with("did you mean `require_signature`"), "{error}");
        assert!(parse_config("[plugns]").unwrap_err().contains("did you mean `plugin"));
        assert!(parse_config("[plugins]\nprobe_timeout_ms = 0").is_err());
        assert!(parse_config("[plugins]\nstart_timeout_ms = 0").unwrap_err().contains("`start_timeout_ms`"));
        assert!(
            parse_config("[plugins]\nallow = ['abc']").unwrap_err().starts_with("line 2: expected a SHA-256")
        );
    }

    #[test]
    fn the_user_comes_first_and_cannot_loosen_the_system() {
        let user =
            "[plugins]\npaths = ['/u']\nlayers = ['a', 'b']\nrequire_signature = false\n[plugin.npu]\nx = 1";
        let system = "[plugins]\npaths = ['/s']\nlayers = ['b', 'c']\nrequire_signature = true\nprobe_timeout_ms = 9\n\
                      start_timeout_ms = 8\n\
                      [plugin.npu]\nx = 2\ny = 3";
        let both = parse_config(user).unwrap().merge_over(parse_config(system).unwrap());
        assert_eq!(both.plugins.paths, [Path::new("/u"), Path::new("/s")]);
        assert_eq!(both.plugins.layers, ["a", "b", "c"]);
        assert!(both.plugins.require_signature);
        assert_eq!((both.plugins.probe_timeout_ms, both.plugins.start_timeout_ms), (Some(9), Some(8)));
        assert_eq!(both.options["npu"]["x"], "1");
        assert_eq!(both.options["npu"]["y"], "3");
    }

    #[test]
    fn the_stricter_isolation_applies_and_trust_is_the_systems() {
        let trust = |digit: &str| format!("trusted_files = ['{}']\n", digit.repeat(64));
        let user = format!(
            "[plugins]\nisolate = ['a']\nisolation = 'never'\n{}[plugins.isolated]\nmemory_mib = 9\nopen_files = 5",
            trust("a")
        );
        let merged =
            |system: &str| parse_config(&user).unwrap().merge_over(parse_config(system).unwrap()).plugins;
        let system = format!(
            "[plugins]\nisolate = ['b']\nisolation = 'unknown'\n{}[plugins.isolated]\nmemory_mib = 3\nprocesses = 7",
            trust("b")
        );
        let both = merged(&system);
        assert_eq!(
            (both.isolate, both.isolation),
            (vec!["a".to_owned(), "b".to_owned()], IsolationPolicy::Unknown)
        );
        assert_eq!(both.trusted_files, ["b".repeat(64).parse().unwrap()]);
        let IsolatedSection { memory_mib, open_files, processes, call_timeout_ms } = both.isolated;
        assert_eq!((memory_mib, open_files, processes, call_timeout_ms), (Some(3), Some(5), Some(7), None));
        assert_eq!(merged("").trusted_files, ["a".repeat(64).parse().unwrap()]);
        assert!(parse_config("[plugins]\nisolation = 'sometimes'").is_err());
    }

    #[test]
    fn hashes_and_keys_of_the_user_count_only_where_the_system_has_none() {
        let hash = |digit: &str| digit.repeat(64);
        let with_keys = |text: &str, trusted: &[&str], revoked: &str| {
            let trusted = trusted.iter().map(PathBuf::from).collect();
            let keys = KeyFiles { trusted, revocations: vec![PathBuf::from(revoked)] };
            HostConfig { keys, ..parse_config(text).unwrap() }
        };
        let merged = |system: &str, keys: &[&str]| {
            let user = format!("[plugins]\nallow = ['{}']", hash("a"));
            with_keys(&user, &["/u.pem"], "/u.revoked").merge_over(with_keys(system, keys, "/s.revoked"))
        };
        let alone = merged("", &[]);
        assert_eq!((alone.plugins.allow.len(), alone.keys.trusted.len()), (1, 1));
        let system = merged(&format!("[plugins]\nallow = ['{}']", hash("b")), &["/s.pem"]);
        assert_eq!(system.plugins.allow, [hash("b").parse().unwrap()]);
        assert_eq!(system.keys.trusted, [Path::new("/s.pem")]);
        assert!(merged("[plugins]\nrequire_signature = true", &[]).keys.trusted.is_empty());
        assert_eq!(system.keys.revocations, [Path::new("/u.revoked"), Path::new("/s.revoked")]);
    }

    #[test]
    fn keys_lie_beside_the_file_even_if_there_is_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let (file, key) = (directory.path().join("config.toml"), directory.path().join("keys/a.pem"));
        std::fs::create_dir(directory.path().join("keys")).unwrap();
        std::fs::write(&key, "").unwrap();
        let keys = || HostConfig::read_if_present(&file, ProcessIdentity::of_process()).unwrap().keys.trusted;
        assert_eq!(keys(), std::slice::from_ref(&key));
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(keys(), [key]);
    }

    #[test]
    fn a_named_file_must_be_there_absolute_and_safe_from_others() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("c.toml");
        let load = |path: &Path| {
            let value = path.as_os_str().to_owned();
            let lookup = move |name: &str| (name == "OARLOCK_CONFIG").then(|| value.clone());
            HostConfig::load(&HostEnvironment::new(lookup, false, ProcessIdentity::of_process()))
        };
        assert!(load(&file).is_err());
        std::fs::write(&file, "[plugins]\ndisable = ['x*']").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(load(&file).unwrap().files[0], file);
        assert!(load(Path::new("c.toml")).unwrap_err().problem.contains("absolute"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(load(&file).unwrap_err().problem.contains("everybody can write to"));
    }
}
