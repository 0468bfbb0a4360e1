//! Shared objects from real compilers, and damaged copies of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use oarlock_host::{
    ENTRY_SYMBOL, MemoryDemands, RefusalReason, SharedObject, SymbolBinding, check_symbols, pinning_symbols,
};

/// The smallest possible plugin.
const PLUGIN: &str = "int oarlock_plugin_query(void) { return 0; }";

/// A C++ plugin that hides its own symbols and uses the standard library like any other.
const TIDY_CPP: &str = r#"
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>
struct Queue { virtual ~Queue() {} std::vector<std::string> names; };
static std::map<std::string, std::shared_ptr<Queue>> queues;
extern "C" __attribute__((visibility("default"))) int oarlock_plugin_query() {
    std::ostringstream text;
    text << 1 << std::to_string(2);
    queues[text.str()] = std::make_shared<Queue>();
    return static_cast<int>(queues.size());
}
"#;

fn compile_to(directory: &Path, source: &str, command: &str) -> PathBuf {
    let mut words = command.split(' ');
    let compiler = words.next().unwrap();
    let extension = if compiler.ends_with("++") { "cpp" } else { "c" };
    let input = directory.join("plugin").with_extension(extension);
    let output = directory.join("libplugin.so");
    fs::write(&input, source).unwrap();
    let status = Command::new(compiler).args(words).arg("-o").arg(&output).arg(&input).status().unwrap();
    assert!(status.success(), "{command}");
    output
}

fn compile_bytes(source: &str, command: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    fs::read(compile_to(directory.path(), source, command)).unwrap()
}

fn parse_elf(bytes: &[u8]) -> Result<SharedObject, RefusalReason> {
    SharedObject::parse_bytes(Path::new("/p/libplugin.so"), bytes).map_err(|refusal| refusal.reason)
}

fn check_hygiene(elf: &SharedObject) -> Result<(), RefusalReason> {
    check_symbols(Path::new("/p/libplugin.so"), elf).map_err(|refusal| refusal.reason)
}

#[test]
fn an_object_that_says_nothing_of_its_stack_gets_an_executable_one() {
    let mut bytes = compile_bytes(PLUGIN, "cc -shared -fPIC -Wl,-z,noexecstack");
    assert_eq!(parse_elf(&bytes).unwrap().memory, MemoryDemands::default());
    // The type of the program header that speaks of the stack.
    let start = usize::from_ne_bytes(bytes[32..40].try_into().unwrap());
    let stack = (start..).step_by(56).find(|at| bytes[*at..at + 4] == 0x6474_e551_u32.to_ne_bytes()).unwrap();
    bytes[stack..stack + 4].copy_from_slice(&[0; 4]);
    assert!(parse_elf(&bytes).unwrap().memory.executable_stack);
}

#[test]
fn a_c_plugin_exports_its_entry_under_every_hash_style_and_without_section_headers() {
    for style in ["gnu", "sysv", "both"] {
        let bytes =
            compile_bytes(PLUGIN, &format!("cc -shared -fPIC -Wl,--no-as-needed,--hash-style={style}"));
        let elf = parse_elf(&bytes).unwrap();
        assert!(elf.exports_symbol(ENTRY_SYMBOL), "{style}");
        assert_eq!(check_hygiene(&elf), Ok(()), "{style}");
        assert_eq!(elf.links.needed, ["libc.so.6"], "{style}");
        let mut stripped = bytes;
        stripped[0x28..0x30].fill(0); // e_shoff
        stripped[0x3c..0x40].fill(0); // e_shnum and e_shstrndx
        assert_eq!(parse_elf(&stripped), Ok(elf), "{style}");
    }
}

#[test]
fn elf_links_are_read_as_the_linker_wrote_them() {
    let elf = parse_elf(&compile_bytes(
        PLUGIN,
        "cc -shared -fPIC -Wl,-soname,libx.so.1,--enable-new-dtags,-rpath,$ORIGIN/lib",
    ));
    let links = elf.unwrap().links;
    assert_eq!(links.soname.as_deref(), Some("libx.so.1"));
    assert_eq!((links.rpath, links.runpath.as_deref()), (None, Some("$ORIGIN/lib")));
    let elf = parse_elf(&compile_bytes(PLUGIN, "cc -shared -fPIC -Wl,--disable-new-dtags,-rpath,/a:/b"));
    assert_eq!(elf.unwrap().links.rpath.as_deref(), Some("/a:/b"));
}

#[test]
fn an_exported_helper_is_a_leak_unlike_a_version_node() {
    let directory = tempfile::tempdir().unwrap();
    let map = directory.path().join("plugin.map");
    fs::write(&map, "NPU_1 { global: oarlock_plugin_query; local: *; };").unwrap();
    let source = format!("{PLUGIN} int helper(void) {{ return 1; }}");
    let scripted =
        compile_bytes(&source, &format!("cc -shared -fPIC -Wl,--version-script={}", map.display()));
    assert_eq!(check_hygiene(&parse_elf(&scripted).unwrap()), Ok(()));
    assert_eq!(
        check_hygiene(&parse_elf(&compile_bytes(&source, "cc -shared -fPIC")).unwrap()),
        Err(RefusalReason::SymbolLeak)
    );
}

#[test]
fn a_host_symbol_is_refused_unless_it_is_weak() {
    let calls = "void oarlock_log(void); int oarlock_plugin_query(void) { oarlock_log(); return 0; }";
    assert_eq!(
        check_hygiene(&parse_elf(&compile_bytes(calls, "cc -shared -fPIC")).unwrap()),
        Err(RefusalReason::HostSymbolImported)
    );
    let weak = "__attribute__((weak)) void oarlock_log(void); int oarlock_plugin_query(void) { return !oarlock_log; }";
    assert_eq!(check_hygiene(&parse_elf(&compile_bytes(weak, "cc -shared -fPIC")).unwrap()), Ok(()));
    assert_eq!(
        check_hygiene(&parse_elf(&compile_bytes("int other;", "cc -shared -fPIC")).unwrap()),
        Err(RefusalReason::EntryMissing)
    );
}

#[test]
fn a_cpp_plugin_passes_with_hidden_visibility_and_leaks_without() {
    for level in ["-O0", "-O2"] {
        let hidden = parse_elf(&compile_bytes(
            TIDY_CPP,
            &format!("c++ -std=c++17 {level} -fvisibility=hidden -shared -fPIC"),
        ));
        assert_eq!(check_hygiene(&hidden.unwrap()), Ok(()), "{level}");
    }
    let leaky = parse_elf(&compile_bytes(TIDY_CPP, "c++ -std=c++17 -O0 -shared -fPIC"));
    assert_eq!(check_hygiene(&leaky.unwrap()), Err(RefusalReason::SymbolLeak));
    let whole_library = "c++ -std=c++17 -fvisibility=hidden -static-libstdc++ -static-libgcc -shared -fPIC";
    assert_eq!(
        check_hygiene(&parse_elf(&compile_bytes(TIDY_CPP, whole_library)).unwrap()),
        Err(RefusalReason::SymbolLeak)
    );
    let excluded = parse_elf(&compile_bytes(TIDY_CPP, &format!("{whole_library} -Wl,--exclude-libs,ALL")));
    assert_eq!(check_hygiene(&excluded.unwrap()), Ok(()));
}

#[test]
fn only_unique_symbols_count_as_pinning_the_plugin() {
    let source = "template<class T> struct S { static int x; }; template<class T> int S<T>::x;\n\
                  extern \"C\" int oarlock_plugin_query() { return S<int>::x; }";
    let unique = parse_elf(&compile_bytes(source, "g++ -shared -fPIC -fgnu-unique")).unwrap();
    assert_eq!(pinning_symbols(&unique), ["_ZN1SIiE1xE"]);
    let weak = parse_elf(&compile_bytes(source, "g++ -shared -fPIC -fno-gnu-unique")).unwrap();
    assert_eq!(pinning_symbols(&weak), [""; 0]);
    assert!(weak.exports.iter().any(|export| export.binding == SymbolBinding::Weak));
}

#[test]
fn a_rust_plugin_exports_its_entry_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (source, output) = (directory.path().join("plugin.rs"), directory.path().join("libplugin.so"));
    let text = "#[unsafe(no_mangle)] pub extern \"C\" fn oarlock_plugin_query() -> i32 {\n\
                std::panic::catch_unwind(|| format!(\"{}\", std::process::id()).len()).unwrap_or(0) as i32 }";
    fs::write(&source, text).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let status = Command::new(rustc)
        .args(["--edition=2024", "--crate-type=cdylib", "-o"])
        .arg(&output)
        .arg(&source)
        .current_dir(&directory)
        .status();
    assert!(status.unwrap().success());
    assert_eq!(check_hygiene(&parse_elf(&fs::read(output).unwrap()).unwrap()), Ok(()));
}

#[test]
fn every_kind_of_non_plugin_file_has_its_own_reason() {
    let bytes = compile_bytes(PLUGIN, "cc -shared -fPIC");
    let changed = |at: usize, value: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        parse_elf(&bytes).unwrap_err()
    };
    assert_eq!(parse_elf(b""), Err(RefusalReason::Empty));
    assert_eq!(parse_elf(b"\x7fE"), Err(RefusalReason::Truncated));
    assert_eq!(parse_elf(&bytes[..40]), Err(RefusalReason::Truncated));
    assert_eq!(parse_elf(&bytes[..bytes.len() / 2]), Err(RefusalReason::Truncated));
    assert_eq!(parse_elf(&bytes[..bytes.len() - 1]), Err(RefusalReason::Truncated));
    assert_eq!(parse_elf(b"#!/bin/sh\nexit 0\n padding"), Err(RefusalReason::NotASharedObject));
    assert_eq!(parse_elf(b"no"), Err(RefusalReason::NotASharedObject));
    assert_eq!(changed(4, &[1]), RefusalReason::WrongArchitecture); // 32-bit
    assert_eq!(changed(5, &[3 - bytes[5]]), RefusalReason::WrongArchitecture); // byte order
    assert_eq!(changed(7, &[9]), RefusalReason::WrongArchitecture); // FreeBSD
    assert_eq!(changed(18, &8_u16.to_ne_bytes()), RefusalReason::WrongArchitecture); // MIPS
    let program = format!("{PLUGIN} int main(void) {{ return 0; }}");
    for command in ["cc -fPIE -pie", "cc -fno-PIE -no-pie", "cc -c"] {
        assert_eq!(
            parse_elf(&compile_bytes(&program, command)),
            Err(RefusalReason::NotASharedObject),
            "{command}"
        );
    }
}

#[test]
fn any_bytes_give_symbols_or_a_refusal() {
    let whole = compile_bytes(TIDY_CPP, "c++ -std=c++17 -O0 -shared -fPIC");
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    // Compilers produce small files too, and most random changes hit their tables.
    let small = compile_bytes(PLUGIN, "cc -shared -fPIC -nostdlib -s");
    for round in 0..6000 {
        let mut bytes = if round % 10 == 0 { whole.clone() } else { small.clone() };
        // Most changes hit the headers and the tables at the start.
        let reach = if round % 3 == 0 { bytes.len() } else { 0x400.min(bytes.len()) };
        for _ in 0..=random(8) {
            let at = random(reach);
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1 << random(8)][random(6)];
        }
        if random(4) == 0 {
            bytes.truncate(random(bytes.len()));
        }
        if let Ok(elf) = parse_elf(&bytes) {
            let _ = check_hygiene(&elf);
        }
    }
    for length in 0..small.len() {
        assert!(parse_elf(&small[..length]).is_err(), "{length}");
    }
}
