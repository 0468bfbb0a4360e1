//! The host's side: a plugin whose functions are proxies.

mod arguments;
mod callbacks;
mod child_life;
mod child_process;
mod connection;
mod copies;
mod crossed_memory;
mod description;
mod generated;
pub(crate) mod isolated_plugin;
mod kernel_proxy;
mod lane_pool;
mod live_handles;
mod reply_reader;
mod request_writer;
mod text_store;
