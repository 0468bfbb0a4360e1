//! pip and uv install from an index that `oarlock-pack` wrote and serves. `scripts/test-installers` brings them, in versions
//! that are known, and runs these tests; without it they are skipped.

mod eras;
mod flavours;
mod pins;
mod serving;
mod tools;
mod variants;
mod yanked;
