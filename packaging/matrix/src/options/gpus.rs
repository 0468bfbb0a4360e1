//! GPU selection: NVIDIA generations by name, and the CUDA versions that support them. No wheel contains precompiled kernels, so
//! only the CUDA version depends on it.

use oarlock_formats::error::Error;

use crate::major_minor::MajorMinor;
use crate::{MatrixAxis, MatrixRow, WheelMatrix};

/// All supported GPUs.
pub(super) const ALL_GPUS: &str = "All";

/// The GPUs of this machine.
const AUTO_GPUS: &str = "Auto";

/// The capabilities in `CUDA_ARCH_BIN`.
const MANUAL_GPUS: &str = "Manual";

/// The option that accepts these words, and the one that lists capabilities for `Manual`.
const ARCH_NAME_OPTION: &str = "CUDA_ARCH_NAME";
const ARCH_BIN_OPTION: &str = "CUDA_ARCH_BIN";

const fn capability(major: u32, minor: u32) -> MajorMinor {
    MajorMinor { major, minor }
}

/// The compute capabilities of each generation.
const GPU_GENERATIONS: [(&str, &[MajorMinor]); 9] = [
    ("Kepler", &[capability(3, 0), capability(3, 5), capability(3, 7)]),
    ("Maxwell", &[capability(5, 0), capability(5, 2)]),
    ("Pascal", &[capability(6, 0), capability(6, 1)]),
    ("Volta", &[capability(7, 0)]),
    ("Turing", &[capability(7, 5)]),
    ("Ampere", &[capability(8, 0), capability(8, 6)]),
    ("Ada", &[capability(8, 9)]),
    ("Hopper", &[capability(9, 0)]),
    ("Blackwell", &[capability(10, 0), capability(12, 0)]),
];

/// The selected CUDA versions, with the reason.
pub(super) struct GpuSelection {
    /// CUDA versions; `None` if any is fine.
    pub versions: Option<Vec<String>>,
    /// The reason to show.
    pub reason: String,
}

/// Parses a value of the option.
pub(super) fn parse_arch_name(text: &str) -> Option<&'static str> {
    arch_names().find(|word| word.eq_ignore_ascii_case(text))
}

/// All values of the option.
pub(super) fn arch_names() -> impl Iterator<Item = &'static str> {
    [ALL_GPUS, AUTO_GPUS, MANUAL_GPUS].into_iter().chain(GPU_GENERATIONS.iter().map(|(name, _)| *name))
}

/// The available CUDA versions that support the selected GPUs; `numbers` is the value of `CUDA_ARCH_BIN`, and `here` probes the
/// compute capabilities of this machine.
pub(super) fn select_cuda_versions(
    matrix: &WheelMatrix,
    wheels: &[&MatrixRow],
    word: &str,
    numbers: Option<&str>,
    here: &dyn Fn() -> Vec<MajorMinor>,
) -> Result<GpuSelection, Error> {
    if let Some(numbers) = numbers.filter(|_| word != MANUAL_GPUS) {
        return Err(Error::new(format!(
            "expected `{ARCH_NAME_OPTION}={MANUAL_GPUS}` beside `{ARCH_BIN_OPTION}={numbers}`, found `{ARCH_NAME_OPTION}={word}`"
        )));
    }
    let (gpus, of) = match word {
        ALL_GPUS => {
            return Ok(GpuSelection { versions: None, reason: "every GPU that a wheel serves".to_owned() });
        }
        AUTO_GPUS => match here() {
            none if none.is_empty() => {
                let reason = "no NVIDIA GPU is found here, so every GPU that a wheel serves";
                return Ok(GpuSelection { versions: None, reason: reason.to_owned() });
            }
            gpus => (gpus, "this machine"),
        },
        MANUAL_GPUS => (parse_capabilities(numbers)?, MANUAL_GPUS),
        word => {
            let found = GPU_GENERATIONS.iter().find(|(name, _)| *name == word);
            (found.map_or_else(Vec::new, |(_, all)| all.to_vec()), word)
        }
    };
    let mut known: Vec<(MajorMinor, &str)> = wheels
        .iter()
        .filter_map(|wheel| wheel.combination.get(&MatrixAxis::Accelerator))
        .filter_map(|text| Some((text.parse().ok()?, text.as_str())))
        .collect();
    known.sort_unstable();
    known.dedup();
    let served = |cuda: &str| {
        let capabilities = matrix.accelerators.get(cuda);
        gpus.iter().filter(|gpu| capabilities.is_none_or(|it| it.includes_capability(**gpu))).count()
    };
    let most = known.iter().map(|(_, cuda)| served(cuda)).max().unwrap_or_default();
    // A named generation must be supported in full; on an actual machine, the version with the most supported GPUs will do.
    let least = if word == AUTO_GPUS { most.max(1) } else { gpus.len() };
    let in_words = gpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (serving, others): (Vec<&str>, Vec<&str>) =
        known.iter().map(|(_, cuda)| *cuda).partition(|cuda| served(cuda) >= least);
    if serving.is_empty() {
        let range = |cuda: &str| {
            let capabilities = matrix.accelerators.get(cuda)?;
            let highest = capabilities.highest.map_or_else(|| " on".to_owned(), |it| format!(" to {it}"));
            Some(format!("CUDA {cuda} from {}{highest}", capabilities.lowest))
        };
        let ranges = known.iter().filter_map(|(_, cuda)| range(cuda)).collect::<Vec<_>>().join(", ");
        return Err(Error::new(format!(
            "expected GPUs that a wheel serves ({ranges}) for `{ARCH_NAME_OPTION}`, found those of {of}, of compute capability {in_words}"
        )));
    }
    let list = |all: &[&str]| all.join(" and ");
    let mut reason = format!("compute capability {in_words}, of {of}: CUDA {}", list(&serving));
    if !others.is_empty() {
        reason +=
            &format!("; CUDA {} does not serve {}", list(&others), if gpus.len() > 1 { "all" } else { "it" });
    }
    if most < gpus.len() {
        reason += &format!("; that serves {most} of {}, and none serves more", gpus.len());
    }
    Ok(GpuSelection { versions: Some(serving.into_iter().map(ToOwned::to_owned).collect()), reason })
}

/// Parses the value of `CUDA_ARCH_BIN`, such as `7.0 8.6`, or `70 86` in the style of nvcc.
fn parse_capabilities(text: Option<&str>) -> Result<Vec<MajorMinor>, Error> {
    let refuse = |found: &str| {
        Error::new(format!(
            "expected compute capabilities such as `{ARCH_BIN_OPTION}=\"7.0 8.6\"` for `{ARCH_NAME_OPTION}={MANUAL_GPUS}`, found {found}"
        ))
    };
    let text = text.ok_or_else(|| refuse("none"))?;
    let of = |word: &str| match word.split_once('.') {
        Some(_) => word.parse().ok(),
        // The last digit is the minor version.
        None => {
            let (major, minor) = word.split_at_checked(word.len().checked_sub(1)?)?;
            Some(capability(major.parse().ok()?, minor.parse().ok()?))
        }
    };
    let words = text.split([' ', ',', ';']).filter(|word| !word.is_empty());
    let found = words.map(|word| of(word).ok_or_else(|| refuse(&format!("`{text}`"))));
    let found: Vec<MajorMinor> = found.collect::<Result<_, _>>()?;
    if found.is_empty() { Err(refuse("none")) } else { Ok(found) }
}
