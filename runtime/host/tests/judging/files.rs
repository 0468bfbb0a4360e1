//! One file and its manifest.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use oarlock_host::{
    Digest, PluginOrigin, RefusalReason, group_variants, judge_candidate, superseded_refusal,
};

use crate::directory::{JudgingDirectory, judge_context, judge_path, make_candidate, refusal_reason};

#[test]
fn a_good_plugin_passes_with_and_without_a_manifest() {
    let directory = JudgingDirectory::new();
    let path = directory.compile_plugin("libnpu.so", "", &[]);
    let bare = judge_path(path.clone(), "").unwrap();
    assert!(bare.manifest.is_none());
    assert_eq!(bare.digest, Digest::hash_bytes(&fs::read(&path).unwrap()));
    directory.write_manifest("libnpu.so", "npu", &format!("sha256 = '{}'\nunloadable = true", bare.digest));
    assert_eq!(judge_path(path, "").unwrap().manifest.unwrap().name, "npu");
}

#[test]
fn the_manifest_decides_before_the_file_is_read() {
    let directory = JudgingDirectory::new();
    // The file is not even ELF: any refusal here must come from the manifest.
    let path = directory.write_file("libnpu.so", "");
    let refused = |more: &str| {
        directory.write_manifest("libnpu.so", "npu", more);
        judge_path(path.clone(), "").unwrap_err()
    };
    assert_eq!(refused("").reason, RefusalReason::Empty);
    assert_eq!(refused("architecture = 'vax-vms'").reason, RefusalReason::WrongArchitecture);
    assert_eq!(refused("isa = '!(a_feature'").reason, RefusalReason::ManifestInvalid);
    let too_new = refused("contract = '1.4..1.9'\npackage = 'oarlock-npu'");
    assert_eq!(
        (too_new.reason, too_new.remedy.as_str()),
        (RefusalReason::ContractVersion, "update `oarlock`")
    );
    assert!(
        too_new.to_string().contains("1.1..1.3") && too_new.to_string().contains("1.4..1.9"),
        "{too_new}"
    );
    let too_old = refused("contract = '1.0..1.0'\npackage = 'oarlock-npu'");
    assert_eq!(
        (too_old.reason, too_old.remedy.as_str()),
        (RefusalReason::ContractVersion, "update `oarlock-npu`")
    );
    let name = if cfg!(target_arch = "x86_64") { "!sse3" } else { "!neon" };
    assert_eq!(refused(&format!("isa = '{name}'")).reason, RefusalReason::IsaUnsupported);
}

/// The header of a shared object for a machine, by its ELF number.
pub(crate) fn elf_header(bits: u8, machine: u16) -> Vec<u8> {
    let mut header = vec![0; 64];
    header[..4].copy_from_slice(b"\x7fELF");
    // Little-endian, of the current version.
    header[4..7].copy_from_slice(&[bits / 32, 1, 1]);
    header[16..18].copy_from_slice(&3_u16.to_le_bytes());
    header[18..20].copy_from_slice(&machine.to_le_bytes());
    header
}

#[test]
#[cfg(target_endian = "little")]
fn a_plugin_for_another_processor_is_refused_with_both_and_the_package_that_fits() {
    let directory = JudgingDirectory::new();
    let path = directory.write_file("libnpu.so", "");
    let own = std::env::consts::ARCH;
    let (number, other) = if own == "aarch64" { (62, "x86_64") } else { (183, "aarch64") };
    for (bits, machine, found) in [
        (64, number, format!("a file for {other}")),
        (64, 243, "a file for riscv64".to_owned()),
        (32, 40, "a 32-bit file for arm".to_owned()),
        (32, 8, "a 32-bit file".to_owned()),
    ] {
        std::fs::write(&path, elf_header(bits, machine)).unwrap();
        let refusal = judge_path(path.clone(), "").unwrap_err();
        assert_eq!(refusal.reason, RefusalReason::WrongArchitecture);
        assert_eq!(refusal.expected, format!("a 64-bit shared object for {own} Linux"));
        assert_eq!(refusal.found, found);
        assert_eq!(refusal.remedy, format!("install the build of this plugin for {own}"));
    }
    std::fs::write(&path, elf_header(64, number)).unwrap();
    for more in ["", &*format!("architecture = '{other}-linux'")] {
        directory.write_manifest("libnpu.so", "npu", &format!("{more}\npackage = 'oarlock-npu'"));
        let refusal = judge_path(path.clone(), "").unwrap_err();
        assert_eq!(refusal.reason, RefusalReason::WrongArchitecture);
        assert!(refusal.expected.contains(own) && refusal.found.contains(other), "{refusal}");
        assert_eq!(refusal.remedy, format!("install `oarlock-npu` for {own}"));
    }
}

#[test]
fn a_manifest_that_lies_is_found_out() {
    let directory = JudgingDirectory::new();
    let path = directory.compile_plugin("libnpu.so", "", &[]);
    directory.write_manifest("libnpu.so", "npu", &format!("sha256 = '{}'", Digest::hash_bytes(b"another")));
    assert_eq!(refusal_reason(path.clone(), ""), RefusalReason::HashMismatch);
    directory.write_manifest(
        "libnpu.so",
        "npu",
        "[[requires]]\nsoname = 'libnone.so.7'\npackage = 'none-runtime'",
    );
    let refusal = judge_path(path.clone(), "").unwrap_err();
    assert_eq!(refusal.reason, RefusalReason::SonameMissing);
    assert_eq!(refusal.remedy, "install or update the package `none-runtime`");
    directory.write_manifest("libnpu.so", "npu", "[[requires]]\nsoname = 'libnone.so.7'\noptional = true");
    assert_eq!(judge_path(path.clone(), "").unwrap().notes.len(), 1);
    let manifest = directory.path("libnpu.oarlock.toml");
    fs::set_permissions(&manifest, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(judge_path(path, "").unwrap_err().file, manifest);
}

#[test]
fn the_configuration_disables_allows_and_requires() {
    let directory = JudgingDirectory::new();
    let path = directory.compile_plugin("libnpu.so", "", &[]);
    directory.write_manifest("libnpu.so", "npu", "");
    assert_eq!(refusal_reason(path.clone(), "[plugins]\ndisable = ['n*u']"), RefusalReason::Disabled);
    assert_eq!(refusal_reason(path.clone(), "[plugins]\ndisable = ['libnpu.so']"), RefusalReason::Disabled);
    let other = Digest::hash_bytes(b"other");
    assert_eq!(
        refusal_reason(path.clone(), &format!("[plugins]\nallow = ['{other}']")),
        RefusalReason::NotAllowed
    );
    let own = Digest::hash_bytes(&fs::read(&path).unwrap());
    assert!(judge_path(path.clone(), &format!("[plugins]\nallow = ['{other}', 'sha256:{own}']")).is_ok());
    assert_eq!(refusal_reason(path, "[plugins]\nrequire_signature = true"), RefusalReason::SignatureMissing);
}

#[test]
fn symbols_sanitizers_and_libraries_are_judged() {
    let directory = JudgingDirectory::new();
    let of = |more: &str, arguments: &[&str]| {
        refusal_reason(directory.compile_plugin("libnpu.so", more, arguments), "")
    };
    assert_eq!(of("int leak;", &[]), RefusalReason::SymbolLeak);
    assert_eq!(of("", &["-Doarlock_plugin_query=other"]), RefusalReason::EntryMissing);
    // Only the symbol that marks an instrumented object, so that the test needs no installed sanitizer.
    let mark = "extern void __asan_init(void); __attribute__((constructor)) static void start(void) { __asan_init(); }";
    assert_eq!(of(mark, &[]), RefusalReason::SanitizerMismatch);
    let library = directory.compile_plugin("libgone.so.1", "", &["-Wl,-soname,libgone.so.1"]);
    let plugin =
        directory.compile_plugin("libnpu.so", "", &["-Wl,--no-as-needed", library.to_str().unwrap()]);
    fs::remove_file(library).unwrap();
    assert_eq!(refusal_reason(plugin, ""), RefusalReason::SonameMissing);
}

#[test]
fn variants_are_put_in_order_and_each_that_is_passed_over_knows_why() {
    let directory = JudgingDirectory::new();
    let base = if cfg!(target_arch = "x86_64") { "sse3" } else { "neon" };
    let mut all = Vec::new();
    for (name, isa, origin) in [
        ("liba.so", "", PluginOrigin::Explicit),
        ("libb.so", base, PluginOrigin::Explicit),
        ("libc.so", base, PluginOrigin::Explicit),
        ("libd.so", base, PluginOrigin::System),
    ] {
        let path = directory.compile_plugin(name, "", &[]);
        directory.write_manifest(
            name,
            "npu",
            &if isa.is_empty() { String::new() } else { format!("isa = '{isa}'") },
        );
        all.push(judge_candidate(make_candidate(path, origin), &judge_context("")).unwrap());
    }
    let groups = group_variants(all);
    assert_eq!(groups.len(), 1);
    let order: Vec<_> = groups[0].iter().map(|file| file.candidate.path.file_name().unwrap()).collect();
    assert_eq!(order, ["libb.so", "libc.so", "liba.so", "libd.so"]);
    let reasons: Vec<RefusalReason> =
        groups[0].iter().skip(1).map(|file| superseded_refusal(file, &groups[0][0]).reason).collect();
    assert_eq!(reasons, [RefusalReason::Duplicate, RefusalReason::BetterVariant, RefusalReason::Duplicate]);
}

#[test]
fn a_file_too_large_to_be_a_plugin_is_refused_by_its_size_and_a_pipe_is_not_waited_for() {
    let directory = JudgingDirectory::new();
    let large = directory.write_file("liblarge.so", "");
    fs::OpenOptions::new().write(true).open(&large).unwrap().set_len(4 << 30).unwrap();
    let refusal = judge_path(large, "").unwrap_err();
    assert_eq!(
        (refusal.reason, refusal.found.as_str()),
        (RefusalReason::NotASharedObject, "4294967296 bytes")
    );
    let path = directory.compile_plugin("libnpu.so", "", &[]);
    let pipe = directory.path("libnpu.oarlock.toml");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(judge_path(path, "").unwrap_err().file, pipe);
    assert_eq!(refusal_reason(pipe, ""), RefusalReason::NotASharedObject);
}

#[test]
fn a_plugin_an_unprivileged_user_cannot_read_is_told_as_unreadable() {
    let directory = JudgingDirectory::new();
    let path = directory.write_file("libnpu.so", "x");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        eprintln!("skipped: root can read every file");
        return;
    }
    assert_eq!(refusal_reason(path, ""), RefusalReason::Unreadable);
}
