//! The address of the local engine, found in the same way as by Docker's own command.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{io, net};

use oarlock_formats::digest::sha256_hex;
use oarlock_formats::error::Error;

use serde_json::Value;

/// An address of an engine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EngineAddress {
    /// A Unix socket on this machine.
    Socket(PathBuf),
    /// A host and port.
    Host(String),
}

/// Looks up environment variables. An empty variable counts as unset.
pub type EnvironmentLookup<'e> = &'e dyn Fn(&str) -> Option<String>;

/// The port for addresses without one.
const DEFAULT_PORT: u16 = 2375;

/// The time to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Advice on starting an engine.
const START_ADVICE: &str = "start one, such as with `sudo systemctl start docker` or `systemctl --user start podman.socket`, or say in \
                     `DOCKER_HOST` where one listens; the archive of an image is written without one";

impl EngineAddress {
    /// Finds an address that accepts connections: the one in `DOCKER_HOST` or in a Docker context, or else the first usable
    /// default socket.
    ///
    /// # Errors
    ///
    /// When no engine accepts a connection, or this user has no permission.
    pub fn find_listening(environment: EnvironmentLookup<'_>) -> Result<Self, Error> {
        if let Some((said, of)) = configured_address(environment)? {
            let address = Self::from_docker_host(&said).map_err(|error| error.in_part(&of))?;
            let is_safe = environment("DOCKER_TLS_VERIFY").is_some();
            if is_safe && matches!(address, Self::Host(_)) {
                return Err(Error::new(format!(
                    "expected an engine that answers without TLS, found `{said}`, of which `DOCKER_TLS_VERIFY` asks for it; \
                     give it the archive: `docker load --input FILE`"
                ))
                .in_part(&of));
            }
            address.try_connect().map_err(|problem| Error::new(problem).in_part(of))?;
            return Ok(address);
        }
        let usual = default_sockets(environment);
        let mut worst = None;
        for socket in &usual {
            let address = Self::Socket(socket.clone());
            match address.try_connect() {
                Ok(()) => return Ok(address),
                // A socket that exists but fails explains more than a missing one.
                Err(problem) if socket.exists() => worst = worst.or(Some(problem)),
                Err(_) => {}
            }
        }
        let looked = usual.iter().map(|it| format!("`{}`", it.display())).collect::<Vec<_>>().join(", ");
        Err(Error::new(worst.unwrap_or_else(|| {
            format!("expected an engine such as Docker or podman, found none at {looked}; {START_ADVICE}")
        })))
    }

    /// Parses an address in the syntax of `DOCKER_HOST`.
    ///
    /// # Errors
    ///
    /// When the kind of address is not supported.
    pub fn from_docker_host(text: &str) -> Result<Self, Error> {
        let host = |host: &str| {
            let host = host.trim_end_matches('/');
            let is_plain = !host.is_empty()
                && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte));
            let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            is_plain.then(|| {
                Self::Host(if has_port { host.to_owned() } else { format!("{host}:{DEFAULT_PORT}") })
            })
        };
        let address = match text.split_once("://") {
            Some(("unix", path)) if path.starts_with('/') => Some(Self::Socket(path.into())),
            Some(("tcp" | "http", rest)) => host(rest),
            _ => None,
        };
        address.ok_or_else(|| {
            let found = text.escape_debug();
            Error::new(format!(
                "expected where an engine listens, `unix:///run/docker.sock` or `tcp://127.0.0.1:2375`, found `{found}`; give \
                 engines elsewhere the archive: `docker --host ADDRESS load --input FILE`"
            ))
        })
    }

    /// Tries to connect; the error explains the failure and what to do.
    fn try_connect(&self) -> Result<(), String> {
        match self {
            Self::Socket(path) => {
                UnixStream::connect(path).map(drop).map_err(|error| socket_problem(path, &error))
            }
            Self::Host(host) => {
                let tried = net::ToSocketAddrs::to_socket_addrs(host).and_then(|mut addresses| {
                    let first = addresses.next().ok_or(io::ErrorKind::NotFound)?;
                    net::TcpStream::connect_timeout(&first, CONNECT_TIMEOUT)
                });
                tried.map(drop).map_err(|error| {
                    format!("expected an engine at `{host}`, found none: {error}; {START_ADVICE}")
                })
            }
        }
    }
}

impl fmt::Display for EngineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "unix://{}", path.display()),
            Self::Host(host) => write!(f, "tcp://{host}"),
        }
    }
}

/// The address that the user configured, with the name of that setting.
fn configured_address(environment: EnvironmentLookup<'_>) -> Result<Option<(String, String)>, Error> {
    if let Some(host) = environment("DOCKER_HOST") {
        return Ok(Some((host, "DOCKER_HOST".to_owned())));
    }
    let home = || environment("HOME").map(|home| Path::new(&home).join(".docker"));
    let Some(directory) = environment("DOCKER_CONFIG").map(PathBuf::from).or_else(home) else {
        return Ok(None);
    };
    let context = environment("DOCKER_CONTEXT").or_else(|| {
        let config = read_json(&directory.join("config.json"))?;
        Some(config["currentContext"].as_str()?.to_owned())
    });
    let Some(context) = context.filter(|name| name != "default") else {
        return Ok(None);
    };
    let contexts = directory.join("contexts");
    let id = sha256_hex(context.as_bytes());
    let meta = contexts.join("meta").join(&id).join("meta.json");
    let host =
        read_json(&meta).and_then(|meta| Some(meta["Endpoints"]["docker"]["Host"].as_str()?.to_owned()));
    let Some(host) = host else {
        let (name, file) = (context.escape_debug(), meta.display());
        return Err(Error::new(format!(
            "expected the context `{name}` of Docker in `{file}`, found none; `docker context ls` lists them"
        )));
    };
    if contexts.join("tls").join(&id).exists() {
        return Err(Error::new(format!(
            "expected an engine that answers without TLS, found `{host}` of the context `{context}` with certificates; give it \
             the archive: `docker --context {context} load --input FILE`"
        )));
    }
    Ok(Some((host, format!("the context {context}"))))
}

/// Reads a JSON file, if it exists and is valid.
fn read_json(file: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

/// Default sockets of Docker and podman.
fn default_sockets(environment: EnvironmentLookup<'_>) -> Vec<PathBuf> {
    let own = environment("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = own.iter().flat_map(|it| [it.join("docker.sock"), it.join("podman/podman.sock")]);
    let mut sockets = vec![PathBuf::from("/var/run/docker.sock")];
    sockets.extend(own);
    sockets.push("/run/podman/podman.sock".into());
    sockets
}

/// Explains why a socket cannot be used, and what to do.
fn socket_problem(path: &Path, error: &io::Error) -> String {
    let file = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!("expected the socket of an engine, found no file `{file}`; {START_ADVICE}")
        }
        io::ErrorKind::ConnectionRefused => {
            format!("expected an engine at `{file}`, found no process that listens on it; {START_ADVICE}")
        }
        io::ErrorKind::PermissionDenied => match path.metadata() {
            Ok(about) => permission_advice(&file.to_string(), &about),
            Err(_) => format!(
                "expected to be let in at `{file}`, found a directory above it that is closed to this user; run this as its \
                 owner, with `sudo` if that is root"
            ),
        },
        _ => format!("expected the socket of an engine, found `{file}`: {error}"),
    }
}

/// Advice for a socket without permission.
fn permission_advice(file: &str, about: &std::fs::Metadata) -> String {
    let name = |list: &str, number: u32| {
        let list = std::fs::read_to_string(list).unwrap_or_default();
        let named = |line: &str| {
            let mut fields = line.split(':');
            let (name, number_there) = (fields.next()?.to_owned(), fields.nth(1)?);
            (number_there == number.to_string()).then_some(name)
        };
        list.lines().find_map(named).unwrap_or_else(|| number.to_string())
    };
    let (owner, group) = (name("/etc/passwd", about.uid()), name("/etc/group", about.gid()));
    let mode = about.mode() & 0o777;
    let may_group = mode & 0o020 != 0 && about.gid() != 0;
    let way_in = if may_group {
        format!(
            "`sudo usermod --append --groups {group} $USER` gives you access from the next login on, which is equivalent to root access; or \
             run this with `sudo`"
        )
    } else {
        format!("run this as `{owner}`, such as with `sudo`")
    };
    format!(
        "expected to be let in at `{file}`, found that it belongs to `{owner}` and the group `{group}`, mode {mode:o}; {way_in}"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn find_with_variables(variables: &[(&str, &str)]) -> Result<String, String> {
        let variable =
            |name: &str| variables.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned());
        EngineAddress::find_listening(&variable).map(|it| it.to_string()).map_err(|it| it.to_string())
    }

    #[test]
    fn addresses_are_read_as_docker_writes_them() {
        for (text, expected) in [
            ("unix:///run/docker.sock", "unix:///run/docker.sock"),
            ("tcp://127.0.0.1:1", "tcp://127.0.0.1:1"),
            ("tcp://engine.example.org", "tcp://engine.example.org:2375"),
            ("http://[::1]:99/", "tcp://[::1]:99"),
        ] {
            assert_eq!(EngineAddress::from_docker_host(text).expect(text).to_string(), expected);
        }
        for text in [
            "ssh://me@host",
            "unix://relative",
            "tcp://",
            "tcp://a b",
            "/run/docker.sock",
            "https://host",
            "npipe://",
        ] {
            let error = EngineAddress::from_docker_host(text).expect_err(text).to_string();
            assert!(error.contains(&format!("found `{text}`")), "{error}");
        }
    }

    #[test]
    fn an_engine_is_where_somebody_says_or_at_a_usual_socket() {
        let place = tempfile::tempdir().expect("a directory");
        let path = |name: &str| place.path().join(name).display().to_string();
        let _listener = UnixListener::bind(path("docker.sock")).expect("a socket");
        let here = format!("unix://{}", path("docker.sock"));
        assert_eq!(find_with_variables(&[("DOCKER_HOST", &here)]).as_ref(), Ok(&here));
        let id = sha256_hex(b"mine");
        let meta = place.path().join("contexts/meta").join(&id);
        std::fs::create_dir_all(&meta).expect("a directory");
        let text = serde_json::json!({ "Name": "mine", "Endpoints": { "docker": { "Host": here } } });
        std::fs::write(meta.join("meta.json"), text.to_string()).expect("a file");
        let config = ("DOCKER_CONFIG", path("."));
        let config = (config.0, config.1.as_str());
        assert_eq!(find_with_variables(&[config, ("DOCKER_CONTEXT", "mine")]).as_ref(), Ok(&here));
        std::fs::write(place.path().join("config.json"), r#"{"currentContext":"mine"}"#).expect("a file");
        assert_eq!(find_with_variables(&[config]).as_ref(), Ok(&here));
        let other = find_with_variables(&[config, ("DOCKER_CONTEXT", "other")]).expect_err("no context");
        assert!(other.starts_with("expected the context `other` of Docker in "), "{other}");
        std::fs::create_dir_all(place.path().join("contexts/tls").join(&id)).expect("a directory");
        let certified = find_with_variables(&[config]).expect_err("TLS");
        assert!(certified.contains("of the context `mine` with certificates"), "{certified}");
    }

    #[test]
    fn a_missing_engine_is_reported_with_advice() {
        let place = tempfile::tempdir().expect("a directory");
        let socket = place.path().join("docker.sock");
        let variable = format!("unix://{}", socket.display());
        let missing = find_with_variables(&[("DOCKER_HOST", &variable)]).expect_err("no file");
        assert!(
            missing.starts_with("`DOCKER_HOST`: expected the socket of an engine, found no file `"),
            "{missing}"
        );
        assert!(missing.contains("systemctl start docker"), "{missing}");
        drop(UnixListener::bind(&socket).expect("a socket"));
        let deaf = find_with_variables(&[("DOCKER_HOST", &variable)]).expect_err("nobody");
        assert!(deaf.contains("found no process that listens on it"), "{deaf}");
        let host = find_with_variables(&[("DOCKER_HOST", "tcp://127.0.0.1:9")]).expect_err("no port");
        assert!(host.contains("expected an engine at `127.0.0.1:9`, found none: "), "{host}");
        let safe = find_with_variables(&[("DOCKER_HOST", "tcp://127.0.0.1:9"), ("DOCKER_TLS_VERIFY", "1")])
            .expect_err("TLS");
        assert!(safe.contains("answers without TLS"), "{safe}");
    }

    #[test]
    fn a_socket_that_is_for_others_is_said_with_whose_it_is() {
        let place = tempfile::tempdir().expect("a directory");
        let socket = place.path().join("docker.sock");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600)).expect("a mode");
        let about = socket.metadata().expect("a socket");
        let said = permission_advice("docker.sock", &about);
        let owner = if about.uid() == 0 { "root".to_owned() } else { String::new() };
        assert!(
            said.contains(&format!("belongs to `{owner}")) && said.contains("mode 600; run this as `"),
            "{said}"
        );
    }
}
