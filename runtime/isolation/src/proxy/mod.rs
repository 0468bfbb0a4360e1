//! The host's side: a plugin whose functions are proxies.

pub(crate) mod arguments;
mod call_patience;
mod call_route;
mod callbacks;
pub(crate) mod child_life;
mod child_process;
pub(crate) mod connection;
mod copies;
pub(crate) mod crossed_memory;
mod data_arena;
pub(crate) mod description;
mod generated;
pub(crate) mod isolated_plugin;
mod kernel_proxy;
mod lane_pool;
mod live_handles;
mod reply_reader;
pub(crate) mod request_writer;
pub(crate) mod start_request;
mod text_store;
