//! Chips on which the conformance suite passed, and the support level that follows for those of this machine.

use std::fs;
use std::path::Path;

use oarlock_sdk::SupportLevel;

/// A run of the conformance suite and of the kernel tests that passed. The page of its date in `docs/measurements` describes it.
struct ChipRun {
    /// The chip, as the kernel module of the driver names it.
    model: &'static str,
    architecture: &'static str,
    driver: &'static str,
    date: &'static str,
}

const CHIP_RUNS: [ChipRun; 1] =
    [ChipRun { model: "NVIDIA H200", architecture: "sm_90", driver: "580.159.04", date: "2026-11-26" }];

/// Where the kernel module of the driver describes each chip.
const GPU_DIRECTORY: &str = "/proc/driver/nvidia/gpus";

/// The support level on this machine, and the reason. It is asked before the driver is: files say enough.
pub(crate) fn support_level() -> (SupportLevel, String) {
    level_for_chips(&chip_models(Path::new(GPU_DIRECTORY)))
}

fn level_for_chips(models: &[String]) -> (SupportLevel, String) {
    let tested = |model: &String| CHIP_RUNS.iter().find(|run| run.model == model);
    let runs: Option<Vec<&ChipRun>> = models.iter().map(tested).collect();
    match runs.as_deref() {
        Some([ChipRun { model, architecture, driver, date }, ..]) => (
            SupportLevel::HARDWARE_VERIFIED,
            format!(
                "conformance suite 1.0 and all kernel tests passed on an {model} ({architecture}) with the driver {driver}, {date}"
            ),
        ),
        _ => {
            let ChipRun { model, date, .. } = &CHIP_RUNS[0];
            (
                SupportLevel::DRIVER_VERIFIED,
                format!(
                    "conformance suite 1.0 passed on an {model}, {date}; NVRTC compiled every kernel for sm_80, sm_90 and sm_100"
                ),
            )
        }
    }
}

/// The models of all chips, such as `NVIDIA H200`; empty if there is no driver.
fn chip_models(directory: &Path) -> Vec<String> {
    let Ok(chips) = fs::read_dir(directory) else { return Vec::new() };
    let model = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
        Some(line.trim().to_owned())
    };
    let read = |chip: fs::DirEntry| model(fs::read_to_string(chip.path().join("information")).ok()?);
    // A chip that does not say what it is counts as one that was not tested.
    chips.flatten().map(|chip| read(chip).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(models: &[&str]) -> SupportLevel {
        level_for_chips(&models.iter().map(|model| (*model).to_owned()).collect::<Vec<_>>()).0
    }

    #[test]
    fn a_chip_counts_as_tested_if_one_like_it_was() {
        assert_eq!(level(&["NVIDIA H200"]), SupportLevel::HARDWARE_VERIFIED);
        assert_eq!(level(&["NVIDIA H200", "NVIDIA H200"]), SupportLevel::HARDWARE_VERIFIED);
        assert_eq!(level(&["NVIDIA H200", "NVIDIA A100"]), SupportLevel::DRIVER_VERIFIED);
        assert_eq!(level(&[]), SupportLevel::DRIVER_VERIFIED);
    }

    #[test]
    fn the_kernel_module_names_each_chip() {
        let directory = tempfile::tempdir().unwrap();
        let chip = directory.path().join("0000:00:06.0");
        fs::create_dir(&chip).unwrap();
        fs::write(chip.join("information"), "Model: \t\t NVIDIA H200\nIRQ:   \t\t 24\n").unwrap();
        fs::create_dir(directory.path().join("0000:00:07.0")).unwrap();
        let mut models = chip_models(directory.path());
        models.sort();
        assert_eq!(models, ["", "NVIDIA H200"]);
        assert!(chip_models(&directory.path().join("none")).is_empty());
    }

    #[test]
    fn every_tested_chip_appears_in_the_measurements_of_its_date() {
        let measurements = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measurements");
        for ChipRun { model, driver, date, .. } in &CHIP_RUNS {
            let page = fs::read_to_string(measurements.join(format!("{date}-gpu.md"))).unwrap();
            let is_told =
                page.lines().any(|line| line.starts_with(&format!("| {model}")) && line.contains(driver));
            assert!(is_told, "{model} in the page of {date}");
        }
    }
}
