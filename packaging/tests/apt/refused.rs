//! Repositories that apt rejects, and its reasons.

use std::path::PathBuf;

use crate::machine::{AptMachine, utf8_text};
use crate::served_repository::ServedRepository;

pub(crate) fn a_list_of_which_a_byte_changed() {
    let served = ServedRepository::signed_with_new_key();
    let lists = served.file_path("dists/stable/main/binary-amd64");
    let below = |directory: PathBuf| {
        let entries = std::fs::read_dir(directory).expect("a directory");
        entries.map(|entry| entry.expect("a file").path()).filter(|path| path.is_file())
    };
    let files: Vec<PathBuf> = below(lists.clone()).chain(below(lists.join("by-hash/SHA256"))).collect();
    assert_eq!(files.len(), 4);
    served.corrupt_files(&files);
    let message = AptMachine::of_repository(&served).refusal_of_update();
    assert!(message.contains("Hash Sum mismatch"), "{message}");
}

pub(crate) fn a_release_of_which_a_byte_changed() {
    let served = ServedRepository::signed_with_new_key();
    let file = served.file_path("dists/stable/InRelease");
    let release = std::fs::read_to_string(&file).expect("a release");
    std::fs::write(&file, release.replace("Origin: Oarlock", "Origin: Airlock")).expect("a file");
    let message = AptMachine::of_repository(&served).refusal_of_update();
    assert!(message.contains("BADSIG") || message.contains("is not signed"), "{message}");
}

pub(crate) fn a_package_of_which_a_byte_changed() {
    let served = ServedRepository::signed_with_new_key();
    served.corrupt_files(&[served.file_path("pool/main/o/oarlock/oarlock_1_amd64.deb")]);
    let machine = AptMachine::of_repository(&served);
    machine.run_apt_cleanly(&["update", "--error-on=any"]);
    let output = machine.run_apt(&["download", "oarlock"]);
    let message = utf8_text(&output.stderr);
    assert!(!output.status.success() && message.contains("Hash Sum mismatch"), "{message}");
}

pub(crate) fn what_has_ended() {
    let message = AptMachine::of_repository(&ServedRepository::expired_yesterday()).refusal_of_update();
    assert!(message.contains("is expired"), "{message}");
}

pub(crate) fn what_nobody_signed() {
    let served = ServedRepository::written_by_command(&["--unsigned"]);
    let keys =
        std::fs::read(ServedRepository::signed_with_new_key().file_path("oarlock-archive-keyring.gpg"))
            .expect("keys");
    let message = AptMachine::with_keys(&served, &keys).refusal_of_update();
    assert!(message.contains("is not signed"), "{message}");
}

pub(crate) fn what_somebody_else_signed() {
    let served = ServedRepository::signed_with_new_key();
    let keys =
        std::fs::read(ServedRepository::signed_with_new_key().file_path("oarlock-archive-keyring.gpg"))
            .expect("keys");
    let message = AptMachine::with_keys(&served, &keys).refusal_of_update();
    assert!(message.contains("NO_PUBKEY") || message.contains("is not signed"), "{message}");
}
