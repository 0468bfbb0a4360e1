//! Builds what users install from what the workspace compiles.
//!
//! Everything starts from a [`matrix`], a file that lists all wheels and their names. The parts to compile, the wheels to
//! assemble, the pages and indexes that list them, and the choice for a given machine all follow from that one table.

pub mod app;
pub mod assemble;
pub mod build;
pub mod build_artifact;
mod build_id;
pub mod check;
pub mod crates;
pub mod date;
pub mod deb;
mod digest;
pub mod engine;
mod error;
pub mod file;
pub mod file_packer;
pub mod generated_tables;
mod headers;
mod html;
pub mod image;
pub mod index;
pub mod instructions;
pub mod library;
pub mod licenses;
pub mod link_page;
pub mod major_minor;
pub mod matrix;
pub mod matrix_table;
pub mod openpgp;
pub mod options;
mod output_directory;
pub mod packages;
pub mod release;
pub mod repository;
pub mod sbom;
pub mod select;
pub mod serve;
pub mod tree;
pub mod vendor;
pub mod verify;
pub mod wheel;

pub use error::Error;
