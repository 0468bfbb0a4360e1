//! Decides whether code for AVX and its successors is compiled: for processors that may have it, unless `--cfg oarlock_no_avx` in
//! RUSTFLAGS asks for a library without such instructions; and code for NEON, which every 64-bit ARM processor has. Code for SSE4.1 is
//! in every library for x86-64, because it is no AVX.

use std::env::var_os;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(x86_vectors, arm_vectors)");
    let is_for = |wanted| var_os("CARGO_CFG_TARGET_ARCH").is_some_and(|name| name == wanted);
    if is_for("aarch64") {
        println!("cargo::rustc-cfg=arm_vectors");
    }
    if is_for("x86_64") && var_os("CARGO_CFG_OARLOCK_NO_AVX").is_none() {
        println!("cargo::rustc-cfg=x86_vectors");
    }
}
