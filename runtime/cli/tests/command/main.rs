//! Runs the command as a user would.

mod doctor;
mod errors;
mod failing_plugins;
mod flags;
mod kernels;
mod layers;
mod listing;
mod models;
mod op;
mod plugin_new;
mod plugin_tools;
mod shell;
mod suite;
mod trust;
mod user;
