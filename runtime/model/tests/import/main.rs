//! Tests the import of valid and corrupt models, each built in a few lines.

#![expect(clippy::unwrap_used, reason = "a model that cannot be made fails its test")]

mod external_data;
mod functions;
mod hostile;
mod model_builder;
mod models;
mod paddle;
mod paddle_blocks;
mod paddle_json;
mod paddle_ops;
mod scopes;
mod weights;
