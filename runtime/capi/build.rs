//! Passes linker options for the shared library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The soname that programs load; it changes when they have to be rebuilt.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liboarlock.so.1");
    // A program may close the library while its threads still run in it, and reopening it finds plugins loaded.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
