//! The work of the layer: each call is forwarded and written down.

#![expect(unsafe_code, reason = "calls are read through the addresses in their words")]

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_layer::{
    ContractSlot, LayerCall, LayerHost, LayerTarget, LayerWork, SLOTS, TargetTable, word_const_pointer,
};
use oarlock_sdk::{LogLevel, PluginError, Result, abi, copy_sized};

use crate::call_capture::{
    ContentLevel, KnownContents, capture_kernel_call, capture_kernel_outputs, capture_results,
    capture_sources,
};
use crate::recording_file::RecordingFile;
use crate::recording_frames::{RecordedCall, RecordedPart, RecordedSlot, RecordedTarget, RecordingFrame};

/// Where the recording goes if the configuration does not say.
const DEFAULT_FILE: &str = "oarlock-record.bin";
const DEFAULT_LIMIT: u64 = 1 << 30;

pub(crate) struct RecordWork {
    level: ContentLevel,
    recording: Mutex<Recording>,
}

struct Recording {
    file: RecordingFile,
    targets: u32,
    slots: HashMap<ContractSlot, u16>,
    known: KnownContents,
    /// Devices whose blocks the host can address.
    addressable: HashSet<(Arc<str>, u32)>,
}

/// A table or kernel whose calls are recorded.
pub(crate) struct RecordTarget {
    number: u32,
    plugin: Arc<str>,
    /// True for a kernel that runs on the device of another plugin.
    runs_elsewhere: bool,
}

impl Recording {
    /// Whether the blocks of a call's device are addresses. Of a kernel for another plugin's devices only the devices' type is
    /// known; it may read what some plugin's device of that number lets the host read.
    fn is_readable(&self, target: &RecordTarget, device: u32) -> bool {
        if target.runs_elsewhere {
            let mut numbered = self.addressable.iter().filter(|(_, known)| *known == device);
            return numbered.next().is_some() && numbered.next().is_none();
        }
        self.addressable.contains(&(target.plugin.clone(), device))
    }

    fn slot_number(&mut self, call: &LayerCall<'_>) -> u16 {
        if let Some(number) = self.slots.get(&call.slot()) {
            return *number;
        }
        let number = self.slots.len() as u16;
        self.slots.insert(call.slot(), number);
        let description = call.description();
        let words = description.parameters.iter().map(|parameter| parameter.name.to_owned()).collect();
        let slot = RecordedSlot { number, name: description.full_name(), words };
        self.file.add_frame(&RecordingFrame::Slot(slot));
        number
    }
}

impl LayerWork for RecordWork {
    const NAME: &'static str = "record";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Target = RecordTarget;

    fn start_work(host: LayerHost) -> Result<Self> {
        let level = match host.option("contents") {
            None | Some("full") => ContentLevel::Full,
            Some("referenced") => ContentLevel::Referenced,
            Some("shapes") => ContentLevel::Shapes,
            Some(other) => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `shapes`, `referenced` or `full` for `contents`, found `{other}`"
                )));
            }
        };
        let limit = match host.option("limit") {
            None => DEFAULT_LIMIT,
            Some(text) => text.parse().map_err(|_| {
                PluginError::invalid_argument(format!(
                    "expected a number of bytes for `limit`, found `{text}`"
                ))
            })?,
        };
        let path = Path::new(host.option("file").unwrap_or(DEFAULT_FILE));
        let recording = Recording {
            file: RecordingFile::create_recording(path, limit)?,
            targets: 0,
            slots: HashMap::with_capacity(SLOTS.len()),
            known: KnownContents::default(),
            addressable: HashSet::new(),
        };
        Ok(Self { level, recording: Mutex::new(recording) })
    }

    fn wrap_target(&self, target: LayerTarget<'_>) -> Result<RecordTarget> {
        let mut recording = self.lock_recording();
        let number = recording.targets;
        recording.targets += 1;
        let mut recorded =
            RecordedTarget { number, plugin: target.plugin.to_owned(), ..RecordedTarget::default() };
        let mut runs_elsewhere = false;
        recorded.table = match target.table {
            TargetTable::Core(_) => "core".to_owned(),
            TargetTable::Async(_) => "async".to_owned(),
            TargetTable::Kernel(kernel) => {
                // SAFETY: the name of a domain lives as long as its plugin.
                recorded.domain = unsafe { kernel.domain.text() }.unwrap_or_default().to_owned();
                recorded.op = target.table.op_name().unwrap_or_default().to_owned();
                recorded.version = kernel.version_max;
                runs_elsewhere = !kernel.device_type.is_empty();
                "kernel".to_owned()
            }
        };
        recording.file.add_frame(&RecordingFrame::Target(recorded));
        Ok(RecordTarget { number, plugin: target.plugin.into(), runs_elsewhere })
    }

    fn around_call(&self, target: &RecordTarget, call: LayerCall<'_>) -> abi::Error {
        if self.lock_recording().file.is_full() {
            self.lock_recording().file.count_lost_call();
            return call.forward();
        }
        if call.slot() == ContractSlot::KernelRun {
            return self.record_run(target, &call);
        }
        // SAFETY: the caller passed the words to this slot.
        let mut parts = unsafe { capture_sources(&call, self.level) };
        let name = call.description().name;
        if name.contains("deallocate") || name.ends_with("_destroy") {
            // Another thread may get the same handle as soon as it is free, so this frame has to come first.
            self.write_call(target, &call, false, parts);
            return call.forward();
        }
        let failure = call.forward();
        if !failure.is_some() {
            // SAFETY: as above, and the call has succeeded.
            unsafe { capture_results(&call, self.level, &mut parts) };
            self.note_device(target, &call);
            self.note_written(&call, &parts);
        }
        self.write_call(target, &call, failure.is_some(), parts);
        failure
    }

    fn finish_work(&self, tell: &dyn Fn(LogLevel, &str)) {
        match self.lock_recording().file.finish_recording() {
            Ok(message) => tell(LogLevel::INFO, &message),
            Err(message) => tell(LogLevel::WARNING, &message),
        }
    }
}

impl RecordWork {
    fn lock_recording(&self) -> MutexGuard<'_, Recording> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_run(&self, target: &RecordTarget, call: &LayerCall<'_>) -> abi::Error {
        let address = call.words()[1];
        let mut recorded = {
            let mut recording = self.lock_recording();
            let mut known = std::mem::take(&mut recording.known);
            let is_readable = |device| recording.is_readable(target, device);
            // SAFETY: the caller passed the address of a call, and the devices said whether their blocks are addresses.
            let recorded = unsafe { capture_kernel_call(address, self.level, &mut known, is_readable) };
            recording.known = known;
            recorded
        };
        let failure = call.forward();
        if !failure.is_some() {
            let mut recording = self.lock_recording();
            let mut known = std::mem::take(&mut recording.known);
            let is_readable = |device| recording.is_readable(target, device);
            // SAFETY: as above; the caller keeps the call until this returns.
            unsafe { capture_kernel_outputs(address, &mut recorded, self.level, &mut known, is_readable) };
            recording.known = known;
        }
        self.write_call(target, call, failure.is_some(), vec![RecordedPart::Kernel(recorded)]);
        failure
    }

    fn write_call(
        &self,
        target: &RecordTarget,
        call: &LayerCall<'_>,
        failed: bool,
        parts: Vec<RecordedPart>,
    ) {
        let mut recording = self.lock_recording();
        let slot = recording.slot_number(call);
        let words = call.words().to_vec();
        let call =
            RecordedCall { target: target.number, slot, thread: thread_number(), failed, words, parts };
        recording.file.add_frame(&RecordingFrame::Call(call));
    }

    /// A copy from the host explains what is in memory from then on.
    fn note_written(&self, call: &LayerCall<'_>, parts: &[RecordedPart]) {
        let word = |name: &str| call.description().parameter_position(name).map(|at| call.words()[at]);
        let contents = parts.iter().find_map(|part| match part {
            RecordedPart::Contents { contents, .. } => Some(contents),
            _ => None,
        });
        let (Some(target), Some(offset), Some(contents)) = (word("target"), word("target_offset"), contents)
        else {
            return;
        };
        if let (ContractSlot::CoreMemoryCopyH2d, Some(hash)) = (call.slot(), contents.hash) {
            self.lock_recording().known.note_hash(target.wrapping_add(offset), contents.size, hash);
        }
    }

    /// Notes whether the blocks of a device are addresses, once the device says so.
    fn note_device(&self, target: &RecordTarget, call: &LayerCall<'_>) {
        if call.slot() != ContractSlot::CoreDeviceInfo {
            return;
        }
        let Some(at) = call.description().parameter_position("info") else { return };
        // SAFETY: the caller passed the address of the struct, which the plugin has filled.
        let info = unsafe {
            copy_sized(word_const_pointer::<abi::DeviceInfo>(call.words()[at]), abi::DeviceInfo::EMPTY)
        };
        if let Some(device) = call.device().filter(|_| info.bits.contains(abi::DeviceFlags::HOST_ADDRESSABLE))
        {
            self.lock_recording().addressable.insert((target.plugin.clone(), device));
        }
    }
}

/// A small number for the calling thread; thread ids of the system are large and get reused.
fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local!(static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}
