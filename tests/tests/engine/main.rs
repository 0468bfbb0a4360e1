//! The engine on the CPU and on a simulated device: passes, plans, runs, and what it makes of bad input.

mod added;
mod contrib;
mod defaults;
mod dynamic;
mod einsum;
mod file;
mod limits;
mod passes;
mod precision;
mod quantized;
mod random;
mod runs;
mod shapes;
mod sketch;
