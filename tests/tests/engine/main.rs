//! The engine on the CPU and on a simulated device: passes, plans, runs, and what it makes of bad input.

mod passes;
mod random;
mod runs;
mod sketch;
