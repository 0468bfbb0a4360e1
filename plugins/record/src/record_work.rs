//! The work of the layer: each call is forwarded and written down.

#![expect(unsafe_code, reason = "calls are read through the addresses in their words")]

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_layer::{
    ContractSlot, LayerCall, LayerHost, LayerTarget, LayerWork, TargetTable, word_const_pointer,
};
use oarlock_sdk::{LogLevel, PluginError, Result, abi, copy_sized};
use rustc_hash::FxHashMap;

use crate::call_capture::{
    ContentLevel, KnownContents, capture_results, capture_sources, encode_kernel_call, encode_kernel_outputs,
};
use crate::recording_file::RecordingFile;
use crate::recording_frames::{RecordedCall, RecordedPart, RecordedSlot, RecordedTarget, RecordingFrame};

/// Where the recording goes if the configuration does not say.
const DEFAULT_FILE: &str = "oarlock-record.bin";
const DEFAULT_LIMIT: u64 = 1 << 30;

pub(crate) struct RecordWork {
    level: ContentLevel,
    /// True once nothing more is written.
    is_full: AtomicBool,
    recording: Mutex<Recording>,
}

struct Recording {
    file: RecordingFile,
    targets: u32,
    slots: FxHashMap<ContractSlot, u16>,
    known: KnownContents,
    /// Devices whose blocks the host can address.
    addressable: Vec<(Arc<str>, u32)>,
}

/// A table or kernel whose calls are recorded.
pub(crate) struct RecordTarget {
    number: u32,
    plugin: Arc<str>,
    /// True for a kernel that runs on the device of another plugin.
    runs_elsewhere: bool,
}

impl Recording {
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

/// Whether the blocks of a call's device are addresses. Of a kernel for another plugin's devices only the devices' type is known; it may
/// read what just one plugin's device of that number lets the host read.
fn is_readable(addressable: &[(Arc<str>, u32)], target: &RecordTarget, device: u32) -> bool {
    let mut numbered = addressable.iter().filter(|(_, known)| *known == device);
    if target.runs_elsewhere {
        return numbered.next().is_some() && numbered.next().is_none();
    }
    numbered.any(|(plugin, _)| *plugin == target.plugin)
}

thread_local! {
    /// Where a thread encodes the run that it is making.
    static RUN_PART: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
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
            slots: FxHashMap::default(),
            known: KnownContents::default(),
            addressable: Vec::new(),
        };
        Ok(Self { level, is_full: AtomicBool::new(false), recording: Mutex::new(recording) })
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
        if self.is_full.load(Ordering::Relaxed) {
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
        let mut part = RUN_PART.take();
        part.clear();
        {
            let mut recording = self.lock_recording();
            let Recording { known, addressable, .. } = &mut *recording;
            let is_readable = |device| is_readable(addressable, target, device);
            // SAFETY: the caller passed the address of a call, and the devices said whether their blocks are addresses.
            unsafe { encode_kernel_call(&mut part, address, self.level, known, is_readable) };
        }
        let failure = call.forward();
        let failed = failure.is_some();
        {
            let mut recording = self.lock_recording();
            let slot = recording.slot_number(call);
            let Recording { known, addressable, file, .. } = &mut *recording;
            let is_readable = |device| is_readable(addressable, target, device);
            // SAFETY: as above; the caller keeps the call until this returns.
            unsafe { encode_kernel_outputs(&mut part, address, failed, self.level, known, is_readable) };
            file.add_run((target.number, slot, thread_number(), failed), call.words(), &part);
            self.is_full.store(file.is_full(), Ordering::Relaxed);
        }
        RUN_PART.set(part);
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
        self.is_full.store(recording.file.is_full(), Ordering::Relaxed);
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
            let mut recording = self.lock_recording();
            let entry = (target.plugin.clone(), device);
            if !recording.addressable.contains(&entry) {
                recording.addressable.push(entry);
            }
        }
    }
}

/// A small number for the calling thread; thread ids of the system are large and get reused.
fn thread_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local!(static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}
