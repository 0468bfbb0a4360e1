//! Manifests and configuration files. A manifest that parses must survive being written and read again.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use oarlock_host::{HostConfig, IsaFeatures, PluginManifest};

fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("/fuzzed.toml");
    let _ = HostConfig::parse_file(path, bytes);
    if let Ok(manifest) = PluginManifest::parse_manifest(path, bytes) {
        let _ = manifest.isa.as_ref().map(|isa| isa.rank(&IsaFeatures::detect_features()));
        let text = manifest.to_toml().expect("a manifest can be written");
        assert_eq!(PluginManifest::parse_manifest(path, text.as_bytes()).expect("it reads back"), manifest);
    }
});
