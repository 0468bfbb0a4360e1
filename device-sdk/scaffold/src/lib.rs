//! New plugins from templates: a directory that builds with one command, without a checkout of Oarlock and without the network.
//!
//! The templates are those in `device-sdk/templates`, which compile as they are: they are a plugin with the name `sample-npu`, and
//! `names` says how that becomes another name. A program that uses this crate carries them, the headers and the sources of the SDK.

mod license;
mod names;
mod project;
mod sdk_files;
mod templates;

pub use license::ProjectLicense;
pub use names::{PluginNames, check_device_type, check_plugin_name, check_vendor, default_device_type};
pub use project::{PluginScaffold, ScaffoldFile, SdkSource};
pub use sdk_files::{CONTRACT_HEADERS, sdk_files};
pub use templates::{ScaffoldKind, ScaffoldLanguage};
