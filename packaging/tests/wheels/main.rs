//! Assembly and validation of wheels.

mod assemble;
mod built;
mod check;
mod rows;
mod verify;
