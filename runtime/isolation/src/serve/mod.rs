//! The child's side: confines the process, and serves the calls of the host with the plugin.

#![expect(unsafe_code, reason = "the descriptors of a new process are taken over")]

pub(crate) mod arguments;
mod confinement;
mod deferred_failures;
mod generated;
mod lane_server;
mod served_plugin;
mod system_calls;

use std::ffi::c_void;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use oarlock_abi as abi;

use crate::limits::IsolationLimits;
use crate::shared::frames::{FrameReader, FrameWriter};
use crate::shared::region::SharedRegion;
use crate::wire::byte_reader::ByteReader;
use crate::wire::byte_writer::ByteWriter;
use crate::wire::descriptions::{encode_kernel, encode_plugin};
use crate::wire::failure::{HostFunctions, WireFailure};
use crate::wire::header::{FRAME_DESCRIPTION, FRAME_LOG, FRAME_REFUSAL};
use lane_server::{LaneServer, LaneSurroundings};
pub use served_plugin::{KeptConstants, ServedPlugin};

/// The time between two beats of the child's heart.
const HEARTBEAT: Duration = Duration::from_millis(250);

/// What a kernel may ask of the host during a call.
pub trait KernelCaller: Sync {
    /// Has the memory of an output allocated, and shows it to the kernel.
    fn allocate_output(&self, index: u32, dtype: abi::Dtype, dims: &[i64]) -> Result<(), WireFailure>;
    /// Passes a description on.
    fn describe_kernel(&self, way: &str);
    /// Fails if the caller wants the work to stop.
    fn check_stop(&self) -> Result<(), WireFailure>;
}

/// What the host of the child does for the lanes.
pub trait LaneHost: Sync {
    /// Calls `serve` on this thread with the value for the `host_call` field of calls. Their questions go to `caller`.
    fn enter_lane(&self, caller: &dyn KernelCaller, serve: &mut dyn FnMut(*mut c_void));
    /// The keys of the options that the plugin has read.
    fn asked_options(&self) -> Vec<String>;
    /// Shuts the plugin down.
    fn shut_down(&self);
}

/// The child's end of the connection.
#[derive(Debug)]
pub struct ChildEnd {
    region: SharedRegion,
    frames: FrameWriter,
    setup: Vec<u8>,
}

impl ChildEnd {
    /// Takes over the descriptors that the parent left in place of the standard streams, reads the setup, and confines the
    /// process. Call this first: nothing else may have been opened, and no thread started.
    pub fn enter() -> io::Result<Self> {
        confinement::follow_parent()?;
        let (socket, file) = confinement::take_descriptors()?;
        let socket = UnixStream::from(socket);
        let mut reader = FrameReader::default();
        let (_, message) = loop {
            if let Some(frame) = reader.next_frame()? {
                break frame;
            }
            if !reader.read_more(&socket)? {
                return Err(io::Error::other(
                    "expected a setup from the parent, found the end of the connection",
                ));
            }
        };
        let mut bytes = ByteReader::new(&message);
        let limits = IsolationLimits::read_limits(&mut bytes)
            .map_err(|breach| io::Error::other(breach.to_string()))?;
        let setup = bytes.take_raw(bytes.len()).map(<[u8]>::to_vec).unwrap_or_default();
        let region = SharedRegion::open_region(file)?;
        confinement::set_limits(&limits)?;
        system_calls::deny_system_calls()?;
        Ok(Self { region, frames: FrameWriter::new(socket), setup })
    }

    /// What the host of the parent passes to the host of the child.
    pub fn setup(&self) -> &[u8] {
        &self.setup
    }

    /// A sender of log messages.
    pub fn log_sender(&self) -> LogSender {
        LogSender(self.frames.clone())
    }

    /// Tells the parent that the plugin is refused. The bytes are for the host of the parent.
    pub fn refuse_plugin(&self, refusal: &[u8]) -> io::Result<()> {
        self.frames.write_frame(FRAME_REFUSAL, refusal)
    }

    /// Describes the plugin to the parent, and serves it until the process ends.
    ///
    /// # Safety
    ///
    /// The plugin is loaded, its tables and kernels are checked, and everything lives until the process ends.
    pub unsafe fn serve_plugin(
        self,
        plugin: &ServedPlugin,
        host: HostFunctions,
        lane_host: &dyn LaneHost,
    ) -> io::Result<std::convert::Infallible> {
        // SAFETY: the caller vouches for the plugin.
        let description = unsafe { describe_plugin(plugin) };
        self.frames.write_frame(FRAME_DESCRIPTION, &description)?;
        let around = LaneSurroundings {
            region: &self.region,
            plugin,
            host,
            lane_host,
            frames: self.frames.clone(),
            deferred: Arc::default(),
        };
        let words = self.region.words();
        std::thread::scope(|scope| {
            let mut started = 0;
            loop {
                let wanted = || {
                    let wanted = words.lanes_in_use.0.load(Ordering::Acquire);
                    (wanted > started).then_some(wanted)
                };
                let wanted = words.lane_bell.wait_until(HEARTBEAT, wanted).unwrap_or(started);
                words.heartbeat.0.fetch_add(1, Ordering::Relaxed);
                for lane in started..wanted {
                    let server = LaneServer::new(&around, lane as usize);
                    let serve = move || {
                        server
                            .around_host()
                            .enter_lane(&server, &mut |host_call| server.serve_requests(host_call));
                    };
                    std::thread::Builder::new()
                        .name(format!("oarlock-lane-{lane}"))
                        .spawn_scoped(scope, serve)?;
                }
                started = wanted;
            }
        })
    }
}

/// Sends log messages to the parent.
#[derive(Clone, Debug)]
pub struct LogSender(FrameWriter);

impl LogSender {
    /// Sends a message. If the parent is gone, so is whoever would read it.
    pub fn log(&self, level: abi::LogLevel, message: &str) {
        let mut bytes = Vec::new();
        let mut writer = ByteWriter::new(&mut bytes);
        writer.put_u32(level.0);
        writer.put_text(message, 16 << 10);
        _ = self.0.write_frame(FRAME_LOG, &bytes);
    }
}

/// # Safety
///
/// As for [`ChildEnd::serve_plugin`].
pub(crate) unsafe fn describe_plugin(plugin: &ServedPlugin) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ByteWriter::new(&mut bytes);
    // SAFETY: the caller vouches for the plugin.
    unsafe { encode_plugin(&mut writer, &plugin.plugin) };
    writer.put_u8(plugin.core.is_some().into());
    writer.put_u64(plugin.core.as_ref().map_or(0, generated::filled_core));
    writer.put_u8(plugin.asynchronous.is_some().into());
    writer.put_u64(plugin.asynchronous.as_ref().map_or(0, generated::filled_async));
    writer.put_u32(plugin.kernels.len() as u32);
    for kernel in &plugin.kernels {
        // SAFETY: the caller vouches for the kernels.
        unsafe { encode_kernel(&mut writer, kernel) };
        writer.put_u64(generated::filled_kernel(kernel));
    }
    bytes
}
