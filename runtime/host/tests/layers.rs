//! Layers around a plugin that is linked into the program, and what there is without any.

#![expect(unsafe_code, reason = "the plugins here are written against the C contract")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use oarlock_abi as abi;
use oarlock_host::{BuiltIn, Config, Environment, Host, HostOptions, Identity};

const NONE: abi::Error = abi::Error::NONE;

unsafe extern "C" fn synchronize(_context: *mut c_void, _device: u32) -> abi::Error {
    NONE
}
unsafe extern "C" fn count(_context: *mut c_void, count: *mut u32) -> abi::Error {
    // SAFETY: the host gives a place for the count.
    unsafe { count.write(1) };
    NONE
}
unsafe extern "C" fn list(_context: *mut c_void, ids: *mut u32, room: u64, count: *mut u64) -> abi::Error {
    assert_eq!(room, 1);
    // SAFETY: the host gives room for one id, and a place for the count.
    unsafe {
        ids.write(0);
        count.write(1);
    }
    NONE
}
unsafe extern "C" fn capability(_: *mut c_void, _: u32, _: *mut abi::Version) -> abi::Error {
    NONE
}
unsafe extern "C" fn version(_: *mut c_void, _: *mut abi::Version) -> abi::Error {
    NONE
}
unsafe extern "C" fn allocate(_: *mut c_void, _: u32, _: u64, _: *mut abi::Memory) -> abi::Error {
    NONE
}
unsafe extern "C" fn deallocate(_: *mut c_void, _: u32, _: abi::Memory, _: u64) -> abi::Error {
    NONE
}
unsafe extern "C" fn h2d(
    _: *mut c_void,
    _: u32,
    _: abi::Memory,
    _: u64,
    _: *const c_void,
    _: u64,
) -> abi::Error {
    NONE
}
unsafe extern "C" fn d2h(
    _: *mut c_void,
    _: u32,
    _: *mut c_void,
    _: u64,
    _: abi::Memory,
    _: u64,
) -> abi::Error {
    NONE
}
unsafe extern "C" fn d2d(
    _: *mut c_void,
    _: u32,
    _: abi::Memory,
    _: u64,
    _: abi::Memory,
    _: u64,
    _: u64,
) -> abi::Error {
    NONE
}
unsafe extern "C" fn stats(_: *mut c_void, _: u32, _: *mut u64, _: *mut u64) -> abi::Error {
    NONE
}
unsafe extern "C" fn chunk(_: *mut c_void, _: u32, _: *mut u64) -> abi::Error {
    NONE
}

static CORE: abi::CoreTable = abi::CoreTable {
    device_synchronize: Some(synchronize),
    device_count: Some(count),
    device_list: Some(list),
    compute_capability: Some(capability),
    runtime_version: Some(version),
    driver_version: Some(version),
    memory_allocate: Some(allocate),
    memory_deallocate: Some(deallocate),
    memory_copy_h2d: Some(h2d),
    memory_copy_d2h: Some(d2h),
    memory_copy_d2d: Some(d2d),
    memory_stats: Some(stats),
    min_chunk_size: Some(chunk),
    ..abi::CoreTable::EMPTY
};

fn answer(name: &'static str) -> abi::Plugin {
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
    let answer = abi::Plugin { device_type: abi::Str::new("toy"), core: &raw const CORE, ..answer("toy") };
    // SAFETY: the host gives a place for the answer.
    unsafe { plugin.write(answer) };
    NONE
}

/// How often a layer's `device_synchronize` was called, and how many wrappers it has.
static CALLS: AtomicUsize = AtomicUsize::new(0);
static WRAPPERS: AtomicUsize = AtomicUsize::new(0);
/// The context and the table below the layer.
static NEXT: AtomicPtr<abi::CoreTable> = AtomicPtr::new(std::ptr::null_mut());

unsafe extern "C" fn counted(_context: *mut c_void, device: u32) -> abi::Error {
    CALLS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the host keeps the table below as long as it uses this wrapper.
    let next = unsafe { NEXT.load(Ordering::Relaxed).as_ref() }.expect("a table below");
    // SAFETY: the plugin below ignores its context.
    unsafe { next.device_synchronize.expect("a required slot")(std::ptr::null_mut(), device) }
}

unsafe extern "C" fn wrap(
    _context: *mut c_void,
    kind: abi::TableKind,
    _plugin: abi::Str,
    next_context: *mut c_void,
    next_table: *mut c_void,
    wrapped_context: *mut *mut c_void,
    wrapped_table: *mut *mut c_void,
) -> abi::Error {
    assert_eq!(kind, abi::TableKind::CORE);
    NEXT.store(next_table.cast(), Ordering::Relaxed);
    // SAFETY: the table below is a core table.
    let next = unsafe { next_table.cast::<abi::CoreTable>().read() };
    let wrapped = Box::new(abi::CoreTable { device_synchronize: Some(counted), ..next });
    WRAPPERS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the host gives places for both.
    unsafe {
        wrapped_context.write(next_context);
        wrapped_table.write(Box::into_raw(wrapped).cast());
    }
    NONE
}

unsafe extern "C" fn unwrap(
    _: *mut c_void,
    _: abi::TableKind,
    _: *mut c_void,
    table: *mut c_void,
) -> abi::Error {
    // SAFETY: the table is one that `wrap` made.
    drop(unsafe { Box::from_raw(table.cast::<abi::CoreTable>()) });
    WRAPPERS.fetch_sub(1, Ordering::Relaxed);
    NONE
}

static LAYER: abi::LayerTable =
    abi::LayerTable { wrap: Some(wrap), unwrap: Some(unwrap), ..abi::LayerTable::EMPTY };

unsafe extern "C" fn layer_query(_: *const abi::Host, plugin: *mut abi::Plugin) -> abi::Error {
    // SAFETY: the host gives a place for the answer.
    unsafe { plugin.write(abi::Plugin { layer: &raw const LAYER, ..answer("count") }) };
    NONE
}

const TOY: BuiltIn = BuiltIn { name: "toy", query: device_query };

fn options(layers: &[&str]) -> HostOptions {
    let environment = Environment::new(|_| None, false, Identity::of_process());
    let mut options = HostOptions::new("test", Config::default(), environment);
    options.built_in = vec![TOY, BuiltIn { name: "count", query: layer_query }];
    options.layers = layers.iter().map(|name| (*name).to_owned()).collect();
    options
}

fn start(options: &HostOptions) -> Host {
    Host::start(options).expect("a configuration without mistakes")
}

/// The names of the layers around `toy`.
fn around_toy(host: &Host) -> Vec<String> {
    let (_, toy) =
        host.report().loaded().find(|(_, loaded)| loaded.info.name == "toy").expect("the plugin is loaded");
    toy.layers.clone()
}

#[test]
fn without_a_layer_callers_hold_the_plugins_own_functions() {
    let host = start(&options(&[]));
    let core = host.plugin("toy").unwrap().core_table().unwrap();
    let same = |one: usize, other: usize| assert_eq!(one, other);
    same(core.device_synchronize.unwrap() as usize, CORE.device_synchronize.unwrap() as usize);
    same(core.memory_copy_d2d.unwrap() as usize, CORE.memory_copy_d2d.unwrap() as usize);
    same(core.memory_stats.unwrap() as usize, CORE.memory_stats.unwrap() as usize);
}

#[test]
fn a_layer_sees_every_call_and_its_wrappers_are_freed_with_the_plugin() {
    let options = options(&["count", "nobody"]);
    let host = start(&options);
    let core = host.plugin("toy").unwrap().core_table().unwrap();
    assert_eq!(core.device_synchronize.unwrap() as usize, counted as *const () as usize);
    host.device("toy").unwrap().synchronize().unwrap();
    assert_eq!((CALLS.load(Ordering::Relaxed), WRAPPERS.load(Ordering::Relaxed)), (1, 1));
    assert_eq!(around_toy(&host), ["count"]);
    assert!(host.report().notes.iter().any(|note| note.contains("`nobody`")));
    let later = start(&options.for_built_in(TOY, &host));
    assert_eq!((later.plugins().len(), around_toy(&later)), (1, vec!["count".to_owned()]));
    assert!(later.report().notes.is_empty(), "what is missing was said by the host before");
    later.device("toy").unwrap().synchronize().unwrap();
    assert_eq!((CALLS.load(Ordering::Relaxed), WRAPPERS.load(Ordering::Relaxed)), (2, 2));
    drop(later);
    assert_eq!(WRAPPERS.load(Ordering::Relaxed), 1);
    drop(host);
    assert_eq!(WRAPPERS.load(Ordering::Relaxed), 0);
}
