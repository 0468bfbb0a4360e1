//! A layer around a device, called as a host would call it.

use std::ffi::c_void;
use std::sync::PoisonError;

use oarlock_sdk::abi;

use crate::bad_device::{ASYNC_TABLE, BadDevice, CORE_TABLE, DeviceMistake, kernel_record};
use crate::test_host::{SERVICES, TestHost};

/// A table as the layer wrapped it.
pub(crate) struct WrappedPart<T> {
    pub(crate) context: *mut c_void,
    pub(crate) table: T,
    address: *mut c_void,
}

pub(crate) struct LayerRig {
    pub(crate) host: Box<TestHost>,
    pub(crate) device: Box<BadDevice>,
    plugin: abi::Plugin,
    _tables: Box<(abi::CoreTable, abi::AsyncTable)>,
    pub(crate) core: WrappedPart<abi::CoreTable>,
    pub(crate) streams: WrappedPart<abi::AsyncTable>,
    pub(crate) kernels: Vec<abi::Kernel>,
    kernel_table: WrappedPart<abi::KernelTable>,
    _records: Box<[abi::Kernel; 2]>,
    _pointers: Box<[*const abi::Kernel; 2]>,
}

/// Memory that only the device can address.
pub(crate) const FAR: abi::DeviceFlags = abi::DeviceFlags(0);
/// Memory that the host can address too.
pub(crate) const NEAR: abi::DeviceFlags = abi::DeviceFlags::HOST_ADDRESSABLE;

impl LayerRig {
    pub(crate) fn new(mistake: DeviceMistake, bits: abi::DeviceFlags, options: &[(&str, &str)]) -> Self {
        Self::with_device(mistake, bits, options, |_| {})
    }

    pub(crate) fn with_device(
        mistake: DeviceMistake,
        bits: abi::DeviceFlags,
        options: &[(&str, &str)],
        change: impl FnOnce(&mut BadDevice),
    ) -> Self {
        let mut host = Box::new(TestHost::default());
        host.options = options.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let mut device = Box::new(BadDevice::new(mistake, &raw const *host, bits));
        change(&mut device);
        let context = (&raw const *device).cast_mut().cast::<c_void>();
        let asking = abi::Host {
            contract_major: abi::CONTRACT_MAJOR,
            contract_minor: abi::CONTRACT_MINOR,
            sanitizer: abi::SANITIZER,
            context: (&raw const *host).cast_mut().cast(),
            services: &raw const SERVICES,
            ..abi::Host::EMPTY
        };
        let mut plugin = abi::Plugin::EMPTY;
        // SAFETY: both structs are whole, and the services outlive the plugin.
        let failure = unsafe { (oarlock_plugin_validate::QUERY)(&raw const asking, &raw mut plugin) };
        assert!(!failure.is_some(), "{:?}", host.error_message(failure));
        let tables = Box::new((CORE_TABLE, ASYNC_TABLE));
        let records = Box::new([kernel_record(context), kernel_record(context)]);
        let pointers = Box::new([&raw const records[0], &raw const records[1]]);
        let kernels =
            abi::KernelTable { kernels: pointers.as_ptr(), kernels_count: 2, ..abi::KernelTable::EMPTY };
        // SAFETY: the tables are of these kinds, and outlive the wrappers.
        let (core, streams, kernel_table) = unsafe {
            (
                wrap_part(&plugin, abi::TableKind::CORE, context, &tables.0),
                wrap_part(&plugin, abi::TableKind::ASYNC, context, &tables.1),
                wrap_part(&plugin, abi::TableKind::KERNEL, context, &kernels),
            )
        };
        // SAFETY: the wrapped table has as many kernels as it says.
        let kernels = (0..2).map(|index| unsafe { **kernel_table.table.kernels.add(index) }).collect();
        Self {
            host,
            device,
            plugin,
            _tables: tables,
            core,
            streams,
            kernels,
            kernel_table,
            _records: records,
            _pointers: pointers,
        }
    }

    /// A rig whose devices are initialized and described.
    pub(crate) fn started(mistake: DeviceMistake, bits: abi::DeviceFlags) -> Self {
        let rig = Self::new(mistake, bits, &[]);
        rig.start();
        rig
    }

    pub(crate) fn start(&self) {
        let (core, context) = (&self.core.table, self.core.context);
        // SAFETY: the layer's functions get what the contract says.
        unsafe {
            self.expect_success(core.initialize.expect("a slot")(context));
            for device in 0..2 {
                let mut info = abi::DeviceInfo::EMPTY;
                self.expect_success(core.device_info.expect("a slot")(context, device, &raw mut info));
            }
        }
    }

    pub(crate) fn expect_success(&self, error: abi::Error) {
        assert!(!error.is_some(), "{:?}", self.host.error_message(error));
    }

    pub(crate) fn allocate(&self, device: u32, size: u64) -> u64 {
        let mut block = abi::Memory(0);
        let slot = self.core.table.memory_allocate.expect("a slot");
        // SAFETY: the layer's function gets what the contract says.
        self.expect_success(unsafe { slot(self.core.context, device, size, &raw mut block) });
        block.0
    }

    pub(crate) fn free(&self, device: u32, block: u64, size: u64) -> abi::Error {
        let slot = self.core.table.memory_deallocate.expect("a slot");
        // SAFETY: the layer checks the handle before the device, which does not follow it.
        unsafe { slot(self.core.context, device, abi::Memory(block), size) }
    }

    /// Copies from the host, from an address that the device does not follow.
    pub(crate) fn write(&self, device: u32, block: u64, offset: u64, size: u64) -> abi::Error {
        let slot = self.core.table.memory_copy_h2d.expect("a slot");
        let source = std::ptr::without_provenance(0x5000);
        // SAFETY: as for `free`.
        unsafe { slot(self.core.context, device, abi::Memory(block), offset, source, size) }
    }

    /// Copies to the host, to an address that the device does not follow.
    pub(crate) fn read(&self, device: u32, block: u64, offset: u64, size: u64) -> abi::Error {
        let slot = self.core.table.memory_copy_d2h.expect("a slot");
        let target = std::ptr::without_provenance_mut(0x9000);
        // SAFETY: as for `free`.
        unsafe { slot(self.core.context, device, target, size, abi::Memory(block), offset) }
    }

    pub(crate) fn stream(&self, device: u32) -> u64 {
        let mut queue = abi::Stream(0);
        let slot = self.streams.table.stream_create.expect("a slot");
        // SAFETY: the layer's function gets what the contract says.
        self.expect_success(unsafe { slot(self.streams.context, device, 0, &raw mut queue) });
        queue.0
    }

    pub(crate) fn event(&self, device: u32) -> u64 {
        let mut point = abi::Event(0);
        let slot = self.streams.table.event_create.expect("a slot");
        // SAFETY: the layer's function gets what the contract says.
        self.expect_success(unsafe { slot(self.streams.context, device, &raw mut point) });
        point.0
    }

    /// Unwraps everything, and returns what was logged: breaches, then the summary.
    pub(crate) fn finish(self) -> Vec<String> {
        // SAFETY: the layer's table gets back what it handed out, once.
        unsafe {
            let unwrap = (*self.plugin.layer).unwrap.expect("a slot");
            let context = self.plugin.context;
            for (kind, part) in [
                (abi::TableKind::KERNEL, (self.kernel_table.context, self.kernel_table.address)),
                (abi::TableKind::ASYNC, (self.streams.context, self.streams.address)),
                (abi::TableKind::CORE, (self.core.context, self.core.address)),
            ] {
                let failure = unwrap(context, kind, part.0, part.1);
                assert!(!failure.is_some(), "{:?}", self.host.error_message(failure));
            }
        }
        std::mem::take(&mut *self.host.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Fails unless exactly one breach of this rule was logged, with this text.
    pub(crate) fn expect_breach(self, rule: &str, text: &str) {
        let messages = self.finish();
        let (summary, breaches) = messages.split_last().expect("a summary");
        let [breach] = breaches else { panic!("expected one breach, found {messages:#?}") };
        assert!(breach.ends_with(&format!("(rule {rule})")), "expected rule {rule}, found {breach}");
        assert!(breach.contains(text), "expected `{text}`, found {breach}");
        assert!(summary.starts_with("1 breach in "), "{summary}");
    }

    pub(crate) fn expect_none(self) {
        let messages = self.finish();
        assert!(matches!(&messages[..], [summary] if summary.starts_with("0 breaches in ")), "{messages:#?}");
    }
}

/// # Safety
///
/// `table` is of this kind and outlives the wrapper.
unsafe fn wrap_part<T: Copy>(
    plugin: &abi::Plugin,
    kind: abi::TableKind,
    context: *mut c_void,
    table: &T,
) -> WrappedPart<T> {
    let (mut wrapped_context, mut address) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the layer's table is its own, and the caller vouches for the table to wrap.
    unsafe {
        let wrap = (*plugin.layer).wrap.expect("a slot");
        let name = abi::Str::new("acme");
        let next = (&raw const *table).cast_mut().cast();
        let failure =
            wrap(plugin.context, kind, name, context, next, &raw mut wrapped_context, &raw mut address);
        assert!(!failure.is_some());
        WrappedPart { context: wrapped_context, table: *address.cast::<T>(), address }
    }
}
