//! What is published, as bytes: wheels, Debian packages, trees of files, signatures; and what a shared object says of itself.
//!
//! No policy is here: nothing knows a name, a version or a limit of ours. The same contents give the same bytes in any place and at any
//! time.

pub mod build_id;
pub mod date;
pub mod deb;
pub mod digest;
pub mod error;
pub mod file;
pub mod file_packer;
pub mod instructions;
pub mod openpgp;
pub mod output_directory;
pub mod tree;
pub mod wheel;

pub use error::Error;
