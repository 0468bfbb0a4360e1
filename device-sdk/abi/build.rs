//! Passes the active sanitizer on to the crate as a `cfg`: cargo reveals it only to build scripts.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(oarlock_sanitizer, values(\"address\", \"thread\", \"memory\"))");
    println!("cargo::rerun-if-changed=build.rs");
    if let Ok(names) = std::env::var("CARGO_CFG_SANITIZE") {
        for name in names.split(',').filter(|name| ["address", "thread", "memory"].contains(name)) {
            println!("cargo::rustc-cfg=oarlock_sanitizer=\"{name}\"");
        }
    }
}
