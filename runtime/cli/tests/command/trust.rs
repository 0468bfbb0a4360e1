//! `oarlock plugin sign`, `verify`, `trust` and `key`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use crate::user::{TestOutcome, TestUser};

/// A user with a good plugin that needs `libdep.so` beside it, its manifest, and the key pair `acme`.
struct TestVendor(TestUser);

impl TestVendor {
    fn new() -> Self {
        let vendor = Self(TestUser::new());
        vendor.compile("libdep.so", "int dep;\n", &["-Wl,-soname,libdep.so"]);
        let plugin = "#include \"minimal.h\"\n\
            static oarlock_error describe(oarlock_plugin *plugin) { return minimal_describe(plugin, \"Good\"); }\n\
            OARLOCK_PLUGIN(describe);\n";
        vendor.compile("libgood.so", plugin, &["-Wl,--no-as-needed,-rpath,$ORIGIN", "-L.", "-ldep"]);
        vendor.succeed(&["plugin", "manifest", "libgood.so", "--write"]);
        vendor.succeed(&["plugin", "key", "new", "acme"]);
        vendor
    }

    fn compile(&self, name: &str, source: &str, arguments: &[&str]) {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let text = self.0.write_file("source.c", source.as_bytes());
        let includes = [format!("-I{root}/device-sdk/include"), format!("-I{root}/tests/plugins")];
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-fPIC", "-shared", "-o", name]).args(includes).arg(text).args(arguments);
        assert!(compiler.current_dir(self.0.home.path()).status().expect("a C compiler").success());
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).expect("the file is ours");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.home.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> TestOutcome {
        self.0.run_command(arguments)
    }

    fn succeed(&self, arguments: &[&str]) -> TestOutcome {
        let outcome = self.run(arguments);
        assert_eq!(outcome.status, 0, "{arguments:?}: {}{}", outcome.out, outcome.err);
        outcome
    }

    fn fail(&self, arguments: &[&str]) -> TestOutcome {
        let outcome = self.run(arguments);
        assert_eq!(outcome.status, 1, "{arguments:?}: {}{}", outcome.out, outcome.err);
        outcome
    }

    fn sign(&self) {
        self.succeed(&["plugin", "sign", "libgood.so", "--key", "acme.key"]);
    }

    /// The outcome of the plugin in `oarlock plugins`.
    fn host_outcome(&self) -> serde_json::Value {
        let report = self.run(&["plugins", "--plugin", "libgood.so", "--json"]).parse_json();
        let plugins = report["plugins"].as_array().expect("plugins");
        let own = plugins
            .iter()
            .find(|plugin| plugin["file"].as_str().is_some_and(|file| file.contains("libgood")));
        own.expect("the plugin").clone()
    }
}

#[test]
fn a_vendor_signs_in_three_commands_and_a_user_trusts_in_one() {
    let vendor = TestVendor::new();
    let manifest = fs::read_to_string(vendor.path("libgood.oarlock.toml")).expect("a manifest");
    assert!(manifest.contains("[files]\n\"libdep.so\" = \""), "{manifest}");
    vendor.sign();
    // Nobody is trusted yet.
    assert!(vendor.fail(&["plugin", "verify", "libgood.so"]).out.contains("unknown"));
    vendor.succeed(&["plugin", "verify", "libgood.so", "--key", "acme.pem"]);
    let trusted = vendor.succeed(&["plugin", "trust", "acme.pem", "--json"]).parse_json();
    assert_eq!(
        trusted["trusted"],
        vendor.succeed(&["plugin", "key", "show", "acme.key", "--json"]).parse_json()["fingerprint"]
    );
    let verified = vendor.succeed(&["plugin", "verify", "libgood.so"]);
    assert!(verified.out.contains("libdep.so") && verified.out.contains("valid"), "{}", verified.out);
    fs::create_dir_all(vendor.path(".config/oarlock")).expect("a directory");
    vendor.0.write_file(".config/oarlock/config.toml", b"[plugins]\nrequire_signature = true\n");
    let outcome = vendor.host_outcome();
    assert!(outcome.to_string().contains(".config/oarlock/keys/acme-"), "{outcome}");
    let list = vendor.succeed(&["plugin", "trust", "--list"]).out;
    assert!(list.starts_with("trusted  "), "{list}");
    let fingerprint = trusted["trusted"].as_str().expect("a fingerprint");
    vendor.fail(&["plugin", "trust", "--remove", &fingerprint[..7]]);
    vendor.fail(&["plugin", "trust", "--remove", "00000000000"]);
    vendor.succeed(&["plugin", "trust", "--remove", &fingerprint[..8]]);
    assert_eq!(vendor.succeed(&["plugin", "trust", "--list"]).out, "");
    assert!(vendor.host_outcome().to_string().contains("signature-missing"));
}

#[test]
fn each_file_that_deviates_from_what_was_signed_is_named() {
    let vendor = TestVendor::new();
    vendor.sign();
    let verify = || {
        let outcome = vendor.run(&["plugin", "verify", "libgood.so", "--key", "acme.pem", "--json"]);
        let report = outcome.parse_json();
        assert_eq!(report["verified"], outcome.status == 0);
        let state = |file: &serde_json::Value| format!("{} {}", file["name"], file["state"]).replace('"', "");
        let files: Vec<String> = report["files"].as_array().expect("files").iter().map(state).collect();
        (outcome.status, files.join(", "), report["refusal"]["reason"].as_str().map(str::to_owned))
    };
    assert_eq!(verify(), (0, "libgood.so covered, libdep.so covered".to_owned(), None));
    let library = fs::read(vendor.path("libdep.so")).expect("a library");
    fs::write(vendor.path("libdep.so"), [&library[..], b"x"].concat()).expect("a file");
    assert_eq!(verify(), (1, "libgood.so covered, libdep.so changed".to_owned(), None));
    let stale = vendor.fail(&["plugin", "sign", "libgood.so", "--key", "acme.key"]);
    assert!(
        stale.err.contains("libdep.so") && stale.err.contains("plugin manifest --write"),
        "{}",
        stale.err
    );
    fs::remove_file(vendor.path("libdep.so")).expect("no file");
    assert_eq!(verify(), (1, "libgood.so covered, libdep.so missing".to_owned(), None));
    fs::write(vendor.path("libdep.so"), &library).expect("a file");
    // A manifest that lists less, and one with another line.
    let manifest = fs::read_to_string(vendor.path("libgood.oarlock.toml")).expect("a manifest");
    let (start, _) = manifest.split_once("[files]").expect("files");
    vendor.0.write_file("libgood.oarlock.toml", start.as_bytes());
    let unlisted =
        (1, "libgood.so covered, libdep.so unlisted".to_owned(), Some("signature-invalid".to_owned()));
    assert_eq!(verify(), unlisted);
    assert!(vendor.fail(&["plugin", "sign", "libgood.so", "--key", "acme.key"]).err.contains("is loaded"));
    vendor.0.write_file("libgood.oarlock.toml", format!("# signed?\n{manifest}").as_bytes());
    assert_eq!(verify().2.as_deref(), Some("signature-invalid"));
    fs::remove_file(vendor.path("libgood.oarlock.toml")).expect("no file");
    assert!(
        vendor
            .fail(&["plugin", "sign", "libgood.so", "--key", "acme.key"])
            .err
            .contains("expected a manifest")
    );
    assert_eq!(verify().0, 1);
    vendor.fail(&["plugin", "verify", "libnone.so"]);
}

/// The commands that the book has for a machine with OpenSSL alone.
#[test]
fn a_machine_with_only_openssl_can_sign() {
    let vendor = TestVendor::new();
    let page = include_str!("../../../../docs/src/user/trust.md");
    let start = page.find("    { echo 'oarlock-signature 1'").expect("the commands");
    let lines: Vec<&str> = page[start..].lines().take_while(|line| line.starts_with("    ")).collect();
    assert_eq!(lines.len(), 4);
    let script = lines.join("\n").replace("libacme", "libgood");
    let has_openssl = Command::new("openssl").arg("version").output().is_ok();
    if !has_openssl {
        eprintln!("skipped: `openssl` is not installed");
        return;
    }
    let mut shell = Command::new("sh");
    let signed = shell.args(["-e", "-c", &script]).current_dir(vendor.0.home.path()).status();
    assert!(signed.expect("a shell").success());
    vendor.succeed(&["plugin", "verify", "libgood.so", "--key", "acme.pem"]);
}

#[test]
fn keys_are_private_and_never_overwritten() {
    let vendor = TestVendor::new();
    let mode = |name: &str| fs::metadata(vendor.path(name)).expect("a file").permissions().mode() & 0o777;
    assert_eq!((mode("acme.key"), mode("acme.pem")), (0o600, 0o644));
    let key = fs::read(vendor.path("acme.key")).expect("a key");
    assert!(vendor.fail(&["plugin", "key", "new", "acme"]).err.contains("never overwritten"));
    fs::remove_file(vendor.path("acme.key")).expect("no file");
    vendor.fail(&["plugin", "key", "new", "acme"]);
    assert!(!vendor.path("acme.key").exists(), "a key without its public key is of no use");
    vendor.0.write_file("acme.key", &key);
    let open = vendor.fail(&["plugin", "sign", "libgood.so", "--key", "acme.key"]);
    assert!(open.err.contains("chmod 600"), "{}", open.err);
    let public = vendor.fail(&["plugin", "trust", "acme.key"]);
    assert!(public.err.contains("private"), "{}", public.err);
}

#[test]
fn a_key_is_followed_by_another_and_a_stranger_cannot_say_so() {
    let vendor = TestVendor::new();
    vendor.succeed(&["plugin", "key", "rotate", "acme.key", "acme-2"]);
    let stranger = vendor.fail(&["plugin", "trust", "acme-2.successor"]);
    assert!(stranger.err.contains("a key that you trust"), "{}", stranger.err);
    vendor.succeed(&["plugin", "trust", "acme.pem"]);
    let follows = vendor.succeed(&["plugin", "trust", "acme-2.successor", "--json"]).parse_json();
    assert!(follows["follows"].as_str().is_some_and(|file| file.contains("keys/acme-")), "{follows}");
    vendor.succeed(&["plugin", "sign", "libgood.so", "--key", "acme-2.key"]);
    vendor.succeed(&["plugin", "verify", "libgood.so"]);
    vendor.succeed(&["plugin", "sign", "libgood.so", "--key", "acme.key", "--key", "acme-2.key"]);
    for key in ["acme.pem", "acme-2.pem"] {
        vendor.succeed(&["plugin", "verify", "libgood.so", "--key", key]);
    }
    let statement = fs::read_to_string(vendor.path("acme-2.successor")).expect("a statement");
    vendor.0.write_file("forged.successor", statement.replacen("successor ", "successor 0", 1).as_bytes());
    assert!(vendor.fail(&["plugin", "trust", "forged.successor"]).err.contains("expected a statement"));
}

#[test]
fn what_only_a_revoked_key_signed_is_refused() {
    let vendor = TestVendor::new();
    vendor.sign();
    vendor.succeed(&["plugin", "trust", "acme.pem"]);
    vendor.succeed(&["plugin", "key", "revoke", "acme.key"]);
    vendor.succeed(&["plugin", "verify", "libgood.so"]);
    vendor.succeed(&["plugin", "trust", "acme.revoked"]);
    assert!(vendor.fail(&["plugin", "verify", "libgood.so"]).out.contains("revoked"));
    assert!(vendor.host_outcome().to_string().contains("key-revoked"));
    assert!(vendor.fail(&["plugin", "trust", "acme.pem"]).err.contains("not revoked"));
    // A thief of the key cannot appoint a successor any more.
    vendor.succeed(&["plugin", "key", "rotate", "acme.key", "thief"]);
    vendor.fail(&["plugin", "trust", "thief.successor"]);
    // The vendor signs with another key as well.
    vendor.succeed(&["plugin", "key", "new", "next"]);
    vendor.succeed(&["plugin", "trust", "next.pem"]);
    vendor.succeed(&["plugin", "sign", "libgood.so", "--key", "acme.key", "--key", "next.key"]);
    vendor.succeed(&["plugin", "verify", "libgood.so"]);
    assert!(!vendor.host_outcome().to_string().contains("key-revoked"));
}

#[test]
fn keys_lie_beside_the_configuration_file_that_is_named() {
    let vendor = TestVendor::new();
    vendor.sign();
    fs::create_dir(vendor.path("other")).expect("a directory");
    vendor.0.write_file("other/config.toml", b"");
    vendor.succeed(&["plugin", "trust", "acme.pem", "--config", "other/config.toml"]);
    vendor.succeed(&["plugin", "verify", "libgood.so", "--config", "other/config.toml"]);
    vendor.fail(&["plugin", "verify", "libgood.so"]);
    let files: Vec<_> = fs::read_dir(vendor.path("other/keys")).expect("keys").collect();
    assert_eq!(files.len(), 1);
}

#[test]
fn files_that_are_neither_key_nor_statement_are_refused_and_not_waited_for() {
    let vendor = TestVendor::new();
    vendor.0.write_file("garbage", &[0xff; 100]);
    vendor.0.write_file("large", &vec![b'x'; 100_000]);
    let pipe = Command::new("mkfifo").arg(vendor.path("pipe")).status();
    assert!(pipe.expect("mkfifo").success());
    for name in ["garbage", "large", "pipe", "none", "."] {
        vendor.fail(&["plugin", "trust", name]);
        vendor.fail(&["plugin", "key", "show", name]);
        vendor.fail(&["plugin", "sign", "libgood.so", "--key", name]);
    }
    assert!(!vendor.path(".config").exists());
}
