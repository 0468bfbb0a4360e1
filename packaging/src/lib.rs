//! Builds what users install from the output of the workspace.
//!
//! Everything starts from a [matrix](oarlock_matrix), a file that lists all wheels and their names. The parts to compile, the
//! wheels to assemble, the pages and indexes that list them, and the choice for a given machine are all derived from this
//! table.

pub mod app;
pub mod apt_repository;
pub mod assemble;
pub mod build;
pub mod build_artifact;
pub mod build_plan;
mod build_tools;
pub mod check;
pub mod container_engine;
pub mod crates;
pub mod index;
pub mod library_requirements;
pub mod licenses;
pub mod packages;
pub mod part_sbom;
pub mod release;
pub mod sdk_wheel;
pub mod serve;
pub mod vendor;
pub mod vendored_tree;
pub mod verify;
