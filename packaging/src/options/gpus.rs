//! The GPUs that wheels are for: generations of NVIDIA by their names, and the versions of CUDA that serve them. No wheel has
//! kernels compiled in advance, so nothing but the version of CUDA follows from them.

use crate::error::Error;
use crate::matrix::{Axis, Matrix, Wheel};
use crate::number::Number;

/// Every GPU that any wheel serves.
pub(super) const ALL: &str = "All";

/// Those of this machine.
const AUTO: &str = "Auto";

/// Those of `CUDA_ARCH_BIN`.
const MANUAL: &str = "Manual";

/// What option it is, and what the numbers for `Manual` are given with.
const NAME: &str = "CUDA_ARCH_NAME";
const NUMBERS: &str = "CUDA_ARCH_BIN";

const fn number(major: u32, minor: u32) -> Number {
    Number { major, minor }
}

/// Generations, and the compute capabilities of their GPUs.
const GENERATIONS: [(&str, &[Number]); 9] = [
    ("Kepler", &[number(3, 0), number(3, 5), number(3, 7)]),
    ("Maxwell", &[number(5, 0), number(5, 2)]),
    ("Pascal", &[number(6, 0), number(6, 1)]),
    ("Volta", &[number(7, 0)]),
    ("Turing", &[number(7, 5)]),
    ("Ampere", &[number(8, 0), number(8, 6)]),
    ("Ada", &[number(8, 9)]),
    ("Hopper", &[number(9, 0)]),
    ("Blackwell", &[number(10, 0), number(12, 0)]),
];

/// Wheels for some GPUs, and why those.
pub(super) struct Chosen {
    /// Versions of CUDA; nothing where any will do.
    pub(super) versions: Option<Vec<String>>,
    /// What it came to.
    pub(super) reason: String,
}

/// One of the words that the option may be.
pub(super) fn word(text: &str) -> Option<&'static str> {
    words().find(|word| word.eq_ignore_ascii_case(text))
}

/// All of them.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    [ALL, AUTO, MANUAL].into_iter().chain(GENERATIONS.iter().map(|(name, _)| *name))
}

/// The versions of CUDA among wheels that serve what a word stands for; `numbers` is what `CUDA_ARCH_BIN` says, and `here` finds
/// the compute capabilities of this machine.
pub(super) fn choose(
    matrix: &Matrix,
    wheels: &[&Wheel],
    word: &str,
    numbers: Option<&str>,
    here: &dyn Fn() -> Vec<Number>,
) -> Result<Chosen, Error> {
    if let Some(numbers) = numbers.filter(|_| word != MANUAL) {
        return Err(Error::new(format!(
            "expected `{NAME}={MANUAL}` beside `{NUMBERS}={numbers}`, found `{NAME}={word}`"
        )));
    }
    let (gpus, of) = match word {
        ALL => return Ok(Chosen { versions: None, reason: "every GPU that a wheel serves".to_owned() }),
        AUTO => match here() {
            none if none.is_empty() => {
                let reason = "no GPU of NVIDIA is found here, so every GPU that a wheel serves";
                return Ok(Chosen { versions: None, reason: reason.to_owned() });
            }
            gpus => (gpus, "this machine"),
        },
        MANUAL => (manual(numbers)?, MANUAL),
        word => {
            let found = GENERATIONS.iter().find(|(name, _)| *name == word);
            (found.map_or_else(Vec::new, |(_, all)| all.to_vec()), word)
        }
    };
    let mut known: Vec<(Number, &str)> = wheels
        .iter()
        .filter_map(|wheel| wheel.combination.get(&Axis::Accelerator))
        .filter_map(|text| Some((text.parse().ok()?, text.as_str())))
        .collect();
    known.sort_unstable();
    known.dedup();
    let served = |cuda: &str| {
        let capabilities = matrix.accelerators.get(cuda);
        gpus.iter().filter(|gpu| capabilities.is_none_or(|it| it.serve(**gpu))).count()
    };
    let most = known.iter().map(|(_, cuda)| served(cuda)).max().unwrap_or_default();
    // What is asked for by name is wanted whole; a machine is what it is.
    let least = if word == AUTO { most.max(1) } else { gpus.len() };
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
            "expected GPUs that a wheel serves ({ranges}) for `{NAME}`, found those of {of}, of compute capability {in_words}"
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
    Ok(Chosen { versions: Some(serving.into_iter().map(ToOwned::to_owned).collect()), reason })
}

/// The numbers of `CUDA_ARCH_BIN`, such as `7.0 8.6`, or `70 86` as nvcc is given them.
fn manual(text: Option<&str>) -> Result<Vec<Number>, Error> {
    let refuse = |found: &str| {
        Error::new(format!(
            "expected compute capabilities such as `{NUMBERS}=\"7.0 8.6\"` for `{NAME}={MANUAL}`, found {found}"
        ))
    };
    let text = text.ok_or_else(|| refuse("none"))?;
    let of = |word: &str| match word.split_once('.') {
        Some(_) => word.parse().ok(),
        // The last digit is the minor version.
        None => {
            let (major, minor) = word.split_at_checked(word.len().checked_sub(1)?)?;
            Some(number(major.parse().ok()?, minor.parse().ok()?))
        }
    };
    let words = text.split([' ', ',', ';']).filter(|word| !word.is_empty());
    let found = words.map(|word| of(word).ok_or_else(|| refuse(&format!("`{text}`"))));
    let found: Vec<Number> = found.collect::<Result<_, _>>()?;
    if found.is_empty() { Err(refuse("none")) } else { Ok(found) }
}
