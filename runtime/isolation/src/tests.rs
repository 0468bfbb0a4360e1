//! Both sides together: what one writes, the other reads.

#![expect(unsafe_code, reason = "structs of the contract are made of pointers")]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::AtomicPtr;

use oarlock_abi as abi;

use crate::proxy::arguments::encode_call;
use crate::proxy::child_life::ChildLife;
use crate::proxy::connection::ChildConnection;
use crate::proxy::crossed_memory::CrossedMemory;
use crate::proxy::description::ProxyDescription;
use crate::proxy::request_writer::{ElementPolicy, OperandRole, RequestWriter};
use crate::serve::arguments::decode_call;
use crate::serve::describe_plugin;
use crate::shared::region::SharedRegion;
use crate::wire::bump_storage::BumpStorage;
use crate::wire::byte_reader::ByteReader;
use crate::wire::byte_writer::ByteWriter;
use crate::wire::stored_reader::{MessageSurroundings, StoredReader};
use crate::{HostFunctions, KeptConstants, ServedPlugin, WireBreach};

unsafe extern "C" fn run_nothing(_: *mut c_void, _: *mut c_void, _: *const abi::Call) -> abi::Error {
    abi::Error::NONE
}

unsafe extern "C" fn count_no_device(_: *mut c_void, count: *mut u32) -> abi::Error {
    // SAFETY: the caller gives a place for the count.
    unsafe { count.write(0) };
    abi::Error::NONE
}

/// A plugin with kernels for these device types.
fn with_plugin<T>(device_types: &[&'static str], work: impl FnOnce(&ServedPlugin) -> T) -> T {
    let numbers = abi::DtypeSet::F32.0 | 1 << abi::Dtype::STRING.0;
    let operand = abi::Operand {
        name: abi::Str::new("A"),
        dtypes: abi::DtypeSet(numbers),
        rank_max: 4,
        bits: abi::OperandFlags::ON_DEMAND,
        ..abi::Operand::EMPTY
    };
    let operands = [&raw const operand];
    let pairs = [abi::InPlace { output: 0, input: 0 }];
    let kernel = |device_type: &&'static str| abi::Kernel {
        op: abi::Str::new("Add"),
        device_type: abi::Str::new(device_type),
        inputs: operands.as_ptr(),
        inputs_count: 1,
        outputs: operands.as_ptr(),
        outputs_count: 1,
        in_place: pairs.as_ptr(),
        in_place_count: 1,
        score: -3,
        run: Some(run_nothing),
        ..abi::Kernel::EMPTY
    };
    work(&ServedPlugin {
        plugin: abi::Plugin {
            name: abi::Str::new("acme"),
            device_type: abi::Str::new("npu"),
            contract_major: 1,
            ..abi::Plugin::EMPTY
        },
        context: ptr::null_mut(),
        core: Some(abi::CoreTable { device_count: Some(count_no_device), ..abi::CoreTable::EMPTY }),
        asynchronous: None,
        kernels: device_types.iter().map(kernel).collect(),
        kept: KeptConstants::default(),
    })
}

fn describe(device_types: &[&'static str]) -> Vec<u8> {
    // SAFETY: the plugin is as the contract describes it.
    with_plugin(device_types, |plugin| unsafe { describe_plugin(plugin) })
}

fn read_description(bytes: &[u8]) -> Result<ProxyDescription, WireBreach> {
    // The address stands for a connection, and nothing is called.
    ProxyDescription::read_description(bytes, ptr::dangling())
}

#[test]
fn a_description_has_the_slots_that_are_filled_and_the_kernels_of_the_own_device() {
    let description = read_description(&describe(&["", "npu", "cpu"])).expect("a sound description");
    let plugin = description.plugin();
    // SAFETY: what the description points to lives as long as it.
    let (name, core, table) = unsafe { (plugin.name.text(), &*plugin.core, &*plugin.kernels) };
    assert_eq!((name, plugin.contract_major, description.foreign_kernels()), (Some("acme"), 1, 1));
    assert!(core.device_count.is_some() && core.memory_allocate.is_none() && plugin.r#async.is_null());
    assert!(core.host_memory_allocate.is_some() && core.host_memory_deallocate.is_some(), "shared memory");
    assert_eq!(table.kernels_count, 2);
    // SAFETY: as above.
    let kernel = unsafe { &**table.kernels };
    // SAFETY: as above.
    let (input, pair) = unsafe { (&**kernel.inputs, *kernel.in_place) };
    assert_eq!((kernel.score, kernel.in_place_count, pair.output), (-3, 1, 0));
    assert!(kernel.run.is_some() && kernel.supports.is_none());
    assert_eq!(input.dtypes.0, abi::DtypeSet::F32.0, "texts do not cross");
    assert_eq!(input.bits.0, 0, "constants are in memory");
}

#[test]
fn a_description_with_any_byte_changed_or_the_end_missing_is_read_or_refused() {
    let sound = describe(&["npu"]);
    for at in 0..sound.len() {
        assert!(read_description(&sound[..at]).is_err(), "{at}");
        for value in [0, 1, 0x7f, 0xff] {
            let mut changed = sound.clone();
            changed[at] = value;
            _ = read_description(&changed);
        }
    }
}

/// A connection without a child.
fn lone_connection() -> ChildConnection {
    let table = abi::HostTable::EMPTY;
    let host = abi::Host { services: &raw const table, ..abi::Host::EMPTY };
    // SAFETY: the table is copied, and it has no functions.
    let host = unsafe { HostFunctions::from_host(&host) };
    let region = SharedRegion::create_region(1 << 20).expect("shared memory");
    let life = ChildLife::new("acme".to_owned(), std::process::id()).expect("this process");
    ChildConnection::new(region, life, host, None)
}

fn tensor_of(values: &[f32], dims: &[i64], place: abi::MemoryKind) -> abi::Tensor {
    abi::Tensor {
        block: abi::Memory(values.as_ptr() as u64),
        size_in_bytes: size_of_val(values) as u64,
        dtype: abi::Dtype::F32,
        place,
        dims: dims.as_ptr(),
        dims_count: dims.len() as u64,
        ..abi::Tensor::EMPTY
    }
}

/// What the child sees of a tensor's elements.
fn elements_of(tensor: *const abi::Tensor) -> Vec<f32> {
    // SAFETY: the tensor was read into a storage that lives, and its elements are there or in the shared memory.
    unsafe {
        let tensor = &*tensor;
        let first = (tensor.block.0 + tensor.offset) as *const f32;
        std::slice::from_raw_parts(first, tensor.size_in_bytes as usize / 4).to_vec()
    }
}

#[test]
fn a_call_arrives_with_its_elements_attributes_and_graphs() {
    let connection = lone_connection();
    let (short, long) = ([1.5_f32, 2.5], vec![0.5_f32; 1000]);
    let (short_dims, long_dims) = ([2_i64], [10_i64, 100]);
    let inputs = [
        tensor_of(&short, &short_dims, abi::MemoryKind::HOST),
        tensor_of(&long, &long_dims, abi::MemoryKind::HOST),
    ];
    let far = abi::Tensor {
        block: abi::Memory(77),
        offset: 8,
        ..tensor_of(&short, &short_dims, abi::MemoryKind::DEVICE)
    };
    let inputs = [&raw const inputs[0], &raw const inputs[1], &raw const far];
    let mut written = [0.0_f32; 2];
    let output = abi::Tensor {
        block: abi::Memory(written.as_mut_ptr() as u64),
        ..tensor_of(&[0.0; 2], &short_dims, abi::MemoryKind::HOST)
    };
    let outputs = [&raw const output];
    let (floats, names) = ([0.25_f64, -1.0], [abi::Str::new("x"), abi::Str::new("")]);
    let node = abi::GraphNode { op: abi::Str::new("Relu"), ..abi::GraphNode::EMPTY };
    let value = abi::GraphValue { name: abi::Str::new("v"), constant: inputs[0], ..abi::GraphValue::EMPTY };
    let (nodes, values) = ([&raw const node], [&raw const value]);
    let graph = abi::Graph {
        nodes: nodes.as_ptr(),
        nodes_count: 1,
        values: values.as_ptr(),
        values_count: 1,
        ..abi::Graph::EMPTY
    };
    let graphs = [&raw const graph];
    let attribute = abi::Attribute {
        name: abi::Str::new("body"),
        floats: floats.as_ptr(),
        floats_count: 2,
        strings: names.as_ptr(),
        strings_count: 2,
        graphs: graphs.as_ptr(),
        graphs_count: 1,
        ..abi::Attribute::EMPTY
    };
    let attributes = [&raw const attribute];
    let call = abi::Call {
        device: 3,
        queue: abi::Stream(9),
        inputs: inputs.as_ptr(),
        inputs_count: 3,
        outputs: outputs.as_ptr(),
        outputs_count: 1,
        attributes: attributes.as_ptr(),
        attributes_count: 1,
        random_seed: 5,
        ..abi::Call::EMPTY
    };

    let (mut bytes, mut crossed) = (Vec::new(), CrossedMemory::new(connection.arena()));
    let writer = ByteWriter::new(&mut bytes);
    let mut request = RequestWriter::new(writer, &mut crossed, ElementPolicy::All, OperandRole::Attribute);
    // SAFETY: the call is as the contract describes it.
    unsafe { encode_call(&mut request, &raw const call) }.expect("a call that crosses");

    let (storage, place) = (BumpStorage::default(), AtomicPtr::default());
    let find_range = |offset, size| connection.region().range_address(offset, size);
    let around = MessageSurroundings {
        find_range: &find_range,
        host_call: ptr::without_provenance_mut(1),
        keeps_elements: false,
        call: &place,
    };
    let arrived =
        decode_call(&mut StoredReader::new(ByteReader::new(&bytes), &storage, around)).expect("a whole call");
    assert_eq!((arrived.device, arrived.queue.0, arrived.random_seed, arrived.inputs_count), (3, 9, 5, 3));
    assert_eq!(arrived.host_call as usize, 1);
    // SAFETY: the lists were read into the storage, here and below.
    let tensors = unsafe { std::slice::from_raw_parts(arrived.inputs, 3) };
    assert_eq!((elements_of(tensors[0]), elements_of(tensors[1])), (short.to_vec(), long));
    // SAFETY: as above.
    let far = unsafe { &*tensors[2] };
    assert_eq!((far.block.0, far.offset), (77, 8), "memory of the device is known by its handle");
    // SAFETY: as above.
    unsafe {
        let attribute = &**arrived.attributes;
        assert_eq!(attribute.name.text(), Some("body"));
        assert_eq!(std::slice::from_raw_parts(attribute.floats, 2), floats);
        assert_eq!((*attribute.strings.add(1)).text(), Some(""));
        let graph = &**attribute.graphs;
        assert_eq!((**graph.nodes).op.text(), Some("Relu"));
        assert_eq!(elements_of((**graph.values).constant), short);
        let output = &**arrived.outputs;
        (output.block.0 as *mut f32).write(8.5);
    }
    assert_eq!(written, [0.0; 2], "the plugin writes to the shared memory");
    crossed.copy_outputs().expect("the pieces are there");
    assert_eq!(written, [8.5, 0.0]);
    for end in 0..bytes.len() {
        let storage = BumpStorage::default();
        let short = ByteReader::new(&bytes[..end]);
        assert!(decode_call(&mut StoredReader::new(short, &storage, around)).is_err(), "{end}");
    }
}

#[test]
fn texts_of_this_process_do_not_cross() {
    let connection = lone_connection();
    let text = abi::Tensor { dtype: abi::Dtype::STRING, ..tensor_of(&[0.0; 4], &[1], abi::MemoryKind::HOST) };
    let inputs = [&raw const text];
    let call = abi::Call { inputs: inputs.as_ptr(), inputs_count: 1, ..abi::Call::EMPTY };
    let (mut bytes, mut crossed) = (Vec::new(), CrossedMemory::new(connection.arena()));
    let writer = ByteWriter::new(&mut bytes);
    let mut request = RequestWriter::new(writer, &mut crossed, ElementPolicy::All, OperandRole::Attribute);
    // SAFETY: the call is as the contract describes it.
    let refused = unsafe { encode_call(&mut request, &raw const call) };
    assert!(refused.expect_err("a text").expected.contains("tensor of numbers"));
}
