//! Plugins that run in a process of their own: which ones, and both ends of the connection.

pub(crate) mod child;
pub(crate) mod parent;
pub(crate) mod policy;
