//! Says what the library is to the dynamic linker.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The name under which programs look for it, which changes when they have to be built anew.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liboarlock.so.1");
    // A program that closes it may have threads in it still, and comes back to plugins that are loaded.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
