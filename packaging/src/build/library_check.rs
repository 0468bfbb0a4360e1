//! Checks that this machine has the libraries that plugins need to be queried.

use std::path::Path;
use std::process::Command;

use oarlock_formats::error::Error;

use crate::build_plan::BuildRecipe;

/// Locations of `ldconfig`; `/sbin` is not on the `PATH` of ordinary users.
const LDCONFIG_PATHS: [&str; 2] = ["/sbin/ldconfig", "/usr/sbin/ldconfig"];

/// Checks that each plugin finds one of its startup libraries, unless a PyPI package provides them. This runs before the slow
/// compilation, which would be wasted if they were missing.
pub(super) fn check_plugin_libraries<'r>(
    recipes: impl Iterator<Item = &'r BuildRecipe>,
) -> Result<(), Error> {
    let known = known_libraries();
    for recipe in recipes {
        let opens = &recipe.part.opens;
        let is_here =
            |soname: &String| known.lines().any(|line| line.trim_start().split(' ').next() == Some(soname));
        if recipe.part.libraries.is_empty() && !opens.is_empty() && !opens.iter().any(is_here) {
            let names: Vec<String> = opens.iter().map(|soname| format!("`{soname}`")).collect();
            return Err(Error::new(format!(
                "expected one of {} where the dynamic linker looks, with which the plugin `{}` has to start once so that it can say \
                 who it is; found none. Install it, or leave out what has that plugin",
                names.join(", "),
                recipe.name
            )));
        }
    }
    Ok(())
}

/// The linker's list of libraries, and the files in `LD_LIBRARY_PATH`.
fn known_libraries() -> String {
    let linker = LDCONFIG_PATHS.into_iter().find(|file| Path::new(file).exists()).unwrap_or("ldconfig");
    let said = Command::new(linker).arg("-p").output().map(|said| said.stdout).unwrap_or_default();
    let mut known = String::from_utf8_lossy(&said).into_owned();
    let paths = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let entries =
        std::env::split_paths(&paths).filter_map(|path| std::fs::read_dir(path).ok()).flatten().flatten();
    entries.for_each(|entry| known += &format!("{}\n", entry.file_name().display()));
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build_plan::WheelPlan;
    use oarlock_matrix::{OWN_MATRIX, WheelMatrix};

    #[test]
    fn a_library_that_no_machine_has_is_missed_before_anything_is_compiled() {
        let matrix =
            WheelMatrix::from_toml("matrix.toml", &OWN_MATRIX.replace("libOpenCL.so.1", "libnobody.so.1"))
                .expect("a matrix");
        let of = |label: &str| WheelPlan::new(&matrix, &[label.to_owned()]).expect("a row");
        let error =
            check_plugin_libraries(of("OpenCL").recipes().iter()).expect_err("no library").to_string();
        assert!(
            error.starts_with("expected one of `libnobody.so.1` where the dynamic linker looks"),
            "{error}"
        );
        // Its libraries come from PyPI.
        assert_eq!(check_plugin_libraries(of("CUDA 12").recipes().iter()), Ok(()));
        assert_eq!(check_plugin_libraries(of("core").recipes().iter()), Ok(()));
    }
}
