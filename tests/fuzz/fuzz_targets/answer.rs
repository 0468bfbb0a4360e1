//! The answer of a plugin to the host's query: valid pointers to arbitrary versions, sizes, names and tables.
#![no_main]

use std::any::Any;
use std::cell::RefCell;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use oarlock_abi as abi;
use oarlock_host::{BuiltInPlugin, Host, HostConfig, HostEnvironment, HostOptions, ProcessIdentity};

thread_local! {
    static BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Storage for everything that the current answer points to.
    static ANSWER: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a part of the answer until the next run; returns its address.
fn keep<T: 'static>(part: T) -> *const T {
    let part = Box::new(part);
    let address = &raw const *part;
    ANSWER.with_borrow_mut(|answer| answer.push(part));
    address
}

/// A table with extra room after it, for answers that claim to be longer than they are.
#[repr(C)]
struct PaddedTable<T> {
    table: T,
    tail: [u8; 256],
}

unsafe extern "C" fn count(_: *mut std::ffi::c_void, count: *mut u32) -> abi::Error {
    // SAFETY: the host passes a location to be written.
    unsafe { count.write(0) };
    abi::Error::NONE
}

unsafe extern "C" fn query(_: *const abi::Host, plugin: *mut abi::Plugin) -> abi::Error {
    BYTES.with_borrow_mut(|bytes| {
        let mut next = |choices: u64| u64::from(bytes.pop().unwrap_or_default()) % choices;
        // SAFETY: the host passes a struct for this function to fill.
        let plugin = unsafe { &mut *plugin };
        plugin.contract_major = 1 - u32::from(next(8) == 1) + u32::from(next(8) == 2);
        plugin.contract_minor = next(3) as u32;
        plugin.contract_minor_oldest = next(3) as u32;
        plugin.sanitizer = abi::Sanitizer(if next(16) == 1 { 2 } else { abi::SANITIZER.0 });
        plugin.offers = abi::PluginFlags(next(8));
        let core = abi::CoreTable {
            size: (abi::CoreTable::EMPTY.size + next(64) as u32).saturating_sub(next(4) as u32 * 8),
            flags: abi::HeaderFlags(next(2) as u32),
            device_count: Some(count),
            ..abi::CoreTable::EMPTY
        };
        let mut roomy = PaddedTable { table: core, tail: [0; 256] };
        roomy.tail[next(256) as usize] = next(2) as u8;
        plugin.core = if next(4) == 1 { std::ptr::null() } else { keep(roomy).cast() };
        let mut text = || {
            let size = usize::from(bytes.pop().unwrap_or_default()) % 80;
            let at = bytes.len().saturating_sub(size);
            let text = bytes.split_off(at);
            let (data, size) = (text.as_ptr(), text.len() as u64);
            keep(text);
            abi::Str { data, size }
        };
        (plugin.name, plugin.version, plugin.device_type) = (text(), text(), text());
        abi::Error(0)
    })
}

fuzz_target!(|bytes: &[u8]| {
    static OPTIONS: OnceLock<HostOptions> = OnceLock::new();
    let options = OPTIONS.get_or_init(|| {
        let environment = HostEnvironment::new(|_| None, false, ProcessIdentity::of_process());
        let mut options = HostOptions::new("fuzz 1.0", HostConfig::default(), environment);
        options.built_in = vec![BuiltInPlugin { name: "fuzzed", query }];
        options
    });
    BYTES.set(bytes.to_vec());
    ANSWER.take();
    let host = Host::start(options).expect("an empty configuration can be followed");
    assert!(!host.report().plugins.is_empty(), "every plugin is in the report");
});
