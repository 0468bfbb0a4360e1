//! What the child said of its plugin, as the answer that a plugin gives to a query.

#![expect(unsafe_code, reason = "contexts and lists of the answer are pointers")]

use std::ffi::c_void;
use std::sync::atomic::AtomicPtr;

use oarlock_abi as abi;

use super::connection::ChildConnection;
use super::generated::{proxied_async, proxied_core, proxied_kernel};
use super::kernel_proxy::KernelProxy;
use crate::wire::WireBreach;
use crate::wire::bump_storage::BumpStorage;
use crate::wire::byte_reader::ByteReader;
use crate::wire::descriptions::{decode_kernel, decode_plugin};
use crate::wire::stored_reader::{MessageSurroundings, StoredReader};

/// Limit on the kernels of one plugin, as in the host.
const MAX_KERNELS: u32 = 1 << 16;

/// The answer, and everything that it points to.
#[derive(Debug)]
#[expect(clippy::vec_box, reason = "the host holds the addresses of what is in the boxes")]
pub(crate) struct ProxyDescription {
    plugin: abi::Plugin,
    /// Kernels that run on another device, whose memory the child cannot reach.
    foreign_kernels: usize,
    _core: Option<Box<abi::CoreTable>>,
    _async: Option<Box<abi::AsyncTable>>,
    _kernels: Box<abi::KernelTable>,
    _pointers: Vec<*const abi::Kernel>,
    _records: Vec<Box<KernelRecord>>,
    _texts: BumpStorage,
}

// SAFETY: nothing of it changes, and the functions may be called on any thread (rule T-1).
unsafe impl Send for ProxyDescription {}
// SAFETY: as above; the storage is not written to anymore.
unsafe impl Sync for ProxyDescription {}

/// A kernel with the context of its proxies.
#[derive(Debug)]
struct KernelRecord {
    proxy: KernelProxy,
    kernel: abi::Kernel,
}

impl ProxyDescription {
    /// Reads a description. The contexts are the address of the connection, which outlives the result.
    pub(crate) fn read_description(
        bytes: &[u8],
        connection: *const ChildConnection,
    ) -> Result<Self, WireBreach> {
        let texts = BumpStorage::default();
        let no_range = |_, _| Err(WireBreach::new("a description without elements", "some"));
        let call = AtomicPtr::default();
        let around = MessageSurroundings {
            find_range: &no_range,
            host_call: std::ptr::null_mut(),
            keeps_elements: true,
            call: &call,
        };
        let mut reader = StoredReader::new(ByteReader::new(bytes), &texts, around);
        let mut plugin = decode_plugin(&mut reader)?;
        let (has_core, core_slots) = (reader.take_u8()? != 0, reader.take_u64()?);
        let (has_async, async_slots) = (reader.take_u8()? != 0, reader.take_u64()?);
        let count = reader.take_u32()?;
        if count > MAX_KERNELS {
            return Err(WireBreach::new(format!("at most {MAX_KERNELS} kernels"), count.to_string()));
        }
        // SAFETY: the texts are in the storage.
        let own_type = unsafe { plugin.device_type.bytes() };
        let (mut records, mut foreign_kernels) = (Vec::new(), 0);
        for index in 0..count {
            let described = decode_kernel(&mut reader)?;
            let filled = reader.take_u64()?;
            // SAFETY: as above.
            let device_type = unsafe { described.device_type.bytes() };
            if !described.device_type.is_empty() && device_type != own_type {
                foreign_kernels += 1;
            } else if adapt_operands(&described) {
                records.push(new_record(&described, filled, connection, index));
            }
        }
        let core = has_core.then(|| Box::new(proxied_core(core_slots)));
        let asynchronous = has_async.then(|| Box::new(proxied_async(async_slots)));
        let pointers: Vec<*const abi::Kernel> =
            records.iter().map(|record| &raw const record.kernel).collect();
        let kernels = Box::new(abi::KernelTable {
            kernels: pointers.as_ptr(),
            kernels_count: pointers.len() as u64,
            ..abi::KernelTable::EMPTY
        });
        // Its code is in a process that can always be ended, and each host has one of its own.
        plugin.offers.0 |= abi::PluginFlags::UNLOADABLE.0 | abi::PluginFlags::SEVERAL_HOSTS.0;
        plugin.unload = Some(unload_proxies);
        plugin.context = connection.cast_mut().cast();
        plugin.core = core.as_deref().map_or(std::ptr::null(), |table| table);
        plugin.r#async = asynchronous.as_deref().map_or(std::ptr::null(), |table| table);
        plugin.kernels = if pointers.is_empty() { std::ptr::null() } else { &raw const *kernels };
        Ok(Self {
            plugin,
            foreign_kernels,
            _core: core,
            _async: asynchronous,
            _kernels: kernels,
            _pointers: pointers,
            _records: records,
            _texts: texts,
        })
    }

    pub(crate) fn plugin(&self) -> &abi::Plugin {
        &self.plugin
    }

    pub(crate) fn foreign_kernels(&self) -> usize {
        self.foreign_kernels
    }
}

/// The child is shut down when the proxies are dropped.
unsafe extern "C" fn unload_proxies(_context: *mut c_void) -> abi::Error {
    abi::Error::NONE
}

fn new_record(
    described: &abi::Kernel,
    filled: u64,
    connection: *const ChildConnection,
    index: u32,
) -> Box<KernelRecord> {
    let is_asynchronous = described.bits.contains(abi::KernelFlags::ASYNCHRONOUS);
    // SAFETY: the connection outlives the description.
    let proxy = unsafe { KernelProxy::new(connection, index, is_asynchronous) };
    let mut record = Box::new(KernelRecord { proxy, kernel: proxied_kernel(filled, described) });
    record.kernel.context = (&raw const record.proxy).cast_mut().cast();
    record
}

/// Adapts the operands, which were just stored: texts cannot cross, and constants are in memory when they do. False if an operand
/// accepts nothing else.
fn adapt_operands(kernel: &abi::Kernel) -> bool {
    const TEXT: u64 = 1 << abi::Dtype::STRING.0;
    let mut is_usable = true;
    for (first, count) in [(kernel.inputs, kernel.inputs_count), (kernel.outputs, kernel.outputs_count)] {
        for index in 0..count as usize {
            // SAFETY: the list was stored with the kernel, and nobody else refers to it.
            let operand = unsafe { &mut *first.add(index).read().cast_mut() };
            let had_text = operand.dtypes.0 & TEXT != 0;
            operand.dtypes.0 &= !TEXT;
            operand.bits.0 &= !abi::OperandFlags::ON_DEMAND.0;
            is_usable &= !had_text || operand.dtypes.0 != 0;
        }
    }
    is_usable
}
