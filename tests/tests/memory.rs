//! The memory pool and the streams of the core, on the simulated device, which does nothing before it must and fails
//! when a script says so.

#![expect(
    unsafe_code,
    reason = "work in streams is given memory that the tests vouch for, and allocations are counted"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use oarlock_core::memory::{Allocation, FREED_POISON, FRESH_POISON, Pool, PoolOptions, Strategy};
use oarlock_core::stream::{Stream, StreamId};
use oarlock_core::{Error, ErrorKind};
use oarlock_host::{Config, Device, Environment, Host, HostOptions, Identity, Live, Span};

const MIB: u64 = 1 << 20;

/// Counts what each thread asks of the system.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        // SAFETY: the caller's word is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(address, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A device that a script sets up, with what keeps it alive.
struct Machine {
    device: Device,
    _host: Host,
    _place: tempfile::TempDir,
}

fn machine(script: &str) -> Machine {
    let place = tempfile::tempdir().expect("a directory");
    let here = std::env::current_exe().expect("this program");
    let file = place.path().join("liboarlock_plugin_sim.so");
    std::fs::copy(here.with_file_name("liboarlock_plugin_sim.so"), &file)
        .expect("the plugin is built beside this program");
    let manifest = "name = 'oarlock-sim'\nversion = '0.1.0'\nkind = 'device'\ndevice_type = 'sim'\ncontract = '1.0'\n\
                    profiles = ['core', 'async']\n";
    let architecture = format!("architecture = '{}-linux'\n", std::env::consts::ARCH);
    std::fs::write(file.with_extension("oarlock.toml"), format!("{manifest}{architecture}"))
        .expect("a manifest");
    let config = format!("[plugin.oarlock-sim]\nscript = '{script}'");
    let config = Config::parse(Path::new("test.toml"), config.as_bytes()).expect("a valid configuration");
    let environment = Environment::new(|_| None, false, Identity::of_process());
    let mut options = HostOptions::new("tests 1.0", config, environment);
    options.paths = vec![file];
    let host = Host::start(&options).expect("a host");
    let device = host.device("sim:0").unwrap_or_else(|| panic!("no device: {:#?}", host.report()));
    Machine { device, _host: host, _place: place }
}

impl Machine {
    fn pool(&self, options: PoolOptions) -> Arc<Pool> {
        Pool::new(self.device.clone(), options).expect("a pool")
    }

    fn live(&self) -> Live {
        self.device.plugin().live()
    }
}

fn options() -> PoolOptions {
    PoolOptions::default()
}

fn limited(limit: u64) -> PoolOptions {
    PoolOptions { limit: Some(limit), ..options() }
}

fn place(allocation: &Allocation) -> (u64, u64) {
    (allocation.memory().0, allocation.offset())
}

fn take(pool: &Arc<Pool>, size: u64, label: &'static str) -> Allocation {
    pool.allocate(size, StreamId::OWN, label).expect("memory")
}

/// Puts a copy from the host into a stream, as an op of that name.
fn launch(
    stream: &Stream,
    target: &Allocation,
    op: &'static str,
    source: &'static [u8],
) -> Result<(), Error> {
    let queue = stream.queue().expect("a stream of its own");
    // SAFETY: the source lives for ever, and the tests keep the memory as long as its rules say.
    stream.launch(op, || unsafe { target.span().write_in(queue, 0, source) })
}

#[test]
fn memory_that_was_dropped_is_used_again_on_its_stream_at_once_and_on_no_other_that_still_waits() {
    let machine = machine("mode lazy");
    let pool = machine.pool(options());
    let (first, second) = (pool.streams().create(0).unwrap(), pool.streams().create(0).unwrap());
    let memory = pool.allocate(1000, first.id(), "a").unwrap();
    launch(&first, &memory, "Add", &[1; 16]).unwrap();
    let old = place(&memory);
    drop(memory);
    let other = pool.allocate(1000, second.id(), "b").unwrap();
    assert_ne!(place(&other), old, "the first stream is not past its use");
    let again = pool.allocate(1000, first.id(), "c").unwrap();
    assert_eq!(place(&again), old);
    assert_eq!((pool.statistics().misses, pool.statistics().hits), (1, 2));
}

#[test]
fn what_one_stream_is_done_with_serves_another_when_memory_is_needed_and_not_before() {
    let machine = machine("mode lazy");
    let pool = machine.pool(limited(4 * MIB));
    let (first, second) = (pool.streams().create(0).unwrap(), pool.streams().create(0).unwrap());
    let memory = pool.allocate(3 * MIB, first.id(), "a").unwrap();
    let mut read = [0; 16];
    launch(&first, &memory, "Add", &[1; 16]).unwrap();
    // The second stream gets going between the write and the read of the first.
    second.wait_for_stream(&first).unwrap();
    // SAFETY: the target lives until the stream was waited for.
    unsafe { memory.read_in(&first, 0, &mut read) }.unwrap();
    drop(memory);
    // The pool may take no more of the device, so it waits for the first stream.
    let other = pool.allocate(3 * MIB, second.id(), "b").unwrap();
    launch(&second, &other, "Mul", &[2; 16]).unwrap();
    second.synchronize().unwrap();
    first.synchronize().unwrap();
    assert_eq!((read, pool.statistics().device_allocations), ([1; 16], 1));
}

/// Three streams write, hand over to another stream at every other step and read back, with memory for few steps.
fn hand_over(mode: &str) {
    const SIZE: usize = 100 << 10;
    let machine = machine(mode);
    let pool = machine.pool(limited(2 * MIB));
    let streams: Vec<Stream> = (0..3).map(|_| pool.streams().create(0).expect("a stream")).collect();
    let steps = 60;
    let sources: Vec<Vec<u8>> = (0..steps).map(|step| vec![step as u8 + 1; SIZE]).collect();
    let mut targets = vec![vec![0; SIZE]; steps];
    for (step, (source, target)) in sources.iter().zip(&mut targets).enumerate() {
        let writer = &streams[step % 3];
        let reader = if step % 2 == 0 { writer } else { &streams[(step + 1) % 3] };
        let memory = pool.allocate(SIZE as u64, writer.id(), "step").expect("memory");
        // SAFETY: the sources live until all streams were waited for.
        unsafe { memory.write_in(writer, 0, source) }.expect("a copy");
        reader.wait_for_stream(writer).expect("an event");
        // SAFETY: the targets live until all streams were waited for, and the reader waits for the writer.
        unsafe { memory.read_in(reader, 0, target) }.expect("a copy");
    }
    pool.streams().synchronize().expect("all of it is done");
    for (step, target) in targets.iter().enumerate() {
        assert!(target.iter().all(|byte| *byte == step as u8 + 1), "step {step} in `{mode}`");
    }
    drop((streams, pool));
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn memory_that_several_streams_use_is_never_handed_out_early_whatever_order_they_run_in() {
    ["mode lazy", "mode eager", "mode random; seed 1", "mode random; seed 2"].into_iter().for_each(hand_over);
}

#[test]
fn a_hit_asks_nothing_of_the_system() {
    let machine = machine("seed 1");
    let pool = machine.pool(options());
    let kept: Vec<Allocation> = (1..50).map(|size| take(&pool, size * 100, "kept")).collect();
    let cycle = || {
        for size in [64, 4000, 70_000, 900_000, 3 * MIB, 64] {
            let (one, two) = (take(&pool, size, "one"), take(&pool, size / 2, "two"));
            drop((two, one));
        }
    };
    cycle();
    let before = ASKED.get();
    (0..100).for_each(|_| cycle());
    assert_eq!(ASKED.get(), before);
    drop(kept);
}

#[test]
fn no_bytes_are_no_memory() {
    let machine = machine("quota 1MiB");
    let pool = machine.pool(options());
    let nothing = take(&pool, 0, "nothing");
    assert_eq!((nothing.memory().0, nothing.size(), pool.statistics().device_allocations), (0, 0, 0));
    let error = pool.allocate(u64::MAX, StreamId::OWN, "huge").unwrap_err();
    assert_eq!((error.kind(), error.device()), (ErrorKind::ResourceExhausted, Some("sim:0")));
}

#[test]
fn an_allocation_that_fails_once_is_tried_again_and_another_failure_is_told() {
    let machine = machine("fail memory_allocate 2..3 out-of-memory; fail memory_allocate 5 internal");
    let pool = machine.pool(options());
    let first = take(&pool, 3 * MIB, "first");
    let second = take(&pool, 3 * MIB, "second");
    let error = pool.allocate(3 * MIB, StreamId::OWN, "third").unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::External, Some("third")), "{error}");
    let third = take(&pool, 3 * MIB, "third");
    assert_eq!(pool.statistics().device_allocations, 3);
    drop((first, second, third, pool));
    assert_eq!(machine.live(), Live::default());
}

#[test]
fn an_error_without_memory_says_who_holds_it() {
    let machine = machine("quota 16MiB");
    let pool = machine.pool(options());
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let small: Vec<Allocation> = names.into_iter().map(|name| take(&pool, 100_000, name)).collect();
    let weights: Vec<Allocation> = (0..2).map(|_| take(&pool, 4 * MIB, "weights")).collect();
    let error = pool.allocate(64 * MIB, StreamId::OWN, "Conv").unwrap_err();
    assert_eq!((error.kind(), error.device()), (ErrorKind::ResourceExhausted, Some("sim:0")));
    let message = error.message();
    let lines: Vec<&str> = message.lines().collect();
    assert!(lines[0].starts_with("expected 64.0 MiB of memory for `Conv`, found at most "), "{message}");
    assert!(lines[0].contains("6.0 MiB are free on the device"), "{message}");
    assert!(lines[2].contains("8.0 MiB") && lines[2].ends_with("2  weights"), "{message}");
    assert_eq!(lines.len(), 11, "{message}");
    assert!(lines[10].ends_with("3 others"), "{message}");
    assert!(error.advice().is_some());
    drop((small, weights));
    assert!(pool.allocate(12 * MIB, StreamId::OWN, "Conv").is_ok(), "what is not used was given back");
}

#[test]
fn a_limit_holds_although_the_device_has_more() {
    let machine = machine("quota 64MiB");
    let pool = machine.pool(limited(6 * MIB));
    let held = take(&pool, 5 * MIB, "held");
    let error = pool.allocate(2 * MIB, StreamId::OWN, "more").unwrap_err();
    assert!(error.message().contains("the limit is 6.0 MiB"), "{error}");
    assert!(error.advice().is_some_and(|hint| hint.contains("raise the memory limit")));
    drop(held);
    assert!(pool.allocate(6 * MIB, StreamId::OWN, "all").is_ok());
}

#[test]
fn unused_memory_goes_back_when_it_is_trimmed_and_used_memory_stays() {
    let machine = machine("seed 1");
    let pool = machine.pool(options());
    let (kept, dropped) = (take(&pool, 100, "kept"), take(&pool, 5 * MIB, "dropped"));
    drop(dropped);
    assert_eq!((pool.statistics().reserved, machine.live().blocks), (8 * MIB, 2));
    assert_eq!(pool.trim(), 6 * MIB);
    assert_eq!((pool.statistics().reserved, machine.live().blocks), (2 * MIB, 1));
    drop(kept);
    assert_eq!((pool.trim(), machine.live().blocks), (2 * MIB, 0));
}

#[test]
fn peaks_are_kept_until_they_are_reset() {
    let machine = machine("seed 1");
    let pool = machine.pool(options());
    drop(take(&pool, 3 * MIB, "large"));
    let held = take(&pool, 256, "held");
    let statistics = pool.statistics();
    assert_eq!((statistics.allocated, statistics.peak_allocated), (256, 3 * MIB));
    assert_eq!((statistics.reserved, statistics.peak_reserved), (6 * MIB, 6 * MIB));
    pool.trim();
    pool.reset_peak();
    let statistics = pool.statistics();
    assert_eq!((statistics.peak_allocated, statistics.peak_reserved), (256, 2 * MIB));
    assert_eq!(pool.holders().first().map(|holder| (holder.label.text(), holder.count)), Some(("held", 1)));
    drop(held);
}

#[test]
fn poisoned_memory_shows_who_reads_what_nobody_wrote() {
    let machine = machine("mode lazy; poison off");
    let pool = machine.pool(PoolOptions { poison: true, ..options() });
    let stream = pool.streams().create(0).unwrap();
    for stream in [pool.streams().own(), &stream] {
        let memory = pool.allocate(500, stream.id(), "memory").unwrap();
        let mut bytes = [0; 500];
        // SAFETY: nobody else has the memory.
        unsafe { memory.read(stream, 0, &mut bytes) }.unwrap();
        assert_eq!(bytes, [FRESH_POISON; 500]);
        let (handle, offset) = (memory.memory(), memory.offset());
        drop(memory);
        stream.synchronize().unwrap();
        // SAFETY: the pool keeps the block the memory lay in, and nobody uses it now.
        unsafe { Span::new(pool.device(), handle, offset, 500).read(0, &mut bytes) }.unwrap();
        assert_eq!(bytes, [FREED_POISON; 500]);
    }
}

#[test]
fn best_fit_takes_one_large_chunk_cuts_it_to_measure_and_lets_it_grow_together() {
    let machine = machine("quota 64MiB");
    let pool = machine.pool(PoolOptions { strategy: Strategy::BestFit, initial: Some(8 * MIB), ..options() });
    let sizes = [MIB, 3 * MIB, MIB / 2, 2 * MIB, 1024];
    let [a, b, c, d, e] = sizes.map(|size| take(&pool, size, "piece"));
    let (large, small) = (place(&b), place(&d));
    drop((b, d));
    let fitting = take(&pool, 2 * MIB - 4096, "fitting");
    assert_eq!(place(&fitting), small, "the smaller of two holes");
    let other = take(&pool, 2 * MIB + 4096, "other");
    assert_eq!(place(&other), large);
    drop((a, c, e, fitting, other));
    let whole = take(&pool, 8 * MIB, "whole");
    assert_eq!((pool.statistics().device_allocations, whole.offset()), (1, 0));
}

#[test]
fn best_fit_settles_for_less_when_the_device_refuses() {
    let machine = machine("quota 64MiB; lie memory_stats");
    let pool =
        machine.pool(PoolOptions { strategy: Strategy::BestFit, initial: Some(200 * MIB), ..options() });
    let held = take(&pool, MIB, "held");
    let reserved = pool.statistics().reserved;
    assert!((MIB..=64 * MIB).contains(&reserved), "{reserved}");
    drop(held);
}

#[test]
fn memory_that_a_callback_holds_comes_back_when_memory_is_short() {
    let machine = machine("mode lazy");
    let pool = machine.pool(limited(4 * MIB));
    let stream = pool.streams().create(0).unwrap();
    let held = pool.allocate(4 * MIB, stream.id(), "held").unwrap();
    launch(&stream, &held, "Add", &[1; 16]).unwrap();
    stream.then(move |result| drop((held, result))).unwrap();
    assert!(pool.allocate(4 * MIB, StreamId::OWN, "next").is_ok());
}

#[test]
fn a_failure_that_is_told_late_names_the_op_that_caused_it() {
    let machine = machine("fail_later memory_copy_h2d_async 2 internal");
    let pool = machine.pool(options());
    let stream = pool.streams().create(0).unwrap();
    let memory = pool.allocate(64, stream.id(), "memory").unwrap();
    for op in ["Add", "Mul", "Sub"] {
        launch(&stream, &memory, op, &[1; 16]).unwrap();
    }
    let mut bytes = [0; 16];
    // SAFETY: nobody else has the memory.
    let error = unsafe { memory.read(&stream, 0, &mut bytes) }.unwrap_err();
    assert_eq!((error.op(), error.device(), error.kind()), (Some("Mul"), Some("sim:0"), ErrorKind::External));
    // SAFETY: as above.
    unsafe { memory.read(&stream, 0, &mut bytes) }.expect("it is told once");
}

#[test]
fn without_events_a_failure_names_the_ops_since_the_last_wait() {
    let machine = machine("fail_later memory_copy_h2d_async 3 internal");
    let pool = machine.pool(PoolOptions { attribute_errors: false, ..options() });
    let stream = pool.streams().create(0).unwrap();
    let memory = pool.allocate(64, stream.id(), "memory").unwrap();
    launch(&stream, &memory, "Add", &[1; 16]).unwrap();
    stream.synchronize().unwrap();
    launch(&stream, &memory, "Mul", &[1; 16]).unwrap();
    launch(&stream, &memory, "Sub", &[1; 16]).unwrap();
    assert_eq!(stream.synchronize().unwrap_err().op(), Some("one of Mul, Sub"));
    assert_eq!(machine.live().events, 0);
}

#[test]
fn a_failure_among_more_launches_than_are_kept_still_has_its_name() {
    let machine = machine("mode eager; fail_later memory_copy_h2d_async 100 internal");
    let pool = machine.pool(options());
    let stream = pool.streams().create(0).unwrap();
    let memory = pool.allocate(64, stream.id(), "memory").unwrap();
    for launched in 1..=600 {
        launch(&stream, &memory, if launched == 100 { "Bad" } else { "Good" }, &[1; 16]).unwrap();
    }
    assert_eq!(stream.synchronize().unwrap_err().op(), Some("Bad"));
    assert!(machine.live().events <= 256, "{}", machine.live());
}

#[test]
fn a_failure_of_a_stream_that_nobody_waited_for_is_told_by_the_device() {
    let machine = machine("fail_later memory_copy_h2d_async 1 internal");
    let pool = machine.pool(options());
    let stream = pool.streams().create(0).unwrap();
    let memory = pool.allocate(64, stream.id(), "memory").unwrap();
    launch(&stream, &memory, "Add", &[1; 16]).unwrap();
    drop((memory, stream));
    assert_eq!(pool.streams().synchronize().unwrap_err().op(), Some("Add"));
    assert!(pool.streams().synchronize().is_ok());
}

#[test]
fn a_device_that_is_lost_fails_every_call_with_the_same_reason_and_nothing_leaks() {
    for after in (8..60).step_by(5) {
        let machine = machine(&format!("quota 32MiB; poison off; lose 0 after {after}"));
        let Ok(pool) = Pool::new(machine.device.clone(), options()) else { continue };
        let work = || -> Result<(), Error> {
            let stream = pool.streams().create(0)?;
            let mut held = Vec::new();
            for _ in 0..4 {
                held.push(pool.allocate(3 * MIB, stream.id(), "held")?);
                launch(&stream, &held[held.len() - 1], "Add", &[1; 16])?;
                held[0].used_on(&pool.streams().create(0)?);
            }
            stream.synchronize()
        };
        let failed = (0..20).find_map(|_| work().err());
        let error = failed.expect("it is lost at some point");
        assert!(error.is_device_lost(), "{error}");
        let next = pool.allocate(64, StreamId::OWN, "next").expect_err("it stays lost");
        assert_eq!(
            next.failure().map(|failure| &failure.message),
            error.failure().map(|failure| &failure.message)
        );
        assert!(pool.streams().create(0).unwrap_err().is_device_lost());
        drop(pool);
        assert_eq!(machine.live(), Live::default(), "after {after} calls");
    }
}

#[test]
fn staging_buffers_are_kept_for_the_next_copy_and_go_with_the_pool() {
    let machine = machine("seed 1");
    let pool = machine.pool(options());
    let mut staging = pool.staging(1000).unwrap();
    staging.fill(7);
    assert_eq!(&*staging, &[7; 1000]);
    drop(staging);
    assert_eq!((pool.staging(900).unwrap().len(), machine.live().pinned), (900, 1));
    pool.trim();
    assert_eq!(machine.live().pinned, 0);
}

#[test]
fn threads_that_take_and_drop_memory_at_once_leave_the_books_in_order() {
    let machine = machine("quota 64MiB; poison off");
    let pool = machine.pool(limited(32 * MIB));
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let pool = &pool;
            scope.spawn(move || {
                let stream = pool.streams().create(0).expect("a stream");
                for step in 0..200 {
                    let size = 1 + (step * 37 + thread * 11) % 40 * 50_000;
                    let one = pool.allocate(size, stream.id(), "one").expect("memory");
                    let two = pool.allocate(size / 3, StreamId::OWN, "two").expect("memory");
                    two.used_on(&stream);
                    drop((one, two));
                }
            });
        }
    });
    assert_eq!((pool.statistics().allocated, pool.holders().len()), (0, 0));
    pool.trim();
    assert_eq!((pool.statistics().reserved, machine.live()), (0, Live::default()));
}
