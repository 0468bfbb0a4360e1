//! Calls that nobody in their right mind would make, and what must hold of every one of them.
//!
//! A call is made of bytes: one that works is taken from a list, or one of any op is made up, and then things about it
//! are changed. The same bytes make the same call, so a test can go through seeds and a fuzzer through whatever it finds.

mod call;
mod call_change;
mod call_input;
mod choice_source;
mod prepared_call;
mod trial;

pub(crate) use call::CallCase;
pub(crate) use choice_source::ChoiceSource;
pub(crate) use trial::FrontDoor;
