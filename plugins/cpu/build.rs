//! Decides whether code for AVX and its successors is compiled: for processors that may have it, unless `--cfg oarlock_no_avx` in
//! RUSTFLAGS asks for a library without such instructions.

use std::env::var_os;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(x86_vectors)");
    let is_x86 = var_os("CARGO_CFG_TARGET_ARCH").is_some_and(|name| name == "x86_64");
    if is_x86 && var_os("CARGO_CFG_OARLOCK_NO_AVX").is_none() {
        println!("cargo::rustc-cfg=x86_vectors");
    }
}
