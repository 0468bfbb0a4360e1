//! Valid and invalid contracts, and the contents of Oarlock's own.

use oarlock_contract::model::{ItemKind, member_slots};
use oarlock_contract::{CONTRACT_SOURCE, Contract, lock, read_contract, struct_layout};

fn read_current_contract() -> Contract {
    read_contract(CONTRACT_SOURCE).expect("the contract is valid")
}

/// Declarations that every contract needs, since headers are built from them.
const BASICS: &str =
    "\n/// F.\nflags header_flags : u32 { must_understand = 0 }\n/// E.\nstruct extension { kind: u64 }\n";

fn read_small_contract(minor: u32, body: &str) -> Result<Contract, oarlock_contract::ContractError> {
    read_contract(&format!("contract 1.{minor}\n{body}\n{BASICS}"))
}

fn refusal_of(body: &str) -> String {
    read_small_contract(1, body).expect_err("the contract is not valid").to_string()
}

fn small_contract_lock(minor: u32, body: &str) -> String {
    lock::lock_text(&read_small_contract(minor, body).expect("the contract is valid"))
}

/// The functions of the custom-device interface. Every device must be able to offer them.
const CUSTOM_DEVICE_SLOTS: &[(&str, bool)] = &[
    ("initialize", false),
    ("finalize", false),
    ("init_device", false),
    ("deinit_device", false),
    ("synchronize_device", true),
    ("get_device_count", true),
    ("get_device_list", true),
    ("get_compute_capability", true),
    ("get_runtime_version", true),
    ("get_driver_version", true),
    ("device_memory_allocate", true),
    ("device_memory_deallocate", true),
    ("host_memory_allocate", false),
    ("host_memory_deallocate", false),
    ("unified_memory_allocate", false),
    ("unified_memory_deallocate", false),
    ("memory_copy_h2d", true),
    ("memory_copy_d2h", true),
    ("memory_copy_d2d", true),
    ("memory_copy_p2p", false),
    ("async_memory_copy_h2d", false),
    ("async_memory_copy_d2h", false),
    ("async_memory_copy_d2d", false),
    ("async_memory_copy_p2p", false),
    ("device_memory_set", false),
    ("device_memory_stats", true),
    ("device_min_chunk_size", true),
    ("device_max_chunk_size", false),
    ("device_max_alloc_size", false),
    ("device_extra_padding_size", false),
    ("device_init_alloc_size", false),
    ("device_realloc_size", false),
    ("create_stream", true),
    ("destroy_stream", true),
    ("query_stream", false),
    ("synchronize_stream", true),
    ("stream_add_callback", false),
    ("stream_wait_event", true),
    ("create_event", true),
    ("destroy_event", true),
    ("record_event", true),
    ("query_event", false),
    ("synchronize_event", true),
];

#[test]
fn every_function_of_the_custom_device_interface_has_a_slot_with_the_same_promise() {
    let contract = read_current_contract();
    for (name, required) in CUSTOM_DEVICE_SLOTS {
        let found =
            contract.tables().flat_map(|(_, table)| table.slots()).find(|s| s.spec.as_deref() == Some(name));
        let slot = found.unwrap_or_else(|| panic!("no slot stands for `{name}`"));
        assert_eq!(slot.required, *required, "`{name}`");
    }
}

#[test]
fn every_optional_slot_documents_its_default() {
    for (item, table) in read_current_contract().tables() {
        for slot in table.slots().filter(|slot| !slot.required) {
            assert!(slot.default.is_some(), "`{}.{}`", item.name, slot.name);
        }
    }
}

#[test]
fn a_kernel_has_every_function_that_later_work_builds_on() {
    let contract = read_current_contract();
    let kernel = contract.find_item("kernel").expect("there are kernels");
    let ItemKind::Struct(members) = &kernel.kind else { panic!("a kernel is a struct") };
    let names: Vec<_> = member_slots(members).map(|slot| slot.name.as_str()).collect();
    assert_eq!(names, ["supports", "infer", "workspace", "prepare", "run", "release"]);
}

#[test]
fn structs_begin_with_their_header_and_tables_go_on_with_features() {
    let contract = read_current_contract();
    for name in ["error_info", "call", "tensor", "core_table", "kernel_table"] {
        let layout = struct_layout(&contract, contract.find_item(name).expect("it is declared"), 0);
        let head: Vec<_> =
            layout.fields.iter().take(4).map(|(f, offset, _)| (f.name.as_str(), *offset)).collect();
        assert_eq!(head[..3], [("size", 0), ("flags", 4), ("next", 8)], "{name}");
        assert_eq!(head[3].0 == "features", name.ends_with("_table"), "{name}");
    }
}

#[test]
fn hidden_padding_is_refused() {
    let error = refusal_of("/// Text.\nstruct a {\n  x: u32\n  y: u64\n}");
    assert_eq!(
        error,
        "line 3: expected in `a`: padding written out as `reserved`, found hidden padding at `y`"
    );
}

#[test]
fn a_later_slot_cannot_be_required() {
    let error = refusal_of("/// Text.\ntable a profile a 1 {\n  /// Text.\n  required fn f() since 1.1\n}");
    assert!(error.contains("rule V-2"), "{error}");
}

#[test]
fn members_come_in_the_order_of_their_versions() {
    let error = refusal_of("/// Text.\nstruct a {\n  x: u64 since 1.1\n  y: u64\n}");
    assert!(error.contains("newer members after all older ones"), "{error}");
}

#[test]
fn nothing_is_newer_than_the_contract() {
    let error = refusal_of("/// Text.\nstruct a {\n  x: u64 since 1.2\n}");
    assert!(error.contains("nothing newer than contract 1.1"), "{error}");
}

#[test]
fn a_name_is_used_once_and_a_type_is_declared() {
    assert!(refusal_of("/// A.\nhandle a\n/// B.\nhandle a").contains("a name of its own"));
    assert!(refusal_of("/// A.\nstruct a {\n  x: b\n}").contains("a declared type"));
}

#[test]
fn a_mistake_in_the_grammar_is_named_with_its_line() {
    assert_eq!(refusal_of("/// A.\nhandle 🦀"), "line 3: expected a word, text or punctuation, found `🦀`");
    assert_eq!(refusal_of("/// A.\nenum a {\n  x 1\n}"), "line 4: expected `=`, found `1`");
    assert_eq!(
        read_contract("contract 1.0\nstruct a {").expect_err("not valid").to_string(),
        "line 2: expected a name, found the end of the file"
    );
}

#[test]
fn text_that_is_cut_or_mangled_anywhere_is_an_error_and_not_a_panic() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (seed >> 33) as usize % below
    };
    let words: Vec<&str> = CONTRACT_SOURCE.split_inclusive(char::is_whitespace).collect();
    for _ in 0..300 {
        let mut mangled = words.clone();
        for _ in 0..=random(3) {
            let (from, to) = (random(mangled.len()), random(mangled.len()));
            mangled.swap(from, to);
        }
        mangled.truncate(random(mangled.len()) + 1);
        let _ = read_contract(&mangled.concat());
    }
}

#[test]
fn appending_keeps_every_line_of_the_lock() {
    let old = small_contract_lock(0, "/// A.\nstruct a {\n  x: u64\n}");
    let new = small_contract_lock(1, "/// A.\nstruct a {\n  x: u64\n  y: u64 since 1.1\n}");
    assert_eq!(lock::lost_lines(&old, &new), Vec::<&str>::new());
}

#[test]
fn moving_retyping_or_dropping_a_field_loses_a_line_of_the_lock() {
    let old = small_contract_lock(0, "/// A.\nstruct a {\n  x: u64\n  y: u64\n}");
    for members in ["y: u64\n  x: u64", "x: u64\n  y: i64", "x: u64", "x: u64\n  z: u64\n  y: u64"] {
        let new = small_contract_lock(0, &format!("/// A.\nstruct a {{\n  {members}\n}}"));
        assert!(!lock::lost_lines(&old, &new).is_empty(), "{members}");
    }
}

#[test]
fn making_an_optional_slot_required_loses_a_line_of_the_lock() {
    let table = |slot: &str| {
        small_contract_lock(0, &format!("/// A.\ntable a profile a 1 {{\n  /// F.\n  {slot}\n}}"))
    };
    let (old, new) = (table("optional fn f() default \"nothing\""), table("required fn f()"));
    assert_eq!(lock::lost_lines(&old, &new).len(), 1);
}
