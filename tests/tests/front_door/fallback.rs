//! A call that one device's kernels refuse runs on another device: the refusal comes before the call, and with its reason.

use std::path::PathBuf;

use crate::door::FrontDoor;
use crate::{CPU_PLUGIN, OPENCL_PLUGIN, open_door};

/// Calls of ops that OpenCL has kernels for, but with too many operands, dimensions or elements for them, with part of the
/// refusal.
const REFUSED_CALLS: [(&str, &str); 7] = [
    ("Max f32[1] f32[1] f32[1] f32[1] f32[1] f32[1] f32[1] f32[1] f32[1]", "expected 1 to 8 inputs, found 9"),
    ("Add f32[1,1,1,1,1,1,1,1,1,1,1,1,2] f32[1]", "with 0 to 12 dimensions"),
    ("Transpose f32[1,1,1,1,1,1,1,1,1,1,1,2,2]", "with 0 to 12 dimensions"),
    ("ReduceSum f32[1,1,1,1,1,1,1,1,1,1,1,2,2]", "with 0 to 12 dimensions"),
    ("Reshape f32[2] i64[13]{1,1,1,1,1,1,1,1,1,1,1,1,2}", "with 0 to 12 dimensions"),
    ("LayerNormalization f32[2,3] f32[1]", "expected `Scale` and `B` of 3 elements"),
    ("LayerNormalization f32[0,3] f32[3] >3", "expected rows of one element and more"),
];

#[test]
fn what_opencl_refuses_the_cpu_does_where_that_is_wanted() {
    let place = || Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let flags = [("kernel_fallback", "cpu")];
    if open_door(OPENCL_PLUGIN, "opencl").is_none() {
        return eprintln!("There is no `opencl` device, so nothing falls back.");
    }
    let doors = [("never", &[][..]), ("cpu", &flags[..])].map(|(name, flags)| {
        (
            name,
            FrontDoor::open_with_plugins(vec![CPU_PLUGIN, OPENCL_PLUGIN], "opencl", flags, place())
                .expect("a door"),
        )
    });
    for (line, reason) in REFUSED_CALLS {
        for (name, door) in &doors {
            let explanation = door.explain_line(line).expect("a kernel").expect("an explanation");
            assert!(explanation.contains(reason), "`{line}`: {explanation}");
            let outcome = door.run_line(line).expect("a kernel");
            assert_eq!(outcome.is_ok(), *name == "cpu", "`{line}`: {outcome:?}");
        }
    }
}
