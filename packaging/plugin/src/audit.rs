//! What the shared objects of a package need, and what speaks against shipping them.

use std::collections::BTreeSet;

use oarlock_formats::error::Error;
use oarlock_formats::library_needs::LibraryNeeds;

use crate::package::PluginPackage;

/// Libraries of every Linux with glibc and a C++ compiler's runtime. A wheel may rely on them.
const COMMON_LIBRARIES: [&str; 9] = [
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
    "libstdc++.so.6",
];

/// The oldest glibc that a tag names: pip of today knows no older `manylinux_x_y` that matters.
const OLDEST_GLIBC: (u32, u32) = (2, 17);

/// A version of libstdc++, by the newest of its symbols.
struct LibstdcxxVersion {
    /// The number behind `GLIBCXX_`.
    symbols: (u32, u32, u32),
    /// The glibc of the oldest `manylinux` whose machines have them, as `auditwheel` lists them.
    glibc: (u32, u32),
    /// The version of Debian's `libstdc++6` that brought them.
    package: &'static str,
}

const fn libstdcxx(symbols: (u32, u32, u32), glibc: (u32, u32), package: &'static str) -> LibstdcxxVersion {
    LibstdcxxVersion { symbols, glibc, package }
}

const LIBSTDCXX_VERSIONS: [LibstdcxxVersion; 8] = [
    libstdcxx((3, 4, 19), (2, 17), "4.8.1"),
    libstdcxx((3, 4, 22), (2, 24), "6"),
    libstdcxx((3, 4, 24), (2, 27), "7.2"),
    libstdcxx((3, 4, 28), (2, 31), "9.3"),
    libstdcxx((3, 4, 29), (2, 34), "11"),
    libstdcxx((3, 4, 30), (2, 35), "12"),
    libstdcxx((3, 4, 32), (2, 39), "13.2"),
    libstdcxx((3, 4, 33), (2, 39), "14"),
];

/// The combined needs of all shared objects of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageNeeds {
    /// Libraries that they are linked to and that are not in the package.
    pub libraries: BTreeSet<String>,
    /// The glibc of the oldest machine that they run on.
    pub glibc: (u32, u32),
    /// The glibc whose symbols they use.
    pub glibc_symbols: Option<(u32, u32)>,
    /// The version of Debian's `libstdc++6` that they need.
    pub libstdcxx_package: Option<&'static str>,
    /// What a vendor may want to mend, although it is no reason to refuse.
    pub notes: Vec<String>,
}

impl PluginPackage {
    /// Reads the needs of all shared objects, and checks what they do to the process that loads them.
    ///
    /// # Errors
    ///
    /// When something speaks against shipping them; the message lists all of it.
    pub fn audit(&self) -> Result<PackageNeeds, Error> {
        let mut all = PackageNeeds { glibc: OLDEST_GLIBC, ..PackageNeeds::default() };
        let mut wrong = Vec::new();
        for file in self.shared_objects() {
            let needs = LibraryNeeds::from_library(&file.bytes).map_err(|error| error.in_file(&file.name))?;
            wrong.extend(self.objections(&needs).into_iter().map(|what| format!("`{}` {what}", file.name)));
            all.add_needs(&needs);
            if !needs.is_stripped {
                all.notes.push(format!(
                    "`{}` has symbols that nobody needs at run time: link it with `-s`",
                    file.name
                ));
            }
        }
        let is_here = |name: &String| self.shared_objects().any(|file| file.name == *name);
        all.libraries.retain(|name| !is_here(name));
        match wrong.is_empty() {
            true => Ok(all),
            false => Err(Error::new(format!(
                "expected a plugin that can be shipped, found that {}",
                wrong.join(", and that ")
            ))),
        }
    }

    /// What speaks against a shared object.
    fn objections(&self, needs: &LibraryNeeds) -> Vec<String> {
        let mut wrong = Vec::new();
        if let Some(path) = &needs.search_path
            && path.split(':').any(|part| !["$ORIGIN", "${ORIGIN}"].contains(&part))
        {
            wrong.push(format!("searches libraries in `{path}` (RUNPATH), where others may put theirs: only `$ORIGIN` is its own"));
        }
        if needs.has_executable_stack {
            wrong.push(
                "makes the stack of the process executable: link it with `-Wl,-z,noexecstack`".to_owned(),
            );
        }
        if needs.has_text_relocations {
            wrong
                .push("has its code changed when it is loaded (TEXTREL): compile it with `-fPIC`".to_owned());
        }
        let is_here = |name: &str| self.shared_objects().any(|file| file.name == name);
        let is_declared = |name: &str| self.recipe.libraries.iter().any(|provider| provider.soname == name);
        for name in &needs.libraries {
            if !COMMON_LIBRARIES.contains(&name.as_str()) && !is_here(name) && !is_declared(name) {
                wrong.push(format!(
                    "is linked to `{name}`, which a machine may not have: say in `libraries` what provides it"
                ));
            }
        }
        wrong
    }
}

impl PackageNeeds {
    fn add_needs(&mut self, needs: &LibraryNeeds) {
        self.libraries.extend(needs.libraries.iter().cloned());
        self.glibc_symbols = self.glibc_symbols.max(needs.glibc.last().copied());
        self.glibc = self.glibc.max(self.glibc_symbols.unwrap_or_default());
        if let Some(version) = needs.libstdcxx.last() {
            let known = LIBSTDCXX_VERSIONS.iter().find(|known| known.symbols >= *version);
            let LibstdcxxVersion { glibc, package, .. } = known.unwrap_or_else(|| {
                let (major, minor, patch) = version;
                let note = format!(
                    "it uses GLIBCXX_{major}.{minor}.{patch}, which the machines of no platform tag have"
                );
                self.notes.push(note);
                &LIBSTDCXX_VERSIONS[LIBSTDCXX_VERSIONS.len() - 1]
            });
            self.glibc = self.glibc.max(*glibc);
            let place = |package: &str| LIBSTDCXX_VERSIONS.iter().position(|known| known.package == package);
            if self.libstdcxx_package.is_none_or(|before| place(before) < place(package)) {
                self.libstdcxx_package = Some(package);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::package::PackagedFile;
    use crate::recipe::PackageRecipe;
    use crate::recipe::tests::EXAMPLE;

    /// A package of a library that is made of a C source with these options; `more` is added to the recipe.
    fn package_of_source(options: &[&str], more: &str) -> PluginPackage {
        let place = tempfile::tempdir().expect("a directory");
        let (source, library) = (place.path().join("one.c"), place.path().join("libacme.so"));
        std::fs::write(&source, "#include <math.h>\ndouble acme(double x) { return exp(x); }\n")
            .expect("a source");
        // A library that a machine may not have.
        let other = place.path().join("libother.so.7");
        let run = |arguments: &[&str], output: &std::path::Path| {
            let mut compiler = Command::new("cc");
            compiler
                .args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"])
                .arg(output)
                .arg(&source)
                .args(arguments);
            assert!(compiler.current_dir(place.path()).status().expect("a C compiler").success());
        };
        run(&["-Wl,-soname,libother.so.7"], &other);
        run(options, &library);
        let bytes = std::fs::read(&library).expect("a library");
        PluginPackage {
            recipe: PackageRecipe::from_toml("r", &format!("{EXAMPLE}{more}")).expect("a recipe"),
            library: PackagedFile { name: "libacme.so".to_owned(), bytes },
            manifest: PackagedFile { name: "libacme.oarlock.toml".to_owned(), bytes: Vec::new() },
            companions: Vec::new(),
            libraries: Vec::new(),
            licenses: Vec::new(),
            cargo_lock: None,
            support: None,
            seconds: 0,
        }
    }

    #[test]
    fn a_library_of_the_system_needs_glibc_alone() {
        let needs = package_of_source(&["-lm", "-s"], "").audit().expect("a plugin that can be shipped");
        assert!(needs.glibc >= OLDEST_GLIBC && needs.libraries.contains("libm.so.6"), "{needs:?}");
        assert_eq!((needs.libstdcxx_package, needs.notes.len()), (None, 0));
        assert_eq!(package_of_source(&[], "").audit().expect("the same").notes.len(), 1);
    }

    #[test]
    fn what_harms_the_process_or_lacks_a_provider_is_refused_at_once() {
        let options = ["-Wl,-z,execstack", "-Wl,-rpath,$ORIGIN:.", "-L.", "-l:libother.so.7"];
        let error = package_of_source(&options, "").audit().expect_err("three reasons").to_string();
        for expected in ["`$ORIGIN:.` (RUNPATH)", "-z,noexecstack", "linked to `libother.so.7`"] {
            assert!(error.contains(expected), "{expected}: {error}");
        }
        let declared = "[[libraries]]\nsoname = \"libother.so.7\"\n";
        let options = ["-Wl,-rpath,$ORIGIN", "-L.", "-l:libother.so.7"];
        let needs = package_of_source(&options, declared).audit().expect("a declared library");
        assert!(needs.libraries.contains("libother.so.7"));
    }

    #[test]
    fn the_symbols_of_the_runtime_of_cpp_ask_for_a_glibc_of_their_time() {
        let mut all = PackageNeeds::default();
        let with = |versions: &[(u32, u32, u32)]| LibraryNeeds {
            libstdcxx: versions.iter().copied().collect(),
            ..LibraryNeeds::default()
        };
        all.add_needs(&with(&[(3, 4, 11), (3, 4, 20)]));
        assert_eq!((all.glibc, all.libstdcxx_package), ((2, 24), Some("6")));
        all.add_needs(&with(&[(3, 4, 30)]));
        assert_eq!((all.glibc, all.libstdcxx_package), ((2, 35), Some("12")));
        all.add_needs(&with(&[(3, 4, 1)]));
        assert_eq!((all.glibc, all.libstdcxx_package), ((2, 35), Some("12")));
    }
}
