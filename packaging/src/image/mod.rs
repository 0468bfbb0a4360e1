//! Images for containers, written without an engine.
//!
//! [`Images`] says which there are and which layers each is made of. A layer is laid out of packages: of Debian, which a
//! [`Lock`] names to the byte and a [`Pool`] keeps, and of our own. Nothing of a package is run: what its scripts would do and
//! matters here is done by `root`. So the same packages are the same image, byte for byte, wherever and whenever it is made.

pub mod archive;
mod bytecode;
pub mod closure;
pub mod config;
pub(crate) mod contents;
pub mod dockerfile;
pub mod images;
pub mod layer;
mod loader;
pub mod lock;
pub mod mirror;
pub mod name;
mod notebook;
pub mod own;
pub mod pool;
mod prune;
pub(crate) mod read;
mod root;
pub mod tools;
pub mod version;
pub mod workshop;

pub use self::images::Images;
pub use self::lock::Lock;
pub use self::name::Name;
pub use self::pool::Pool;
