//! `oarlock plugin check` and `oarlock plugin manifest`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::user::TestUser;

#[test]
fn a_good_plugin_passes_every_step() {
    let user = TestUser::new();
    user.compile_template("libcustom_cpu.so");
    let outcome = user.run_command(&["plugin", "check", "libcustom_cpu.so"]);
    assert_eq!(outcome.status, 0, "{}", outcome.out);
    // The counts of numbers stand below the last step.
    let steps = outcome.out.lines().take_while(|line| !line.is_empty() && !line.starts_with(' '));
    assert!(
        steps.clone().count() == 16 && steps.clone().all(|line| line.starts_with("pass  ")),
        "{}",
        outcome.out
    );
    assert!(outcome.out.contains("\npass  devices        CustomCPU:0\n"), "{}", outcome.out);
    assert!(outcome.out.ends_with("\nThe plugin can be used here\n"), "{}", outcome.out);
}

/// A plugin whose copies within the device run `action` instead.
fn plugin_with_copy(action: &str) -> String {
    format!(
        "#include \"minimal.h\"\n\
         static oarlock_error copy(void *context, uint32_t device, oarlock_memory target, uint64_t to, oarlock_memory source,\n\
             uint64_t from, uint64_t size) {{ (void)context; (void)device; (void)target; (void)to; (void)source; (void)from;\n\
             (void)size; {action} return 0; }}\n\
         static oarlock_error describe(oarlock_plugin *plugin) {{\n\
             minimal_core.memory_copy_d2d = copy;\n\
             return minimal_describe(plugin, \"Good\"); }}\n\
         OARLOCK_PLUGIN(describe);\n"
    )
}

#[test]
fn the_conformance_suite_finds_a_device_that_copies_nothing_and_one_that_ends_the_process() {
    let user = TestUser::new();
    user.compile_plugin("libidle.so", &plugin_with_copy(""));
    let idle = user.run_command(&["plugin", "check", "libidle.so", "--html", "report.html"]);
    assert_eq!(idle.status, 1, "{}", idle.out);
    assert!(idle.out.contains("\n      M-5 "), "{}", idle.out);
    assert!(idle.out.ends_with("\nThe plugin can be used here, and does not conform to the contract\n"));
    let page = fs::read_to_string(user.home.path().join("report.html")).unwrap();
    assert!(page.starts_with("<!") && page.contains("M-5"), "{page}");

    user.compile_plugin("libdead.so", &plugin_with_copy("abort();"));
    let dead = user.run_command(&["plugin", "check", "libdead.so"]);
    assert_eq!(dead.status, 1);
    assert!(dead.out.contains("SIGABRT") && dead.out.contains("R-3"), "{}", dead.out);
    let quick = user.run_command(&["plugin", "check", "--quick", "libdead.so", "--json"]).parse_json();
    assert!(quick["usable"] == true && quick["conformance"].is_null(), "{quick}");

    user.compile_plugin("libloud.so", &plugin_with_copy("puts(\"here I am\");"));
    let loud = user.run_command(&["plugin", "check", "libloud.so"]);
    assert!(loud.out.contains("note: it prints while the suite runs"), "{}", loud.out);
}

/// A plugin that does something while it is probed, and starts well in every other process.
fn plugin_with_start(action: &str) -> String {
    format!(
        "#include <unistd.h>\n#include \"minimal.h\"\n\
         static int is_probed(void) {{\n\
             char line[4096] = {{0}};\n\
             FILE *file = fopen(\"/proc/self/cmdline\", \"r\");\n\
             size_t size = fread(line, 1, sizeof line - 1, file);\n\
             fclose(file);\n\
             for (size_t at = 0; at < size; at += strlen(line + at) + 1) if (strcmp(line + at, \"__probe\") == 0) return 1;\n\
             return 0; }}\n\
         static oarlock_error start(void *context) {{ (void)context; if (is_probed()) {{ {action} }} return 0; }}\n\
         static oarlock_error end(void *context) {{ (void)context; return 0; }}\n\
         static oarlock_error describe(oarlock_plugin *plugin) {{\n\
             minimal_core.initialize = start;\n\
             minimal_core.finalize = end;\n\
             return minimal_describe(plugin, \"Good\"); }}\n\
         OARLOCK_PLUGIN(describe);\n"
    )
}

#[test]
fn a_plugin_that_is_checked_or_asked_again_has_a_new_answer_everywhere() {
    let user = TestUser::new();
    let switch = user.home.path().join("broken");
    let crash = format!("if (access(\"{}\", F_OK) == 0) abort();", switch.display());
    user.compile_plugin("libmoody.so", &plugin_with_start(&crash));
    let devices = |extra: &[&str]| {
        let outcome = user.run_command(&[&["devices", "--plugin", "libmoody.so"], extra].concat());
        (outcome.out.contains("Good:0"), outcome.err)
    };
    fs::write(&switch, "").unwrap();
    assert!(!devices(&[]).0);
    fs::remove_file(&switch).unwrap();
    let (is_listed, said) = devices(&[]);
    assert!(!is_listed && said.contains("when it was last asked"), "{said}");
    assert!(said.contains("`oarlock plugins --ask-again`"), "{said}");
    let check = user.run_command(&["plugin", "check", "--quick", "libmoody.so"]);
    assert_eq!(check.status, 0, "{}", check.out);
    assert!(devices(&[]).0, "the check has replaced the answer");
    fs::write(&switch, "").unwrap();
    assert!(devices(&[]).0, "the answer is in the cache");
    assert!(!devices(&["--ask-again"]).0);
    assert!(!devices(&[]).0, "the refusal has replaced the answer");
    fs::remove_file(&switch).unwrap();
    assert!(devices(&["--ask-again"]).0);
}

#[test]
fn a_manifest_gives_a_slow_plugin_the_time_that_it_asks_for() {
    let user = TestUser::new();
    fs::write(user.home.path().join("config.toml"), "[plugins]\nprobe_timeout_ms = 100\n").unwrap();
    user.compile_plugin("libslow.so", &plugin_with_start("sleep(1);"));
    let check = |words: &[&str]| {
        user.run_command(&[&["--config", "config.toml", "plugin"], words, &["libslow.so"]].concat())
    };
    let hasty = check(&["check", "--quick"]);
    assert!(hasty.status == 1 && hasty.out.contains("probe-timed-out"), "{}", hasty.out);
    assert!(hasty.out.contains("`start_timeout_ms` in its manifest"), "{}", hasty.out);
    let manifest = user.home.path().join("libslow.oarlock.toml");
    let first = "name = 'slow'\nversion = '1'\nkind = 'device'\ndevice_type = 'Good'\ncontract = '1.0'\narchitecture = 'any'\n";
    fs::write(&manifest, format!("{first}start_timeout_ms = 30000\n")).unwrap();
    // The rest of the manifest is wrong; this writes the right one, and keeps the time.
    assert_eq!(check(&["manifest", "--write"]).status, 0);
    assert!(fs::read_to_string(&manifest).unwrap().contains("start_timeout_ms = 30000"));
    let patient = check(&["check", "--quick"]);
    assert_eq!(patient.status, 0, "{}", patient.out);
    fs::write(&manifest, format!("{first}start_timeout_ms = 0\n")).unwrap();
    let refused = check(&["check", "--quick"]);
    assert!(refused.out.contains("from 1 to 120000, found 0"), "{}", refused.out);
}

#[test]
fn drafts_of_profiles_are_shown_apart_from_profiles_and_with_why_they_are_not_used() {
    let user = TestUser::new();
    user.compile_plugin("libdraft.so", include_str!("../../../../tests/plugins/draft.c"));
    let check = user.run_command(&["plugin", "check", "--quick", "libdraft.so"]);
    assert_eq!(check.status, 0, "{}", check.out);
    assert!(
        check.out.contains("\npass  tables         core; drafts: profile 1 (not used); 0 kernels\n"),
        "{}",
        check.out
    );
    let note = "note: draft 1 of the profile `profile` is not used: nothing in this host calls it yet";
    assert!(check.out.contains(note), "{}", check.out);
    user.run_command(&["plugin", "manifest", "--write", "libdraft.so"]);
    let manifest = fs::read_to_string(user.home.path().join("libdraft.oarlock.toml")).unwrap();
    assert!(manifest.contains("profiles = [\"core\"]") && !manifest.contains("draft\""), "{manifest}");
    let check = user.run_command(&["plugin", "check", "--quick", "libdraft.so"]);
    assert_eq!(check.status, 0, "a manifest does not name drafts: {}", check.out);
}

#[test]
fn the_first_step_that_fails_says_why_and_ends_the_check() {
    let user = TestUser::new();
    let library = user.compile_template("libcustom_cpu.so");
    let bytes = fs::read(&library).unwrap();
    user.write_file("libcut.so", &bytes[..5000]);
    insta::assert_snapshot!(
        "check_of_a_cut_file",
        user.run_command(&["plugin", "check", "libcut.so"]).to_snapshot()
    );
}

#[test]
fn a_file_that_others_can_write_to_is_refused_first() {
    let user = TestUser::new();
    let library = user.compile_template("libcustom_cpu.so");
    fs::set_permissions(&library, fs::Permissions::from_mode(0o777)).unwrap();
    let report = user.run_command(&["plugin", "check", "libcustom_cpu.so", "--json"]).parse_json();
    assert_eq!(report["usable"], false);
    assert_eq!(report["steps"][0]["state"], "fail");
    assert_eq!(report["refusal"]["reason"], "writable-by-others");
}

#[test]
fn a_manifest_is_made_that_the_host_accepts() {
    let user = TestUser::new();
    user.compile_template("libcustom_cpu.so");
    let printed = user.run_command(&["plugin", "manifest", "libcustom_cpu.so"]);
    let written = user.run_command(&["plugin", "manifest", "libcustom_cpu.so", "--write"]);
    assert_eq!((printed.status, written.status), (0, 0));
    let manifest = user.home.path().join("libcustom_cpu.oarlock.toml");
    assert_eq!(fs::read_to_string(&manifest).unwrap(), printed.out);
    assert_eq!(fs::metadata(&manifest).unwrap().permissions().mode() & 0o022, 0);
    let check = user.run_command(&["plugin", "check", "libcustom_cpu.so"]);
    assert!(check.out.contains("pass  promises       the hash is that of the manifest"), "{}", check.out);
    assert_eq!(check.status, 0);
}

#[test]
fn a_new_manifest_keeps_what_only_its_author_knows() {
    let user = TestUser::new();
    user.compile_template("libcustom_cpu.so");
    let isa = "isa = \"sse3\"\n";
    let first = user.run_command(&["plugin", "manifest", "libcustom_cpu.so"]).out;
    if cfg!(target_arch = "x86_64") {
        user.write_file(
            "libcustom_cpu.oarlock.toml",
            format!("{isa}{}", first.replace("0.1.0", "0.0.9")).as_bytes(),
        );
        let second = user.run_command(&["plugin", "manifest", "libcustom_cpu.so"]).out;
        assert!(second.contains(isa) && second.contains("version = \"0.1.0\""), "{second}");
    }
}

#[test]
fn no_manifest_is_written_for_a_non_plugin_file() {
    let user = TestUser::new();
    user.write_file("libbad.so", b"no plugin");
    insta::assert_snapshot!(
        "manifest_of_no_plugin",
        user.run_command(&["plugin", "manifest", "libbad.so"]).to_snapshot()
    );
}

#[test]
#[cfg(target_endian = "little")]
fn a_plugin_for_another_machine_is_refused_with_both_and_the_package_that_fits() {
    let user = TestUser::new();
    let own = std::env::consts::ARCH;
    let (number, other) = if own == "aarch64" { (62_u16, "x86_64") } else { (183, "aarch64") };
    let file = user.home.path().join("libnpu.so");
    // The class and the machine are what a header of ELF says about processors.
    for (class, number, found) in [(2, number, other), (1, 40, "a 32-bit file for arm")] {
        let mut header = [0; 64];
        header[..8].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1, 0]);
        header[16] = 3;
        header[18..20].copy_from_slice(&number.to_le_bytes());
        fs::write(&file, header).unwrap();
        let check = user.run_command(&["plugin", "check", "libnpu.so"]);
        assert_eq!(check.status, 1, "{}", check.out);
        let expected = format!("a 64-bit shared object for {own} Linux");
        let remedy = format!("install the build of this plugin for {own}");
        for words in [found, &expected, &remedy] {
            assert!(check.out.contains(words), "{words}: {}", check.out);
        }
    }
    let manifest = format!(
        "name = 'npu'\nversion = '1'\nkind = 'device'\ndevice_type = 'npu'\ncontract = '1.0'\narchitecture = '{other}-linux'\npackage = 'oarlock-npu'\n"
    );
    fs::write(user.home.path().join("libnpu.oarlock.toml"), manifest).unwrap();
    let check = user.run_command(&["plugin", "check", "libnpu.so"]);
    assert!(check.out.contains(&format!("install `oarlock-npu` for {own}")), "{}", check.out);
}
