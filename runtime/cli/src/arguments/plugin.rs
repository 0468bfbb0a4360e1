//! The arguments of the commands that make, pack and list plugins.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use oarlock_scaffold::{ProjectLicense, ScaffoldKind, ScaffoldLanguage};

/// A plugin to make.
#[derive(Args, Debug)]
pub(crate) struct NewPluginArguments {
    /// The name of the plugin, such as `acme-npu`
    #[arg(required_unless_present = "list")]
    pub(crate) name: Option<String>,
    /// The language
    #[arg(long, value_parser = language_parser(), default_value = "c")]
    pub(crate) lang: ScaffoldLanguage,
    /// What the plugin brings
    #[arg(long, value_parser = kind_parser(), default_value = "device")]
    pub(crate) kind: ScaffoldKind,
    /// The name that users type for the device; by default made of the plugin's name, such as `AcmeNpu`
    #[arg(long, value_name = "TYPE")]
    pub(crate) device_type: Option<String>,
    /// The author or company; by default made of the plugin's name
    #[arg(long, value_name = "NAME")]
    pub(crate) vendor: Option<String>,
    /// The license of your sources
    #[arg(long, value_parser = license_parser(), default_value = "Apache-2.0")]
    pub(crate) license: ProjectLicense,
    /// The directory to write to, which must be empty or not exist; by default the name
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: Option<PathBuf>,
    /// Use the crate `oarlock-sdk` in this directory, instead of sources in the new directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) sdk: Option<PathBuf>,
    /// List the languages and kinds that there are templates for
    #[arg(long, conflicts_with = "name")]
    pub(crate) list: bool,
}

fn language_parser() -> impl TypedValueParser<Value = ScaffoldLanguage> {
    let value = |language: ScaffoldLanguage| {
        let value = PossibleValue::new(language.name());
        if language == ScaffoldLanguage::Cpp { value.alias("c++") } else { value }
    };
    PossibleValuesParser::new(ScaffoldLanguage::ALL.map(value)).try_map(|name| {
        let name = if name == "c++" { "cpp" } else { &name };
        find_named(ScaffoldLanguage::ALL, ScaffoldLanguage::name, name)
    })
}

fn kind_parser() -> impl TypedValueParser<Value = ScaffoldKind> {
    PossibleValuesParser::new(ScaffoldKind::ALL.map(ScaffoldKind::name))
        .try_map(|name| find_named(ScaffoldKind::ALL, ScaffoldKind::name, &name))
}

fn license_parser() -> impl TypedValueParser<Value = ProjectLicense> {
    PossibleValuesParser::new(ProjectLicense::ALL.map(ProjectLicense::name))
        .try_map(|name| find_named(ProjectLicense::ALL, ProjectLicense::name, &name))
}

fn find_named<T: Copy, const N: usize>(
    all: [T; N],
    name_of: fn(T) -> &'static str,
    name: &str,
) -> Result<T, String> {
    let found = all.into_iter().find(|value| name_of(*value) == name);
    found.ok_or_else(|| format!("expected one of the possible values, found `{name}`"))
}

/// A plugin to pack.
#[derive(Args, Debug)]
pub(crate) struct PackArguments {
    /// The directory with `oarlock-plugin.toml`, that file, or a shared object below it
    #[arg(value_name = "PATH", default_value = ".", value_hint = ValueHint::AnyPath)]
    pub(crate) path: PathBuf,
    /// Make only one of the two packages
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) only: Option<PackageFormat>,
    /// Sign the manifest with the private key in this file, as `plugin sign` does; may be given several times
    #[arg(long = "key", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) keys: Vec<PathBuf>,
    /// The directory for the packages; by default `dist` beside the recipe
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
}

/// A kind of package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PackageFormat {
    /// For pip and uv
    Wheel,
    /// For apt and dpkg
    Deb,
}

/// Plugins to list.
#[derive(Args, Debug)]
pub(crate) struct IndexArguments {
    /// The directory with wheels, Debian packages, or plugins with their manifests
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    /// Write the list as an HTML page
    #[arg(short, long, value_name = "PAGE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}
