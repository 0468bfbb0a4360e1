//! A build plan: rows of the matrix, and each of their parts once.

use std::collections::BTreeSet;
use std::fmt;

use oarlock_formats::error::{Error, nearest_names};
use oarlock_matrix::{CpuArchitecture, MatrixAxis, MatrixPart, MatrixRow, WheelMatrix};

/// The name of the Python package in the matrix.
pub(crate) const CORE_PART: &str = "core";

/// The command `oarlock`, which writes generated files, such as manual pages, and queries plugins.
pub(crate) const COMMAND_PART: &str = "command";

/// The start of the library's path in the core's wheel; the rest depends on the Python version.
pub(crate) const CORE_LIBRARY_PREFIX: &str = "oarlock/_oarlock.";

/// A part with the settings that it is compiled with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BuildRecipe {
    pub(crate) name: String,
    pub(crate) part: MatrixPart,
    /// True if it must not contain AVX instructions.
    pub(crate) without_avx: bool,
    pub(crate) architecture: CpuArchitecture,
    /// The oldest glibc that it runs with, such as `2_28`.
    pub(crate) glibc: String,
    /// The Python that it is for, such as `cp311-abi3`; `None` for a plugin, which works with any Python.
    pub(crate) python: Option<String>,
}

impl fmt::Display for BuildRecipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} for glibc {}", self.name, self.glibc.replace('_', "."))?;
        if self.architecture != CpuArchitecture::default() {
            write!(f, " on {}", self.architecture.name())?;
        }
        if self.is_free_threaded() {
            f.write_str(", free-threaded")?;
        }
        if self.leaves_out_avx() { f.write_str(", without AVX") } else { Ok(()) }
    }
}

impl BuildRecipe {
    /// A directory name, unique among the recipes of the matrix.
    pub(crate) fn directory_name(&self) -> String {
        let python = self.python.as_ref().map_or_else(String::new, |python| format!("-{python}"));
        let without = if self.leaves_out_avx() { "-without-avx" } else { "" };
        format!("{}-{}_{}{python}{without}", self.name, self.glibc, self.architecture.name())
    }

    /// True if it has AVX code that this build must omit.
    pub(crate) fn leaves_out_avx(&self) -> bool {
        self.without_avx && self.part.has_avx
    }

    /// True for a free-threaded Python.
    pub(crate) fn is_free_threaded(&self) -> bool {
        self.python.as_ref().is_some_and(|python| python.ends_with('t'))
    }
}

/// Rows of the matrix and the parts that they consist of.
#[derive(Debug)]
pub struct WheelPlan<'m> {
    pub(crate) matrix: &'m WheelMatrix,
    rows: Vec<&'m MatrixRow>,
    recipes: Vec<BuildRecipe>,
}

impl<'m> WheelPlan<'m> {
    /// Plans all rows of the matrix that can be built here, or the rows with these labels.
    ///
    /// # Errors
    ///
    /// When no row has a label, or its row cannot be built.
    pub fn new(matrix: &'m WheelMatrix, labels: &[String]) -> Result<Self, Error> {
        let mut rows = Vec::new();
        for label in labels {
            let row = matrix.wheels.iter().find(|row| row.label == *label);
            let row = row.ok_or_else(|| unknown_label_error(matrix, label))?;
            if let Some(why) = &row.planned {
                return Err(Error::new(format!("expected a row that can be built, found `{label}`: {why}")));
            }
            rows.push(row);
        }
        if labels.is_empty() {
            rows = matrix.wheels.iter().filter(|row| row.planned.is_none()).collect();
        }
        let mut needed: Vec<BuildRecipe> = Vec::new();
        for row in &rows {
            check_parts(matrix, row)?;
            for recipe in recipes_for_row(matrix, row)? {
                if !needed.contains(&recipe) {
                    needed.push(recipe);
                }
            }
        }
        Ok(Self { matrix, rows, recipes: needed })
    }

    /// The rows to build.
    #[must_use]
    pub fn rows(&self) -> &[&'m MatrixRow] {
        &self.rows
    }

    /// The architectures that they are for.
    #[must_use]
    pub fn architectures(&self) -> BTreeSet<CpuArchitecture> {
        self.recipes.iter().map(|recipe| recipe.architecture).collect()
    }

    /// The parts to compile, each once.
    #[must_use]
    pub fn recipes(&self) -> &[BuildRecipe] {
        &self.recipes
    }
}

/// Checks that a row can be assembled: the core followed by plugins, or one plugin.
fn check_parts(matrix: &WheelMatrix, row: &MatrixRow) -> Result<(), Error> {
    let refuse = |found: &str| {
        Error::new(format!(
            "expected `parts` of `{}` in the matrix that are built, `core` first or one plugin alone; found {found}",
            row.label
        ))
    };
    let (core, plugins) = match row.parts.split_first() {
        None => return Err(refuse("none; what others published cannot be built here")),
        Some((first, rest)) if first == CORE_PART => (true, rest),
        Some(_) => (false, &row.parts[..]),
    };
    let is_file = |part: &&String| matrix.parts.get(*part).is_some_and(|it| it.file.is_some());
    match plugins.iter().find(|part| *part == CORE_PART || is_file(part)) {
        Some(other) => Err(refuse(&format!("`{other}` among them"))),
        None if !core && plugins.len() > 1 => Err(refuse(&row.parts.join(", "))),
        None => Ok(()),
    }
}

/// The error for an unknown label: it lists similar labels, or all if none is similar.
fn unknown_label_error(matrix: &WheelMatrix, label: &str) -> Error {
    let labels = || matrix.wheels.iter().map(|row| row.label.as_str());
    let near = nearest_names(&label.to_lowercase(), labels().map(|it| (it.to_lowercase(), it)));
    let hint = match &near[..] {
        [] => format!("one of {}; found `{label}`", labels().collect::<Vec<_>>().join("; ")),
        near => format!("found `{label}`; did you mean {}", near.join(" or ")),
    };
    Error::new(format!("expected a row of the matrix, {hint}"))
}

/// The recipes of a row, in the order of its parts.
pub(crate) fn recipes_for_row(matrix: &WheelMatrix, row: &MatrixRow) -> Result<Vec<BuildRecipe>, Error> {
    row.parts.iter().map(|part| recipe_for_part(matrix, row, part)).collect()
}

/// The recipe of a part with the settings of a row.
pub(crate) fn recipe_for_part(
    matrix: &WheelMatrix,
    row: &MatrixRow,
    name: &str,
) -> Result<BuildRecipe, Error> {
    let tag = &row.name.platform;
    let parsed = row.architecture().and_then(|architecture| {
        let glibc = tag.strip_prefix("manylinux_")?.strip_suffix(architecture.name())?.strip_suffix('_')?;
        Some((architecture, glibc))
    });
    let (architecture, glibc) = parsed.ok_or_else(|| {
        Error::new(format!(
            "expected a platform such as `manylinux_2_28_x86_64`, to build for it; found `{tag}`"
        ))
    })?;
    let part = matrix.parts.get(name).ok_or_else(|| {
        Error::new(format!("expected the parts of `{}` in [parts], found no `{name}`", row.label))
    })?;
    Ok(BuildRecipe {
        name: name.to_owned(),
        part: part.clone(),
        without_avx: is_without_avx(row, part),
        architecture,
        glibc: glibc.to_owned(),
        python: (name == CORE_PART).then(|| row.name.python.clone()),
    })
}

/// The recipe of the command for an architecture.
pub(crate) fn command_recipe(
    matrix: &WheelMatrix,
    architecture: CpuArchitecture,
) -> Result<BuildRecipe, Error> {
    recipe_for_part(matrix, matrix.core_row(architecture, false)?, COMMAND_PART)
}

/// True if a part of a row must not contain AVX instructions. The check also applies to parts that have no AVX code anyway, but not
/// to other processors than x86-64.
pub(crate) fn is_without_avx(row: &MatrixRow, part: &MatrixPart) -> bool {
    let is_x86 = row.architecture() == Some(CpuArchitecture::X86_64);
    is_x86 && (!part.has_avx || row.combination.get(&MatrixAxis::Isa).is_some_and(|isa| isa == "noavx"))
}
