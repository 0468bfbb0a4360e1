//! Repositories that apt accepts.

use std::fs::File;
use std::time::{Duration, SystemTime};

use crate::machine::AptMachine;
use crate::served_repository::ServedRepository;

pub(crate) fn apt_gets_just_the_packages_that_were_given() {
    let served = ServedRepository::signed_with_new_key();
    let machine = AptMachine::of_repository(&served);
    machine.run_apt_cleanly(&["update", "--error-on=any"]);
    let all = ["oarlock", "oarlock-data", "oarlock-cuda12"];
    machine.run_apt_cleanly(&[["download"].as_slice(), &all].concat());
    for (name, machine_of) in all.into_iter().zip(["amd64", "all", "amd64"]) {
        assert_eq!(
            machine.downloaded_file(&format!("{name}_1_{machine_of}.deb")),
            served.package_bytes(name),
            "{name}"
        );
    }
    let plan = machine.run_apt_cleanly(&["--simulate", "install", "oarlock-cuda12"]);
    for line in
        ["Inst oarlock-data (1 Oarlock:stable [all])", "Inst oarlock-cuda12 (1 Oarlock:stable [amd64])"]
    {
        assert!(plan.contains(line), "{plan}");
    }
}

pub(crate) fn lists_are_asked_for_by_their_hashes() {
    let served = ServedRepository::signed_with_new_key();
    AptMachine::of_repository(&served).run_apt_cleanly(&["update", "--error-on=any"]);
    let log = served.server.request_log();
    assert!(log.contains("GET /dists/stable/InRelease 200"), "{log}");
    let lists: Vec<&str> = log.lines().filter(|line| line.contains("/binary-amd64/")).collect();
    // The third list is empty for this architecture, so apt does not request it.
    assert_eq!(lists.len(), 2, "{log}");
    assert!(!log.contains("/binary-arm64/"), "{log}");
    let by_hash = |line: &&str| line.contains("/binary-amd64/by-hash/SHA256/") && line.ends_with(" 200");
    assert!(lists.iter().all(by_hash), "{log}");
}

pub(crate) fn who_reads_an_older_release_finds_its_lists_for_two_more() {
    let served = ServedRepository::signed_with_new_key();
    let release = served.file_path("dists/stable/InRelease");
    let first = std::fs::read(&release).expect("the first release");
    for (version, is_there) in [("2", true), ("3", true), ("4", false)] {
        served.publish_version(version);
        let newest = AptMachine::of_repository(&served);
        newest.run_apt_cleanly(&["update", "--error-on=any"]);
        newest.run_apt_cleanly(&["download", &format!("oarlock={version}")]);
        // The view of a client that read the release just before, or from a cache in between.
        std::fs::write(&release, &first).expect("a file");
        let older = AptMachine::of_repository(&served);
        if is_there {
            older.run_apt_cleanly(&["update", "--error-on=any"]);
            let plan = older.run_apt_cleanly(&["--simulate", "install", "oarlock"]);
            assert!(plan.contains("Inst oarlock (1 "), "{plan}");
        } else {
            let message = older.refusal_of_update();
            assert!(
                message.contains("Hash Sum mismatch") || message.contains("unexpected size"),
                "{message}"
            );
        }
    }
}

pub(crate) fn who_was_refused_reads_the_next_release_from_its_beginning() {
    let served = ServedRepository::signed_with_new_key();
    let key = std::fs::read(served.file_path("oarlock-archive-keyring.gpg")).expect("keys");
    served.publish_version_with_key("1", "next");
    // HTTP dates have a resolution of one second.
    let release = File::options().append(true).open(served.file_path("dists/stable/InRelease"));
    let earlier = SystemTime::now() - Duration::from_secs(3600);
    release.expect("a release").set_modified(earlier).expect("another time");
    let machine = AptMachine::with_keys(&served, &key);
    machine.refusal_of_update();
    served.publish_version("1");
    machine.run_apt_cleanly(&["update", "--error-on=any"]);
}

pub(crate) fn two_keys_satisfy_who_knows_one_of_them() {
    let both = ServedRepository::written_by_command(&["--key", "key", "--key", "next"]);
    let keys = std::fs::read(both.file_path("oarlock-archive-keyring.gpg")).expect("keys");
    // Every key begins alike; signatures that begin with zeros make one of them shorter.
    let begins = |at: &usize| keys[*at..].starts_with(&keys[..3]);
    let (one, next) = keys.split_at((1..keys.len()).find(begins).expect("a second key"));
    for known in [one, next, &keys] {
        let machine = AptMachine::with_keys(&both, known);
        machine.run_apt_cleanly(&["update", "--error-on=any"]);
        machine.run_apt_cleanly(&["download", "oarlock"]);
    }
}
