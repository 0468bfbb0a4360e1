//! The choice of a CUDA version.

use oarlock_formats::error::Error;

use super::{GpuVendor, TargetMachine};
use crate::major_minor::MajorMinor;
use crate::{MatrixAxis, MatrixRow, WheelMatrix};

/// Chooses a CUDA version, with reasons.
pub(super) fn choose_cuda(
    matrix: &WheelMatrix,
    wheels: &[&MatrixRow],
    machine: &TargetMachine,
) -> Result<(String, Vec<String>), Error> {
    let brings_none = wheels.iter().any(|it| {
        it.combination.get(&MatrixAxis::Device).is_some_and(|it| it == "cuda") && it.parts.is_empty()
    });
    let known = known_versions(wheels);
    if brings_none { installed_cuda(&known, machine) } else { driver_cuda(matrix, &known, machine) }
}

/// Warns about an explicitly requested CUDA version that does not fit the machine, and names one that does.
pub(super) fn cuda_warning(
    matrix: &WheelMatrix,
    wheels: &[&MatrixRow],
    machine: &TargetMachine,
    asked: &str,
) -> Option<String> {
    let Some(driver) = machine.cuda_driver else {
        return Some("no driver is here, so the device cannot be tried".to_owned());
    };
    let gpus = known_capabilities(machine);
    let served = served_gpu_count(matrix, &gpus, asked);
    let is_too_old = asked.parse().is_ok_and(|number: MajorMinor| number > driver);
    let wrong = if is_too_old {
        format!("the driver supports CUDA up to {driver}, so CUDA {asked} does not work here")
    } else if served < gpus.len() {
        let (all, in_words) = (gpus.len(), describe_gpus(&gpus));
        format!("CUDA {asked} serves {served} of {all} GPUs, whose compute capabilities are {in_words}")
    } else {
        return None;
    };
    let advice = match driver_cuda(matrix, &known_versions(wheels), machine) {
        Ok((best, _)) if best == asked => "none serves more".to_owned(),
        Ok((best, _)) => format!("`--device cuda{best}` fits best"),
        Err(problem) => problem.to_string(),
    };
    Some(format!("{wrong}; {advice}"))
}

/// The CUDA versions with wheels, oldest first.
fn known_versions<'w>(wheels: &[&'w MatrixRow]) -> Vec<(MajorMinor, &'w String)> {
    let mut known: Vec<(MajorMinor, &String)> = wheels
        .iter()
        .filter_map(|wheel| wheel.combination.get(&MatrixAxis::Accelerator))
        .filter_map(|text| Some((text.parse().ok()?, text)))
        .collect();
    known.sort_unstable();
    known.dedup();
    known
}

/// The number of these GPUs that a CUDA version supports.
fn served_gpu_count(matrix: &WheelMatrix, gpus: &[MajorMinor], cuda: &str) -> usize {
    let capabilities = matrix.accelerators.get(cuda);
    gpus.iter().filter(|gpu| capabilities.is_none_or(|it| it.includes_capability(**gpu))).count()
}

fn describe_gpus(gpus: &[MajorMinor]) -> String {
    gpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The installed CUDA version, for wheels that use the machine's libraries.
fn installed_cuda(
    known: &[(MajorMinor, &String)],
    machine: &TargetMachine,
) -> Result<(String, Vec<String>), Error> {
    let refuse = |found: &dyn std::fmt::Display| {
        let list = join_versions(known);
        Error::new(format!("expected CUDA, one of {list}, to be installed; found {found}"))
    };
    let installed = machine.cuda.ok_or_else(|| refuse(&"none"))?;
    let found = known.iter().find(|(number, _)| *number == installed);
    let (number, text) = found.ok_or_else(|| refuse(&installed))?;
    // A CUDA version does not support GPUs that appeared after it.
    if number.major < 11 && known_capabilities(machine).iter().any(|it| it.major >= 8) {
        return Err(Error::new(format!("expected CUDA 11 or newer, which the GPU needs; found {installed}")));
    }
    Ok(((*text).clone(), vec![format!("CUDA {installed} is installed")]))
}

/// The newest version that the driver supports, among those that support the most GPUs. GPUs of unknown capability do not count.
fn driver_cuda(
    matrix: &WheelMatrix,
    known: &[(MajorMinor, &String)],
    machine: &TargetMachine,
) -> Result<(String, Vec<String>), Error> {
    let driver = machine.cuda_driver.ok_or_else(|| Error::new("expected an NVIDIA driver, found none"))?;
    let gpus = known_capabilities(machine);
    let in_words = describe_gpus(&gpus);
    let served = |cuda: &str| served_gpu_count(matrix, &gpus, cuda);
    let of_use: Vec<(MajorMinor, &String)> =
        known.iter().filter(|(_, cuda)| gpus.is_empty() || served(cuda) > 0).copied().collect();
    if of_use.is_empty() {
        let of_cuda = |(_, cuda): &(MajorMinor, &String)| matrix.accelerators.get(*cuda).map(|it| it.lowest);
        let lowest = known.iter().filter_map(of_cuda).min().unwrap_or_default();
        return Err(Error::new(format!(
            "expected a GPU of compute capability {lowest} or higher, found {in_words}"
        )));
    }
    let runs = |it: &&(MajorMinor, &String)| it.0 <= driver;
    let best = of_use.iter().filter(runs).max_by_key(|(number, cuda)| (served(cuda), *number));
    let Some((number, cuda)) = best else {
        let list = join_versions(&of_use);
        return Err(Error::new(format!(
            "expected a driver for CUDA {list}, found one for {driver}; install a newer one"
        )));
    };
    let mut reasons = vec![format!("the driver supports CUDA up to {driver}")];
    let (all, served) = (gpus.len(), served(cuda));
    if served < all {
        reasons.push(format!(
            "CUDA {cuda} serves {served} of {all} GPUs, whose compute capabilities are {in_words}; none serves more"
        ));
    } else if known.iter().filter(runs).any(|(other, _)| other > number) {
        reasons.push(format!("CUDA {cuda} is the newest that serves compute capability {in_words}"));
    }
    Ok(((*cuda).clone(), reasons))
}

/// The compute capabilities that are known.
fn known_capabilities(machine: &TargetMachine) -> Vec<MajorMinor> {
    let gpus = machine.gpus.iter().filter(|gpu| gpu.vendor == GpuVendor::Nvidia);
    gpus.filter_map(|gpu| gpu.capability).collect()
}

fn join_versions(known: &[(MajorMinor, &String)]) -> String {
    known.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(", ")
}
