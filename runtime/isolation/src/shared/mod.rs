//! The memory that both processes map: lanes for calls, and an arena for data.

pub(crate) mod arena;
pub(crate) mod bell;
pub(crate) mod frames;
pub(crate) mod layout;
pub(crate) mod region;
