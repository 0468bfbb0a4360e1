//! Container images, built without an engine.
//!
//! [`ImageCatalog`] defines the images and their layers. A layer is assembled from packages: Debian packages, which a
//! [`DebianLock`] pins by hash and a [`PackageCache`] caches, and our own. No package script runs; `image_root` performs the
//! few actions that matter here. So the same packages always give the same image, byte for byte.

pub mod archive;
mod bytecode;
pub mod config;
pub mod contents;
pub mod dependency_resolution;
pub mod dev_dockerfile;
pub mod dockerfile;
pub mod image_builder;
pub mod image_index;
mod image_program;
pub mod image_reader;
mod image_root;
pub mod images;
pub mod layer;
mod loader;
pub mod local_packages;
pub mod lock;
pub mod mirror;
pub mod name;
mod notebook;
pub mod package_cache;
mod prune;
mod sources;

pub use self::images::ImageCatalog;
pub use self::lock::DebianLock;
pub use self::name::ImageName;
pub use self::package_cache::PackageCache;
pub use self::sources::ImageSources;
