//! The host's end of the shared memory: writes requests, waits for replies, answers questions.

#![expect(unsafe_code, reason = "the services of the host are called for a kernel that runs in the child")]

use std::sync::atomic::Ordering;
use std::time::Duration;

use oarlock_abi as abi;

use super::call_patience::{CallPatience, LOOK_AGAIN};
use super::call_route::{CallFailure, CallRoute};
use super::callbacks::CallbackTable;
use super::child_life::ChildLife;
use super::crossed_memory::CrossedMemory;
use super::data_arena::DataArena;
use super::lane_pool::{LanePool, LaneTicket};
use super::live_handles::LiveHandles;
use super::reply_reader::ReplyReader;
use super::request_writer::{OperandRole, RequestWriter};
use super::text_store::TextStore;
use crate::shared::layout::{REQUEST_BYTES, REQUEST_SLOTS};
use crate::shared::region::SharedRegion;
use crate::wire::WireBreach;
use crate::wire::byte_reader::ByteReader;
use crate::wire::byte_writer::ByteWriter;
use crate::wire::failure::{HostFunctions, WireFailure};
use crate::wire::generated::slot_name;
use crate::wire::header::{
    BACK_ALLOCATE, BACK_DESCRIBE, BACK_STOP_CHECK, BODY_INLINE, BODY_SHARED, FENCE, RequestHeader,
    STATUS_DONE, STATUS_FAILED, STATUS_UNREADABLE,
};

/// The host's end of one isolated plugin.
#[derive(Debug)]
pub(crate) struct ChildConnection {
    arena: DataArena,
    lanes: LanePool,
    host: HostFunctions,
    life: ChildLife,
    callbacks: CallbackTable,
    handles: LiveHandles,
    texts: TextStore,
    call_limit: Option<Duration>,
}

/// A lane in use. Dropping it gives the lane back.
pub(crate) struct LaneInUse<'a> {
    pub(crate) connection: &'a ChildConnection,
    pub(crate) ticket: LaneTicket,
}

impl Drop for LaneInUse<'_> {
    fn drop(&mut self) {
        self.connection.lanes.give_lane(std::mem::take(&mut self.ticket));
    }
}

impl ChildConnection {
    pub(crate) fn new(
        region: SharedRegion,
        life: ChildLife,
        host: HostFunctions,
        call_limit: Option<Duration>,
    ) -> Self {
        Self {
            arena: DataArena::new(region),
            lanes: LanePool::new(),
            host,
            life,
            callbacks: CallbackTable::default(),
            handles: LiveHandles::default(),
            texts: TextStore::default(),
            call_limit,
        }
    }

    pub(crate) fn region(&self) -> &SharedRegion {
        self.arena.region()
    }

    pub(crate) fn host(&self) -> &HostFunctions {
        &self.host
    }

    pub(crate) fn life(&self) -> &ChildLife {
        &self.life
    }

    pub(crate) fn callbacks(&self) -> &CallbackTable {
        &self.callbacks
    }

    pub(crate) fn handles(&self) -> &LiveHandles {
        &self.handles
    }

    pub(crate) fn arena(&self) -> &DataArena {
        &self.arena
    }

    /// Wakes everybody who waits for the child, after it was lost.
    pub(crate) fn release_waiters(&self) {
        for lane in 0..crate::shared::layout::LANES {
            self.region().lane(lane).words().reply_bell.ring_loudly();
        }
    }

    /// Calls a slot: `encode` writes its arguments and `decode` reads its results.
    pub(crate) fn forward(
        &self,
        route: &CallRoute,
        encode: impl FnOnce(&mut RequestWriter<'_, '_>) -> Result<(), WireBreach>,
        decode: impl FnOnce(&mut ReplyReader<'_>) -> Result<(), WireBreach>,
    ) -> abi::Error {
        self.settle(route, self.try_forward(route, encode, decode))
    }

    /// The error number for a caller.
    pub(crate) fn settle(&self, route: &CallRoute, result: Result<(), CallFailure>) -> abi::Error {
        match result {
            Ok(()) => abi::Error::NONE,
            Err(CallFailure::Reported(failure)) => self.host.create_error(&failure),
            Err(CallFailure::Breach(breach)) => {
                self.life
                    .condemn(|| format!("its answer to `{}` was wrong: {breach}", slot_name(route.slot)));
                self.report_loss(route)
            }
            Err(CallFailure::Lost) => self.report_loss(route),
        }
    }

    fn report_loss(&self, route: &CallRoute) -> abi::Error {
        if route.frees {
            abi::Error::NONE
        } else {
            self.host.create_error(&self.life.lost_failure(route.slot))
        }
    }

    fn try_forward(
        &self,
        route: &CallRoute,
        encode: impl FnOnce(&mut RequestWriter<'_, '_>) -> Result<(), WireBreach>,
        decode: impl FnOnce(&mut ReplyReader<'_>) -> Result<(), WireBreach>,
    ) -> Result<(), CallFailure> {
        self.life.note_slot(route.slot);
        let mut lane = self.take_lane()?;
        let mut crossed = CrossedMemory::new(&self.arena);
        let mut request = std::mem::take(&mut lane.ticket.request);
        let written = write_request(&mut request, route, &mut crossed, encode);
        let sent = written.and_then(|()| lane.send_request(&mut request, &mut crossed));
        lane.ticket.request = request;
        let number = sent?;
        // Memory of the call is freed when this returns, so a call with such memory is waited for.
        if route.posts && crossed.is_empty() {
            self.lanes.mark_unsettled(lane.ticket.index, number);
            return Ok(());
        }
        self.wait_for_reply(&mut lane, number, route, &mut crossed)?;
        if route.posts {
            // The child has kept a failure for the stream, and written no reply.
            return Ok(crossed.copy_outputs()?);
        }
        lane.read_results(decode)?;
        Ok(crossed.copy_outputs()?)
    }

    /// Takes a lane, once the requests that others have posted before are done: what they did may matter for the next call.
    pub(crate) fn take_lane(&self) -> Result<LaneInUse<'_>, CallFailure> {
        let ticket = loop {
            if self.life.is_lost() {
                return Err(CallFailure::Lost);
            }
            let start = |count| {
                self.region().words().lanes_in_use.0.store(count, Ordering::Release);
                self.region().words().lane_bell.ring();
            };
            if let Some(ticket) = self.lanes.take_lane(LOOK_AGAIN, start) {
                break ticket;
            }
        };
        let lane = LaneInUse { connection: self, ticket };
        for (other, number) in self.lanes.unsettled_others(lane.ticket.index) {
            self.wait_executed(other, number, FENCE)?;
        }
        Ok(lane)
    }

    fn patience(&self, slot: u32, limit: Option<Duration>) -> CallPatience<'_> {
        CallPatience::new(&self.life, &self.region().words().heartbeat.0, slot, limit)
    }

    /// Waits until the child has done this many requests of a lane.
    pub(crate) fn wait_executed(&self, lane: usize, target: u32, slot: u32) -> Result<(), CallFailure> {
        let words = self.region().lane(lane).words();
        let mut patience = self.patience(slot, self.call_limit);
        loop {
            let check = || {
                if is_reached(words.executed.0.load(Ordering::Acquire), target) {
                    return Some(Ok(()));
                }
                self.life.is_lost().then_some(Err(CallFailure::Lost))
            };
            match words.reply_bell.wait_until(LOOK_AGAIN, check) {
                Some(outcome) => return outcome,
                None => patience.look(),
            }
        }
    }

    fn wait_for_reply(
        &self,
        lane: &mut LaneInUse<'_>,
        target: u32,
        route: &CallRoute,
        crossed: &mut CrossedMemory<'_>,
    ) -> Result<(), CallFailure> {
        enum Event {
            Done,
            Asked(u32),
            Lost,
        }
        let words = self.region().lane(lane.ticket.index).words();
        let mut patience = self.patience(route.slot, route.limit.or(self.call_limit));
        loop {
            let answered = lane.ticket.answered;
            let check = || {
                if is_reached(words.executed.0.load(Ordering::Acquire), target) {
                    return Some(Event::Done);
                }
                let asked = words.asked.0.load(Ordering::Acquire);
                if asked != answered {
                    return Some(Event::Asked(asked));
                }
                self.life.is_lost().then_some(Event::Lost)
            };
            match words.reply_bell.wait_until(LOOK_AGAIN, check) {
                Some(Event::Done) => {
                    self.lanes.mark_settled(lane.ticket.index);
                    return Ok(());
                }
                Some(Event::Lost) => return Err(CallFailure::Lost),
                Some(Event::Asked(number)) => {
                    self.answer_question(lane, route, crossed)?;
                    lane.ticket.answered = number;
                    words.answered.0.store(number, Ordering::Release);
                    words.request_bell.ring();
                }
                None => patience.look(),
            }
        }
    }

    /// Answers what a kernel asks its caller while it runs.
    fn answer_question(
        &self,
        lane: &mut LaneInUse<'_>,
        route: &CallRoute,
        crossed: &mut CrossedMemory<'_>,
    ) -> Result<(), CallFailure> {
        let memory = self.region().lane(lane.ticket.index);
        memory.read_reply(&mut lane.ticket.reply)?;
        let mut question = ByteReader::new(&lane.ticket.reply);
        let kind = question.take_u32()?;
        if route.call.is_null() {
            return Err(WireBreach::new("no question in this call", format!("question {kind}")).into());
        }
        let host = &self.host;
        let mut answer = std::mem::take(&mut lane.ticket.request);
        let mut writer = ByteWriter::new(&mut answer);
        let failure = match kind {
            BACK_ALLOCATE => {
                let (index, dtype) = (question.take_u32()?, abi::Dtype(question.take_u32()?));
                let count = question.take_count(size_of::<i64>())?;
                let dims = (0..count).map(|_| question.take_i64()).collect::<Result<Vec<i64>, _>>()?;
                host.table().output_allocate.map_or(abi::Error::NONE, |allocate| {
                    // SAFETY: the call is the one that the host made and that still runs; the list outlives the call.
                    unsafe {
                        allocate(host.context(), route.call, index, dtype, dims.as_ptr(), dims.len() as u64)
                    }
                })
            }
            BACK_DESCRIBE => {
                let way = abi::Str::borrowed(question.take_text()?);
                // SAFETY: as above.
                host.table()
                    .kernel_describe
                    .map_or(abi::Error::NONE, |describe| unsafe { describe(host.context(), route.call, way) })
            }
            BACK_STOP_CHECK => {
                // SAFETY: the context is the host's.
                host.table().stop_check.map_or(abi::Error::NONE, |check| unsafe { check(host.context()) })
            }
            _ => return Err(WireBreach::new("a question of a kernel", format!("question {kind}")).into()),
        };
        match host.take_failure(failure) {
            Some(failure) => {
                writer.put_u32(STATUS_FAILED);
                failure.write_failure(&mut writer);
            }
            None => {
                writer.put_u32(STATUS_DONE);
                if kind == BACK_ALLOCATE {
                    let index = ByteReader::new(&lane.ticket.reply[size_of::<u32>()..]).take_u32()?;
                    let mut request =
                        RequestWriter::new(writer, crossed, route.elements, OperandRole::Output);
                    // SAFETY: the call is alive, and the host has just described this output.
                    unsafe { super::arguments::encode_output(&mut request, route.call, index)? };
                }
            }
        }
        let fits = memory.write_answer(&answer);
        lane.ticket.request = answer;
        if fits { Ok(()) } else { Err(WireBreach::new("a short answer", "one that does not fit").into()) }
    }
}

/// Writes a whole request. One that cannot be written is a failure of the caller.
pub(crate) fn write_request(
    request: &mut Vec<u8>,
    route: &CallRoute,
    crossed: &mut CrossedMemory<'_>,
    encode: impl FnOnce(&mut RequestWriter<'_, '_>) -> Result<(), WireBreach>,
) -> Result<(), CallFailure> {
    let mut writer = ByteWriter::new(request);
    writer.put_u32(BODY_INLINE);
    let CallRoute { slot, stream, event, posts, elements, .. } = *route;
    RequestHeader { slot, is_posted: posts, stream, event }.write_header(&mut writer);
    encode(&mut RequestWriter::new(writer, crossed, elements, OperandRole::Attribute)).map_err(|breach| {
        CallFailure::Reported(WireFailure::new(abi::Code::UNIMPLEMENTED, breach.to_string()))
    })
}

/// True if a counter that wraps around has come to a target.
fn is_reached(count: u32, target: u32) -> bool {
    count.wrapping_sub(target).cast_signed() >= 0
}

impl LaneInUse<'_> {
    /// Hands a request to the child; returns the number of requests that are done once it is.
    pub(crate) fn send_request(
        &mut self,
        request: &mut Vec<u8>,
        crossed: &mut CrossedMemory<'_>,
    ) -> Result<u32, CallFailure> {
        let (connection, lane) = (self.connection, self.ticket.index);
        if request.len() > REQUEST_BYTES - size_of::<u32>() {
            let size = request.len() as u64;
            let reported = |breach: WireBreach| {
                CallFailure::Reported(WireFailure::new(abi::Code::RESOURCE_EXHAUSTED, breach.to_string()))
            };
            let offset = crossed.take_piece(size).map_err(reported)?;
            let target = connection.region().range_address(offset, size).map_err(reported)?;
            // SAFETY: the piece is that large and nobody else's.
            unsafe { std::ptr::copy_nonoverlapping(request.as_ptr(), target, request.len()) };
            let mut writer = ByteWriter::new(request);
            writer.put_u32(BODY_SHARED);
            writer.put_u64(offset);
            writer.put_u64(size);
        }
        let number = connection.lanes.posted_count(lane);
        // The place for this request is free once the one that was there before is done.
        connection.wait_executed(lane, number.wrapping_sub(REQUEST_SLOTS as u32 - 1), FENCE)?;
        let memory = connection.region().lane(lane);
        let fits = memory.write_request(number, request);
        debug_assert!(fits, "a request that is too long goes through the arena");
        let posted = connection.lanes.count_request(lane);
        memory.words().posted.0.store(posted, Ordering::Release);
        memory.words().request_bell.ring();
        Ok(posted)
    }

    /// Reads the reply to a request that is done.
    pub(crate) fn read_results(
        &mut self,
        decode: impl FnOnce(&mut ReplyReader<'_>) -> Result<(), WireBreach>,
    ) -> Result<(), CallFailure> {
        let connection = self.connection;
        connection.region().lane(self.ticket.index).read_reply(&mut self.ticket.reply)?;
        let mut bytes = ByteReader::new(&self.ticket.reply);
        match bytes.take_u32()? {
            STATUS_DONE => Ok(decode(&mut ReplyReader::new(bytes, &connection.texts))?),
            STATUS_FAILED => Err(CallFailure::Reported(WireFailure::read_failure(&mut bytes)?)),
            STATUS_UNREADABLE => Err(CallFailure::Reported(WireFailure::fatal(format!(
                "expected the child process to understand the call, found: {}",
                bytes.take_text()?
            )))),
            other => Err(WireBreach::new("the status of a reply", other.to_string()).into()),
        }
    }
}
