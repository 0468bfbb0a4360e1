//! Packages of any vendor's plugin: a wheel and a Debian package that install beside the core, and a page that lists them.
//!
//! [`PluginPackage`] is what goes into both. `audit` says what speaks against it, `wheel` and `deb` assemble it. Nothing here
//! runs the plugin; what it says of itself comes in as its manifest.

mod architecture;
mod audit;
mod deb;
mod index;
mod package;
mod recipe;
mod sbom;
mod version;
mod wheel;

pub use audit::PackageNeeds;
pub use index::{IndexedFile, ManifestClaims, PluginIndex};
pub use package::{PackagedFile, PluginPackage, SupportClaim};
pub use recipe::{LibraryProvider, PackageRecipe, RECIPE_FILE};
