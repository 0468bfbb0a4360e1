//! Custom devices that a host has to refuse, or whose functions fail.

#![expect(unsafe_code, reason = "copies on streams rely on their callers")]

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use oarlock_host::{Host, LogLevel, LogSink, PluginDevice, PluginFailure, PluginOutcome, RefusalReason};

use crate::test_device::{DeviceDirectory, open_device, round_trip};

/// What is wrong with a custom device, and the reason and words of its refusal.
struct RefusedDevice {
    what: &'static str,
    macros: &'static [&'static str],
    reason: RefusalReason,
    words: &'static [&'static str],
}

const REFUSED: &[RefusedDevice] = &[
    RefusedDevice {
        what: "a table of an unknown release",
        macros: &["TABLE_SIZE=1000"],
        reason: RefusalReason::PluginError,
        words: &[
            "found one with a table of 1000 bytes",
            "912 bytes (PaddlePaddle 2.4 to 2.6), 920 bytes (PaddlePaddle 3.0)",
        ],
    },
    RefusedDevice {
        what: "a table of an unknown release, with a check of both sizes",
        macros: &["TABLE_SIZE=1000", "CHECKS_BOTH"],
        reason: RefusalReason::PluginError,
        words: &["found one that fills none of them"],
    },
    RefusedDevice {
        what: "no check of sizes",
        macros: &["CHECKS_NOTHING"],
        reason: RefusalReason::PluginError,
        words: &["expected a custom device that checks the size of its table"],
    },
    RefusedDevice {
        what: "a check of the struct alone",
        macros: &["CHECKS_STRUCT_ALONE"],
        reason: RefusalReason::PluginError,
        words: &["expected a custom device that checks the size of its table"],
    },
    RefusedDevice {
        what: "a write past the end of the table",
        macros: &["WRITES_PAST_END"],
        reason: RefusalReason::PluginError,
        words: &["fills the 912 bytes of its table, found one that writes 920"],
    },
    RefusedDevice {
        what: "no function to allocate",
        macros: &["OMITTED_WORD=MEMORY_ALLOCATE"],
        reason: RefusalReason::PluginError,
        words: &["found `test_npu` without `device_memory_allocate`"],
    },
    RefusedDevice {
        what: "another version of the interface",
        macros: &["MAJOR_VERSION=1"],
        reason: RefusalReason::PluginError,
        words: &["version 0.1 of the interface, found 1.1.1"],
    },
    RefusedDevice {
        what: "no device type",
        macros: &["DEVICE_TYPE=NULL"],
        reason: RefusalReason::PluginError,
        words: &["with a device type, found none"],
    },
    RefusedDevice {
        what: "a device type that nobody can type",
        macros: &["DEVICE_TYPE=\"a b\""],
        reason: RefusalReason::PluginError,
        words: &["found `a b`"],
    },
    RefusedDevice {
        what: "the device type of another",
        macros: &["DEVICE_TYPE=\"cpu\""],
        reason: RefusalReason::Duplicate,
        words: &["one plugin for the device type `cpu`"],
    },
    RefusedDevice {
        what: "a crash in its entry",
        macros: &["CRASHES"],
        reason: RefusalReason::ProbeCrashed,
        words: &["SIGSEGV"],
    },
    RefusedDevice {
        what: "an entry that ends the process",
        macros: &["EXITS"],
        reason: RefusalReason::ProbeCrashed,
        words: &["ended the process with status 0"],
    },
    RefusedDevice {
        what: "a list that is longer than its count",
        macros: &["LISTS_TOO_MANY"],
        reason: RefusalReason::PluginError,
        words: &["`get_device_list` to write 2 ids, as `get_device_count` said, found 3"],
    },
    RefusedDevice {
        what: "devices that cannot be initialized",
        macros: &["FAILING_WORD=INIT_DEVICE", "FAILING_STATUS=4"],
        reason: RefusalReason::PluginError,
        words: &["`init_device` of the custom device", "found status 4: an error inside the custom device"],
    },
];

/// The functions that can fail while a device is in use: their places in `custom_device.c`, and their names.
const FAILING: &[(&str, &str)] = &[
    ("CREATE_STREAM", "create_stream"),
    ("DESTROY_STREAM", "destroy_stream"),
    ("STREAM_ADD_CALLBACK", "stream_add_callback"),
    ("CREATE_EVENT", "create_event"),
    ("RECORD_EVENT", "record_event"),
    ("DESTROY_EVENT", "destroy_event"),
    ("SYNCHRONIZE_DEVICE", "synchronize_device"),
    ("SYNCHRONIZE_STREAM", "synchronize_stream"),
    ("SYNCHRONIZE_EVENT", "synchronize_event"),
    ("STREAM_WAIT_EVENT", "stream_wait_event"),
    ("MEMORY_ALLOCATE", "device_memory_allocate"),
    ("MEMORY_DEALLOCATE", "device_memory_deallocate"),
    ("MEMORY_SET", "device_memory_set"),
    ("HOST_ALLOCATE", "host_memory_allocate"),
    ("HOST_DEALLOCATE", "host_memory_deallocate"),
    ("COPY_H2D", "memory_copy_h2d"),
    ("COPY_D2H", "memory_copy_d2h"),
    ("COPY_D2D", "memory_copy_d2d"),
    ("COPY_P2P", "memory_copy_p2p"),
    ("ASYNC_H2D", "async_memory_copy_h2d"),
    ("ASYNC_D2H", "async_memory_copy_d2h"),
    ("ASYNC_D2D", "async_memory_copy_d2d"),
    ("ASYNC_P2P", "async_memory_copy_p2p"),
    ("MEMORY_STATS", "device_memory_stats"),
    ("MIN_CHUNK", "device_min_chunk_size"),
    ("MAX_ALLOC", "device_max_alloc_size"),
    ("CAPABILITY", "get_compute_capability"),
];

pub(crate) fn list_trials() -> Vec<Trial> {
    let refused = REFUSED.iter().map(|device| Trial::test(device.what, || device.expect_refusal()));
    let failing = FAILING.iter().map(|(word, function)| {
        Trial::test(format!("`{function}` fails"), move || report_failure(word, function))
    });
    refused
        .chain(failing)
        .chain([Trial::test("a host without the adapter", refuse_without_adapter)])
        .collect()
}

impl RefusedDevice {
    /// The device is refused for the reason, and a good one beside it works.
    fn expect_refusal(&self) -> Result<(), Failed> {
        let place = DeviceDirectory::with_device(&["DEVICE_TYPE=\"other\""])?;
        let file = place.compile_device("subject.so", self.macros)?;
        let host = place.start_host()?;
        round_trip(&host.device("other:1").ok_or("the good device is missing")?, 5)?;
        let report =
            host.report().plugins.iter().find(|report| report.file == file).ok_or("nothing is said")?;
        let PluginOutcome::Refused(refusal) = &report.outcome else { return Err("it loads".into()) };
        let text = refusal.to_string();
        if refusal.reason == self.reason && self.words.iter().all(|words| text.contains(words)) {
            return Ok(());
        }
        Err(format!("{:?}: {text}", refusal.reason).into())
    }
}

/// Keeps what the host logs: failures while something is given back have no caller to return to.
#[derive(Clone, Default)]
struct KeptMessages(Arc<Mutex<Vec<String>>>);

impl KeptMessages {
    fn note_error(&self, result: Result<(), PluginFailure>) {
        if let Err(failure) = result {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(failure.to_string());
        }
    }
}

impl LogSink for KeptMessages {
    fn log(&self, _plugin: &str, _level: LogLevel, message: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message.to_owned());
    }
}

/// Every call of a device whose function fails says so, with its name; the others work.
fn report_failure(word: &str, function: &str) -> Result<(), Failed> {
    let place = DeviceDirectory::with_device(&[&format!("FAILING_WORD={word}")])?;
    let messages = KeptMessages::default();
    let mut options = place.host_options()?;
    options.log = Arc::new(messages.clone());
    let host = Host::start(&options)?;
    let (device, other) = (open_device(&host, 0)?, open_device(&host, 1)?);
    messages.note_error(use_memory(&device, &other));
    messages.note_error(device.memory_stats().map(drop));
    messages.note_error(device.memory_sizes().map(drop));
    messages.note_error(device.compute_capability().map(drop));
    messages.note_error(device.synchronize());
    messages.note_error(device.allocate_pinned(64).map(drop));
    messages.note_error(use_streams(&device, &other, &messages));
    drop((device, other, host));
    let told = messages.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let expected = format!("expected `{function}` of the custom device to succeed on device ");
    let is_foreign = |text: &&String| !text.contains(&expected);
    match told.iter().find(is_foreign) {
        _ if told.is_empty() => Err("nothing fails".into()),
        Some(other) => Err(format!("this fails too: {other}").into()),
        None => Ok(()),
    }
}

fn use_memory(device: &PluginDevice, other: &PluginDevice) -> Result<(), PluginFailure> {
    let (mut block, mut near, mut far) = (device.allocate(64)?, device.allocate(64)?, other.allocate(64)?);
    block.write_bytes(0, &[7; 64])?;
    block.fill_bytes(8, 9, 8)?;
    near.copy_from(0, &block, 0, 64)?;
    far.copy_from(0, &near, 0, 64)?;
    far.read_bytes(0, &mut [0; 64])
}

fn use_streams(
    device: &PluginDevice,
    other: &PluginDevice,
    messages: &KeptMessages,
) -> Result<(), PluginFailure> {
    // Errors of memory were noted before.
    let (Ok(block), Ok(mut near), Ok(mut far)) =
        (device.allocate(64), device.allocate(64), other.allocate(64))
    else {
        return Ok(());
    };
    let (stream, event) = (device.create_stream(0)?, device.create_event()?);
    let mut bytes = [3; 64];
    // SAFETY: bytes and blocks outlive the synchronization of the stream, and nobody else uses them.
    let copies = unsafe {
        [
            block.span().write_on_stream(&stream, 0, &[7; 64]),
            near.copy_from_on_stream(&stream, 0, &block, 0, 64),
            far.copy_from_on_stream(&stream, 0, &block, 0, 64),
            near.span().read_on_stream(&stream, 0, &mut bytes),
        ]
    };
    copies.into_iter().for_each(|result| messages.note_error(result));
    messages.note_error(stream.record_event(&event));
    messages.note_error(stream.wait_for(&event));
    messages.note_error(event.has_happened().map(drop));
    messages.note_error(event.synchronize());
    messages.note_error(stream.is_done().map(drop));
    let (sender, receiver) = channel();
    messages.note_error(stream.add_callback(move |result| {
        let _ = sender.send(result);
    }));
    let synchronized = stream.synchronize();
    if let Ok(reached) = receiver.recv_timeout(Duration::from_secs(10)) {
        messages.note_error(reached);
    }
    synchronized
}

/// Without the adapter, the file is what it is: a plugin for another program.
fn refuse_without_adapter() -> Result<(), Failed> {
    let place = DeviceDirectory::with_device(&[])?;
    let mut options = place.host_options()?;
    options.adapters.clear();
    let host = Host::start(&options)?;
    let refusal = host.report().refusals().next().ok_or("it loads")?;
    let text = refusal.to_string();
    let is_named = text.contains("`InitPlugin`, the entry of a custom device of PaddlePaddle");
    if refusal.reason == RefusalReason::EntryMissing && is_named { Ok(()) } else { Err(text.into()) }
}
