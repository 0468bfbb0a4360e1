//! Tests of the address space.

use super::*;
use oarlock_fault_script::SplitMix64;

fn test_memory(quota: u64) -> DeviceMemory {
    DeviceMemory::new(quota, true).unwrap()
}

fn expect_error<T: std::fmt::Debug>(result: Result<T, SimError>) -> SimError {
    result.unwrap_err()
}

#[test]
fn fresh_memory_is_aligned_and_poisoned() {
    let mut memory = test_memory(1 << 16);
    for size in [1, 255, 256, 1000] {
        let address = memory.allocate_block(size).unwrap();
        assert_eq!(address % ALIGNMENT, 0);
        assert!(
            memory
                .access_bytes(DeviceAddress::from(address), size)
                .unwrap()
                .iter()
                .all(|&byte| byte == FRESH_POISON)
        );
    }
}

#[test]
fn an_access_one_byte_past_the_end_is_an_overflow() {
    let mut memory = test_memory(1 << 16);
    let address = memory.allocate_block(100).unwrap();
    memory.allocate_block(100).unwrap();
    let found = expect_error(memory.access_bytes(DeviceAddress::from(address), 101));
    assert_eq!(found.kind, FaultKind::InvalidArgument);
    assert!(found.message.contains("1 bytes past the end of the allocation of 100 bytes"), "{found}");
    let found = expect_error(memory.access_bytes(DeviceAddress::from(address + 100), 1));
    assert!(found.message.contains("lies in no allocation"), "{found}");
    assert_eq!(
        expect_error(memory.access_bytes(DeviceAddress::from(address), u64::MAX)).kind,
        FaultKind::InvalidArgument
    );
    assert_eq!(
        expect_error(memory.access_bytes(DeviceAddress::from(u64::MAX), u64::MAX)).kind,
        FaultKind::InvalidArgument
    );
    assert!(memory.access_bytes(DeviceAddress::from(address + 99), 1).is_ok());
}

#[test]
fn an_offset_does_not_reach_into_a_neighbor() {
    let mut memory = test_memory(1 << 16);
    let address = memory.allocate_block(256).unwrap();
    let neighbor = memory.allocate_block(256).unwrap();
    let found = expect_error(memory.access_bytes(DeviceAddress::new(address, neighbor - address), 1));
    assert!(found.message.contains("past the end of the allocation of 256 bytes"), "{found}");
    assert!(memory.access_bytes(DeviceAddress::new(address, u64::MAX), 1).is_err());
    assert!(memory.access_bytes(DeviceAddress::new(address, 255), 1).is_ok());
}

#[test]
fn a_use_after_free_and_a_double_free_say_so() {
    let mut memory = test_memory(1 << 16);
    let address = memory.allocate_block(100).unwrap();
    memory.deallocate_block(address, 100).unwrap();
    let found = expect_error(memory.access_bytes(DeviceAddress::from(address + 10), 1));
    assert_eq!(found.kind, FaultKind::UseAfterFree);
    assert!(found.message.contains("which was freed"), "{found}");
    let found = expect_error(memory.deallocate_block(address, 100));
    assert_eq!(found.kind, FaultKind::UseAfterFree);
    assert!(found.message.contains("freed twice"), "{found}");
}

#[test]
fn freed_bytes_are_poisoned_in_the_store() {
    let mut memory = test_memory(1 << 16);
    let address = memory.allocate_block(100).unwrap();
    memory.access_bytes_mut(DeviceAddress::from(address), 100).unwrap().fill(1);
    memory.deallocate_block(address, 100).unwrap();
    let offset = (address - memory.pages.base_address()) as usize;
    assert!(memory.pages.as_bytes()[offset..offset + 100].iter().all(|&byte| byte == FREED_POISON));
}

#[test]
fn a_free_with_the_wrong_size_or_inside_an_allocation_is_refused() {
    let mut memory = test_memory(1 << 16);
    let address = memory.allocate_block(100).unwrap();
    let found = expect_error(memory.deallocate_block(address, 99));
    assert!(found.message.contains("has 100 bytes but was freed with a size of 99"), "{found}");
    let found = expect_error(memory.deallocate_block(address + 4, 96));
    assert!(found.message.contains("4 bytes into an allocation"), "{found}");
    memory.deallocate_block(address, 100).unwrap();
}

#[test]
fn the_quota_is_exact_and_its_error_names_the_numbers() {
    let mut memory = test_memory(1000);
    let address = memory.allocate_block(600).unwrap();
    let found = expect_error(memory.allocate_block(401));
    assert_eq!(found.kind, FaultKind::OutOfMemory);
    for number in ["401", "600", "1000"] {
        assert!(found.message.contains(number), "{found}");
    }
    memory.allocate_block(400).unwrap();
    memory.deallocate_block(address, 600).unwrap();
    assert_eq!(memory.memory_statistics(), MemoryStatistics { total: 1000, free: 600, peak: 1000, live: 1 });
    assert_eq!(expect_error(memory.allocate_block(u64::MAX)).kind, FaultKind::OutOfMemory);
    assert_eq!(expect_error(memory.allocate_block(0)).kind, FaultKind::InvalidArgument);
}

#[test]
fn overlapping_copies_are_refused() {
    let mut memory = test_memory(1 << 16);
    let address = memory.allocate_block(100).unwrap();
    assert!(memory.copy_ranges(address.into(), DeviceAddress::new(address, 50), 50).is_ok());
    assert!(
        expect_error(memory.copy_ranges(address.into(), DeviceAddress::new(address, 49), 50))
            .message
            .contains("overlaps itself")
    );
}

#[test]
fn ten_thousand_random_allocations_never_overlap_and_always_fit_again() {
    let mut memory = test_memory(1 << 16);
    let mut random = SplitMix64::new(9);
    let mut live: Vec<(u64, u64, u8)> = Vec::new();
    for round in 0..10_000_u32 {
        let size = 1 + random.next_below(3000) as u64;
        match memory.allocate_block(size) {
            Ok(address) => {
                let mark = round as u8;
                memory.access_bytes_mut(DeviceAddress::from(address), size).unwrap().fill(mark);
                live.push((address, size, mark));
            }
            Err(found) => assert_eq!(found.kind, FaultKind::OutOfMemory),
        }
        while live.len() > 40 || (!live.is_empty() && random.flip_coin()) {
            let (address, size, mark) = live.swap_remove(random.next_below(live.len()));
            assert!(
                memory
                    .access_bytes(DeviceAddress::from(address), size)
                    .unwrap()
                    .iter()
                    .all(|&byte| byte == mark)
            );
            memory.deallocate_block(address, size).unwrap();
        }
    }
    for (address, size, _) in live {
        memory.deallocate_block(address, size).unwrap();
    }
    assert_eq!(memory.memory_statistics().free, 1 << 16);
    memory.allocate_block(1 << 16).unwrap();
}
