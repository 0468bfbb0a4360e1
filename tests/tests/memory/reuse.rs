//! Reuse of dropped memory: which stream gets it, and when.

#![expect(unsafe_code, reason = "work in streams is given memory that the tests vouch for")]

use oarlock_core::memory::{DeviceAllocation, FREED_POISON, FRESH_POISON, PoolOptions};
use oarlock_core::stream::{Stream, StreamId};
use oarlock_host::{DeviceSpan, LiveHandleCounts};

use crate::{
    ALLOCATION_COUNT, MIB, allocation_place, launch_copy, limited_options, pool_options, scripted_device,
    take_memory,
};

#[test]
fn memory_that_was_dropped_is_used_again_on_its_stream_at_once_and_on_no_other_that_still_waits() {
    let machine = scripted_device("mode lazy");
    let pool = machine.create_pool(pool_options());
    let (first, second) =
        (pool.streams().create_stream(0).unwrap(), pool.streams().create_stream(0).unwrap());
    let memory = pool.allocate(1000, first.id(), "a").unwrap();
    launch_copy(&first, &memory, "Add", &[1; 16]).unwrap();
    let old = allocation_place(&memory);
    drop(memory);
    let other = pool.allocate(1000, second.id(), "b").unwrap();
    assert_ne!(allocation_place(&other), old, "the first stream is not past its use");
    let again = pool.allocate(1000, first.id(), "c").unwrap();
    assert_eq!(allocation_place(&again), old);
    assert_eq!((pool.statistics().misses, pool.statistics().hits), (1, 2));
}

#[test]
fn what_one_stream_is_done_with_serves_another_when_memory_is_needed_and_not_before() {
    let machine = scripted_device("mode lazy");
    let pool = machine.create_pool(limited_options(4 * MIB));
    let (first, second) =
        (pool.streams().create_stream(0).unwrap(), pool.streams().create_stream(0).unwrap());
    let memory = pool.allocate(3 * MIB, first.id(), "a").unwrap();
    let mut read = [0; 16];
    launch_copy(&first, &memory, "Add", &[1; 16]).unwrap();
    // The second stream waits for the write of the first, but not for its read.
    second.wait_for_stream(&first).unwrap();
    // SAFETY: the target lives until the stream was waited for.
    unsafe { memory.enqueue_read(&first, 0, &mut read) }.unwrap();
    drop(memory);
    // The device has no more memory for the pool, so the allocation waits for the first stream.
    let other = pool.allocate(3 * MIB, second.id(), "b").unwrap();
    launch_copy(&second, &other, "Mul", &[2; 16]).unwrap();
    second.synchronize().unwrap();
    first.synchronize().unwrap();
    assert_eq!((read, pool.statistics().device_allocations), ([1; 16], 1));
}

#[test]
fn what_two_streams_are_done_with_serves_a_third_when_memory_is_needed() {
    let machine = scripted_device("mode lazy");
    let pool = machine.create_pool(limited_options(4 * MIB));
    let [first, second, third] = [0; 3].map(|priority| pool.streams().create_stream(priority).unwrap());
    let memory = pool.allocate(4 * MIB, first.id(), "a").unwrap();
    launch_copy(&first, &memory, "Add", &[1; 16]).unwrap();
    second.wait_for_stream(&first).unwrap();
    memory.mark_used_on(&second);
    launch_copy(&second, &memory, "Mul", &[1; 16]).unwrap();
    drop(memory);
    pool.allocate(4 * MIB, third.id(), "b").expect("nobody holds any of it");
}

/// Three streams write, hand over to another stream at every other step and read back, with memory for only a few steps.
fn check_hand_over(mode: &str) {
    const SIZE: usize = 100 << 10;
    let machine = scripted_device(mode);
    let pool = machine.create_pool(limited_options(2 * MIB));
    let streams: Vec<Stream> = (0..3).map(|_| pool.streams().create_stream(0).expect("a stream")).collect();
    let steps = 60;
    let sources: Vec<Vec<u8>> = (0..steps).map(|step| vec![step as u8 + 1; SIZE]).collect();
    let mut targets = vec![vec![0; SIZE]; steps];
    for (step, (source, target)) in sources.iter().zip(&mut targets).enumerate() {
        let writer = &streams[step % 3];
        let reader = if step % 2 == 0 { writer } else { &streams[(step + 1) % 3] };
        let memory = pool.allocate(SIZE as u64, writer.id(), "step").expect("memory");
        // SAFETY: the sources live until all streams were waited for.
        unsafe { memory.enqueue_write(writer, 0, source) }.expect("a copy");
        reader.wait_for_stream(writer).expect("an event");
        // SAFETY: the targets live until all streams were waited for, and the reader waits for the writer.
        unsafe { memory.enqueue_read(reader, 0, target) }.expect("a copy");
    }
    pool.streams().synchronize().expect("all of it is done");
    for (step, target) in targets.iter().enumerate() {
        assert!(target.iter().all(|byte| *byte == step as u8 + 1), "step {step} in `{mode}`");
    }
    drop((streams, pool));
    assert_eq!(machine.live_handles(), LiveHandleCounts::default());
}

#[test]
fn memory_that_several_streams_use_is_never_handed_out_early_whatever_order_they_run_in() {
    ["mode lazy", "mode eager", "mode random; seed 1", "mode random; seed 2"]
        .into_iter()
        .for_each(check_hand_over);
}

#[test]
fn a_hit_asks_nothing_of_the_system() {
    let machine = scripted_device("seed 1");
    let pool = machine.create_pool(pool_options());
    let kept: Vec<DeviceAllocation> = (1..50).map(|size| take_memory(&pool, size * 100, "kept")).collect();
    let cycle = || {
        for size in [64, 4000, 70_000, 900_000, 3 * MIB, 64] {
            let (one, two) = (take_memory(&pool, size, "one"), take_memory(&pool, size / 2, "two"));
            drop((two, one));
        }
    };
    cycle();
    let before = ALLOCATION_COUNT.get();
    (0..100).for_each(|_| cycle());
    assert_eq!(ALLOCATION_COUNT.get(), before);
    drop(kept);
}

#[test]
fn poisoned_memory_shows_who_reads_what_nobody_wrote() {
    let machine = scripted_device("mode lazy; poison off");
    let pool = machine.create_pool(PoolOptions { poison: true, ..pool_options() });
    let stream = pool.streams().create_stream(0).unwrap();
    for stream in [pool.streams().immediate_stream(), &stream] {
        let memory = pool.allocate(500, stream.id(), "memory").unwrap();
        let mut bytes = [0; 500];
        // SAFETY: nothing else uses the memory.
        unsafe { memory.read_blocking(stream, 0, &mut bytes) }.unwrap();
        assert_eq!(bytes, [FRESH_POISON; 500]);
        let (handle, offset) = (memory.block_handle(), memory.offset());
        drop(memory);
        stream.synchronize().unwrap();
        // SAFETY: the pool keeps the block that held the memory, and nothing uses it now.
        unsafe { DeviceSpan::new(pool.device(), handle, offset, 500).read_bytes(0, &mut bytes) }.unwrap();
        assert_eq!(bytes, [FREED_POISON; 500]);
    }
}

#[test]
fn memory_that_a_callback_holds_comes_back_when_memory_is_short() {
    let machine = scripted_device("mode lazy");
    let pool = machine.create_pool(limited_options(4 * MIB));
    let stream = pool.streams().create_stream(0).unwrap();
    let held = pool.allocate(4 * MIB, stream.id(), "held").unwrap();
    launch_copy(&stream, &held, "Add", &[1; 16]).unwrap();
    stream.add_callback(move |result| drop((held, result))).unwrap();
    assert!(pool.allocate(4 * MIB, StreamId::IMMEDIATE, "next").is_ok());
}

#[test]
fn staging_buffers_are_kept_for_the_next_copy_and_go_with_the_pool() {
    let machine = scripted_device("seed 1");
    let pool = machine.create_pool(pool_options());
    let mut staging = pool.staging_buffer(1000).unwrap();
    staging.fill(7);
    assert_eq!(&*staging, &[7; 1000]);
    drop(staging);
    assert_eq!((pool.staging_buffer(900).unwrap().len(), machine.live_handles().pinned), (900, 1));
    pool.trim();
    assert_eq!(machine.live_handles().pinned, 0);
}

#[test]
fn threads_that_take_and_drop_memory_at_once_leave_the_books_in_order() {
    let machine = scripted_device("quota 64MiB; poison off");
    let pool = machine.create_pool(limited_options(32 * MIB));
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let pool = &pool;
            scope.spawn(move || {
                let stream = pool.streams().create_stream(0).expect("a stream");
                for step in 0..200 {
                    let size = 1 + (step * 37 + thread * 11) % 40 * 50_000;
                    let one = pool.allocate(size, stream.id(), "one").expect("memory");
                    let two = pool.allocate(size / 3, StreamId::IMMEDIATE, "two").expect("memory");
                    two.mark_used_on(&stream);
                    drop((one, two));
                }
            });
        }
    });
    assert_eq!((pool.statistics().allocated, pool.memory_holders().len()), (0, 0));
    pool.trim();
    assert_eq!((pool.statistics().reserved, machine.live_handles()), (0, LiveHandleCounts::default()));
}
