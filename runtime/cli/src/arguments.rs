//! The command-line arguments. Help, completions, manual pages and the reference are all generated from here.

mod model;
mod plugin;
mod plugin_check;
mod trust;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use oarlock_core::Dtype;

use crate::help::plugin::{INDEX_EXAMPLES, NEW_EXAMPLES, PACK_EXAMPLES};
use crate::help::trust::{KEY_EXAMPLES, SIGN_EXAMPLES, TRUST_EXAMPLES, VERIFY_EXAMPLES};
use crate::help::{
    BENCH_EXAMPLES, CHECK_EXAMPLES, CHECK_MODEL_EXAMPLES, COMPLETIONS_EXAMPLES, DEVICES_EXAMPLES,
    DOCTOR_EXAMPLES, EXAMPLES, EXPLAIN_EXAMPLES, FLAGS_EXAMPLES, KERNELS_EXAMPLES, MAN_EXAMPLES,
    MANIFEST_EXAMPLES, OP_EXAMPLES, OPTIMIZE_EXAMPLES, PLUGIN_EXAMPLES, PLUGINS_EXAMPLES, REPLAY_EXAMPLES,
    RUN_EXAMPLES, TRACE_EXAMPLES,
};
use crate::output::ColorChoice;
pub(crate) use model::{
    BenchArguments, ExplainArguments, ModelArguments, OptimizeArguments, PrecisionArguments, RunArguments,
    TraceArguments,
};
pub(crate) use plugin::{IndexArguments, NewPluginArguments, PackArguments, PackageFormat};
pub(crate) use plugin_check::PluginCheckChoice;
pub(crate) use trust::{KeyCommand, SignArguments, TrustArguments, VerifyArguments};

/// Version of the program and of the plugin contract, for `--version`.
static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{} (contract {})", env!("CARGO_PKG_VERSION"), oarlock_abi::Versions::OURS));

/// Runs one program unchanged on whatever is plugged in
///
/// Devices and their kernels are plugins. This command runs models and ops on them, lists them, tests them, and says how to mend
/// what does not work.
#[derive(Debug, Parser)]
#[command(name = "oarlock", version = VERSION.as_str(), after_help = EXAMPLES, arg_required_else_help = true)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: OarlockCommand,
}

/// What every command takes.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Use the plugins in this file or directory before any others; may be given several times
    #[arg(long = "plugin", value_name = "PATH", global = true, value_hint = ValueHint::AnyPath)]
    pub(crate) plugins: Vec<PathBuf>,
    /// Wrap every plugin in this layer, such as `trace` or `validate`; may be given several times, the outermost first
    #[arg(long = "layer", value_name = "NAME", global = true)]
    pub(crate) layers: Vec<String>,
    /// Of the plugins that are not part of the command, use only this one, by name or file; may be given several times
    #[arg(long, value_name = "PLUGIN", global = true)]
    pub(crate) only: Vec<String>,
    /// Leave out this plugin, by name or file; may be given several times
    #[arg(long, value_name = "PLUGIN", global = true)]
    pub(crate) without: Vec<String>,
    /// Run this plugin in a process of its own, so that its crash cannot end the program; may be given several times
    #[arg(long = "isolate", value_name = "NAME", global = true)]
    pub(crate) isolate: Vec<String>,
    /// Read this configuration file instead of the user's
    #[arg(long, value_name = "FILE", global = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Probe all plugins without a manifest again, instead of using cached results, and cache the new ones
    #[arg(long, global = true)]
    pub(crate) ask_again: bool,
    /// When to use colors; `auto` means on a terminal, unless `NO_COLOR` is set
    #[arg(long, value_name = "WHEN", global = true, value_enum, default_value_t)]
    pub(crate) color: ColorChoice,
    /// Show messages of plugins; twice for more
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OarlockCommand {
    /// List the devices
    #[command(after_help = DEVICES_EXAMPLES)]
    Devices,
    /// List the plugins, and say why any was refused
    #[command(after_help = PLUGINS_EXAMPLES)]
    Plugins,
    /// List the kernels, and say which contradict a schema
    #[command(after_help = KERNELS_EXAMPLES)]
    Kernels(KernelFilter),
    /// List the flags, their values, and where the values come from
    #[command(after_help = FLAGS_EXAMPLES)]
    Flags {
        /// The name of a flag, or an alias; all flags if left out
        name: Option<String>,
        /// List the variables of PaddlePaddle instead: the flag that each sets, or what to use instead
        #[arg(long)]
        paddle: bool,
    },
    /// Run a model
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArguments),
    /// Measure how fast a model runs, and which ops take the time
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArguments),
    /// Show how a model would run: the device and kernel of each node, the passes, the memory
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArguments),
    /// Record when each node of a model runs, for Perfetto or Chrome
    #[command(after_help = TRACE_EXAMPLES)]
    Trace(TraceArguments),
    /// Check a model file, and say which nodes each device can run
    #[command(after_help = CHECK_MODEL_EXAMPLES)]
    Check(ModelArguments),
    /// Write the optimized model to a file, which loads faster; also converts Paddle models to ONNX
    #[command(after_help = OPTIMIZE_EXAMPLES, visible_alias = "optimise")]
    Optimize(OptimizeArguments),
    /// Run one op
    #[command(after_help = OP_EXAMPLES)]
    Op(OpArguments),
    /// Carry out again what the layer `record` recorded, on the same or on another device
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(ReplayArguments),
    /// Test everything, and say how to mend what fails
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArguments),
    /// Tools for plugin developers
    #[command(subcommand, after_help = PLUGIN_EXAMPLES)]
    Plugin(PluginCommand),
    /// Print a completion script for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write one for each command
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// The directory to write to
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: Option<PathBuf>,
    },
}

/// How the doctor searches.
#[derive(Args, Debug)]
pub(crate) struct DoctorArguments {
    /// Find the plugin, or the plugins together, without which nothing fails, by trying parts of them in processes of their own
    #[arg(long)]
    pub(crate) bisect: bool,
}

/// Which kernels are listed.
#[derive(Args, Debug)]
pub(crate) struct KernelFilter {
    /// Only kernels of this op
    #[arg(long, value_name = "NAME")]
    pub(crate) op: Option<String>,
    /// Only kernels of this domain, such as `ai.onnx`
    #[arg(long)]
    pub(crate) domain: Option<String>,
    /// Only kernels for this type of device, such as `cpu`
    #[arg(long, value_name = "TYPE")]
    pub(crate) device: Option<String>,
    /// Only kernels of this plugin
    #[arg(long, value_name = "NAME")]
    pub(crate) plugin_name: Option<String>,
    /// Only kernels that take this dtype
    #[arg(long, value_parser = dtype_parser(), hide_possible_values = true)]
    pub(crate) dtype: Option<Dtype>,
}

/// One call of one op.
#[derive(Args, Debug)]
pub(crate) struct OpArguments {
    /// The name of the op, such as `Add`
    pub(crate) name: String,
    /// The inputs: files, values such as `f32:[1,2]`, or `-` to leave one out
    #[arg(value_name = "INPUT", value_hint = ValueHint::FilePath)]
    pub(crate) inputs: Vec<OsString>,
    /// The device to run on, such as `cpu` or `opencl:1`; by default that of the flag `device`, or the first
    #[arg(short, long)]
    pub(crate) device: Option<String>,
    /// Where to write an output, in the order of the outputs; `-` prints it, as do outputs without a file
    #[arg(short = 'o', long = "output", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// An attribute and its value; may be given several times
    #[arg(long = "attr", value_name = "NAME=VALUE", value_parser = parse_assignment)]
    pub(crate) attributes: Vec<(String, String)>,
    /// The domain of the op
    #[arg(long, default_value = "ai.onnx")]
    pub(crate) domain: String,
    /// The opset version; by default the newest
    #[arg(long, value_name = "NUMBER")]
    pub(crate) opset: Option<u32>,
    /// The number of outputs; by default as many as the op requires, or as there are files
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) outputs: Option<u16>,
    /// Say which kernel runs the call, and why the others do not
    #[arg(long)]
    pub(crate) explain: bool,
    /// Do not run the call, only say which kernel would run it; needs `--explain`
    #[arg(long, requires = "explain")]
    pub(crate) dry_run: bool,
    /// A flag and its value; may be given several times
    #[arg(long = "set", value_name = "FLAG=VALUE", value_parser = parse_assignment)]
    pub(crate) flags: Vec<(String, String)>,
}

/// One replay of a recording.
#[derive(Args, Debug)]
pub(crate) struct ReplayArguments {
    /// The recording, which `--layer record` wrote
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The device to replay on, such as `cpu` or `opencl:1`; by default that of the flag `device`, or the first
    #[arg(short, long)]
    pub(crate) device: Option<String>,
    /// Compare the results with the recorded ones; exit with 1 if any differs
    #[arg(long)]
    pub(crate) compare: bool,
    /// The largest difference that counts as rounding, as a fraction of the largest element
    #[arg(long, value_name = "NUMBER", default_value = "1e-5", requires = "compare")]
    pub(crate) tolerance: f64,
}

/// Accepts both the short name of a dtype and NumPy's.
fn dtype_parser() -> impl TypedValueParser<Value = Dtype> {
    let value = |dtype: &Dtype| PossibleValue::new(dtype.name()).alias(dtype.numpy_name());
    PossibleValuesParser::new(Dtype::ALL.iter().map(value)).try_map(|name| name.parse::<Dtype>())
}

/// Splits `NAME=VALUE`.
fn parse_assignment(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or("expected a name, `=` and a value")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Write a plugin to start from, which builds and passes the check as it is
    #[command(after_help = NEW_EXAMPLES)]
    New(NewPluginArguments),
    /// Judge, probe and load one plugin, explain each step, and run the conformance suite on it
    #[command(after_help = CHECK_EXAMPLES)]
    Check(PluginCheckChoice),
    /// Make a wheel and a Debian package of a plugin
    #[command(after_help = PACK_EXAMPLES)]
    Pack(PackArguments),
    /// List the plugins in a directory of packages, also as a page
    #[command(after_help = INDEX_EXAMPLES)]
    Index(IndexArguments),
    /// Make the manifest of a plugin by querying it
    #[command(after_help = MANIFEST_EXAMPLES)]
    Manifest {
        /// The shared object
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Write the manifest beside the file, replacing an older one
        #[arg(long)]
        write: bool,
    },
    /// Sign a plugin: its manifest, and with it every file that is shipped
    #[command(after_help = SIGN_EXAMPLES)]
    Sign(SignArguments),
    /// Say who signed a plugin, and whether every file is as it was signed
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArguments),
    /// Trust the plugins that a key signs, or no longer
    #[command(after_help = TRUST_EXAMPLES)]
    Trust(TrustArguments),
    /// Make, replace and revoke keys for signatures
    #[command(subcommand, after_help = KEY_EXAMPLES)]
    Key(KeyCommand),
}

impl ValueEnum for ColorChoice {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Auto, Self::Always, Self::Never]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }))
    }
}
