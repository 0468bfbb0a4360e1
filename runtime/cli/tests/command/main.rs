//! The command, run as a user would.

mod doctor;
mod errors;
mod listing;
mod plugin_tools;
mod shell;
mod user;
