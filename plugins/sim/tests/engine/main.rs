//! The engine, used the way a program uses a device.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod common;
mod faults;
mod streams;
