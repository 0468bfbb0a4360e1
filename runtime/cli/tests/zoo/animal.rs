//! Animals: rows of the tables, made into files and examined.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use libtest_mimic::Failed;
use serde::Deserialize;
use serde_json::Value;

use crate::watched::{CommandEnd, run_watched};

/// What a manifest of an animal says where it tells the truth.
const TRUE_MANIFEST: [&str; 7] = [
    "name = \"zoo\"",
    "version = \"1.0.0\"",
    "kind = \"device\"",
    "device_type = \"Zoo\"",
    "contract = \"1.0..1.2\"",
    "profiles = [\"core\", \"async\"]",
    "unloadable = false",
];

#[derive(Deserialize)]
struct ZooTable {
    animal: Vec<ZooRow>,
}

/// A row of a table. `@` in its texts stands for each of `of` in turn.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ZooRow {
    name: String,
    /// What is wrong, for people.
    wrong: String,
    #[serde(default)]
    of: Vec<String>,
    /// The rules, slots and refusals, one of which `plugin check` has to name.
    found: Vec<String>,
    /// Those of `of` that `plugin check` accepts today, or `*` for all.
    #[serde(default)]
    unfound: Vec<String>,
    /// Those of `of` that end a host today, or `*` for all.
    #[serde(default)]
    ends_host: Vec<String>,
    /// True if it takes a minute, since something waits for it.
    #[serde(default)]
    full_only: bool,
    /// True if it is a layer, with a function `wrap`.
    #[serde(default)]
    layer: bool,
    /// A line of its manifest.
    manifest: Option<String>,
    #[serde(default)]
    code: String,
    #[serde(default)]
    change: String,
}

/// One plugin that is wrong in one way.
pub(crate) struct ZooAnimal {
    pub(crate) name: String,
    /// True if it is examined only with all of them.
    pub(crate) is_slow: bool,
    is_found: bool,
    ends_host: bool,
    row: ZooRow,
    seed: u64,
}

/// All animals of all tables.
pub(crate) fn read_zoo() -> Vec<ZooAnimal> {
    let seed = std::env::var("OARLOCK_ZOO_SEED").unwrap_or_else(|_| "1".to_owned());
    let mut files: Vec<PathBuf> =
        fs::read_dir(zoo_directory()).expect("the zoo").flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    let mut animals = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a table");
        let table: ZooTable =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for row in table.animal {
            row.check_lists();
            animals.extend(ZooAnimal::from_row(&row, &seed));
        }
    }
    animals
}

fn zoo_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/zoo")
}

impl ZooRow {
    /// Panics if a list names a variant that is not there.
    fn check_lists(&self) {
        assert!(!self.found.is_empty(), "`{}`: expected a rule in `found`, found none", self.name);
        for variant in self.unfound.iter().chain(&self.ends_host) {
            assert!(
                variant == "*" || self.of.contains(variant),
                "`{}`: expected `{variant}` in `of`",
                self.name
            );
        }
    }
}

/// True if a list has this variant, or all.
fn has_variant(list: &[String], variant: Option<&String>) -> bool {
    list.iter().any(|listed| listed == "*" || Some(listed) == variant)
}

impl ZooAnimal {
    fn from_row(row: &ZooRow, seed: &str) -> Vec<Self> {
        let variants = if row.of.is_empty() { vec![None] } else { row.of.iter().map(Some).collect() };
        let animals = variants.into_iter().map(|variant| {
            let put =
                |text: &str| variant.map_or_else(|| text.to_owned(), |variant| text.replace('@', variant));
            let row = ZooRow {
                code: put(&row.code),
                change: put(&row.change),
                manifest: row.manifest.as_deref().map(put),
                ..row.clone()
            };
            let name = variant.map_or_else(|| row.name.clone(), |variant| format!("{}: {variant}", row.name));
            let mut hasher = DefaultHasher::new();
            (seed, &name).hash(&mut hasher);
            Self {
                name,
                is_slow: row.full_only,
                is_found: !has_variant(&row.unfound, variant),
                ends_host: has_variant(&row.ends_host, variant),
                row,
                seed: hasher.finish(),
            }
        });
        let mut animals: Vec<Self> = animals.collect();
        // The seed chooses which one of a row stands for all of them where time is short.
        let chosen = animals.iter().map(|animal| animal.seed).min();
        animals.iter_mut().for_each(|animal| animal.is_slow |= Some(animal.seed) != chosen);
        animals
    }

    /// Makes the plugin, has it checked, and starts a host with it.
    pub(crate) fn examine(&self) -> Result<(), Failed> {
        let place = tempfile::tempdir()?;
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700))?;
        let file = place.path().join("libzoo.so");
        self.compile(&file)?;
        if let Some(line) = &self.row.manifest {
            fs::write(file.with_extension("oarlock.toml"), manifest_with(line))?;
        }
        fs::write(place.path().join("config.toml"), "[plugins]\nprobe_timeout_ms = 700\n")?;
        let file_argument = file.to_string_lossy().into_owned();
        let checked = run_watched(place.path(), &["plugin", "check", "--json", &file_argument])?;
        let checked = self.check_verdict(&checked);
        let layer: &[&str] = if self.row.layer { &["--layer", "zoo"] } else { &[] };
        let devices = [&["devices", "--json", "--plugin", &file_argument], layer].concat();
        let survived = self.check_survival(&run_watched(place.path(), &devices)?);
        checked.and(survived)
    }

    fn check_verdict(&self, check: &CommandEnd) -> Result<(), Failed> {
        let answer: Value = serde_json::from_str(&check.printed).unwrap_or(Value::Null);
        let (complaints, wrong, rules) = (complaints_of(&answer), &self.row.wrong, &self.row.found);
        let is_found = check.status == Some(1) && rules.iter().any(|rule| complaints.contains(rule));
        let end = format!("complaints {complaints:?}, status {:?} and `{}`", check.status, check.complained);
        match (is_found, self.is_found) {
            (true, true) => Ok(()),
            (false, false) if check.status != Some(1) || complaints.is_empty() => Ok(()),
            (false, true) => Err(format!("expected one of {rules:?}, because {wrong}; found {end}").into()),
            (_, false) => Err(format!(
                "expected that nobody notices yet that {wrong} ({rules:?}); found {end}: take it out of `unfound`"
            )
            .into()),
        }
    }

    /// A host may refuse the plugin or use it, but it has to list the other devices.
    fn check_survival(&self, listing: &CommandEnd) -> Result<(), Failed> {
        let survives =
            listing.status.is_some_and(|status| status < 2) && listing.printed.contains("oarlock-cpu");
        match (survives, self.ends_host) {
            (true, false) | (false, true) => Ok(()),
            (true, true) => {
                Err("expected that it ends a host; it does not any more, so take it out of `ends_host`"
                    .into())
            }
            (false, false) => Err(format!(
                "expected that `oarlock devices` survives it, found status {:?} and `{}`",
                listing.status, listing.complained
            )
            .into()),
        }
    }

    fn compile(&self, target: &Path) -> Result<(), Failed> {
        let source = target.with_extension("c");
        fs::write(&source, self.source())?;
        let output = c_compiler()
            .arg(format!("-DZOO_SEED={}u", self.seed >> 33))
            .args(["-shared", "-o"])
            .arg(target)
            .arg(&source)
            .args(template_objects())
            .args(["-lpthread", "-lm"])
            .output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{}\n{}", String::from_utf8_lossy(&output.stderr), self.source()).into())
    }

    fn source(&self) -> String {
        let ZooRow { code, change, .. } = &self.row;
        format!(
            "#include \"zoo.h\"\n\n{code}\n\nstatic void change(oarlock_plugin *plugin) {{\n    (void)plugin;\n    \
             {change}\n}}\n\nOARLOCK_PLUGIN(describe);\n"
        )
    }
}

/// The true manifest with this line in place of the one with the same key.
fn manifest_with(line: &str) -> String {
    let key = |line: &str| line.split('=').next().map(str::trim).map(str::to_owned);
    let architecture = format!("architecture = \"{}-linux\"", std::env::consts::ARCH);
    let truth =
        TRUE_MANIFEST.into_iter().chain([architecture.as_str()]).filter(|truth| key(truth) != key(line));
    truth.chain([line]).fold(String::new(), |text, line| text + line + "\n")
}

/// The steps and checks that failed, as text.
fn complaints_of(answer: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut complaints: Vec<String> = Vec::new();
    for step in answer["steps"].as_array().into_iter().flatten().filter(|step| step["state"] == "fail") {
        complaints.push(format!("{}: {}", text(&step["step"]), text(&step["found"])));
    }
    for result in answer["conformance"]["results"].as_array().into_iter().flatten() {
        if result["outcome"] == "failed" || result["outcome"] == "not run" || result["outcome"] == "not_run" {
            complaints.push(format!(
                "[{}] {}: {}",
                text(&result["rule"]),
                text(&result["name"]),
                text(&result["message"])
            ));
        }
    }
    complaints.join("; ")
}

fn c_compiler() -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O1", "-fPIC", "-fvisibility=hidden", "-w", "-I"]).arg(zoo_directory());
    for include in ["device-sdk/include", "tests/frozen/1.2/src/device"] {
        compiler.arg("-I").arg(root.join(include));
    }
    compiler
}

/// The frozen template without its entry, compiled once.
fn template_objects() -> &'static [PathBuf] {
    static OBJECTS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    OBJECTS.get_or_init(|| {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("zoo");
        fs::create_dir_all(&place).expect("a directory for objects");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/frozen/1.2/src/device");
        let objects = ["memory", "stream", "add"].map(|name| {
            let object = place.join(name).with_extension("o");
            let source = sources.join(name).with_extension("c");
            let status =
                c_compiler().args(["-c", "-o"]).args([&object, &source]).status().expect("a C compiler");
            assert!(status.success(), "`{}` compiles", source.display());
            object
        });
        objects.to_vec()
    })
}
