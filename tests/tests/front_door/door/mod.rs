//! Calls that no sane program would make, and the properties that must hold for every one of them.
//!
//! A call is decoded from bytes: a valid one from a list, or a random one of any op, and then mutations. The same bytes give the
//! same call, so a test can iterate over seeds and a fuzzer over its own inputs.

mod call;
mod call_change;
mod call_input;
mod choice_source;
mod prepared_call;
mod trial;

pub(crate) use call::CallCase;
pub(crate) use choice_source::ChoiceSource;
pub(crate) use trial::FrontDoor;
