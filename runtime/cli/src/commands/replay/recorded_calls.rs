//! Carries out one recorded call after the other. Each is done before the next, also those in streams.

use std::collections::HashMap;

use oarlock_core::{Device, Op, Runtime, Tensor};
use oarlock_host::{PluginEvent, PluginStream};
use oarlock_plugin_record::{
    RecordedCall, RecordedContents, RecordedKernelCall, RecordedPart, RecordedSlot, RecordedTarget,
    RecordedTensor, hash_bytes,
};
use oarlock_report::difference::largest_difference;

use super::replay_memory::ReplayMemory;
use super::replay_report::{ReplayDifference, ReplayReport};
use super::replayed_op::{LeaveOut, OpReplay, is_absent};
use crate::arguments::ReplayArguments;

/// Calls that only ask for something; there is nothing to carry out.
const ONLY_ASKS: &str = "it only asks the plugin for something";

/// A replay as far as it has come.
pub(super) struct CallReplay<'a> {
    ops: OpReplay<'a>,
    memory: ReplayMemory,
    streams: HashMap<(String, u64), PluginStream>,
    events: HashMap<(String, u64), PluginEvent>,
    targets: Vec<RecordedTarget>,
    slots: HashMap<u16, RecordedSlot>,
    /// Ops by target and attributes: making one and finding its kernel takes long.
    made_ops: HashMap<(u32, String), Op>,
    report: ReplayReport,
    tolerance: f64,
    /// True if an op has rounded otherwise than when it was recorded, so that copies of its outputs differ too.
    rounded_otherwise: bool,
}

/// A recorded call with what it refers to.
struct CallContext<'c> {
    call: &'c RecordedCall,
    slot: &'c RecordedSlot,
    plugin: &'c str,
}

impl CallContext<'_> {
    /// The word of this name; 0 if the slot had none.
    fn word(&self, name: &str) -> u64 {
        let at = self.slot.words.iter().position(|word| word == name);
        at.and_then(|at| self.call.words.get(at)).copied().unwrap_or(0)
    }

    /// What the plugin wrote for the word of this name.
    fn written(&self, name: &str) -> Option<u64> {
        let at = self.slot.words.iter().position(|word| word == name)?;
        self.call.parts.iter().find_map(|part| match part {
            RecordedPart::Out { word, value } if usize::from(*word) == at => Some(*value),
            _ => None,
        })
    }

    fn contents(&self) -> Option<&RecordedContents> {
        self.call.parts.iter().find_map(|part| match part {
            RecordedPart::Contents { contents, .. } => Some(contents),
            _ => None,
        })
    }
}

impl<'a> CallReplay<'a> {
    pub(super) fn new(runtime: &'a Runtime, device: &'a Device, arguments: &ReplayArguments) -> Self {
        let compared = arguments.compare.then_some(0);
        let report = ReplayReport { device: device.to_string(), compared, ..ReplayReport::default() };
        Self {
            ops: OpReplay { runtime, device },
            memory: ReplayMemory::new(device.host_device()),
            streams: HashMap::new(),
            events: HashMap::new(),
            targets: Vec::new(),
            slots: HashMap::new(),
            made_ops: HashMap::new(),
            report,
            tolerance: arguments.tolerance,
            rounded_otherwise: false,
        }
    }

    pub(super) fn add_target(&mut self, target: RecordedTarget) {
        self.targets.push(target);
    }

    pub(super) fn add_slot(&mut self, slot: RecordedSlot) {
        self.slots.insert(slot.number, slot);
    }

    /// Carries out a call, or counts why not.
    pub(super) fn replay_call(&mut self, call: &RecordedCall) {
        self.report.calls += 1;
        let (Some(target), Some(slot)) =
            (self.targets.get(call.target as usize).cloned(), self.slots.get(&call.slot).cloned())
        else {
            return self.report.leave_out("its target or slot is not recorded");
        };
        if call.failed {
            return self.report.leave_out("it failed when it was recorded");
        }
        let context = CallContext { call, slot: &slot, plugin: &target.plugin };
        let kernel_call = call.parts.iter().find_map(|part| match part {
            RecordedPart::Kernel(kernel) => Some(kernel),
            _ => None,
        });
        let done = match kernel_call {
            Some(kernel_call) => self.replay_run(&target, kernel_call),
            None => self.replay_table_call(&context),
        };
        match done {
            Ok(()) => self.report.replayed += 1,
            Err(reason) if kernel_call.is_some() => {
                self.report.leave_out(format!("`{}`: {reason}", target.op));
            }
            Err(reason) => self.report.leave_out(reason),
        }
    }

    pub(super) fn finish(mut self, is_cut_off: bool) -> ReplayReport {
        self.report.is_cut_off = is_cut_off;
        self.report
    }

    fn replay_table_call(&mut self, call: &CallContext<'_>) -> Result<(), LeaveOut> {
        let name = call.slot.name.split_once('.').map_or("", |(_, name)| name);
        let plugin = call.plugin;
        let unknown = || "it names memory that the recording does not have".to_owned();
        let failed = |failure: oarlock_host::PluginFailure| failure.to_string();
        let key = |handle: u64| (plugin.to_owned(), handle);
        if let Some(stream) =
            self.streams.get(&key(call.word("queue"))).filter(|_| name.starts_with("memory_"))
        {
            stream.synchronize().map_err(failed)?;
        }
        let (target, offset, size) = (call.word("target"), call.word("target_offset"), call.word("size"));
        let is_known = match name {
            "memory_allocate" | "memory_allocate_async" => {
                let block = call.written("block").ok_or_else(unknown)?;
                return self.memory.allocate_block(plugin, block, size);
            }
            "memory_deallocate" | "memory_deallocate_async" => {
                self.memory.free_block(plugin, call.word("block"));
                true
            }
            "memory_copy_h2d" | "memory_copy_h2d_async" => {
                let contents = call.contents().ok_or_else(unknown)?;
                let bytes = contents.bytes.as_deref().ok_or("the bytes of its source are not recorded")?;
                self.memory.write_bytes(plugin, target, offset, bytes).map_err(failed)?
            }
            "memory_copy_d2h" => return self.replay_read(call),
            "memory_copy_d2h_async" => {
                let (source, from) = (call.word("source"), call.word("source_offset"));
                self.memory.read_bytes(plugin, source, from, size).map_err(failed)?.is_some()
            }
            "memory_copy_d2d" | "memory_copy_d2d_async" | "memory_copy_p2p" | "memory_copy_p2p_async" => {
                let source = (call.word("source"), call.word("source_offset"));
                self.memory.copy_bytes(plugin, (target, offset), source, size).map_err(failed)?
            }
            "memory_set" | "memory_set_async" => {
                let byte = call.word("byte") as u8;
                self.memory.fill_bytes(plugin, target, offset, byte, size).map_err(failed)?
            }
            _ => return self.replay_stream_call(name, call),
        };
        is_known.then_some(()).ok_or_else(unknown)
    }

    fn replay_stream_call(&mut self, name: &str, call: &CallContext<'_>) -> Result<(), LeaveOut> {
        let device = self.ops.device.host_device();
        let unknown = || "it names a stream or an event that the recording does not have".to_owned();
        let key = |handle: u64| (call.plugin.to_owned(), handle);
        let (queue, point) = (key(call.word("queue")), key(call.word("point")));
        let stream = || self.streams.get(&queue).ok_or_else(unknown);
        let event = || self.events.get(&point).ok_or_else(unknown);
        let done = match name {
            "stream_create" => {
                let priority = call.word("priority") as i32;
                let handle = call.written("queue").ok_or_else(unknown)?;
                device.create_stream(priority).map(|stream| drop(self.streams.insert(key(handle), stream)))
            }
            "event_create" => {
                let handle = call.written("point").ok_or_else(unknown)?;
                device.create_event().map(|event| drop(self.events.insert(key(handle), event)))
            }
            "stream_destroy" => {
                self.streams.remove(&queue).ok_or_else(unknown)?;
                Ok(())
            }
            "event_destroy" => {
                self.events.remove(&point).ok_or_else(unknown)?;
                Ok(())
            }
            "stream_synchronize" => stream()?.synchronize(),
            "stream_wait_event" => stream()?.wait_for(event()?),
            "event_record" => stream()?.record_event(event()?),
            "event_synchronize" => event()?.synchronize(),
            "device_synchronize" => device.synchronize(),
            _ => return Err(ONLY_ASKS.to_owned()),
        };
        done.map_err(|failure| failure.to_string())
    }

    /// Reads what a copy to the host read, and compares it.
    fn replay_read(&mut self, call: &CallContext<'_>) -> Result<(), LeaveOut> {
        let (source, from) = (call.word("source"), call.word("source_offset"));
        let size = call.word("target_size");
        let read = self.memory.read_bytes(call.plugin, source, from, size);
        let bytes = read.map_err(|failure| failure.to_string())?;
        let bytes = bytes.ok_or("it names memory that the recording does not have")?;
        let recorded = call.contents().and_then(|contents| contents.hash);
        if let (Some(hash), Some(_)) = (recorded, self.report.compared) {
            self.report.count_comparison();
            // What the bytes mean is not known here, so rounding cannot be told from an error. The op that wrote them is compared.
            if hash != hash_bytes(&bytes) && !self.rounded_otherwise {
                let (number, what) = (self.report.calls, call.slot.name.clone());
                self.report.add_difference(ReplayDifference { call: number, what, output: 0, largest: None });
            }
        }
        Ok(())
    }

    fn replay_run(&mut self, target: &RecordedTarget, call: &RecordedKernelCall) -> Result<(), LeaveOut> {
        let key = (target.number, format!("{:?}", call.attributes));
        if !self.made_ops.contains_key(&key) {
            let made = self.ops.make_op(target, call)?;
            self.made_ops.insert(key.clone(), made);
        }
        let op = &self.made_ops[&key];
        let outputs = self.ops.run_op(op, &target.plugin, call, &mut self.memory)?;
        if self.report.compared.is_some() {
            for (index, (recorded, made)) in call.outputs.iter().zip(&outputs).enumerate() {
                if let (Some(made), false) = (made, is_absent(recorded)) {
                    self.compare_output(&target.op, index, recorded, made);
                }
            }
        }
        Ok(())
    }

    fn compare_output(&mut self, op: &str, index: usize, recorded: &RecordedTensor, made: &Tensor) {
        let hash = recorded.contents.as_ref().and_then(|contents| contents.hash);
        let (Some(hash), Ok(bytes)) = (hash, made.to_bytes()) else { return };
        self.report.count_comparison();
        if hash == hash_bytes(&bytes) {
            return;
        }
        let known = self.ops.recorded_tensor(recorded);
        let largest = known.and_then(|known| largest_difference(made, &known).ok().flatten());
        if largest.is_some_and(|largest| largest <= self.tolerance) {
            self.rounded_otherwise = true;
            return;
        }
        let difference =
            ReplayDifference { call: self.report.calls, what: op.to_owned(), output: index, largest };
        self.report.add_difference(difference);
    }
}
