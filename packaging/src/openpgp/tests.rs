//! Keys are read again, and GnuPG takes them and what they sign.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output};

use super::*;

const TIME: u64 = 1_700_000_000;

const OWNER: &str = "Archive <archive@example.org>";

fn key(seed: u8) -> Key {
    Key::of_seed([seed; 32], OWNER, TIME).expect("a key")
}

/// What a program says, if it is here.
fn run(program: &str, home: &Path, arguments: &[&str]) -> Option<Output> {
    match Command::new(program).arg("--homedir").arg(home).args(arguments).current_dir(home).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("`{program}` is not here, so nobody else reads keys and signatures");
            None
        }
        output => Some(output.expect(program)),
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

#[test]
fn a_key_that_is_written_is_read_again() {
    // Seeds whose first bytes are 0 are shorter numbers.
    for seed in [[7; 32], [0; 32], std::array::from_fn(|place| if place < 3 { 0 } else { 0xff })] {
        let key = Key::of_seed(seed, OWNER, TIME).expect("a key");
        let again = Key::read(&key.secret_text()).expect("what was written");
        assert_eq!(again.secret_text(), key.secret_text());
        assert_eq!(again.public_bytes(), key.public_bytes());
        assert_eq!(again.ends(), None);
    }
    let (one, other) = (Key::new(OWNER, TIME).expect("a key"), Key::new(OWNER, TIME).expect("a key"));
    assert_ne!(one.fingerprint(), other.fingerprint());
    assert_eq!(one.fingerprint_text().len(), 40);
}

#[test]
fn apt_knows_the_file_of_a_public_key_by_its_first_byte() {
    assert_eq!(key(1).public_bytes()[0], 0x98);
}

#[test]
fn what_is_no_such_key_is_refused() {
    let refused = |text: &str| Key::read(text).map(drop).expect_err("no key").to_string();
    assert!(refused("").contains("expected a line `-----BEGIN PGP PRIVATE KEY BLOCK-----`"));
    let public = armor::write("PUBLIC KEY BLOCK", &key(1).public_bytes());
    assert!(refused(&public).starts_with("expected a secret Ed25519 key without a passphrase"));
    let packets = armor::read("PRIVATE KEY BLOCK", &key(1).secret_text()).expect("bytes");
    let changed = |place: usize, byte: u8| {
        let mut packets = packets.clone();
        packets[place] = byte;
        refused(&armor::write("PRIVATE KEY BLOCK", &packets))
    };
    assert!(changed(0, 0x98).ends_with("found something else first"));
    assert!(changed(2, 6).ends_with("found one of version 6 and of algorithm 22"));
    assert!(changed(7, 1).ends_with("found one of version 4 and of algorithm 1"));
    assert!(changed(53, 254).ends_with("found one that is encrypted, or kept elsewhere"));
    assert!(changed(60, 9).ends_with("found a secret part that does not go with the public one"));
    assert!(changed(30, 9).ends_with("found a secret part that does not go with the public one"));
    for length in 0..packets.len() {
        refused(&armor::write("PRIVATE KEY BLOCK", &packets[..length]));
    }
    assert!(
        Key::new("", TIME).is_err() && Key::new("a\nb", TIME).is_err() && Key::new(OWNER, 1 << 33).is_err()
    );
}

#[test]
fn gnupg_takes_keys_and_what_they_sign() {
    let home = tempfile::tempdir().expect("a directory");
    let write = |name: &str, bytes: &[u8]| std::fs::write(home.path().join(name), bytes).expect("a file");
    let keys = [key(1), key(2)];
    write("both.gpg", &keys.each_ref().map(Key::public_bytes).concat());
    write("other.gpg", &key(3).public_bytes());
    let text = "Origin: here\n-dashes\n\ntrailing \t\nlast\n";
    for (count, seconds) in [(1, TIME), (2, TIME + 9), (1, TIME - 9)] {
        write("signed", sign_text(text, &keys[..count], seconds).expect("a text").as_bytes());
        write("text", text.as_bytes());
        write(
            "text.asc",
            sign_bytes(text.as_bytes(), &keys[..count], seconds).expect("signatures").as_bytes(),
        );
        for files in [["signed"].as_slice(), &["text.asc", "text"]] {
            let check = |ring: &str| {
                let ring = format!("./{ring}");
                run("gpgv", home.path(), &[&["--keyring", &ring], files].concat())
            };
            let Some(good) = check("both.gpg") else { return };
            assert!(good.status.success(), "{}", said(&good));
            assert_eq!(said(&good).matches("Good signature from").count(), count, "{}", said(&good));
            assert!(said(&good).contains(&keys[0].fingerprint_text()), "{}", said(&good));
            let other = check("other.gpg").expect("gpgv");
            assert!(!other.status.success(), "{}", said(&other));
        }
    }
    let signed = sign_text(text, &keys, TIME).expect("a text");
    write("signed", signed.replace("last", "first").as_bytes());
    let changed = run("gpgv", home.path(), &["--keyring", "./both.gpg", "signed"]).expect("gpgv");
    assert!(!changed.status.success() && said(&changed).contains("BAD signature"), "{}", said(&changed));
}

#[test]
fn keys_go_to_gnupg_and_come_from_it() {
    let home = tempfile::tempdir().expect("a directory");
    let batch = |arguments: &[&str]| {
        let always = ["--batch", "--pinentry-mode", "loopback", "--passphrase", ""];
        run("gpg", home.path(), &[always.as_slice(), arguments].concat())
    };
    std::fs::write(home.path().join("key"), key(1).secret_text()).expect("a file");
    let Some(imported) = batch(&["--import", "key"]) else { return };
    assert!(
        imported.status.success() && said(&imported).contains("secret keys imported: 1"),
        "{}",
        said(&imported)
    );
    let exported = batch(&["--armor", "--export-secret-keys"]).expect("gpg");
    assert_eq!(Key::read(&said(&exported)).expect("our key").fingerprint(), key(1).fingerprint());
    let generate = |name: &str, passphrase: &str| {
        let always = ["--passphrase", passphrase, "--quick-generate-key", name, "ed25519", "sign", "10d"];
        let made = batch(&always).expect("gpg");
        assert!(made.status.success(), "{}", said(&made));
        let exported = batch(&["--passphrase", passphrase, "--armor", "--export-secret-keys", name]);
        Key::read(&said(&exported.expect("gpg")))
    };
    let theirs = generate("open <open@example.org>", "").expect("a key of GnuPG");
    let made = theirs.time(0).expect("a time");
    assert_eq!(theirs.ends(), Some(u64::from(made) + 10 * 86_400));
    let locked =
        generate("locked <locked@example.org>", "secret").map(drop).expect_err("a key that is encrypted");
    assert!(locked.to_string().ends_with("found one that is encrypted, or kept elsewhere"), "{locked}");
    // What GnuPG started for this directory ends with it.
    _ = Command::new("gpgconf").arg("--homedir").arg(home.path()).args(["--kill", "all"]).status();
}
