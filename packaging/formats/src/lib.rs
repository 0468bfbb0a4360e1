//! Formats of everything that is published: wheels, Debian packages, file trees and signatures. It also disassembles shared
//! objects.
//!
//! This crate has no policy: it knows none of Oarlock's names, versions or limits. Output is reproducible: the same contents
//! always give the same bytes.

pub mod build_id;
pub mod date;
pub mod deb;
pub mod digest;
pub mod error;
pub mod file;
pub mod file_packer;
pub mod instructions;
pub mod library_needs;
pub mod openpgp;
pub mod output_directory;
pub mod tree;
pub mod wheel;

pub use error::Error;
