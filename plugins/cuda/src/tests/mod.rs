//! What needs the inside of the driver to be tested.

mod device;
mod nvrtc;
