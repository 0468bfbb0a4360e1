//! The op interface on the CPU: a call of any op with any operands and attributes ends with an error or with correct outputs.
#![no_main]

#[expect(dead_code, reason = "the rest is for the test of the same calls")]
#[path = "../../tests/front_door/door/mod.rs"]
mod door;

use std::cell::OnceCell;

use libfuzzer_sys::fuzz_target;
use oarlock_tests::bare_host::CPU_PLUGIN;

use door::{CallCase, ChoiceSource, FrontDoor};

/// Every request gets a separate chunk, so that AddressSanitizer detects out-of-bounds accesses.
const FLAGS: [(&str, &str); 3] =
    [("allocator_strategy", "best_fit"), ("device_memory_initial", "1"), ("device_memory_refill", "1")];

thread_local! {
    static DOOR: OnceCell<FrontDoor> = const { OnceCell::new() };
}

fuzz_target!(|bytes: &[u8]| {
    DOOR.with(|door| {
        let door = door
            .get_or_init(|| FrontDoor::open_with_plugin(CPU_PLUGIN, "cpu", &FLAGS, None).expect("the CPU"));
        let case = CallCase::from_choices(&mut ChoiceSource::new(bytes));
        if let Err(complaint) = door.check_case(&case) {
            panic!("{complaint}\n{case:?}");
        }
        door.target_device().memory_pool().expect("the pool of the device").trim();
    });
});
