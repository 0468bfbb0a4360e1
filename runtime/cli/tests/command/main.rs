//! Runs the command as a user would.

mod doctor;
mod errors;
mod flags;
mod kernels;
mod listing;
mod models;
mod op;
mod plugin_tools;
mod shell;
mod suite;
mod user;
