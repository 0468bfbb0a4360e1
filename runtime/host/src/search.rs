//! The places to search for plugins, and their order.
//!
//! Paths from the program come first, then the configuration, the environment, the wheels, the user's directory and the
//! system's. The working directory is never searched, because a folder that a user received from someone else could then run code.
//! So a path from a file or a variable has to be absolute.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::permissions::unreadable_refusal;
use crate::{HostConfig, HostEnvironment, ProcessIdentity, Refusal, RefusalReason};

/// The source of the request for a plugin. If two plugins have the same name or device type, the earlier source wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PluginOrigin {
    /// The program, by path.
    Explicit,
    /// A configuration file.
    Config,
    /// The variable `OARLOCK_PLUGIN_PATH`.
    Environment,
    /// The variable `CUSTOM_DEVICE_ROOT`.
    CustomDeviceRoot,
    /// The installed Python packages.
    Wheel,
    /// The user's plugin directory.
    User,
    /// One of the system's plugin directories.
    System,
}

impl fmt::Display for PluginOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Explicit => "the program",
            Self::Config => "the configuration",
            Self::Environment => "`OARLOCK_PLUGIN_PATH`",
            Self::CustomDeviceRoot => "`CUSTOM_DEVICE_ROOT`",
            Self::Wheel => "the installed Python packages",
            Self::User => "the user's plugin directory",
            Self::System => "the system's plugin directory",
        })
    }
}

/// A file that may be a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginCandidate {
    /// The path as it was requested.
    pub path: PathBuf,
    /// The source of the request.
    pub origin: PluginOrigin,
}

/// The result of a search, including places that could not be searched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchResult {
    /// The files to judge, in order of precedence.
    pub candidates: Vec<PluginCandidate>,
    /// The requested places that could not be searched.
    pub refusals: Vec<Refusal>,
}

/// The places to search, in order of precedence: `explicit` paths, which may be relative, the places in the configuration and
/// the environment, the directories of the installed Python packages, and the default ones.
pub fn search_places(
    explicit: &[PathBuf],
    wheels: &[PathBuf],
    config: &HostConfig,
    environment: &HostEnvironment,
) -> Vec<(PathBuf, PluginOrigin)> {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let of_variable = environment.plugin_path.iter().flat_map(std::env::split_paths);
    let of_paddle = environment.custom_device_root.iter().cloned();
    let of_user = environment.data_home.iter().map(|home| home.join("oarlock/plugins"));
    (explicit.iter().map(|path| (absolute(path), PluginOrigin::Explicit)))
        .chain(config.plugins.paths.iter().map(|path| (path.clone(), PluginOrigin::Config)))
        .chain(of_variable.map(|path| (path, PluginOrigin::Environment)))
        .chain(of_paddle.map(|path| (path, PluginOrigin::CustomDeviceRoot)))
        .chain(wheels.iter().map(|path| (path.clone(), PluginOrigin::Wheel)))
        .chain(of_user.map(|path| (path, PluginOrigin::User)))
        .chain(system_directories().into_iter().map(|path| (path, PluginOrigin::System)))
        .collect()
}

/// Lists the files that may be plugins in all [`search_places`].
pub fn search_plugins(
    explicit: &[PathBuf],
    wheels: &[PathBuf],
    config: &HostConfig,
    environment: &HostEnvironment,
) -> SearchResult {
    let mut search = PluginSearch {
        identity: environment.identity,
        found: SearchResult::default(),
        seen: BTreeSet::new(),
    };
    for (path, origin) in search_places(explicit, wheels, config, environment) {
        match origin {
            PluginOrigin::Explicit
            | PluginOrigin::Config
            | PluginOrigin::Environment
            | PluginOrigin::CustomDeviceRoot => search.add_requested(&path, origin),
            PluginOrigin::Wheel | PluginOrigin::User | PluginOrigin::System => {
                search.add_default(&path, origin);
            }
        }
    }
    search.found
}

/// Lists the files that may be plugins in these places only; the paths may be relative.
pub(crate) fn search_only(explicit: &[PathBuf], environment: &HostEnvironment) -> SearchResult {
    let mut search = PluginSearch {
        identity: environment.identity,
        found: SearchResult::default(),
        seen: BTreeSet::new(),
    };
    for path in explicit {
        search.add_requested(
            &std::path::absolute(path).unwrap_or_else(|_| path.clone()),
            PluginOrigin::Explicit,
        );
    }
    search.found
}

/// The directories into which distributions and administrators install plugins.
fn system_directories() -> [PathBuf; 3] {
    let multiarch = format!("/usr/lib/{}-linux-gnu/oarlock/plugins", std::env::consts::ARCH);
    [multiarch.into(), "/usr/lib/oarlock/plugins".into(), "/usr/local/lib/oarlock/plugins".into()]
}

struct PluginSearch {
    identity: ProcessIdentity,
    found: SearchResult,
    seen: BTreeSet<PathBuf>,
}

impl PluginSearch {
    /// Adds a place that was requested, so it is reported if it is missing.
    fn add_requested(&mut self, path: &Path, origin: PluginOrigin) {
        if path.is_relative() {
            let found = if path == Path::new("") { "an empty entry" } else { "a relative path" };
            let remedy = "write the whole path, from `/`";
            let expected = format!("an absolute path in {origin}");
            self.found.refusals.push(Refusal::new(RefusalReason::Unreadable, path, expected, found, remedy));
            return;
        }
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => self.add_directory(path, origin),
            Ok(_) => self.add_file(path.to_path_buf(), origin),
            Err(error) => self.found.refusals.push(unreadable_refusal(path, &error)),
        }
    }

    /// Adds a default place, which need not exist.
    fn add_default(&mut self, path: &Path, origin: PluginOrigin) {
        let missing = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        };
        match path.metadata() {
            Err(error) if missing(&error) => {}
            _ => self.add_requested(path, origin),
        }
    }

    fn add_directory(&mut self, path: &Path, origin: PluginOrigin) {
        // One refusal for the directory is clearer than one for each file in it.
        if let Err(refusal) = self.identity.check_directory(path) {
            self.found.refusals.push(refusal);
            return;
        }
        let entries = std::fs::read_dir(path).and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<PathBuf>>>()
        });
        match entries {
            Ok(mut files) => {
                files.retain(|file| file.extension().is_some_and(|extension| extension == "so"));
                files.sort();
                files.into_iter().for_each(|file| self.add_file(file, origin));
            }
            Err(error) => self.found.refusals.push(unreadable_refusal(path, &error)),
        }
    }

    fn add_file(&mut self, path: PathBuf, origin: PluginOrigin) {
        // A dangling path is a candidate too, so that judging it reports the reason.
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if self.seen.insert(real) {
            self.found.candidates.push(PluginCandidate { path, origin });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A private directory with a subdirectory for each name.
    fn make_directories(names: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for name in names {
            fs::create_dir(root.path().join(name)).unwrap();
            fs::set_permissions(root.path().join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        root
    }

    fn make_environment(plugin_path: &str, data_home: &Path, elevated: bool) -> HostEnvironment {
        let lookup = |name: &str| match name {
            "OARLOCK_PLUGIN_PATH" => Some(plugin_path.into()),
            "XDG_DATA_HOME" => Some(data_home.into()),
            _ => None,
        };
        HostEnvironment::new(lookup, elevated, ProcessIdentity::of_process())
    }

    fn make_config(paths: &[&Path]) -> HostConfig {
        let mut config = HostConfig::default();
        config.plugins.paths = paths.iter().map(|path| path.to_path_buf()).collect();
        config
    }

    /// The results, without those from the default directories of the machine that runs the test.
    fn found_names(found: &SearchResult) -> Vec<(String, PluginOrigin)> {
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let candidates = found.candidates.iter().filter(|candidate| candidate.origin != PluginOrigin::System);
        candidates.map(|candidate| (name(&candidate.path), candidate.origin)).collect()
    }

    #[test]
    fn places_are_searched_in_order_and_directories_by_name() {
        let root = make_directories(&["api", "config", "env", "wheel", "data"]);
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("data/oarlock/plugins")).unwrap();
        fs::set_permissions(at("data/oarlock"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(at("data/oarlock/plugins"), fs::Permissions::from_mode(0o755)).unwrap();
        for file in ["api/b.so", "api/a.so", "api/a.txt", "config/c.so", "env/d.so", "wheel/e.so"] {
            fs::write(at(file), "").unwrap();
        }
        fs::write(at("data/oarlock/plugins/f.so"), "").unwrap();
        let environment = make_environment(at("env").to_str().unwrap(), &at("data"), false);
        let found =
            search_plugins(&[at("api")], &[at("wheel")], &make_config(&[&at("config")]), &environment);
        let expected = [
            ("a.so", PluginOrigin::Explicit),
            ("b.so", PluginOrigin::Explicit),
            ("c.so", PluginOrigin::Config),
            ("d.so", PluginOrigin::Environment),
            ("e.so", PluginOrigin::Wheel),
            ("f.so", PluginOrigin::User),
        ];
        assert_eq!(found_names(&found), expected.map(|(name, origin)| (name.to_owned(), origin)));
        assert_eq!(found.refusals, []);
    }

    #[test]
    fn one_file_reached_twice_is_used_once_under_its_first_origin() {
        let root = make_directories(&["a", "b"]);
        fs::write(root.path().join("a/x.so"), "").unwrap();
        symlink("../a/x.so", root.path().join("b/y.so")).unwrap();
        let paths = [root.path().join("b"), root.path().join("a")];
        let found = search_plugins(
            &paths,
            &[],
            &make_config(&[&paths[1]]),
            &make_environment("", root.path(), false),
        );
        assert_eq!(found_names(&found), [("y.so".to_owned(), PluginOrigin::Explicit)]);
    }

    #[test]
    fn missing_relative_and_empty_paths_are_reported_except_defaults() {
        let root = make_directories(&[]);
        let missing = root.path().join("none.so");
        let variable = format!("relative::{}", missing.display());
        let found = search_plugins(
            std::slice::from_ref(&missing),
            std::slice::from_ref(&missing),
            &make_config(&[Path::new("../x")]),
            &make_environment(&variable, root.path(), false),
        );
        let told: Vec<&Path> = found.refusals.iter().map(|refusal| refusal.file.as_path()).collect();
        assert_eq!(told, [&missing, Path::new("../x"), Path::new("relative"), Path::new(""), &missing]);
    }

    #[test]
    fn an_elevated_program_ignores_the_environment() {
        let root = make_directories(&["env"]);
        fs::write(root.path().join("env/x.so"), "").unwrap();
        let variable = root.path().join("env");
        let environment = make_environment(variable.to_str().unwrap(), root.path(), true);
        assert_eq!(found_names(&search_plugins(&[], &[], &HostConfig::default(), &environment)), []);
    }

    #[test]
    fn a_directory_others_can_write_to_is_refused_once() {
        let root = make_directories(&["open"]);
        let open = root.path().join("open");
        fs::write(open.join("a.so"), "").unwrap();
        fs::write(open.join("b.so"), "").unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let found =
            search_plugins(&[open], &[], &HostConfig::default(), &make_environment("", root.path(), false));
        assert_eq!(found_names(&found), []);
        assert_eq!(
            found.refusals.iter().map(|r| r.reason).collect::<Vec<_>>(),
            [RefusalReason::WritableByOthers]
        );
    }
}
