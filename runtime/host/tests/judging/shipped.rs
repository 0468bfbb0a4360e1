//! Plugins with libraries of their own, signed or not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use oarlock_host::{
    Digest, FileCoverage, HostConfig, HostEnvironment, JudgeContext, JudgedPlugin, KeyFiles,
    ManifestSignatures, PluginManifest, PrivateKey, ProcessIdentity, Refusal, RefusalReason, TrustedKeys,
    judge_candidate, list_covered_files,
};

use crate::directory::{JudgingDirectory, judge_path, make_candidate, refusal_reason};
#[cfg(target_endian = "little")]
use crate::files::elf_header;

/// A plugin that needs `libdep.so`, which lies beside it.
struct ShippedPlugin {
    directory: JudgingDirectory,
    plugin: PathBuf,
    library: PathBuf,
    key: PrivateKey,
}

impl ShippedPlugin {
    fn new() -> Self {
        let directory = JudgingDirectory::new();
        let library = directory.compile_library("libdep.so", &[]);
        let plugin = directory.compile_plugin(
            "libnpu.so",
            "",
            &["-Wl,--no-as-needed,--enable-new-dtags,-rpath,$ORIGIN", library.to_str().unwrap()],
        );
        Self { directory, plugin, library, key: PrivateKey::generate().unwrap() }
    }

    /// Replaces the library by one without the entry of a plugin.
    fn library_without_entry(&self) -> PathBuf {
        self.directory.compile_library("libdep.so", &["-Doarlock_plugin_query=dep"])
    }

    fn hash(&self, path: &Path) -> Digest {
        Digest::hash_bytes(&fs::read(path).unwrap())
    }

    /// Writes a manifest with the hash of the plugin and more lines, and signs it.
    fn sign_manifest(&self, more: &str) {
        self.directory.write_manifest(
            "libnpu.so",
            "npu",
            &format!("sha256 = '{}'\n{more}", self.hash(&self.plugin)),
        );
        self.sign_again();
    }

    fn sign_again(&self) {
        let manifest = fs::read(self.directory.path("libnpu.oarlock.toml")).unwrap();
        let signed = ManifestSignatures::sign_manifest(&manifest, std::slice::from_ref(&self.key)).unwrap();
        self.directory.write_file("libnpu.oarlock.sig", signed.to_text());
    }

    /// Judges as a user does who trusts the key and requires signatures.
    fn judge_strictly(&self) -> Result<JudgedPlugin, Refusal> {
        let file = self.directory.write_file("vendor.pem", self.key.public_key().unwrap().to_pem());
        let keys = KeyFiles { trusted: vec![file], ..KeyFiles::default() };
        let identity = ProcessIdentity::of_process();
        let environment = HostEnvironment::new(|_| None, false, identity);
        let contract = "1.1..1.3".parse().unwrap();
        let context = JudgeContext::new(&HostConfig::default(), &environment, contract).unwrap();
        let trusted_keys = TrustedKeys::load_keys(&keys, identity).unwrap();
        let context = JudgeContext { trusted_keys, require_signature: true, ..context };
        judge_candidate(make_candidate(self.plugin.clone(), oarlock_host::PluginOrigin::Explicit), &context)
    }

    fn strict_reason(&self) -> RefusalReason {
        self.judge_strictly().unwrap_err().reason
    }

    fn list_library(&self) -> String {
        format!("[files]\n'libdep.so' = '{}'", self.hash(&self.library))
    }
}

#[test]
fn a_library_beside_the_plugin_that_others_can_change_is_refused_like_the_plugin() {
    let shipped = ShippedPlugin::new();
    assert!(judge_path(shipped.plugin.clone(), "").is_ok());
    fs::set_permissions(&shipped.library, fs::Permissions::from_mode(0o777)).unwrap();
    let refusal = judge_path(shipped.plugin.clone(), "").unwrap_err();
    assert_eq!((refusal.reason, &refusal.file), (RefusalReason::WritableByOthers, &shipped.plugin));
    assert!(refusal.to_string().contains("libdep.so"), "{refusal}");
}

#[test]
fn the_files_in_a_manifest_have_the_hashes_in_it() {
    let shipped = ShippedPlugin::new();
    let judge_with = |files: &str| {
        shipped.directory.write_manifest("libnpu.so", "npu", files);
        judge_path(shipped.plugin.clone(), "").map_err(|refusal| refusal.reason).map(drop)
    };
    let good = shipped.list_library();
    assert_eq!(judge_with(&good), Ok(()));
    let wrong = Digest::hash_bytes(b"another");
    assert_eq!(judge_with(&format!("[files]\n'libdep.so' = '{wrong}'")), Err(RefusalReason::HashMismatch));
    assert_eq!(judge_with(&format!("{good}\n'libgone.so' = '{wrong}'")), Err(RefusalReason::ManifestLies));
    // A file that only the plugin itself opens.
    let data = shipped.directory.write_file("firmware.bin", "data");
    let listed = format!("{good}\n'firmware.bin' = '{}'", shipped.hash(&data));
    assert_eq!(judge_with(&listed), Ok(()));
    shipped.directory.write_file("firmware.bin", "other data");
    assert_eq!(judge_with(&listed), Err(RefusalReason::HashMismatch));
    // Of a longer file, the hash would cover only the beginning.
    fs::OpenOptions::new().write(true).open(&data).unwrap().set_len((2 << 30) + 1).unwrap();
    let refusal = judge_path(shipped.plugin.clone(), "").unwrap_err();
    assert!(refusal.found.contains("2147483649 bytes"), "{refusal}");
    fs::set_permissions(&data, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(judge_with(&listed), Err(RefusalReason::WritableByOthers));
    fs::remove_file(&data).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &data, rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(judge_with(&listed), Err(RefusalReason::NotASharedObject));
}

#[test]
fn a_signature_covers_the_manifest_the_plugin_and_every_library_beside_it() {
    let shipped = ShippedPlugin::new();
    assert_eq!(shipped.strict_reason(), RefusalReason::SignatureMissing);
    shipped.sign_manifest("");
    let refusal = shipped.judge_strictly().unwrap_err();
    assert_eq!(refusal.reason, RefusalReason::FileNotSigned);
    assert!(refusal.expected.contains("libdep.so"), "{refusal}");
    shipped.sign_manifest(&shipped.list_library());
    assert_eq!(shipped.judge_strictly().unwrap().signed_by, Some(shipped.directory.path("vendor.pem")));
    // A build that the linker prefers to the listed one.
    let better = shipped.directory.path("glibc-hwcaps/x86-64-v2");
    fs::create_dir_all(&better).unwrap();
    fs::copy(&shipped.library, better.join("libdep.so")).unwrap();
    assert_eq!(shipped.strict_reason(), RefusalReason::FileNotSigned);
    fs::remove_dir_all(shipped.directory.path("glibc-hwcaps")).unwrap();
    // A library of another package, as the signed manifest says.
    shipped.sign_manifest("[[requires]]\nsoname = 'libdep.so'\npackage = 'dep'");
    assert!(shipped.judge_strictly().is_ok());
    shipped.sign_manifest(&shipped.list_library());
    fs::write(&shipped.library, fs::read(&shipped.plugin).unwrap()).unwrap();
    assert_eq!(shipped.strict_reason(), RefusalReason::HashMismatch);
}

#[test]
fn a_signed_manifest_cannot_be_changed_or_moved_to_another_plugin() {
    let shipped = ShippedPlugin::new();
    let manifest = shipped.directory.path("libnpu.oarlock.toml");
    shipped.sign_manifest(&shipped.list_library());
    let text = fs::read_to_string(&manifest).unwrap();
    let forged = "conformance = { suite = '1', passed = ['core'], date = '2099-01-01', report_sha256 = ";
    let forged = format!("{forged}'{}' }}\n{text}", Digest::hash_bytes(b"none"));
    for changed in [forged, text.replace("1.0'", "1.1'"), text.replace('\n', "\r\n"), format!("{text}\n")] {
        fs::write(&manifest, changed).unwrap();
        assert_eq!(shipped.strict_reason(), RefusalReason::SignatureInvalid);
    }
    fs::write(&manifest, &text).unwrap();
    assert!(shipped.judge_strictly().is_ok());
    // Manifest and signature of one plugin beside another of the same vendor.
    let other = shipped.directory.compile_plugin("libother.so", "static int other;", &[]);
    fs::rename(other, &shipped.plugin).unwrap();
    assert_eq!(shipped.strict_reason(), RefusalReason::HashMismatch);
    // A manifest that could belong to any plugin proves nothing.
    shipped.directory.write_manifest("libnpu.so", "npu", "");
    shipped.sign_again();
    assert_eq!(shipped.strict_reason(), RefusalReason::FileNotSigned);
}

#[test]
#[cfg(target_endian = "little")]
fn a_release_machine_knows_which_files_are_covered_for_any_processor_and_without_drivers() {
    let directory = JudgingDirectory::new();
    let environment = HostEnvironment::new(|_| None, false, ProcessIdentity::of_process());
    let coverage = |plugin: &Path, more: &str| {
        directory.write_manifest("libnpu.so", "npu", more);
        let path = directory.path("libnpu.oarlock.toml");
        let manifest = PluginManifest::read_manifest(&path).unwrap().unwrap();
        let files = list_covered_files(plugin, &manifest, &environment).unwrap();
        files.into_iter().map(|file| file.coverage).collect::<Vec<_>>()
    };
    let data = Digest::hash_bytes(b"data");
    directory.write_file("data.bin", "data");
    let number = if std::env::consts::ARCH == "aarch64" { 62 } else { 183 };
    let foreign = directory.write_file("libnpu.so", elf_header(64, number));
    let sha256 = Digest::hash_bytes(&fs::read(&foreign).unwrap());
    let listed = format!("sha256 = '{sha256}'\n[files]\n'data.bin' = '{data}'");
    assert_eq!(coverage(&foreign, &listed), [FileCoverage::Covered; 2]);
    assert_eq!(coverage(&foreign, ""), [FileCoverage::Unlisted]);
    // The library of the driver is not here; the one beside the plugin is.
    let driver = directory.compile_library("libdriver.so", &[]);
    let library = directory.compile_library("libdep.so", &[]);
    let arguments =
        ["-Wl,--no-as-needed,-rpath,$ORIGIN", driver.to_str().unwrap(), library.to_str().unwrap()];
    let plugin = directory.compile_plugin("libnpu.so", "", &arguments);
    fs::remove_file(driver).unwrap();
    let sha256 = Digest::hash_bytes(&fs::read(&plugin).unwrap());
    assert_eq!(
        coverage(&plugin, &format!("sha256 = '{sha256}'")),
        [FileCoverage::Covered, FileCoverage::Unlisted]
    );
    let changed = FileCoverage::Changed(sha256);
    let wrong = format!("sha256 = '{data}'\n[files]\n'libdep.so' = '{data}'\n'libgone.so' = '{data}'");
    let found = coverage(&plugin, &wrong);
    assert_eq!(found[0], changed);
    assert!(matches!(found[1], FileCoverage::Changed(_)) && found[2] == FileCoverage::Missing);
}

#[test]
fn a_library_of_a_plugin_is_no_plugin_and_no_fault() {
    let shipped = ShippedPlugin::new();
    assert_eq!(refusal_reason(shipped.library_without_entry(), ""), RefusalReason::EntryMissing);
    shipped.sign_manifest(&shipped.list_library());
    let refusal = judge_path(shipped.library.clone(), "[plugins]\nrequire_signature = true").unwrap_err();
    assert_eq!(refusal.reason, RefusalReason::PartOfPlugin);
    assert!(refusal.found.contains("libnpu.oarlock.toml"), "{refusal}");
    // A plugin that another lists stays one.
    shipped.directory.compile_library("libdep.so", &[]);
    assert!(judge_path(shipped.library, "").is_ok());
}

#[test]
fn a_library_that_is_filtered_or_reached_by_a_link_is_judged_like_one_that_is_needed() {
    let directory = JudgingDirectory::new();
    let inner = directory.compile_library("libinner.so", &[]);
    let path = inner.to_str().unwrap();
    fs::create_dir(directory.path("real")).unwrap();
    let arguments = ["-Wl,--no-as-needed,--enable-new-dtags,-rpath,$ORIGIN", path];
    let outer = directory.compile_library("libouter.so", &arguments);
    // The linker takes the directory of the link for `$ORIGIN`.
    fs::rename(&outer, directory.path("real/libouter.so")).unwrap();
    std::os::unix::fs::symlink("real/libouter.so", &outer).unwrap();
    let through_link = directory.compile_plugin("liba.so", "", &[arguments[0], outer.to_str().unwrap()]);
    let filter = directory.compile_plugin("libb.so", "", &["-Wl,-F,libinner.so,-rpath,$ORIGIN"]);
    for plugin in [&through_link, &filter] {
        assert_eq!(judge_path(plugin.clone(), "").map(drop), Ok(()));
    }
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o666)).unwrap();
    for plugin in [through_link, filter] {
        assert_eq!(refusal_reason(plugin, ""), RefusalReason::WritableByOthers);
    }
}

#[test]
fn an_allow_list_applies_to_libraries_beside_the_plugin() {
    let shipped = ShippedPlugin::new();
    let (plugin, library) = (shipped.hash(&shipped.plugin), shipped.hash(&shipped.library));
    let allow = |hashes: &str| judge_path(shipped.plugin.clone(), &format!("[plugins]\nallow = [{hashes}]"));
    assert_eq!(allow(&format!("'{plugin}'")).unwrap_err().reason, RefusalReason::NotAllowed);
    assert!(allow(&format!("'{plugin}', '{library}'")).is_ok());
}

#[test]
fn a_search_path_that_depends_on_the_working_directory_is_refused() {
    let directory = JudgingDirectory::new();
    for path in [".", "lib", "$ORIGIN:", ":/opt"] {
        for tags in ["--enable-new-dtags", "--disable-new-dtags"] {
            let plugin = directory.compile_plugin("libnpu.so", "", &[&format!("-Wl,{tags},-rpath,{path}")]);
            assert_eq!(refusal_reason(plugin, ""), RefusalReason::UnsafeSearchPath, "{path} {tags}");
        }
    }
    // The same in a library that the plugin brings along.
    let library = directory.compile_library("libdep.so", &["-Wl,-rpath,."]);
    let arguments = ["-Wl,--no-as-needed,-rpath,$ORIGIN", library.to_str().unwrap()];
    let refusal = judge_path(directory.compile_plugin("libnpu.so", "", &arguments), "").unwrap_err();
    assert_eq!(refusal.reason, RefusalReason::UnsafeSearchPath);
    assert!(refusal.found.contains("libdep.so"), "{refusal}");
}

#[test]
fn an_executable_stack_and_relocations_of_code_are_refused_in_plugin_and_library() {
    let directory = JudgingDirectory::new();
    let relocated = "__asm__(\".text\\n.balign 8\\n.quad oarlock_plugin_query\\n\");";
    let plain = directory.compile_plugin("libnpu.so", "", &["-Wl,-z,noexecstack"]);
    assert!(judge_path(plain, "").is_ok());
    let stack = directory.compile_plugin("libnpu.so", "", &["-Wl,-z,execstack"]);
    assert_eq!(refusal_reason(stack, ""), RefusalReason::ExecutableStack);
    let code = directory.compile_plugin("libnpu.so", relocated, &["-Wl,-z,notext"]);
    assert_eq!(refusal_reason(code, ""), RefusalReason::TextRelocations);
    let library = directory.compile_library("libdep.so", &["-Wl,-z,execstack"]);
    let arguments = ["-Wl,--no-as-needed,-rpath,$ORIGIN", library.to_str().unwrap()];
    let refusal = judge_path(directory.compile_plugin("libnpu.so", "", &arguments), "").unwrap_err();
    assert_eq!(refusal.reason, RefusalReason::ExecutableStack);
    assert!(refusal.found.contains("libdep.so"), "{refusal}");
}
