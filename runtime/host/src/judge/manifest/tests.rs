//! Manifests, and what can be wrong with them.

use super::*;

const FULL_MANIFEST: &str = r#"
name = "npu"
version = "1.2.3+cu12"
kind = "device"
device_type = "npu"
variant = "avx2"
contract = "1.0..1.3"
profiles = ["core", "async"]
architecture = "x86_64-linux"
isa = "avx2 & fma"
sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
visible_devices_env = "NPU_VISIBLE_DEVICES"
package = "oarlock-npu"
unloadable = true
conformance = { suite = "1.0", passed = ["core"], date = "2026-01-31", report_sha256 = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" }

[files]
"libnpu-runtime.so.1" = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
"../npu.libs/libdep.so" = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

[[requires]]
soname = "libcudart.so.12"
version = ">=12.2"
package = "cuda-runtime"
"#;

fn parse_text(text: &str) -> Result<PluginManifest, String> {
    PluginManifest::parse_manifest(Path::new("/p/libnpu.oarlock.toml"), text.as_bytes()).map_err(|refusal| {
        assert_eq!(refusal.reason, RefusalReason::ManifestInvalid);
        refusal.found
    })
}

/// Parses the full manifest with one line replaced.
fn parse_with_line(old: &str, new: &str) -> Result<PluginManifest, String> {
    assert!(FULL_MANIFEST.contains(old));
    parse_text(&FULL_MANIFEST.replace(old, new))
}

#[test]
fn a_manifest_lies_beside_its_library() {
    assert_eq!(PluginManifest::path_beside(Path::new("/p/libnpu.so")), Path::new("/p/libnpu.oarlock.toml"));
    assert_eq!(PluginManifest::read_manifest(Path::new("/nowhere/libnpu.oarlock.toml")), Ok(None));
}

#[test]
fn what_is_written_reads_back_the_same() {
    let manifest = parse_text(FULL_MANIFEST).unwrap();
    assert_eq!(parse_text(&manifest.to_toml().unwrap()).unwrap(), manifest);
    let least = "name='a'\nversion='1'\nkind='layer'\ncontract='1.0'\narchitecture='x86_64-linux'";
    let least = parse_text(least).unwrap();
    assert_eq!(parse_text(&least.to_toml().unwrap()).unwrap(), least);
}

#[test]
fn a_mistake_is_named_with_its_line() {
    let error = parse_with_line("package = \"oarlock-npu\"", "packge = \"x\"").unwrap_err();
    assert!(error.starts_with("line 13: unknown field `packge`"), "{error}");
    assert!(error.ends_with("did you mean `package`"), "{error}");
    let error = parse_with_line("kind = \"device\"", "kind = \"devcie\"").unwrap_err();
    assert!(error.starts_with("line 4: ") && error.ends_with("did you mean `device`"), "{error}");
    assert!(parse_with_line("1.0..1.3", "1.3..1.0").unwrap_err().starts_with("line 7: expected versions"));
    assert!(parse_with_line("avx2 & fma", "avx2 & fmaa").unwrap_err().contains("did you mean `fma`"));
    assert!(parse_with_line("\"avx2 & fma\"", "3").unwrap_err().starts_with("line 10: "));
}

#[test]
fn names_are_short_and_plain() {
    for bad in ["", "a b", "\\u001b[31m", "é", "../x", &"a".repeat(65)] {
        assert!(
            parse_with_line("name = \"npu\"", &format!("name = \"{bad}\""))
                .unwrap_err()
                .starts_with("line 2: "),
            "{bad}"
        );
    }
    assert!(parse_with_line("libcudart.so.12", "../libcudart.so.12").is_err());
    assert!(parse_with_line("libcudart.so.12", "libstdc++.so.6").is_ok());
}

#[test]
fn listed_files_are_reached_from_the_directory_of_the_plugin() {
    for bad in ["", "/etc/libx.so", "..", "a/../b", "./a", "a//b", "a/", "a b", "lib/\\u001b[31m"] {
        let error = parse_with_line("libnpu-runtime.so.1", bad).unwrap_err();
        assert!(error.contains("expected the path of a file"), "{bad}: {error}");
    }
    for good in ["a", "a/b.so.1", "../../x.libs/libstdc++.so"] {
        assert!(parse_with_line("libnpu-runtime.so.1", good).is_ok(), "{good}");
    }
}

#[test]
fn the_day_of_a_conformance_run_is_a_day() {
    for bad in ["2026", "26-01-31", "2026-1-31", "2026-01-31-", "aaaa-bb-cc"] {
        assert!(parse_with_line("2026-01-31", bad).unwrap_err().contains("expected a day"), "{bad}");
    }
}

#[test]
fn the_device_type_goes_with_the_kind() {
    assert!(parse_with_line("kind = \"device\"", "kind = \"kernels\"").is_err());
    assert!(parse_with_line("device_type = \"npu\"", "").is_err());
}

#[test]
fn a_manifest_of_another_architecture_may_name_its_features() {
    assert!(parse_with_line("x86_64-linux", "aarch64-linux").is_err());
    assert!(parse_text(&FULL_MANIFEST.replace("x86_64", "aarch64").replace("avx2 & fma", "sve2")).is_ok());
}

#[test]
fn any_bytes_give_a_manifest_or_a_refusal() {
    let mut state = 0x9e37_79b9_u32;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as usize
    };
    for _ in 0..3000 {
        let mut bytes = FULL_MANIFEST.as_bytes().to_vec();
        for _ in 0..=random() % 4 {
            let at = random() % bytes.len();
            bytes[at] = u8::try_from(random() % 256).unwrap();
        }
        bytes.truncate(random() % (bytes.len() + 1) + bytes.len() / 2);
        let _ = PluginManifest::parse_manifest(Path::new("/p/x.oarlock.toml"), &bytes);
    }
    assert!(parse_text(&format!("x = {}", "[".repeat(60_000))).is_err());
    assert!(parse_text(&" ".repeat(65 * 1024)).unwrap_err().contains("65536"));
}
