//! What a contract may say, what it must not, and what the contract of Oarlock does say.

use oarlock_contract::model::{ItemKind, slots};
use oarlock_contract::{Contract, SOURCE, layout, lock, read};

fn contract() -> Contract {
    read(SOURCE).expect("the contract is valid")
}

/// What every contract declares, since headers are made of it.
const BASICS: &str =
    "\n/// F.\nflags header_flags : u32 { must_understand = 0 }\n/// E.\nstruct extension { kind: u64 }\n";

fn small(minor: u32, body: &str) -> Result<Contract, oarlock_contract::Error> {
    read(&format!("contract 1.{minor}\n{body}\n{BASICS}"))
}

fn refusal(body: &str) -> String {
    small(1, body).expect_err("the contract is not valid").to_string()
}

fn small_lock(minor: u32, body: &str) -> String {
    lock::text(&small(minor, body).expect("the contract is valid"))
}

/// The functions of the custom-device interface, which every device must be able to offer.
const CUSTOM_DEVICE: &[(&str, bool)] = &[
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
    let contract = contract();
    for (name, required) in CUSTOM_DEVICE {
        let found =
            contract.tables().flat_map(|(_, table)| table.slots()).find(|s| s.spec.as_deref() == Some(name));
        let slot = found.unwrap_or_else(|| panic!("no slot stands for `{name}`"));
        assert_eq!(slot.required, *required, "`{name}`");
    }
}

#[test]
fn every_optional_slot_of_a_table_says_what_happens_without_it() {
    for (item, table) in contract().tables() {
        for slot in table.slots().filter(|slot| !slot.required) {
            assert!(slot.default.is_some(), "`{}.{}`", item.name, slot.name);
        }
    }
}

#[test]
fn a_kernel_has_every_function_that_later_work_builds_on() {
    let contract = contract();
    let kernel = contract.find("kernel").expect("there are kernels");
    let ItemKind::Struct(members) = &kernel.kind else { panic!("a kernel is a struct") };
    let names: Vec<_> = slots(members).map(|slot| slot.name.as_str()).collect();
    assert_eq!(names, ["supports", "infer", "workspace", "prepare", "run", "release"]);
}

#[test]
fn structs_begin_with_their_header_and_tables_go_on_with_features() {
    let contract = contract();
    for name in ["error_info", "call", "tensor", "core_table", "kernel_table"] {
        let layout = layout(&contract, contract.find(name).expect("it is declared"), 0);
        let head: Vec<_> =
            layout.fields.iter().take(4).map(|(f, offset, _)| (f.name.as_str(), *offset)).collect();
        assert_eq!(head[..3], [("size", 0), ("flags", 4), ("next", 8)], "{name}");
        assert_eq!(head[3].0 == "features", name.ends_with("_table"), "{name}");
    }
}

#[test]
fn hidden_padding_is_refused() {
    let error = refusal("/// Text.\nstruct a {\n  x: u32\n  y: u64\n}");
    assert_eq!(
        error,
        "line 3: expected in `a`: padding written out as `reserved`, found hidden padding at `y`"
    );
}

#[test]
fn a_later_slot_cannot_be_required() {
    let error = refusal("/// Text.\ntable a profile a 1 {\n  /// Text.\n  required fn f() since 1.1\n}");
    assert!(error.contains("rule V-2"), "{error}");
}

#[test]
fn members_come_in_the_order_of_their_versions() {
    let error = refusal("/// Text.\nstruct a {\n  x: u64 since 1.1\n  y: u64\n}");
    assert!(error.contains("newer members after all older ones"), "{error}");
}

#[test]
fn nothing_is_newer_than_the_contract() {
    let error = refusal("/// Text.\nstruct a {\n  x: u64 since 1.2\n}");
    assert!(error.contains("nothing newer than contract 1.1"), "{error}");
}

#[test]
fn a_name_is_used_once_and_a_type_is_declared() {
    assert!(refusal("/// A.\nhandle a\n/// B.\nhandle a").contains("a name of its own"));
    assert!(refusal("/// A.\nstruct a {\n  x: b\n}").contains("a declared type"));
}

#[test]
fn a_mistake_in_the_grammar_is_named_with_its_line() {
    assert_eq!(refusal("/// A.\nhandle 🦀"), "line 3: expected a word, text or punctuation, found `🦀`");
    assert_eq!(refusal("/// A.\nenum a {\n  x 1\n}"), "line 4: expected `=`, found `1`");
    assert_eq!(
        read("contract 1.0\nstruct a {").expect_err("not valid").to_string(),
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
    let words: Vec<&str> = SOURCE.split_inclusive(char::is_whitespace).collect();
    for _ in 0..300 {
        let mut mangled = words.clone();
        for _ in 0..=random(3) {
            let (from, to) = (random(mangled.len()), random(mangled.len()));
            mangled.swap(from, to);
        }
        mangled.truncate(random(mangled.len()) + 1);
        let _ = read(&mangled.concat());
    }
}

#[test]
fn appending_keeps_every_line_of_the_lock() {
    let old = small_lock(0, "/// A.\nstruct a {\n  x: u64\n}");
    let new = small_lock(1, "/// A.\nstruct a {\n  x: u64\n  y: u64 since 1.1\n}");
    assert_eq!(lock::lost(&old, &new), Vec::<&str>::new());
}

#[test]
fn moving_retyping_or_dropping_a_field_loses_a_line_of_the_lock() {
    let old = small_lock(0, "/// A.\nstruct a {\n  x: u64\n  y: u64\n}");
    for members in ["y: u64\n  x: u64", "x: u64\n  y: i64", "x: u64", "x: u64\n  z: u64\n  y: u64"] {
        let new = small_lock(0, &format!("/// A.\nstruct a {{\n  {members}\n}}"));
        assert!(!lock::lost(&old, &new).is_empty(), "{members}");
    }
}

#[test]
fn making_an_optional_slot_required_loses_a_line_of_the_lock() {
    let table =
        |slot: &str| small_lock(0, &format!("/// A.\ntable a profile a 1 {{\n  /// F.\n  {slot}\n}}"));
    let (old, new) = (table("optional fn f() default \"nothing\""), table("required fn f()"));
    assert_eq!(lock::lost(&old, &new).len(), 1);
}
