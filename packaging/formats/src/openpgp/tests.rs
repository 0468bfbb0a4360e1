//! Keys are read back, and GnuPG accepts them and their signatures.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output};

use super::*;

const SIGNING_TIME: u64 = 1_700_000_000;

const KEY_OWNER: &str = "Archive <archive@example.org>";

fn key_of_seed(seed: u8) -> OpenPgpKey {
    OpenPgpKey::from_seed([seed; 32], KEY_OWNER, SIGNING_TIME).expect("a key")
}

/// Runs a program with its own home directory, if the program is installed.
fn run_with_home(program: &str, home: &Path, arguments: &[&str]) -> Option<Output> {
    match Command::new(program).arg("--homedir").arg(home).args(arguments).current_dir(home).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("`{program}` is not here, so nobody else reads keys and signatures");
            None
        }
        output => Some(output.expect(program)),
    }
}

fn output_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

#[test]
fn a_key_that_is_written_is_read_again() {
    // Seeds with leading zero bytes are shorter as integers.
    for seed in [[7; 32], [0; 32], std::array::from_fn(|place| if place < 3 { 0 } else { 0xff })] {
        let key = OpenPgpKey::from_seed(seed, KEY_OWNER, SIGNING_TIME).expect("a key");
        let again = OpenPgpKey::from_armor(&key.to_secret_armor()).expect("what was written");
        assert_eq!(again.to_secret_armor(), key.to_secret_armor());
        assert_eq!(again.to_public_packets(), key.to_public_packets());
        assert_eq!(again.expiration_time(), None);
    }
    let (one, other) = (
        OpenPgpKey::new(KEY_OWNER, SIGNING_TIME).expect("a key"),
        OpenPgpKey::new(KEY_OWNER, SIGNING_TIME).expect("a key"),
    );
    assert_ne!(one.fingerprint(), other.fingerprint());
    assert_eq!(one.fingerprint_hex().len(), 40);
}

#[test]
fn apt_knows_the_file_of_a_public_key_by_its_first_byte() {
    assert_eq!(key_of_seed(1).to_public_packets()[0], 0x98);
}

#[test]
fn what_is_no_such_key_is_refused() {
    let refused = |text: &str| OpenPgpKey::from_armor(text).map(drop).expect_err("no key").to_string();
    assert!(refused("").contains("expected a line `-----BEGIN PGP PRIVATE KEY BLOCK-----`"));
    let public = armor::encode_armor("PUBLIC KEY BLOCK", &key_of_seed(1).to_public_packets());
    assert!(refused(&public).starts_with("expected a secret Ed25519 key without a passphrase"));
    let packets = armor::decode_armor("PRIVATE KEY BLOCK", &key_of_seed(1).to_secret_armor()).expect("bytes");
    let changed = |place: usize, byte: u8| {
        let mut packets = packets.clone();
        packets[place] = byte;
        refused(&armor::encode_armor("PRIVATE KEY BLOCK", &packets))
    };
    assert!(changed(0, 0x98).ends_with("found something else first"));
    assert!(changed(2, 6).ends_with("found one of version 6 and of algorithm 22"));
    assert!(changed(7, 1).ends_with("found one of version 4 and of algorithm 1"));
    assert!(changed(53, 254).ends_with("found one that is encrypted, or kept elsewhere"));
    assert!(changed(60, 9).ends_with("found a secret part that does not go with the public one"));
    assert!(changed(30, 9).ends_with("found a secret part that does not go with the public one"));
    for length in 0..packets.len() {
        refused(&armor::encode_armor("PRIVATE KEY BLOCK", &packets[..length]));
    }
    assert!(
        OpenPgpKey::new("", SIGNING_TIME).is_err()
            && OpenPgpKey::new("a\nb", SIGNING_TIME).is_err()
            && OpenPgpKey::new(KEY_OWNER, 1 << 33).is_err()
    );
}

#[test]
fn gnupg_accepts_our_keys_and_signatures() {
    let home = tempfile::tempdir().expect("a directory");
    let write = |name: &str, bytes: &[u8]| std::fs::write(home.path().join(name), bytes).expect("a file");
    let keys = [key_of_seed(1), key_of_seed(2)];
    write("both.gpg", &keys.each_ref().map(OpenPgpKey::to_public_packets).concat());
    write("other.gpg", &key_of_seed(3).to_public_packets());
    let text = "Origin: here\n-dashes\n\ntrailing \t\nlast\n";
    for (count, seconds) in [(1, SIGNING_TIME), (2, SIGNING_TIME + 9), (1, SIGNING_TIME - 9)] {
        write("signed", sign_cleartext(text, &keys[..count], seconds).expect("a text").as_bytes());
        write("text", text.as_bytes());
        write(
            "text.asc",
            sign_detached(text.as_bytes(), &keys[..count], seconds).expect("signatures").as_bytes(),
        );
        for files in [["signed"].as_slice(), &["text.asc", "text"]] {
            let check = |ring: &str| {
                let ring = format!("./{ring}");
                run_with_home("gpgv", home.path(), &[&["--keyring", &ring], files].concat())
            };
            let Some(good) = check("both.gpg") else { return };
            assert!(good.status.success(), "{}", output_text(&good));
            assert_eq!(
                output_text(&good).matches("Good signature from").count(),
                count,
                "{}",
                output_text(&good)
            );
            assert!(output_text(&good).contains(&keys[0].fingerprint_hex()), "{}", output_text(&good));
            let other = check("other.gpg").expect("gpgv");
            assert!(!other.status.success(), "{}", output_text(&other));
        }
    }
    let signed = sign_cleartext(text, &keys, SIGNING_TIME).expect("a text");
    write("signed", signed.replace("last", "first").as_bytes());
    let changed = run_with_home("gpgv", home.path(), &["--keyring", "./both.gpg", "signed"]).expect("gpgv");
    assert!(
        !changed.status.success() && output_text(&changed).contains("BAD signature"),
        "{}",
        output_text(&changed)
    );
}

#[test]
fn keys_go_to_gnupg_and_come_from_it() {
    let home = tempfile::tempdir().expect("a directory");
    let batch = |arguments: &[&str]| {
        let always = ["--batch", "--pinentry-mode", "loopback", "--passphrase", ""];
        run_with_home("gpg", home.path(), &[always.as_slice(), arguments].concat())
    };
    std::fs::write(home.path().join("key"), key_of_seed(1).to_secret_armor()).expect("a file");
    let Some(imported) = batch(&["--import", "key"]) else { return };
    assert!(
        imported.status.success() && output_text(&imported).contains("secret keys imported: 1"),
        "{}",
        output_text(&imported)
    );
    let exported = batch(&["--armor", "--export-secret-keys"]).expect("gpg");
    assert_eq!(
        OpenPgpKey::from_armor(&output_text(&exported)).expect("our key").fingerprint(),
        key_of_seed(1).fingerprint()
    );
    let generate = |name: &str, passphrase: &str| {
        let always = ["--passphrase", passphrase, "--quick-generate-key", name, "ed25519", "sign", "10d"];
        let made = batch(&always).expect("gpg");
        assert!(made.status.success(), "{}", output_text(&made));
        let exported = batch(&["--passphrase", passphrase, "--armor", "--export-secret-keys", name]);
        OpenPgpKey::from_armor(&output_text(&exported.expect("gpg")))
    };
    let theirs = generate("open <open@example.org>", "").expect("a key of GnuPG");
    let made = theirs.signing_time(0).expect("a time");
    assert_eq!(theirs.expiration_time(), Some(u64::from(made) + 10 * 86_400));
    let locked =
        generate("locked <locked@example.org>", "secret").map(drop).expect_err("a key that is encrypted");
    assert!(locked.to_string().ends_with("found one that is encrypted, or kept elsewhere"), "{locked}");
    // Stops the agent that GnuPG started for this directory.
    _ = Command::new("gpgconf").arg("--homedir").arg(home.path()).args(["--kill", "all"]).status();
}
