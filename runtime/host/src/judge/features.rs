//! The instruction sets that plugins can require, and those that this machine has.
//!
//! Each architecture has a closed list of names, so a typo is an error instead of a variant that is never chosen. A feature
//! counts as present only if the operating system also saves its registers.

use std::collections::BTreeSet;
use std::fmt;

use crate::text::suggestion::did_you_mean;

/// A feature and the features that it implies.
pub(crate) type Feature = (&'static str, &'static [&'static str]);

const X86_64: &[Feature] = &[
    ("sse3", &[]),
    ("ssse3", &["sse3"]),
    ("sse4.1", &["ssse3"]),
    ("sse4.2", &["sse4.1"]),
    ("popcnt", &[]),
    ("bmi1", &[]),
    ("bmi2", &[]),
    ("lzcnt", &[]),
    ("avx", &["sse4.2"]),
    ("f16c", &["avx"]),
    ("fma", &["avx"]),
    ("avx2", &["avx"]),
    ("avxvnni", &["avx2"]),
    ("avx512f", &["avx2", "fma", "f16c"]),
    ("avx512cd", &["avx512f"]),
    ("avx512bw", &["avx512f"]),
    ("avx512dq", &["avx512f"]),
    ("avx512vl", &["avx512f"]),
    ("avx512vbmi", &["avx512bw"]),
    ("avx512vnni", &["avx512f"]),
    ("avx512bf16", &["avx512bw"]),
    ("avx512fp16", &["avx512bw"]),
    ("amx_tile", &[]),
    ("amx_int8", &["amx_tile"]),
    ("amx_bf16", &["amx_tile"]),
    ("os_ymm", &[]),
    ("os_zmm", &["os_ymm"]),
];

const AARCH64: &[Feature] = &[
    ("neon", &[]),
    ("fp16", &["neon"]),
    ("dotprod", &["neon"]),
    ("i8mm", &["neon"]),
    ("bf16", &["neon"]),
    ("sve", &["neon"]),
    ("sve2", &["sve"]),
];

/// The features of an architecture; `None` for an architecture without a list.
pub(crate) fn features_of_architecture(architecture: &str) -> Option<&'static [Feature]> {
    match architecture {
        "x86_64" => Some(X86_64),
        "aarch64" => Some(AARCH64),
        _ => None,
    }
}

pub(crate) fn feature_names(features: &[Feature]) -> impl Iterator<Item = &'static str> {
    features.iter().map(|(name, _)| *name)
}

/// The features that this machine offers to plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IsaFeatures(BTreeSet<&'static str>);

impl IsaFeatures {
    /// Detects features that both the processor and the operating system support.
    pub fn detect_features() -> Self {
        let table = features_of_architecture(std::env::consts::ARCH).unwrap_or(&[]);
        let kernel = kernel_flags();
        Self(feature_names(table).filter(|name| is_detected(name, &kernel)).collect())
    }

    /// Keeps only the features in `mask`, a list separated by commas. A mask can hide features but never add them: code that
    /// uses an absent feature would crash with an illegal instruction.
    pub fn with_mask(self, mask: &str) -> Result<Self, String> {
        let table = features_of_architecture(std::env::consts::ARCH).unwrap_or(&[]);
        let listed: BTreeSet<&str> = mask.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        match listed.iter().find(|name| !feature_names(table).any(|known| known == **name)) {
            Some(unknown) => {
                Err(format!("unknown feature `{unknown}`{}", did_you_mean(unknown, feature_names(table))))
            }
            None => Ok(Self(self.0.into_iter().filter(|name| listed.contains(name)).collect())),
        }
    }

    /// True if the machine has the feature and no mask hides it.
    pub fn has_feature(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

impl FromIterator<&'static str> for IsaFeatures {
    fn from_iter<I: IntoIterator<Item = &'static str>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

impl fmt::Display for IsaFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().copied().collect();
        f.write_str(&if names.is_empty() { "no optional features".to_owned() } else { names.join(", ") })
    }
}

/// The feature flags that the kernel lists for the first processor. The kernel omits features whose registers it does not save.
///
/// Only the beginning is read: the file has one such record for each processor, and there may be hundreds.
fn kernel_flags() -> String {
    use std::io::Read as _;
    let mut text = Vec::new();
    if let Ok(file) = std::fs::File::open("/proc/cpuinfo") {
        // If the file cannot be read, its features count as absent.
        let _ = file.take(8192).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let flags = text.lines().find_map(|line| line.strip_prefix("flags")?.split_once(':'));
    flags.map_or_else(String::new, |(_, flags)| flags.to_owned())
}

/// The standard library asks the processor with `CPUID` and the operating system with `XGETBV`: it reports `avx` only if the
/// state of the 256-bit registers is enabled, and `avx512f` only if the state of the 512-bit registers is.
#[cfg(target_arch = "x86_64")]
fn is_detected(name: &str, kernel: &str) -> bool {
    use std::arch::is_x86_feature_detected as has;
    let listed = |flag: &str| kernel.split_ascii_whitespace().any(|listed| listed == flag);
    match name {
        "sse3" => has!("sse3"),
        "ssse3" => has!("ssse3"),
        "sse4.1" => has!("sse4.1"),
        "sse4.2" => has!("sse4.2"),
        "popcnt" => has!("popcnt"),
        "bmi1" => has!("bmi1"),
        "bmi2" => has!("bmi2"),
        "lzcnt" => has!("lzcnt"),
        "avx" | "os_ymm" => has!("avx"),
        "f16c" => has!("f16c"),
        "fma" => has!("fma"),
        "avx2" => has!("avx2"),
        "avx512f" | "os_zmm" => has!("avx512f"),
        "avx512cd" => has!("avx512cd"),
        "avx512bw" => has!("avx512bw"),
        "avx512dq" => has!("avx512dq"),
        "avx512vl" => has!("avx512vl"),
        "avx512vbmi" => has!("avx512vbmi"),
        "avx512vnni" => has!("avx512vnni"),
        "avx512bf16" => has!("avx512bf16"),
        // The standard library of the oldest supported compiler does not know these.
        "avxvnni" => listed("avx_vnni"),
        "avx512fp16" => listed("avx512_fp16"),
        _ => listed(name),
    }
}

/// The standard library gets these from the kernel, which omits features whose registers it does not save.
#[cfg(target_arch = "aarch64")]
fn is_detected(name: &str, _kernel: &str) -> bool {
    use std::arch::is_aarch64_feature_detected as has;
    match name {
        "neon" => has!("neon"),
        "fp16" => has!("fp16"),
        "dotprod" => has!("dotprod"),
        "i8mm" => has!("i8mm"),
        "bf16" => has!("bf16"),
        "sve" => has!("sve"),
        "sve2" => has!("sve2"),
        _ => false,
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn is_detected(_name: &str, _kernel: &str) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_hides_features_and_never_invents_them() {
        let table = features_of_architecture(std::env::consts::ARCH).unwrap();
        let machine = IsaFeatures::detect_features();
        let every = feature_names(table).collect::<Vec<_>>().join(", ");
        assert_eq!(machine.clone().with_mask(&every), Ok(machine.clone()));
        assert_eq!(machine.clone().with_mask(""), Ok(IsaFeatures::default()));
        assert!(machine.with_mask("avx3").is_err());
    }

    #[test]
    fn features_come_with_those_they_imply() {
        let machine = IsaFeatures::detect_features();
        for (name, implied) in features_of_architecture(std::env::consts::ARCH).unwrap() {
            assert!(
                !machine.has_feature(name) || implied.iter().all(|name| machine.has_feature(name)),
                "{name}: {machine}"
            );
        }
    }
}
