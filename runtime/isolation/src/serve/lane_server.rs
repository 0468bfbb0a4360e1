//! The thread of the child that serves one lane.

#![expect(
    unsafe_code,
    reason = "slots of the plugin are called, and the outputs of a running call are updated"
)]

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use oarlock_abi as abi;

use super::arguments::decode_tensor;
use super::deferred_failures::DeferredFailures;
use super::generated::call_slot;
use super::served_plugin::ServedPlugin;
use super::{KernelCaller, LaneHost};
use crate::shared::frames::FrameWriter;
use crate::shared::region::SharedRegion;
use crate::wire::WireBreach;
use crate::wire::bump_storage::BumpStorage;
use crate::wire::byte_reader::ByteReader;
use crate::wire::byte_writer::ByteWriter;
use crate::wire::failure::{HostFunctions, WireFailure};
use crate::wire::generated as slots;
use crate::wire::header::{
    ASKED_OPTIONS, BACK_ALLOCATE, BACK_DESCRIBE, BACK_STOP_CHECK, BODY_INLINE, BODY_SHARED, FENCE,
    FRAME_REACHED, RequestHeader, SHUT_DOWN, STATUS_DONE, STATUS_FAILED, STATUS_UNREADABLE,
};
use crate::wire::stored_reader::{MessageSurroundings, StoredReader};

/// How long a thread sleeps before it looks again by itself.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Limit on the texts of a description or a key.
const MAX_TEXT: usize = 1024;

/// What all lanes share.
pub(super) struct LaneSurroundings<'a> {
    pub(super) region: &'a SharedRegion,
    pub(super) plugin: &'a ServedPlugin,
    pub(super) host: HostFunctions,
    pub(super) lane_host: &'a dyn LaneHost,
    pub(super) frames: FrameWriter,
    pub(super) deferred: Arc<DeferredFailures>,
}

/// One lane.
pub(super) struct LaneServer<'a> {
    around: &'a LaneSurroundings<'a>,
    lane: usize,
    /// The call of the kernel that runs, for its questions.
    call: AtomicPtr<abi::Call>,
    /// True if nobody waits for the request that is served, so nobody would answer a question.
    is_posted: AtomicBool,
    /// A kernel may ask on several threads; one question is answered at a time.
    asking: Mutex<Vec<u8>>,
    /// Outputs that were described to a kernel while it ran.
    described: Mutex<BumpStorage>,
}

impl<'a> LaneServer<'a> {
    pub(super) fn new(around: &'a LaneSurroundings<'a>, lane: usize) -> Self {
        let call = AtomicPtr::new(std::ptr::null_mut());
        let is_posted = AtomicBool::new(false);
        Self { around, lane, call, is_posted, asking: Mutex::default(), described: Mutex::default() }
    }

    /// Serves requests until the process ends.
    pub(super) fn serve_requests(&self, host_call: *mut c_void) -> ! {
        let memory = self.around.region.lane(self.lane);
        let words = memory.words();
        let (mut done, mut request, mut reply) = (0_u32, Vec::new(), Vec::new());
        let mut storage = BumpStorage::default();
        loop {
            let is_posted = || (words.posted.0.load(Ordering::Acquire) != done).then_some(());
            if words.request_bell.wait_until(LOOK_AGAIN, is_posted).is_none() {
                continue;
            }
            let read = memory.read_request(done, &mut request);
            let served =
                read.and_then(|()| self.serve_request(&request, &mut reply, &mut storage, host_call));
            let is_last = matches!(served, Ok(RequestOutcome::Last));
            match served {
                Ok(RequestOutcome::Posted) => {}
                Ok(_) => _ = memory.write_reply(&reply),
                Err(breach) => {
                    let mut writer = ByteWriter::new(&mut reply);
                    writer.put_u32(STATUS_UNREADABLE);
                    writer.put_text(&breach.to_string(), MAX_TEXT);
                    memory.write_reply(&reply);
                }
            }
            storage.clear();
            self.described.lock().unwrap_or_else(PoisonError::into_inner).clear();
            done = done.wrapping_add(1);
            words.executed.0.store(done, Ordering::Release);
            words.reply_bell.ring();
            if is_last {
                // SAFETY: the plugin is shut down, and this ends the process without running anything of it.
                unsafe { libc::_exit(0) };
            }
        }
    }

    fn serve_request(
        &self,
        message: &[u8],
        reply: &mut Vec<u8>,
        storage: &mut BumpStorage,
        host_call: *mut c_void,
    ) -> Result<RequestOutcome, WireBreach> {
        let region = self.around.region;
        let mut bytes = ByteReader::new(message);
        match bytes.take_u32()? {
            BODY_INLINE => {}
            BODY_SHARED => {
                let (offset, size) = (bytes.take_u64()?, bytes.take_u64()?);
                let body = region.range_address(offset, size)?;
                // SAFETY: the range is in the shared memory, and the host does not change it during the call.
                bytes = ByteReader::new(unsafe { std::slice::from_raw_parts(body, size as usize) });
                bytes.take_u32()?;
            }
            other => return Err(WireBreach::new("a request", other.to_string())),
        }
        let header = RequestHeader::read_header(&mut bytes)?;
        self.is_posted.store(header.is_posted, Ordering::Release);
        let mut writer = ByteWriter::new(reply);
        writer.put_u32(STATUS_DONE);
        let own = match header.slot {
            FENCE => None,
            ASKED_OPTIONS => {
                let keys = self.around.lane_host.asked_options();
                writer.put_u32(keys.len() as u32);
                keys.iter().for_each(|key| writer.put_text(key, MAX_TEXT));
                None
            }
            SHUT_DOWN => {
                self.around.lane_host.shut_down();
                return Ok(RequestOutcome::Last);
            }
            slots::ASYNC_STREAM_ADD_CALLBACK => self.add_callback(&mut bytes)?,
            slot => self.call_plugin(slot, bytes, &mut writer, storage, host_call)?,
        };
        let failure = self.around.deferred.settle_call(self.lane, &header, own);
        if header.is_posted {
            return Ok(RequestOutcome::Posted);
        }
        if let Some(failure) = failure {
            let mut writer = ByteWriter::new(reply);
            writer.put_u32(STATUS_FAILED);
            failure.write_failure(&mut writer);
        }
        Ok(RequestOutcome::Replied)
    }

    fn call_plugin(
        &self,
        slot: u32,
        bytes: ByteReader<'_>,
        writer: &mut ByteWriter<'_>,
        storage: &mut BumpStorage,
        host_call: *mut c_void,
    ) -> Result<Option<WireFailure>, WireBreach> {
        let LaneSurroundings { region, plugin, host, .. } = self.around;
        let find_range = |offset, size| region.range_address(offset, size);
        let keeps_elements = slot == slots::KERNEL_PREPARE;
        let released = if slot == slots::KERNEL_RELEASE { released_state(&bytes) } else { None };
        let around =
            MessageSurroundings { find_range: &find_range, host_call, keeps_elements, call: &self.call };
        let mut request = StoredReader::new(bytes, storage, around);
        // SAFETY: the host is the parent of this process and keeps to the contract.
        let failure = unsafe { call_slot(plugin, slot, &mut request, writer)? };
        let (is_prepared, has_elements) = (keeps_elements && !failure.is_some(), request.has_elements());
        self.call.store(std::ptr::null_mut(), Ordering::Release);
        if let Some(state) = released {
            plugin.kept.note_released(state);
        }
        if is_prepared {
            let state = ByteReader::new(&writer.written()[size_of::<u32>()..]).take_u64()?;
            plugin.kept.note_prepared(state, has_elements.then(|| std::mem::take(storage)));
        }
        Ok(host.take_failure(failure))
    }

    fn add_callback(&self, bytes: &mut ByteReader<'_>) -> Result<Option<WireFailure>, WireBreach> {
        /// What the plugin hands back when the stream has reached the callback.
        struct CallbackTicket {
            number: u64,
            host: HostFunctions,
            frames: FrameWriter,
            deferred: Arc<DeferredFailures>,
        }
        unsafe extern "C" fn note_reached(
            _device: u32,
            stream: abi::Stream,
            user: *mut c_void,
            failure: abi::Error,
        ) {
            // SAFETY: the pointer is the one made below, and the plugin calls this once (rule T-2).
            let ticket = unsafe { Box::from_raw(user.cast::<CallbackTicket>()) };
            let own = ticket.host.take_failure(failure);
            let failure = own.or_else(|| ticket.deferred.stream_failure(stream.0));
            let mut bytes = Vec::new();
            let mut writer = ByteWriter::new(&mut bytes);
            writer.put_u64(ticket.number);
            writer.put_u8(failure.is_some().into());
            if let Some(failure) = failure {
                failure.write_failure(&mut writer);
            }
            // Without a host, nobody waits for the callback.
            _ = ticket.frames.write_frame(FRAME_REACHED, &bytes);
        }
        let (device, stream, number) = (bytes.take_u32()?, abi::Stream(bytes.take_u64()?), bytes.take_u64()?);
        let LaneSurroundings { plugin, host, frames, deferred, .. } = self.around;
        let (context, table) = plugin.async_table()?;
        let Some(slot) = table.stream_add_callback else {
            return Err(WireBreach::new("a function in `stream_add_callback`", "none"));
        };
        let ticket =
            CallbackTicket { number, host: *host, frames: frames.clone(), deferred: deferred.clone() };
        let user = Box::into_raw(Box::new(ticket));
        // SAFETY: the context is the plugin's own; the function frees what it is given.
        let failure = unsafe { slot(context, device, stream, Some(note_reached), user.cast()) };
        if failure.is_some() {
            // SAFETY: the plugin did not accept the callback, so the ticket is still ours.
            drop(unsafe { Box::from_raw(user) });
        }
        Ok(host.take_failure(failure))
    }

    /// Asks the host something while a kernel runs, and reads the answer.
    fn ask_host(
        &self,
        write: impl FnOnce(&mut ByteWriter<'_>),
        read: impl FnOnce(ByteReader<'_>) -> Result<(), WireBreach>,
    ) -> Result<(), WireFailure> {
        if self.is_posted.load(Ordering::Acquire) {
            return Err(WireFailure::fatal(
                "expected a call that somebody waits for, found one that runs in its stream",
            ));
        }
        let mut buffer = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = self.around.region.lane(self.lane);
        let words = memory.words();
        write(&mut ByteWriter::new(&mut buffer));
        if !memory.write_reply(&buffer) {
            return Err(WireFailure::fatal(
                "expected a short question of a kernel, found one that does not fit",
            ));
        }
        let number = words.asked.0.load(Ordering::Acquire).wrapping_add(1);
        words.asked.0.store(number, Ordering::Release);
        words.reply_bell.ring();
        let is_answered = || (words.answered.0.load(Ordering::Acquire) == number).then_some(());
        while words.request_bell.wait_until(LOOK_AGAIN, is_answered).is_none() {}
        let read_answer = |buffer: &mut Vec<u8>| {
            memory.read_answer(buffer)?;
            let mut answer = ByteReader::new(buffer);
            if answer.take_u32()? == STATUS_DONE {
                read(answer).map(|()| None)
            } else {
                WireFailure::read_failure(&mut answer).map(Some)
            }
        };
        match read_answer(&mut buffer) {
            Ok(None) => Ok(()),
            Ok(Some(failure)) => Err(failure),
            Err(breach) => Err(WireFailure::fatal(breach.to_string())),
        }
    }
}

/// The state that a request of `release` frees: it follows the number of the kernel.
fn released_state(bytes: &ByteReader<'_>) -> Option<u64> {
    let mut bytes = bytes.clone();
    bytes.take_u32().ok()?;
    bytes.take_u64().ok()
}

/// What becomes of a request that was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestOutcome {
    /// The reply is written.
    Replied,
    /// Nobody waits for a reply.
    Posted,
    /// The process ends after this one.
    Last,
}

impl LaneServer<'_> {
    pub(super) fn around_host(&self) -> &dyn LaneHost {
        self.around.lane_host
    }
}

impl KernelCaller for LaneServer<'_> {
    fn allocate_output(&self, index: u32, dtype: abi::Dtype, dims: &[i64]) -> Result<(), WireFailure> {
        let call = self.call.load(Ordering::Acquire);
        if call.is_null() {
            return Err(WireFailure::fatal("expected a running call, found none"));
        }
        let write = |writer: &mut ByteWriter<'_>| {
            writer.put_u32(BACK_ALLOCATE);
            writer.put_u32(index);
            writer.put_u32(dtype.0);
            writer.put_u32(dims.len() as u32);
            dims.iter().for_each(|size| writer.put_i64(*size));
        };
        self.ask_host(write, |answer| {
            let described = self.described.lock().unwrap_or_else(PoisonError::into_inner);
            let find_range = |offset, size| self.around.region.range_address(offset, size);
            let around = MessageSurroundings {
                find_range: &find_range,
                host_call: std::ptr::null_mut(),
                keeps_elements: false,
                call: &self.call,
            };
            let tensor = decode_tensor(&mut StoredReader::new(answer, &described, around))?;
            // SAFETY: the call is in the storage of the lane while it runs, and so is its list of outputs.
            let (outputs, count) = unsafe { ((*call).outputs, (*call).outputs_count) };
            if u64::from(index) >= count {
                return Err(WireBreach::new(format!("one of {count} outputs"), index.to_string()));
            }
            // SAFETY: the list has this output, which is a struct in the storage of the lane.
            unsafe { outputs.add(index as usize).read().cast_mut().write(tensor) };
            Ok(())
        })
    }

    fn describe_kernel(&self, way: &str) {
        let write = |writer: &mut ByteWriter<'_>| {
            writer.put_u32(BACK_DESCRIBE);
            writer.put_text(way, MAX_TEXT);
        };
        // A description that is lost does no harm.
        _ = self.ask_host(write, |_| Ok(()));
    }

    fn check_stop(&self) -> Result<(), WireFailure> {
        if self.is_posted.load(Ordering::Acquire) || self.call.load(Ordering::Acquire).is_null() {
            return Ok(());
        }
        self.ask_host(|writer| writer.put_u32(BACK_STOP_CHECK), |_| Ok(()))
    }
}
