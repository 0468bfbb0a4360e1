//! Completions, manual pages and the reference page of the book, all generated from the arguments.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::user::TestUser;

const COMMAND_PATHS: &[&[&str]] = &[
    &[],
    &["devices"],
    &["plugins"],
    &["kernels"],
    &["flags"],
    &["run"],
    &["bench"],
    &["explain"],
    &["trace"],
    &["check"],
    &["optimize"],
    &["op"],
    &["replay"],
    &["doctor"],
    &["plugin"],
    &["plugin", "new"],
    &["plugin", "check"],
    &["plugin", "pack"],
    &["plugin", "index"],
    &["plugin", "manifest"],
    &["plugin", "sign"],
    &["plugin", "verify"],
    &["plugin", "trust"],
    &["plugin", "key"],
    &["plugin", "key", "new"],
    &["plugin", "key", "rotate"],
    &["plugin", "key", "revoke"],
    &["plugin", "key", "show"],
    &["completions"],
    &["man"],
];

#[test]
fn completions_know_the_commands() {
    for (shell, sign) in
        [("bash", "complete -F"), ("zsh", "#compdef oarlock"), ("fish", "complete -c oarlock")]
    {
        let outcome = TestUser::new().run_command(&["completions", shell]);
        assert_eq!(outcome.status, 0);
        assert!(outcome.out.contains(sign), "{shell}");
        assert!(outcome.out.contains("doctor") && !outcome.out.contains("__probe"), "{shell}");
    }
}

#[test]
fn bash_accepts_its_completions() {
    let user = TestUser::new();
    let script =
        user.write_file("completions.bash", user.run_command(&["completions", "bash"]).out.as_bytes());
    assert!(Command::new("bash").arg("-n").arg(script).status().unwrap().success());
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let user = TestUser::new();
    assert_eq!(user.run_command(&["man", "pages"]).status, 0);
    for &command in COMMAND_PATHS {
        let name: Vec<&str> = ["oarlock"].iter().chain(command).copied().collect();
        let page = user.home.path().join("pages").join(format!("{}.1", name.join("-")));
        let text = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        assert!(
            text.starts_with(".ie \\n(.g") && text.contains(&format!(".TH {}", name.join("-"))),
            "{text}"
        );
    }
    assert!(!user.home.path().join("pages/oarlock-__probe.1").exists());
}

/// The page that the book must contain.
fn render_reference() -> String {
    let mut page = String::from(
        "# The command `oarlock`\n\n\
         <!-- Generated from `--help` by `OARLOCK_WRITE=1 cargo test -p oarlock-cli reference`. -->\n\n\
         Data goes to standard output; errors, warnings and notes go to standard error. Every command that lists or\n\
         examines something takes `--json`. Colors appear only on a terminal, unless `--color` or `NO_COLOR` say\n\
         otherwise.\n\n\
         ## Exit codes\n\n\
         | code | meaning |\n|---|---|\n\
         | 0 | all is well |\n\
         | 1 | something is wrong; the output says what |\n\
         | 2 | invalid arguments |\n",
    );
    for &command in COMMAND_PATHS {
        let name: Vec<&str> = ["oarlock"].iter().chain(command).copied().collect();
        let help = TestUser::new().run_command(&[command, &["--help"]].concat());
        assert_eq!(help.status, 0);
        page += &format!("\n## `{}`\n\n```text\n{}\n```\n", name.join(" "), help.out.trim_end());
    }
    page
}

#[test]
fn the_reference_in_the_book_is_the_help_of_every_command() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/command.md");
    let expected = render_reference();
    if std::env::var_os("OARLOCK_WRITE").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap();
    assert_eq!(found, expected, "update it with `OARLOCK_WRITE=1 cargo test -p oarlock-cli reference`");
}
