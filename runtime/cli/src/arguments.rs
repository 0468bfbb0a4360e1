//! The arguments of the command, and nothing else: help, completions, manual pages and the reference all come from here.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

use crate::output::ColorChoice;

const EXAMPLES: &str = "\
Examples:
  oarlock devices                        What devices there are
  oarlock doctor                         Whether everything works, and what to do where it does not
  oarlock --plugin ./libnpu.so devices   The same with a plugin that is not installed

Exit codes:
  0  All is well
  1  Something is wrong; the output says what
  2  The command was called in a way it does not understand";

const DEVICES_EXAMPLES: &str = "\
Examples:
  oarlock devices
  oarlock devices --json | jq -r '.[].device'
  OARLOCK_PLUGIN_PATH=/opt/acme/plugins oarlock devices

A device is named by its type and its number, such as `cpu:0`. The support level says what was verified:
`hardware-verified` on the chip, `driver-verified` with the real driver and no chip, `emulator-verified` against an \
emulation, `unspecified` nothing. It is what the plugin claims. `simulated` marks a device that software makes up.

Exit codes:
  0  All is well, even where plugins are not used
  1  A plugin or layer that `--plugin` or `--layer` names is not used, or the host does not start
  2  The command was called in a way it does not understand";

const PLUGINS_EXAMPLES: &str = "\
Examples:
  oarlock plugins
  oarlock plugins --json | jq -r '.plugins[].file'

A plugin that is refused does not keep the others from working, so plugins that are not used leave the exit code 0. `oarlock doctor` \
takes them for something that is wrong.

Exit codes:
  0  All is well, even where plugins are not used
  1  A plugin or layer that `--plugin` or `--layer` names is not used, or the host does not start
  2  The command was called in a way it does not understand";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  oarlock doctor
  oarlock doctor --json > report.json
  oarlock --plugin ./libnpu.so doctor

On every device it takes memory, copies to it and back, fills it, goes through a stream and an event, and adds numbers \
where the device has a kernel for that.

Exit codes:
  0  All is well
  1  A device does not work, a plugin is not used, or the host does not start
  2  The command was called in a way it does not understand";

const PLUGIN_EXAMPLES: &str = "\
Examples:
  oarlock plugin check ./libnpu.so
  oarlock plugin manifest ./libnpu.so --write";

const CHECK_EXAMPLES: &str = "\
Examples:
  oarlock plugin check ./libnpu.so
  oarlock plugin check ./libnpu.so --quick
  oarlock plugin check ./libnpu.so --html report.html

The steps are those of the host, in its order. The first that fails ends the check, since the host would go no further. The \
conformance suite then runs in a process of its own, and each of its checks quotes a rule of the contract.

Exit codes:
  0  The plugin can be used here, and conforms
  1  It cannot or does not; the output says why
  2  The command was called in a way it does not understand";

const MANIFEST_EXAMPLES: &str = "\
Examples:
  oarlock plugin manifest ./libnpu.so            Prints the manifest
  oarlock plugin manifest ./libnpu.so --write    Writes it to ./libnpu.oarlock.toml

With a manifest beside it a plugin is judged without running any of its code. It holds the hash of the file, so write it \
again whenever the file changes.";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  oarlock completions bash > ~/.local/share/bash-completion/completions/oarlock
  oarlock completions zsh > ~/.zfunc/_oarlock
  oarlock completions fish > ~/.config/fish/completions/oarlock.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  oarlock man | man -l -                       Reads the page of the whole command
  oarlock man ~/.local/share/man/man1          Writes a page for each command";

/// The version of the program, and of the contract it speaks.
static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{} (contract {})", env!("CARGO_PKG_VERSION"), oarlock_abi::Versions::OURS));

/// Runs one program unchanged on whatever is plugged in
///
/// Devices and their kernels are plugins. This command says what plugins and devices there are, whether they work, and
/// what to do where they do not.
#[derive(Debug, Parser)]
#[command(name = "oarlock", version = VERSION.as_str(), after_help = EXAMPLES, arg_required_else_help = true)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Print for programs to read
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Use the plugins in this file or directory before any others; may be given several times
    #[arg(long = "plugin", value_name = "PATH", global = true, value_hint = ValueHint::AnyPath)]
    pub(crate) plugins: Vec<PathBuf>,
    /// Put this layer before every plugin, such as `trace`; may be given several times, the outermost first
    #[arg(long = "layer", value_name = "NAME", global = true)]
    pub(crate) layers: Vec<String>,
    /// Read this configuration file in place of the user's
    #[arg(long, value_name = "FILE", global = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// When to use colours; `auto` is on a terminal, unless `NO_COLOR` is set
    #[arg(long, value_name = "WHEN", global = true, value_enum, default_value_t)]
    pub(crate) color: ColorChoice,
    /// Show what plugins have to say; twice for more
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the devices there are
    #[command(after_help = DEVICES_EXAMPLES)]
    Devices,
    /// List the plugins that were found, and say why one is not used
    #[command(after_help = PLUGINS_EXAMPLES)]
    Plugins,
    /// Find out what is wrong, and what to do about it
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor,
    /// Tools for those who make plugins
    #[command(subcommand, after_help = PLUGIN_EXAMPLES)]
    Plugin(PluginCommand),
    /// Print a script that makes a shell complete this command
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

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Judge, probe and load one plugin, explain each step, and run the conformance suite on it
    #[command(after_help = CHECK_EXAMPLES)]
    Check {
        /// The shared object
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Leave the conformance suite out
        #[arg(long, conflicts_with = "html")]
        quick: bool,
        /// Write the report of the suite as a page of HTML
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        html: Option<PathBuf>,
    },
    /// Make the manifest of a plugin by asking it
    #[command(after_help = MANIFEST_EXAMPLES)]
    Manifest {
        /// The shared object
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Write the manifest beside the file, over one that is there
        #[arg(long)]
        write: bool,
    },
}

impl ValueEnum for ColorChoice {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Auto, Self::Always, Self::Never]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }))
    }
}
