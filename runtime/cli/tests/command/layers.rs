//! The layers of the command, and `oarlock replay`.

use oarlock_plugin_record::{
    FILE_MAGIC, RecordedPart, RecordingFrame, RecordingReader, encode_frame, hash_bytes,
};

use crate::user::TestUser;

const SOFTMAX: [&str; 3] = ["op", "Softmax", "f32:[1,2,3]"];

/// Records an op with these options of the layer.
fn record_softmax(options: &str) -> TestUser {
    let user = TestUser::new();
    user.write_file("record.toml", format!("[plugin.record]\n{options}").as_bytes());
    let outcome =
        user.run_command(&[&SOFTMAX[..], &["--config", "record.toml", "--layer", "record"]].concat());
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    assert!(
        outcome.err.contains("note: `record`: ") && outcome.err.contains("oarlock-record.bin`"),
        "{}",
        outcome.err
    );
    user
}

#[test]
fn validate_says_how_many_calls_it_checked() {
    let outcome = TestUser::new().run_command(&[&SOFTMAX[..], &["--layer", "validate"]].concat());
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    assert!(outcome.err.starts_with("note: `validate`: 0 breaches in "), "{}", outcome.err);
}

#[test]
fn a_recording_is_replayed_with_the_same_results() {
    let user = record_softmax("");
    let outcome = user.run_command(&["replay", "oarlock-record.bin", "--compare", "--tolerance", "0"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    assert!(outcome.out.starts_with("replayed ") && outcome.out.contains(" on `cpu:0`"), "{}", outcome.out);
    assert!(outcome.out.contains("compared 1 result: all as recorded"), "{}", outcome.out);
    let report = user.run_command(&["replay", "oarlock-record.bin", "--json"]).parse_json();
    assert_eq!((&report["device"], &report["is_cut_off"]), (&"cpu:0".into(), &false.into()));
    assert!(report["compared"].is_null());
    assert_eq!(report["left_out"].as_object().map(serde_json::Map::len), Some(1), "{report}");
}

#[test]
fn hashes_are_enough_to_compare_and_shapes_to_replay() {
    let user = record_softmax("contents = 'referenced'");
    let outcome = user.run_command(&["replay", "oarlock-record.bin", "--compare"]);
    // The source of the copy to the device is not recorded, so the op computes something else.
    assert!(outcome.out.contains("left out: the bytes of its source are not recorded"), "{}", outcome.out);
    assert_eq!(outcome.status, 1, "{}", outcome.out);
    let user = record_softmax("contents = 'shapes'");
    let outcome = user.run_command(&["replay", "oarlock-record.bin", "--compare"]);
    assert!(outcome.out.contains("compared nothing: the recording has no results"), "{}", outcome.out);
    assert_eq!(outcome.status, 0, "{}", outcome.out);
}

/// Makes the first element of each recorded output 2.
fn change_outputs(frame: &mut RecordingFrame) {
    let RecordingFrame::Call(call) = frame else { return };
    for part in &mut call.parts {
        let RecordedPart::Kernel(kernel) = part else { continue };
        for contents in kernel.outputs.iter_mut().filter_map(|output| output.contents.as_mut()) {
            let bytes = contents.bytes.as_mut().expect("a full recording");
            bytes[..4].copy_from_slice(&2f32.to_le_bytes());
            contents.hash = Some(hash_bytes(bytes));
        }
    }
}

#[test]
fn a_result_that_differs_is_named_and_is_a_failure() {
    let user = record_softmax("");
    let recording = std::fs::read(user.home.path().join("oarlock-record.bin")).expect("a recording");
    let mut reader = RecordingReader::open_recording(&recording[..]).expect("a recording");
    let mut changed = FILE_MAGIC.to_vec();
    while let Some(mut frame) = reader.next_frame().expect("a frame") {
        change_outputs(&mut frame);
        encode_frame(&mut changed, &frame);
    }
    user.write_file("changed.bin", &changed);
    let outcome = user.run_command(&["replay", "changed.bin", "--compare"]);
    assert_eq!(outcome.status, 1, "{}", outcome.out);
    assert!(
        outcome.out.contains("1 differ") && outcome.out.contains(": Softmax, output 0: by 9.5e-1"),
        "{}",
        outcome.out
    );
}

#[test]
fn a_recording_that_was_cut_off_is_replayed_up_to_its_end() {
    let user = record_softmax("");
    let whole = std::fs::read(user.home.path().join("oarlock-record.bin")).expect("a recording");
    user.write_file("cut.bin", &whole[..whole.len() - 3]);
    let outcome = user.run_command(&["replay", "cut.bin"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    assert!(outcome.out.contains("the recording ends within a call"), "{}", outcome.out);
}

#[test]
fn what_is_no_recording_is_refused() {
    let user = TestUser::new();
    user.write_file("other.bin", b"PK\x03\x04, and so on");
    let outcome = user.run_command(&["replay", "other.bin"]);
    assert_eq!(outcome.status, 1);
    assert!(
        outcome.err.contains("`other.bin`: expected a recording of the layer `record`"),
        "{}",
        outcome.err
    );
    assert_eq!(user.run_command(&["replay", "missing.bin"]).status, 1);
}

#[test]
fn layers_come_from_arguments_environment_and_configuration_in_this_order() {
    let user = TestUser::new();
    user.write_file("layers.toml", b"[plugins]\nlayers = ['trace', 'fault']");
    let arguments = ["plugins", "--json", "--config", "layers.toml", "--layer", "record"];
    let output =
        user.oarlock_command(&arguments).env("OARLOCK_LAYERS", "validate,trace").output().expect("it runs");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = report.to_string();
    assert!(text.contains(r#"["record","validate","trace","fault"]"#), "{text}");
}
