//! Layers around a plugin that is linked into the program, and the tables without any.

#![expect(unsafe_code, reason = "the plugins here are written against the C contract")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oarlock_abi as abi;
use oarlock_host::{
    BuiltInPlugin, Host, HostConfig, HostEnvironment, HostOptions, PhaseObserver, PhaseStart, PluginPhase,
    ProcessIdentity,
};

const NO_ERROR: abi::Error = abi::Error::NONE;

unsafe extern "C" fn device_synchronize(_context: *mut c_void, _device: u32) -> abi::Error {
    NO_ERROR
}
unsafe extern "C" fn device_count(_context: *mut c_void, count: *mut u32) -> abi::Error {
    // SAFETY: the host gives a place for the count.
    unsafe { count.write(1) };
    NO_ERROR
}
unsafe extern "C" fn device_list(
    _context: *mut c_void,
    ids: *mut u32,
    room: u64,
    count: *mut u64,
) -> abi::Error {
    assert_eq!(room, 1);
    // SAFETY: the host gives room for one id, and a place for the count.
    unsafe {
        ids.write(0);
        count.write(1);
    }
    NO_ERROR
}
unsafe extern "C" fn compute_capability(_: *mut c_void, _: u32, _: *mut abi::Version) -> abi::Error {
    NO_ERROR
}
unsafe extern "C" fn read_version(_: *mut c_void, _: *mut abi::Version) -> abi::Error {
    NO_ERROR
}
unsafe extern "C" fn memory_allocate(_: *mut c_void, _: u32, _: u64, _: *mut abi::Memory) -> abi::Error {
    NO_ERROR
}
unsafe extern "C" fn memory_deallocate(_: *mut c_void, _: u32, _: abi::Memory, _: u64) -> abi::Error {
    NO_ERROR
}
unsafe extern "C" fn copy_to_device(
    _: *mut c_void,
    _: u32,
    _: abi::Memory,
    _: u64,
    _: *const c_void,
    _: u64,
) -> abi::Error {
    NO_ERROR
}
unsafe extern "C" fn copy_to_host(
    _: *mut c_void,
    _: u32,
    _: *mut c_void,
    _: u64,
    _: abi::Memory,
    _: u64,
) -> abi::Error {
    NO_ERROR
}
unsafe extern "C" fn copy_on_device(
    _: *mut c_void,
    _: u32,
    _: abi::Memory,
    _: u64,
    _: abi::Memory,
    _: u64,
    _: u64,
) -> abi::Error {
    NO_ERROR
}
unsafe extern "C" fn memory_stats(_: *mut c_void, _: u32, _: *mut u64, _: *mut u64) -> abi::Error {
    NO_ERROR
}
unsafe extern "C" fn min_chunk_size(_: *mut c_void, _: u32, _: *mut u64) -> abi::Error {
    NO_ERROR
}

static CORE_TABLE: abi::CoreTable = abi::CoreTable {
    device_synchronize: Some(device_synchronize),
    device_count: Some(device_count),
    device_list: Some(device_list),
    compute_capability: Some(compute_capability),
    runtime_version: Some(read_version),
    driver_version: Some(read_version),
    memory_allocate: Some(memory_allocate),
    memory_deallocate: Some(memory_deallocate),
    memory_copy_h2d: Some(copy_to_device),
    memory_copy_d2h: Some(copy_to_host),
    memory_copy_d2d: Some(copy_on_device),
    memory_stats: Some(memory_stats),
    min_chunk_size: Some(min_chunk_size),
    ..abi::CoreTable::EMPTY
};

fn make_answer(name: &'static str) -> abi::Plugin {
    abi::Plugin {
        contract_major: 1,
        sanitizer: abi::SANITIZER,
        offers: abi::PluginFlags::SEVERAL_HOSTS,
        name: abi::Str::new(name),
        version: abi::Str::new("1"),
        ..abi::Plugin::EMPTY
    }
}

unsafe extern "C" fn device_query(_: *const abi::Host, plugin: *mut abi::Plugin) -> abi::Error {
    let answer =
        abi::Plugin { device_type: abi::Str::new("toy"), core: &raw const CORE_TABLE, ..make_answer("toy") };
    // SAFETY: the host gives a place for the answer.
    unsafe { plugin.write(answer) };
    NO_ERROR
}

/// The number of calls of a layer's `device_synchronize`, and of its live wrappers.
static SYNCHRONIZE_CALLS: AtomicUsize = AtomicUsize::new(0);
static WRAPPER_COUNT: AtomicUsize = AtomicUsize::new(0);
/// The table that the layer wraps.
static NEXT_TABLE: AtomicPtr<abi::CoreTable> = AtomicPtr::new(std::ptr::null_mut());

unsafe extern "C" fn count_synchronize(_context: *mut c_void, device: u32) -> abi::Error {
    SYNCHRONIZE_CALLS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the host keeps the table below as long as it uses this wrapper.
    let next = unsafe { NEXT_TABLE.load(Ordering::Relaxed).as_ref() }.expect("a table below");
    // SAFETY: the plugin below ignores its context.
    unsafe { next.device_synchronize.expect("a required slot")(std::ptr::null_mut(), device) }
}

unsafe extern "C" fn wrap_core(
    _context: *mut c_void,
    kind: abi::TableKind,
    _plugin: abi::Str,
    next_context: *mut c_void,
    next_table: *mut c_void,
    wrapped_context: *mut *mut c_void,
    wrapped_table: *mut *mut c_void,
) -> abi::Error {
    assert_eq!(kind, abi::TableKind::CORE);
    NEXT_TABLE.store(next_table.cast(), Ordering::Relaxed);
    // SAFETY: the table below is a core table.
    let next = unsafe { next_table.cast::<abi::CoreTable>().read() };
    let wrapped = Box::new(abi::CoreTable { device_synchronize: Some(count_synchronize), ..next });
    WRAPPER_COUNT.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the host gives places for both.
    unsafe {
        wrapped_context.write(next_context);
        wrapped_table.write(Box::into_raw(wrapped).cast());
    }
    NO_ERROR
}

unsafe extern "C" fn unwrap_core(
    _: *mut c_void,
    _: abi::TableKind,
    _: *mut c_void,
    table: *mut c_void,
) -> abi::Error {
    // SAFETY: the table is one that `wrap` made.
    drop(unsafe { Box::from_raw(table.cast::<abi::CoreTable>()) });
    WRAPPER_COUNT.fetch_sub(1, Ordering::Relaxed);
    NO_ERROR
}

static LAYER_TABLE: abi::LayerTable =
    abi::LayerTable { wrap: Some(wrap_core), unwrap: Some(unwrap_core), ..abi::LayerTable::EMPTY };

unsafe extern "C" fn layer_query(_: *const abi::Host, plugin: *mut abi::Plugin) -> abi::Error {
    // SAFETY: the host gives a place for the answer.
    unsafe { plugin.write(abi::Plugin { layer: &raw const LAYER_TABLE, ..make_answer("count") }) };
    NO_ERROR
}

/// Wraps a table in nothing.
unsafe extern "C" fn wrap_in_nothing(
    _context: *mut c_void,
    _kind: abi::TableKind,
    _plugin: abi::Str,
    next_context: *mut c_void,
    _next_table: *mut c_void,
    wrapped_context: *mut *mut c_void,
    wrapped_table: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the host gives places for both.
    unsafe {
        wrapped_context.write(next_context);
        wrapped_table.write(std::ptr::null_mut());
    }
    NO_ERROR
}

unsafe extern "C" fn unwrap_nothing(
    _: *mut c_void,
    _: abi::TableKind,
    _: *mut c_void,
    _: *mut c_void,
) -> abi::Error {
    panic!("there is nothing to free");
}

static EMPTY_LAYER_TABLE: abi::LayerTable =
    abi::LayerTable { wrap: Some(wrap_in_nothing), unwrap: Some(unwrap_nothing), ..abi::LayerTable::EMPTY };

unsafe extern "C" fn empty_layer_query(_: *const abi::Host, plugin: *mut abi::Plugin) -> abi::Error {
    // SAFETY: the host gives a place for the answer.
    unsafe { plugin.write(abi::Plugin { layer: &raw const EMPTY_LAYER_TABLE, ..make_answer("empty") }) };
    NO_ERROR
}

/// The phases that the host announced.
#[derive(Default)]
struct PhaseRecorder {
    begun: Mutex<Vec<PluginPhase>>,
    ended: AtomicUsize,
}

impl PhaseObserver for PhaseRecorder {
    fn on_phase_begin(&self, start: &PhaseStart<'_>) {
        assert_eq!((start.limit, start.layers.len()), (Duration::from_millis(700), 0));
        self.begun.lock().expect("no thread panics").push(start.phase);
    }

    fn on_phase_end(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

const TOY_PLUGIN: BuiltInPlugin = BuiltInPlugin { name: "toy", query: device_query };

fn options_with_layers(layers: &[&str]) -> HostOptions {
    let environment = HostEnvironment::new(|_| None, false, ProcessIdentity::of_process());
    let mut options = HostOptions::new("test", HostConfig::default(), environment);
    options.built_in = vec![TOY_PLUGIN, BuiltInPlugin { name: "count", query: layer_query }];
    options.layers = layers.iter().map(|name| (*name).to_owned()).collect();
    options
}

fn start_host(options: &HostOptions) -> Host {
    Host::start(options).expect("a configuration without mistakes")
}

fn layers_around_toy(host: &Host) -> Vec<String> {
    let (_, toy) = host
        .report()
        .loaded_plugins()
        .find(|(_, loaded)| loaded.info.name == "toy")
        .expect("the plugin is loaded");
    toy.layers.clone()
}

#[test]
fn without_a_layer_callers_hold_the_plugins_own_functions() {
    let host = start_host(&options_with_layers(&[]));
    let core = host.plugin("toy").unwrap().core_table().unwrap();
    let same = |one: usize, other: usize| assert_eq!(one, other);
    same(core.device_synchronize.unwrap() as usize, CORE_TABLE.device_synchronize.unwrap() as usize);
    same(core.memory_copy_d2d.unwrap() as usize, CORE_TABLE.memory_copy_d2d.unwrap() as usize);
    same(core.memory_stats.unwrap() as usize, CORE_TABLE.memory_stats.unwrap() as usize);
}

#[test]
fn a_layer_sees_every_call_and_its_wrappers_are_freed_with_the_plugin() {
    let options = options_with_layers(&["count", "nobody"]);
    let host = start_host(&options);
    let core = host.plugin("toy").unwrap().core_table().unwrap();
    assert_eq!(core.device_synchronize.unwrap() as usize, count_synchronize as *const () as usize);
    host.device("toy").unwrap().synchronize().unwrap();
    assert_eq!((SYNCHRONIZE_CALLS.load(Ordering::Relaxed), WRAPPER_COUNT.load(Ordering::Relaxed)), (1, 1));
    assert_eq!(layers_around_toy(&host), ["count"]);
    assert!(host.report().notes.iter().any(|note| note.contains("`nobody`")));
    let later = start_host(&options.for_built_in(TOY_PLUGIN, &host));
    assert_eq!((later.plugins().len(), layers_around_toy(&later)), (1, vec!["count".to_owned()]));
    assert!(later.report().notes.is_empty(), "what is missing was said by the host before");
    later.device("toy").unwrap().synchronize().unwrap();
    assert_eq!((SYNCHRONIZE_CALLS.load(Ordering::Relaxed), WRAPPER_COUNT.load(Ordering::Relaxed)), (2, 2));
    drop(later);
    assert_eq!(WRAPPER_COUNT.load(Ordering::Relaxed), 1);
    drop(host);
    assert_eq!(WRAPPER_COUNT.load(Ordering::Relaxed), 0);
}

#[test]
fn a_layer_that_wraps_a_table_in_nothing_is_left_out_by_name_and_each_phase_is_announced() {
    let mut options = options_with_layers(&["empty"]);
    options.built_in = vec![TOY_PLUGIN, BuiltInPlugin { name: "empty", query: empty_layer_query }];
    options.config.plugins.start_timeout_ms = Some(700);
    let recorder = Arc::new(PhaseRecorder::default());
    options.phases = recorder.clone();
    let host = start_host(&options);
    let note = &host.report().layers_left_out()[0];
    assert!(note.starts_with("the layer `empty` is left out") && note.contains("a null pointer"), "{note}");
    assert!(layers_around_toy(&host).is_empty());
    host.device("toy").expect("a device").synchronize().expect("the plugin's own function");
    drop(host);
    let begun = recorder.begun.lock().expect("no thread panics").clone();
    use PluginPhase::{Finalize, Initialize, Query, Unload, Wrap};
    // The last plugin ends first.
    assert_eq!(begun, [Query, Query, Wrap, Initialize, Initialize, Unload, Finalize, Unload]);
    assert_eq!(recorder.ended.load(Ordering::Relaxed), begun.len());
}
