//! A plugin in a child process, from its start to its end.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use oarlock_abi as abi;

use super::call_route::CallRoute;
use super::child_process::{StartNews, run_child};
use super::connection::ChildConnection;
use super::description::ProxyDescription;
use super::start_request::StartRequest;
use crate::wire::WireBreach;
use crate::wire::header::{ASKED_OPTIONS, SHUT_DOWN};

/// Limit on the time that a plugin takes to shut down.
const SHUT_DOWN_TIME: Duration = Duration::from_secs(5);

/// Why a plugin cannot be used in a child process.
#[derive(Debug)]
pub enum StartFailure {
    /// The host of the child refuses it, and says why in its own words.
    Refused(Vec<u8>),
    /// It did not come to that.
    Failed(WireBreach),
}

/// A plugin in a child process. Dropping it shuts the plugin down and ends the process.
#[derive(Debug)]
pub struct IsolatedPlugin {
    description: ProxyDescription,
    child: RunningChild,
}

/// The child and the thread that watches over it.
#[derive(Debug)]
struct RunningChild {
    connection: Arc<ChildConnection>,
    watcher: Option<JoinHandle<()>>,
    /// True once it has described its plugin, so it answers calls.
    is_serving: bool,
}

impl IsolatedPlugin {
    /// Starts the child, which loads the plugin and describes it.
    pub fn start(request: StartRequest) -> Result<Self, StartFailure> {
        let failed = |expected: &str, found: String| StartFailure::Failed(WireBreach::new(expected, found));
        let until = Instant::now() + request.patience;
        let (sender, news) = channel();
        let patience = request.patience;
        let watcher = std::thread::Builder::new()
            .name("oarlock-isolation".into())
            .spawn(move || run_child(&request, &sender))
            .map_err(|error| failed("a thread that watches over the process", error.to_string()))?;
        let connection = match news.recv() {
            Ok(StartNews::Spawned(connection)) => connection,
            Ok(StartNews::Failed(error)) => return Err(failed("to start the process", error.to_string())),
            _ => return Err(failed("to start the process", "a thread that ended".to_owned())),
        };
        let mut child = RunningChild { connection, watcher: Some(watcher), is_serving: false };
        let waited = news.recv_timeout(until.saturating_duration_since(Instant::now()));
        let described = match waited {
            Ok(StartNews::Described(bytes)) => {
                child.is_serving = true;
                bytes
            }
            Ok(StartNews::Refused(refusal)) => return Err(StartFailure::Refused(refusal)),
            Err(RecvTimeoutError::Timeout) => {
                let reason = || format!("it did not describe its plugin within {patience:?}");
                child.connection.life().condemn(reason);
                child.await_end();
                return Err(failed(
                    "a process that describes its plugin",
                    child.connection.life().describe_loss(),
                ));
            }
            _ => {
                child.await_end();
                return Err(failed(
                    "a process that describes its plugin",
                    child.connection.life().describe_loss(),
                ));
            }
        };
        match ProxyDescription::read_description(&described, Arc::as_ptr(&child.connection)) {
            Ok(description) => Ok(Self { description, child }),
            Err(breach) => Err(StartFailure::Failed(breach)),
        }
    }

    /// The plugin's answer, whose tables are proxies. It is valid as long as `self`.
    pub fn answer(&self) -> &abi::Plugin {
        self.description.plugin()
    }

    /// The number of the child process.
    pub fn process_id(&self) -> u32 {
        self.child.connection.life().process_id()
    }

    /// True if the child has ended: every call fails.
    pub fn is_lost(&self) -> bool {
        self.child.connection.life().is_lost()
    }

    /// The kernels that were left out, since they run on the device of another plugin.
    pub fn foreign_kernels(&self) -> usize {
        self.description.foreign_kernels()
    }

    /// The keys of the options that the plugin has read.
    pub fn asked_options(&self) -> Vec<String> {
        let mut keys = Vec::new();
        let route = CallRoute { frees: true, ..CallRoute::to_slot(ASKED_OPTIONS) };
        self.child.connection.forward(
            &route,
            |_| Ok(()),
            |reply| {
                let count = reply.take_u32()?;
                for _ in 0..count {
                    keys.push(reply.take_text()?.to_owned());
                }
                Ok(())
            },
        );
        keys
    }
}

impl RunningChild {
    /// Waits until the child has ended, which somebody has seen to.
    fn await_end(&mut self) {
        if let Some(watcher) = self.watcher.take() {
            // It reports nothing by panicking.
            _ = watcher.join();
        }
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        if self.is_serving {
            let route =
                CallRoute { frees: true, limit: Some(SHUT_DOWN_TIME), ..CallRoute::to_slot(SHUT_DOWN) };
            self.connection.forward(&route, |_| Ok(()), |_| Ok(()));
        }
        // It ends by itself then; a hostile one need not.
        self.connection.life().kill();
        self.await_end();
    }
}
