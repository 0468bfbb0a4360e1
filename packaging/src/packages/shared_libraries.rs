//! Requirements and exports of the libraries and programs in a package.

use oarlock_formats::error::Error;
use oarlock_formats::tree::FileTree;

use oarlock_formats::library_needs::{self, LibraryNeeds};
use object::{Object as _, ObjectSymbol as _};

/// The combined requirements of a package.
#[derive(Debug, Default)]
pub(crate) struct PackageNeeds {
    /// The newest glibc symbol version that anything uses.
    glibc: Option<(u32, u32)>,
    /// True if anything links the unwinder.
    unwinds: bool,
    /// The build ids of all compiled files.
    pub(crate) build_ids: Vec<String>,
}

impl PackageNeeds {
    /// The packages that satisfy the requirements.
    pub(crate) fn package_dependencies(&self) -> Vec<String> {
        let glibc = self.glibc.map(|(major, minor)| format!("libc6 (>= {major}.{minor})"));
        // The version that introduced the present ABI.
        let unwinder = self.unwinds.then(|| "libgcc-s1 (>= 4.2)".to_owned());
        glibc.into_iter().chain(unwinder).collect()
    }
}

/// Collects the requirements of all compiled files.
pub(crate) fn needs_of_contents(contents: &FileTree) -> Result<PackageNeeds, Error> {
    let mut all = PackageNeeds::default();
    for (path, bytes) in contents.files().filter(|(_, bytes)| library_needs::is_compiled(bytes)) {
        let needs = LibraryNeeds::from_library(bytes).map_err(|error| error.in_file(path))?;
        all.glibc = all.glibc.max(needs.glibc.last().copied());
        all.unwinds |= needs.libraries.contains("libgcc_s.so.1");
        all.build_ids.extend(needs.build_id);
    }
    all.build_ids.sort();
    Ok(all)
}

/// The sorted exports of the library with a soname.
pub(crate) fn exported_symbols(contents: &FileTree, soname: &str) -> Result<Vec<String>, Error> {
    let missing = || Error::new(format!("expected the library `{soname}` in its package, found none"));
    let mut files = contents.files();
    let bytes = files.find_map(|(path, bytes)| path.contains(soname).then_some(bytes)).ok_or_else(missing)?;
    let file = object::File::parse(bytes).map_err(|error| Error::new(format!("`{soname}`: {error}")))?;
    let offered = file.dynamic_symbols().filter(|symbol| symbol.is_definition() && symbol.is_global());
    let mut names: Vec<String> = offered.filter_map(|symbol| Some(symbol.name().ok()?.to_owned())).collect();
    names.sort();
    Ok(names)
}
