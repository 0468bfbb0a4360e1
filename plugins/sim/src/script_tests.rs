//! Tests of the script language.

use super::*;
use oarlock_fault_script::SplitMix64;

fn parse_error(text: &str) -> String {
    FaultScript::parse_script(text).unwrap_err().to_string()
}

#[test]
fn settings_are_read() {
    let script = FaultScript::parse_script(
        "seed 42; mode random\n# a comment\nids 3,7 ; quota 64MiB # more\npoison off\ntrace on\n\nlie device_count 7; ops Add,MatMul",
    )
    .unwrap();
    assert_eq!(script.ops, Some(vec!["Add".to_owned(), "MatMul".to_owned()]));
    assert_eq!((script.faults.seed, script.mode, script.quota), (42, SchedulingMode::Random, 64 << 20));
    assert_eq!(script.device_ids, [3, 7]);
    assert_eq!((script.poison, script.trace), (false, true));
    assert_eq!(script.reported_device_count, Some(7));
    assert_eq!(FaultScript::parse_script("devices 3").unwrap().device_ids, [0, 1, 2]);
}

#[test]
fn table_lies_and_missing_slots_can_be_asked_for() {
    let script = FaultScript::parse_script("short core 64; long async 4096; missing copy_d2d").unwrap();
    assert_eq!(script.table_size("core"), Some(64));
    assert_eq!(script.table_size("async"), Some(4096));
    assert_eq!(script.table_size("graph"), None);
    assert!(script.is_missing("copy_d2d") && !script.is_missing("copy_h2d"));
}

#[test]
fn a_mistake_names_the_line_the_word_and_the_nearest_word() {
    let found = parse_error("seed 1\nflail memory_set 1 internal");
    assert!(found.starts_with("line 2 "), "{found}");
    assert!(found.contains("`flail`") && found.contains("nearest is `fail`"), "{found}");
    let found = parse_error("fail memory_set 1 out-of-memry");
    assert!(found.contains("found `out-of-memry`; the nearest is `out-of-memory`"), "{found}");
    let found = parse_error("seed 1; mode");
    assert!(found.contains("`eager`, `lazy`, `random`, found the end of the statement"), "{found}");
    assert!(!parse_error("xyzzyxyzzyxyzzy").contains("nearest"));
}

#[test]
fn wrong_values_are_errors() {
    for text in [
        "seed -1",
        "seed +1",
        "seed 99999999999999999999",
        "devices 65",
        "ids 1,1",
        "ids 1,,2",
        "ids",
        "quota 0",
        "quota 5XiB",
        "quota 99999999GiB",
        "delay copy_d2h 1 5",
        "delay copy_d2h 1 5ms unreal",
        "hang x 0",
        "hang x 5..2",
        "hang x ..",
        "hang X 1",
        "panic a-b 1",
        "fail x 1",
        "poison maybe",
        "lie often",
        "lose 5 after 1",
        "lose 1 before 1",
        "seed 1 2",
        "ops Add,,Mul",
        "ops",
    ] {
        let found = parse_error(text);
        assert!(found.contains("expected") || found.contains("the devices are"), "`{text}`: {found}");
    }
}

#[test]
fn a_long_or_strange_word_is_shown_short_and_on_one_line() {
    let found = parse_error(&"\u{1b}é".repeat(5000));
    assert!(found.len() < 900 && !found.contains('\u{1b}'), "{found}");
}

#[test]
fn a_hundred_thousand_mangled_scripts_never_panic() {
    let mut pieces: Vec<String> =
        STATEMENTS.iter().flat_map(|(_, form)| form.split(' ')).map(String::from).collect();
    let odd = [
        "0",
        "1",
        "2..",
        "..",
        "64MiB",
        "5ms",
        "\n",
        ";",
        "#",
        "é",
        "\0",
        "18446744073709551615",
        "3,7",
        "internal",
    ];
    pieces.extend(odd.map(String::from));
    let mut random = SplitMix64::new(2024);
    let mut accepted = 0;
    for _ in 0..100_000 {
        let mut text = String::new();
        for _ in 0..random.next_below(12) {
            text.push_str(&pieces[random.next_below(pieces.len())]);
            text.push_str(if random.next_below(8) == 0 { "" } else { " " });
        }
        match FaultScript::parse_script(&text) {
            Ok(_) => accepted += 1,
            Err(error) => assert!(error.line >= 1 && error.line <= text.lines().count(), "{text:?}"),
        }
    }
    assert!(accepted > 1000, "the mangler must reach past the first word, {accepted} scripts were accepted");
}
