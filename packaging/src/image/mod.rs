//! Images for containers, written without an engine.
//!
//! [`ImageCatalog`] says which there are and which layers each is made of. A layer is laid out of packages: of Debian, which a
//! [`DebianLock`] names to the byte and a [`PackagePool`] keeps, and of our own. Nothing of a package is run: what its scripts would do and
//! matters here is done by `root`. So the same packages are the same image, byte for byte, wherever and whenever it is made.

pub mod archive;
mod bytecode;
pub mod closure;
pub mod config;
pub(crate) mod contents;
pub mod dev_dockerfile;
pub mod dockerfile;
pub mod image_builder;
pub(crate) mod image_reader;
mod image_root;
pub mod images;
pub mod layer;
mod loader;
pub mod local_packages;
pub mod lock;
pub mod mirror;
pub mod name;
mod notebook;
pub mod pool;
mod prune;
pub mod version;

pub use self::images::ImageCatalog;
pub use self::lock::DebianLock;
pub use self::name::ImageName;
pub use self::pool::PackagePool;
