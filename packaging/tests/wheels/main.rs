//! What wheels are put together of, and what they are held to.

mod assemble;
mod built;
mod check;
mod rows;
mod verify;
