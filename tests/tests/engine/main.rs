//! The engine on the CPU and on a simulated device: passes, plans, runs, and what it makes of bad input.

mod limits;
mod passes;
mod precision;
mod quantized;
mod random;
mod runs;
mod sketch;
