//! What apt refuses, and why.

use std::path::PathBuf;

use crate::machine::{Machine, text};
use crate::served::Served;

pub(crate) fn a_list_of_which_a_byte_changed() {
    let served = Served::signed();
    let lists = served.file("dists/stable/main/binary-amd64");
    let below = |directory: PathBuf| {
        let entries = std::fs::read_dir(directory).expect("a directory");
        entries.map(|entry| entry.expect("a file").path()).filter(|path| path.is_file())
    };
    let files: Vec<PathBuf> = below(lists.clone()).chain(below(lists.join("by-hash/SHA256"))).collect();
    assert_eq!(files.len(), 4);
    served.change(&files);
    let said = Machine::of(&served).refusal();
    assert!(said.contains("Hash Sum mismatch"), "{said}");
}

pub(crate) fn a_release_of_which_a_byte_changed() {
    let served = Served::signed();
    let file = served.file("dists/stable/InRelease");
    let release = std::fs::read_to_string(&file).expect("a release");
    std::fs::write(&file, release.replace("Origin: Oarlock", "Origin: Airlock")).expect("a file");
    let said = Machine::of(&served).refusal();
    assert!(said.contains("BADSIG") || said.contains("is not signed"), "{said}");
}

pub(crate) fn a_package_of_which_a_byte_changed() {
    let served = Served::signed();
    served.change(&[served.file("pool/main/o/oarlock/oarlock_1_amd64.deb")]);
    let machine = Machine::of(&served);
    machine.good(&["update", "--error-on=any"]);
    let output = machine.apt(&["download", "oarlock"]);
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("Hash Sum mismatch"), "{said}");
}

pub(crate) fn what_has_ended() {
    let said = Machine::of(&Served::ended()).refusal();
    assert!(said.contains("is expired"), "{said}");
}

pub(crate) fn what_nobody_signed() {
    let served = Served::of_command(&["--unsigned"]);
    let keys = std::fs::read(Served::signed().file("oarlock-archive-keyring.gpg")).expect("keys");
    let said = Machine::with_keys(&served, &keys).refusal();
    assert!(said.contains("is not signed"), "{said}");
}

pub(crate) fn what_somebody_else_signed() {
    let served = Served::signed();
    let keys = std::fs::read(Served::signed().file("oarlock-archive-keyring.gpg")).expect("keys");
    let said = Machine::with_keys(&served, &keys).refusal();
    assert!(said.contains("NO_PUBKEY") || said.contains("is not signed"), "{said}");
}
