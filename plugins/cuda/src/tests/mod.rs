//! Tests that need private parts of the driver.

mod device;
mod nvrtc;
