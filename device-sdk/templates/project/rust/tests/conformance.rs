//! Runs what a host checks, and the conformance suite: `oarlock plugin check`. The variable `OARLOCK` may name another command.

use std::process::Command;

#[test]
fn the_plugin_conforms() {
    let test = std::env::current_exe().expect("this program");
    let library = test.with_file_name("libsample_npu.so");
    assert!(library.exists(), "expected `{}`, which cargo builds before this test", library.display());
    let program = std::env::var("OARLOCK").unwrap_or_else(|_| "oarlock".to_owned());
    let status = Command::new(&program).args(["plugin", "check"]).arg(&library).status();
    let status = status.unwrap_or_else(|error| {
        panic!("expected the command `{program}`, found: {error}; install Oarlock")
    });
    assert!(status.success(), "`{program} plugin check {}` says what is wrong", library.display());
}
