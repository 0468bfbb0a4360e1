//! The host's verdict on each plugin in `tests/plugins`, good and bad; the table there states the expected ones.
//!
//! Each plugin is compiled as a vendor would compile it, placed beside a good plugin, and examined by a host. Whatever the bad
//! one does, the good one must keep working. This program is also the probe: the host starts it with `__probe` and a file.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use oarlock_host::{
    Host, HostConfig, HostEnvironment, HostOptions, PluginOutcome, ProbeCommand, ProcessIdentity,
    probe_child_main,
};
use oarlock_sdk::abi;
use oarlock_tests::plugin_compiler;

const PROBE_COMMAND: &str = "__probe";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == PROBE_COMMAND) {
        return probe_child_main(Path::new(&arguments.next().unwrap_or_default()), &[]);
    }
    let table = fs::read_to_string(plugins_directory().join("README.md")).expect("the table of plugins");
    let mut rows: Vec<PluginExpectation> = table.lines().filter_map(PluginExpectation::parse_row).collect();
    let listed = |file: &Path| {
        rows.iter().any(|row| Some(row.file.as_str()) == file.file_name().and_then(|f| f.to_str()))
    };
    for source in fs::read_dir(plugins_directory())
        .expect("the directory of plugins")
        .flatten()
        .map(|entry| entry.path())
    {
        let is_plugin = source.extension().is_some_and(|ending| ending == "c" || ending == "cpp");
        assert!(!is_plugin || listed(&source), "`{}` is missing from the table", source.display());
    }
    // In a host with AddressSanitizer, the plugin tagged with it is valid.
    rows.retain(|row| row.file != "asan_tagged.c" || abi::SANITIZER == abi::Sanitizer::NONE);
    let mut trials: Vec<Trial> =
        rows.into_iter().map(|row| Trial::test(row.file.clone(), move || row.run_expectation())).collect();
    trials.push(Trial::test("the simulated device, probed", probe_the_simulated_device));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn plugins_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins")
}

/// A device whose memory is large anonymous files, as with real drivers, passes the probe's limits.
fn probe_the_simulated_device() -> Result<(), Failed> {
    let place = tempfile::tempdir()?;
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700))?;
    let built = std::env::current_exe()?.with_file_name("liboarlock_plugin_sim.so");
    fs::copy(built, place.path().join("liboarlock_plugin_sim.so"))?;
    let host = start_host(place.path())?;
    host.device("sim:1").map(drop).ok_or_else(|| format!("{:?}", host.report()).into())
}

/// A row of the table: a source file and the reasons, one of which the host must report; empty if the plugin loads. `noted`
/// lists everything that notes report about a plugin that loads.
struct PluginExpectation {
    file: String,
    loads: bool,
    reasons: Vec<String>,
    noted: Vec<String>,
}

impl PluginExpectation {
    fn parse_row(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", file, _, verdict, ""] = cells[..] else { return None };
        let file = file.strip_prefix('`')?.strip_suffix('`')?.to_owned();
        let quoted = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let first = verdict.split([';', ',']).next().unwrap_or_default();
        let notes = ["a note says ", "notes say "].iter().find_map(|words| verdict.split_once(words));
        let noted = notes.map_or_else(Vec::new, |(_, notes)| quoted(notes));
        Some(Self { file, loads: first.starts_with("loads"), reasons: quoted(first), noted })
    }

    fn run_expectation(&self) -> Result<(), Failed> {
        let place = tempfile::tempdir()?;
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700))?;
        // The good plugin sorts first by name, so that it owns its device type.
        compile_plugin("good.c", &place.path().join("a_good.so"))?;
        let subject = place.path().join(Path::new(&self.file).with_extension("so"));
        if self.file == "missing_soname.c" {
            expect_success(
                Command::new("sh").arg(plugins_directory().join("missing_soname.sh")).arg(place.path()),
            )?;
        } else if self.file != "good.c" {
            compile_plugin(&self.file, &subject)?;
        }
        let host = start_host(place.path())?;
        let good = host.device("Good").ok_or("the good plugin beside it does not work any more")?;
        let mut block = good.allocate(4)?;
        block.write_bytes(0, b"oars")?;
        if self.file == "good.c" { Ok(()) } else { self.compare_refusal(&host, &subject) }
    }

    fn compare_refusal(&self, host: &Host, subject: &Path) -> Result<(), Failed> {
        let report = host.report().plugins.iter().find(|report| report.file == subject);
        let report = report.ok_or("the host says nothing of it")?;
        let is_missing = |text: &&String| !report.notes.iter().any(|note| note.contains(text.as_str()));
        match &report.outcome {
            PluginOutcome::Loaded(_) if self.loads => match self.noted.iter().find(is_missing) {
                None => Ok(()),
                Some(text) => Err(format!("expected a note with `{text}`, found {:?}", report.notes).into()),
            },
            PluginOutcome::Loaded(_) => {
                Err(format!("expected one of {:?}, found that it loads", self.reasons).into())
            }
            PluginOutcome::Refused(refusal) => {
                let reason = serde_json::to_value(refusal.reason)?;
                let expected = self.reasons.iter().any(|expected| reason == expected.as_str());
                if !expected || !refusal.to_string().contains(&*subject.to_string_lossy()) {
                    return Err(format!(
                        "expected {:?} and the file, found {reason}: {refusal}",
                        self.reasons
                    )
                    .into());
                }
                Ok(())
            }
        }
    }
}

fn compile_plugin(source: &str, target: &Path) -> Result<(), Failed> {
    let source = plugins_directory().join(source);
    let is_cpp = source.extension().is_some_and(|ending| ending == "cpp");
    let mut compiler = plugin_compiler(is_cpp, abi::SANITIZER == abi::Sanitizer::ADDRESS);
    expect_success(compiler.arg("-o").arg(target).arg(source))
}

fn expect_success(command: &mut Command) -> Result<(), Failed> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr)).into())
}

/// A host that searches only this directory.
fn start_host(directory: &Path) -> Result<Host, Failed> {
    let environment = HostEnvironment::new(|_| None, false, ProcessIdentity::of_process());
    let mut options = HostOptions::new("tests 1.0", HostConfig::default(), environment);
    options.paths = vec![directory.to_path_buf()];
    options.cache_home = Some(directory.join("cache"));
    options.probe =
        Some(ProbeCommand { program: std::env::current_exe()?, arguments: vec![PROBE_COMMAND.into()] });
    Ok(Host::start(&options)?)
}
