//! The arguments of the commands about signatures and keys.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::help::trust::{KEY_NEW_EXAMPLES, KEY_REVOKE_EXAMPLES, KEY_ROTATE_EXAMPLES, KEY_SHOW_EXAMPLES};

/// Which plugin is signed, and by whom.
#[derive(Args, Debug)]
pub(crate) struct SignArguments {
    /// The shared object
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The private key, a PEM file; may be given several times, to sign with an old and a new key
    #[arg(long = "key", value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) keys: Vec<PathBuf>,
}

/// Which signature is verified, and by whose key.
#[derive(Args, Debug)]
pub(crate) struct VerifyArguments {
    /// The shared object
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// A public key to verify with instead of the trusted ones; may be given several times
    #[arg(long = "key", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) keys: Vec<PathBuf>,
}

/// Whom to trust.
#[derive(Args, Debug)]
pub(crate) struct TrustArguments {
    /// A public key to trust, or a statement about a key: that it has a successor, or is revoked
    #[arg(value_hint = ValueHint::FilePath, required_unless_present_any = ["list", "remove"])]
    pub(crate) file: Option<PathBuf>,
    /// For everybody on this machine: change `/etc/oarlock/keys` instead of your own keys
    #[arg(long)]
    pub(crate) system: bool,
    /// List the trusted and the revoked keys
    #[arg(long, conflicts_with_all = ["file", "system"])]
    pub(crate) list: bool,
    /// Trust this key no longer: its fingerprint, at least the first 8 digits of it, or its file
    #[arg(long, value_name = "KEY", conflicts_with_all = ["file", "list"], value_hint = ValueHint::FilePath)]
    pub(crate) remove: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a pair of keys
    #[command(after_help = KEY_NEW_EXAMPLES)]
    New {
        /// Where to write them: `NAME.key` for the private key and `NAME.pem` for the public one
        #[arg(value_name = "NAME", value_hint = ValueHint::AnyPath)]
        name: PathBuf,
    },
    /// Make a pair of keys that follows another, and say so to those who trust the old one
    #[command(after_help = KEY_ROTATE_EXAMPLES)]
    Rotate {
        /// The private key to give up
        #[arg(value_hint = ValueHint::FilePath)]
        old: PathBuf,
        /// Where to write `NAME.key`, `NAME.pem` and the statement `NAME.successor`
        #[arg(value_name = "NAME", value_hint = ValueHint::AnyPath)]
        name: PathBuf,
    },
    /// Revoke a key: write a statement that ends the trust in it
    #[command(after_help = KEY_REVOKE_EXAMPLES)]
    Revoke {
        /// The private key
        #[arg(value_hint = ValueHint::FilePath)]
        key: PathBuf,
    },
    /// Print the fingerprint of a key
    #[command(after_help = KEY_SHOW_EXAMPLES)]
    Show {
        /// A public or private key
        #[arg(value_hint = ValueHint::FilePath)]
        key: PathBuf,
    },
}
