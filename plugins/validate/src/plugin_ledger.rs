//! What is known about one plugin: its stage, its devices, its handles, and the order of its work.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use oarlock_layer::HandleKind;
use oarlock_sdk::abi::DeviceFlags;
use rustc_hash::FxHashMap;

use crate::block_access::BlockAccess;
use crate::breach::CallBreach;
use crate::handle_record::{HandleOrigin, HandleRecord, handle_noun, handle_phrase, handle_rule};
use crate::stream_order::{HOST, StreamOrder, WorkPoint};

/// Freed handles that are remembered, for messages.
const MAX_FREED: usize = 4096;

/// How far a plugin is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PluginStage {
    Loaded,
    Initialized,
    Finalized,
}

/// Host memory that the device may touch until the stream is past a call.
#[derive(Debug)]
pub(crate) struct HostAccess {
    pub(crate) range: Range<u64>,
    /// True if the device writes it.
    pub(crate) writes: bool,
    pub(crate) point: WorkPoint,
    pub(crate) call: u64,
}

/// Bytes of a block that a call reads or writes.
#[derive(Clone, Debug)]
pub(crate) struct BlockUse {
    pub(crate) block: u64,
    pub(crate) device: u32,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) writes: bool,
    /// What the block is for, in messages.
    pub(crate) name: &'static str,
}

/// One plugin.
pub(crate) struct PluginLedger {
    pub(crate) plugin: String,
    state: Mutex<LedgerState>,
}

impl PluginLedger {
    pub(crate) fn new(plugin: &str) -> Self {
        Self { plugin: plugin.to_owned(), state: Mutex::new(LedgerState::default()) }
    }

    pub(crate) fn lock_state(&self) -> MutexGuard<'_, LedgerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known about a plugin.
#[derive(Debug)]
pub(crate) struct LedgerState {
    pub(crate) stage: PluginStage,
    pub(crate) has_initialize: bool,
    pub(crate) order: StreamOrder,
    pub(crate) in_flight: Vec<HostAccess>,
    /// Page-locked and unified memory, by address.
    pub(crate) host_blocks: FxHashMap<u64, HandleRecord>,
    handles: FxHashMap<(HandleKind, u64), HandleRecord>,
    freed: FxHashMap<(HandleKind, u64), HandleOrigin>,
    freed_order: VecDeque<(HandleKind, u64)>,
    lost: HashSet<u32>,
    flags: FxHashMap<u32, DeviceFlags>,
    /// Streams and events that a call is using, with its thread.
    busy: FxHashMap<(HandleKind, u64), (ThreadId, u32)>,
}

impl Default for LedgerState {
    fn default() -> Self {
        Self {
            stage: PluginStage::Loaded,
            has_initialize: false,
            order: StreamOrder::default(),
            in_flight: Vec::new(),
            host_blocks: FxHashMap::default(),
            handles: FxHashMap::default(),
            freed: FxHashMap::default(),
            freed_order: VecDeque::new(),
            lost: HashSet::new(),
            flags: FxHashMap::default(),
            busy: FxHashMap::default(),
        }
    }
}

impl LedgerState {
    pub(crate) fn set_device_flags(&mut self, device: u32, flags: DeviceFlags) {
        self.flags.insert(device, flags);
    }

    /// True if the handle of a block of the device is its address on the host.
    pub(crate) fn is_host_addressable(&self, device: u32) -> bool {
        self.flags.get(&device).is_some_and(|flags| flags.contains(DeviceFlags::HOST_ADDRESSABLE))
    }

    /// True if any host memory may stand for a block of the device.
    fn takes_host_memory(&self, device: u32) -> bool {
        let flags = self.flags.get(&device);
        flags.is_none_or(|flags| flags.contains(DeviceFlags::SHARES_HOST_MEMORY))
    }

    pub(crate) fn is_lost(&self, device: u32) -> bool {
        self.lost.contains(&device)
    }

    pub(crate) fn mark_lost(&mut self, device: u32) {
        self.lost.insert(device);
    }

    pub(crate) fn mark_opened(&mut self, device: u32) {
        self.lost.remove(&device);
    }

    pub(crate) fn has_block(&self, block: u64) -> bool {
        self.handles.contains_key(&(HandleKind::Memory, block))
    }

    /// Adds a handle that the plugin made.
    pub(crate) fn add_handle(
        &mut self,
        kind: HandleKind,
        handle: u64,
        record: HandleRecord,
    ) -> Result<(), CallBreach> {
        let noun = handle_noun(kind);
        if handle == 0 {
            let message = format!("expected {} that is not 0, found success and 0", handle_phrase(kind));
            return Err(CallBreach::by_plugin("R-1", message));
        }
        self.freed.remove(&(kind, handle));
        if kind == HandleKind::Stream {
            self.order.add_stream(handle, record.device);
        }
        let made = record.made.clone();
        match self.handles.insert((kind, handle), record) {
            None => Ok(()),
            Some(earlier) => Err(CallBreach::by_plugin(
                handle_rule(kind),
                format!(
                    "expected a new {noun}, found {handle:#x}, which is alive since {}; now also {made}",
                    earlier.made
                ),
            )),
        }
    }

    /// Takes a handle out, before the call that frees it.
    pub(crate) fn remove_handle(
        &mut self,
        kind: HandleKind,
        handle: u64,
        freed: HandleOrigin,
    ) -> Option<HandleRecord> {
        let record = self.handles.remove(&(kind, handle))?;
        if self.freed.insert((kind, handle), freed).is_none() {
            self.freed_order.push_back((kind, handle));
        }
        while self.freed_order.len() > MAX_FREED {
            if let Some(oldest) = self.freed_order.pop_front() {
                self.freed.remove(&oldest);
            }
        }
        Some(record)
    }

    /// Puts a handle back, after the call that should have freed it failed.
    pub(crate) fn put_handle_back(&mut self, kind: HandleKind, handle: u64, record: HandleRecord) {
        if let std::collections::hash_map::Entry::Vacant(place) = self.handles.entry((kind, handle)) {
            place.insert(record);
            self.freed.remove(&(kind, handle));
        }
    }

    /// Fails unless the handle is alive and of this device.
    pub(crate) fn check_handle(
        &self,
        kind: HandleKind,
        handle: u64,
        device: Option<u32>,
    ) -> Result<&HandleRecord, CallBreach> {
        let (phrase, rule) = (handle_phrase(kind), handle_rule(kind));
        let Some(record) = self.handles.get(&(kind, handle)) else {
            let found = match self.freed.get(&(kind, handle)) {
                Some(freed) => format!("{handle:#x}, which was freed by {freed}"),
                None => format!("{handle:#x}, which the plugin never made"),
            };
            let message = format!("expected {phrase} that is alive, found {found}");
            return Err(CallBreach::by_caller(rule, message));
        };
        match device {
            Some(device) if device != record.device => Err(CallBreach::by_caller(
                if kind == HandleKind::Memory { "M-1" } else { "A-3" },
                format!(
                    "expected {phrase} of device {device}, found {handle:#x}, which {} made on device {}",
                    record.made, record.device
                ),
            )),
            _ => Ok(record),
        }
    }

    /// Fails unless the bytes lie in a block that is alive, and no other work can meet the use of them.
    pub(crate) fn check_use(&self, used: &BlockUse, stream: u64) -> Result<(), CallBreach> {
        if used.size == 0 && used.block == 0 {
            return Ok(());
        }
        let end = used.offset.checked_add(used.size);
        let record = match self.handles.get(&(HandleKind::Memory, used.block)) {
            Some(record) if record.device == used.device => record,
            // Host memory may stand for a block, and what was freed may be memory of the program by now.
            _ if self.takes_host_memory(used.device) && !self.handles_contain_other_device(used) => {
                return Ok(());
            }
            _ => self.check_handle(HandleKind::Memory, used.block, Some(used.device))?,
        };
        let Some(end) = end.filter(|&end| end <= record.size) else {
            return Err(CallBreach::by_caller(
                "M-2",
                format!(
                    "expected `{}` to lie within its block of {} bytes, found {} bytes from {} on",
                    used.name, record.size, used.size, used.offset
                ),
            ));
        };
        if record.pending.is_empty() {
            return Ok(());
        }
        match record.pending.find_conflict(&self.order, &(used.offset..end), used.writes, stream) {
            None => Ok(()),
            Some(earlier) => {
                let what = if earlier.writes { "writes" } else { "reads" };
                let needed = if stream == HOST { "synchronization" } else { "a wait for an event" };
                Err(CallBreach::by_caller(
                    "A-1",
                    format!(
                        "expected {needed} before `{}` is used, found work of call {} on stream {:#x} that still {what} \
                         bytes {} to {} of block {:#x}",
                        used.name,
                        earlier.call,
                        earlier.point.stream,
                        earlier.range.start,
                        earlier.range.end,
                        used.block
                    ),
                ))
            }
        }
    }

    fn handles_contain_other_device(&self, used: &BlockUse) -> bool {
        self.handles.get(&(HandleKind::Memory, used.block)).is_some_and(|record| record.device != used.device)
    }

    /// Remembers the uses of work that was added to a stream.
    pub(crate) fn add_uses(&mut self, uses: &[BlockUse], point: WorkPoint, call: u64) {
        if point.stream == HOST {
            return;
        }
        for used in uses {
            if let Some(record) = self.handles.get_mut(&(HandleKind::Memory, used.block)) {
                let range = used.offset..used.offset.saturating_add(used.size);
                let access = BlockAccess { range, writes: used.writes, point, call };
                record.pending.push(&self.order, access);
            }
        }
    }

    /// Fails if work that is not done reads or writes host memory that a call touches.
    pub(crate) fn check_host_range(
        &self,
        range: &Range<u64>,
        writes: bool,
        stream: u64,
        name: &str,
    ) -> Result<(), CallBreach> {
        let conflict = self.in_flight.iter().find(|earlier| {
            (earlier.writes || writes)
                && earlier.range.start < range.end
                && range.start < earlier.range.end
                && !self.order.is_before(earlier.point, stream)
        });
        conflict.map_or(Ok(()), |earlier| {
            let what = if earlier.writes { "writes" } else { "reads" };
            Err(CallBreach::by_caller(
                "A-1",
                format!(
                    "expected host memory for `{name}` that no work uses, found that the copy of call {} on stream {:#x} still \
                     {what} it",
                    earlier.call, earlier.point.stream
                ),
            ))
        })
    }

    /// Forgets what the host has seen done.
    pub(crate) fn forget_finished(&mut self) {
        let order = &self.order;
        self.in_flight.retain(|access| !order.is_before(access.point, HOST));
        for record in self.handles.values_mut().filter(|record| !record.pending.is_empty()) {
            record.pending.forget_finished(order);
        }
    }

    /// Notes that a call uses a stream or an event; fails if a call on another thread does.
    pub(crate) fn enter_handle(&mut self, kind: HandleKind, handle: u64) -> Result<(), CallBreach> {
        let thread = std::thread::current().id();
        let user = self.busy.entry((kind, handle)).or_insert((thread, 0));
        if user.0 != thread {
            let noun = handle_noun(kind);
            let message =
                format!("expected one call at a time on {noun} {handle:#x}, found another thread in one");
            return Err(CallBreach::by_caller("T-1", message));
        }
        user.1 += 1;
        Ok(())
    }

    pub(crate) fn leave_handle(&mut self, kind: HandleKind, handle: u64) {
        if let Some(user) = self.busy.get_mut(&(kind, handle)) {
            user.1 -= 1;
            if user.1 == 0 {
                self.busy.remove(&(kind, handle));
            }
        }
    }

    /// The handles that are alive, with words about each.
    pub(crate) fn list_alive(&self) -> Vec<(HandleKind, String)> {
        let mut alive: Vec<_> = self.handles.iter().collect();
        alive.sort_by_key(|(_, record)| record.made.call);
        let mut listed: Vec<_> = alive
            .into_iter()
            .map(|(&(kind, handle), record)| {
                let size = if kind == HandleKind::Memory {
                    format!(" of {} bytes", record.size)
                } else {
                    String::new()
                };
                let noun = handle_noun(kind);
                (
                    kind,
                    format!("{noun} {handle:#x}{size} on device {}, made by {}", record.device, record.made),
                )
            })
            .collect();
        for (address, record) in &self.host_blocks {
            let text = format!(
                "host memory {address:#x} of {} bytes of device {}, made by {}",
                record.size, record.device, record.made
            );
            listed.push((HandleKind::Memory, text));
        }
        listed
    }
}
