//! The steps of a Dockerfile with their line numbers, to attribute engine errors to lines.

use oarlock_formats::error::{Error, nearest_names};

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct DockerfileStep {
    /// The line that it starts on, counted from 1.
    pub(super) line: usize,
    /// The instruction in capitals.
    pub(super) word: String,
    /// The arguments of the instruction.
    pub(super) rest: String,
}

/// All Dockerfile instructions.
const DOCKERFILE_INSTRUCTIONS: [&str; 18] = [
    "ADD",
    "ARG",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "FROM",
    "HEALTHCHECK",
    "LABEL",
    "MAINTAINER",
    "ONBUILD",
    "RUN",
    "SHELL",
    "STOPSIGNAL",
    "USER",
    "VOLUME",
    "WORKDIR",
];

/// Parses a Dockerfile to find syntax errors before anything is sent.
pub(super) fn read_steps(text: &str) -> Result<Vec<DockerfileStep>, Error> {
    let escape = escape_character(text);
    let mut steps: Vec<DockerfileStep> = Vec::new();
    let mut goes_on = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start_matches('\u{feff}').trim();
        // Empty lines and comments are also allowed within a step.
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (said, continues) = match line.strip_suffix(escape) {
            Some(said) => (said.trim_end(), true),
            None => (line, false),
        };
        match steps.last_mut().filter(|_| goes_on) {
            Some(step) => {
                step.rest.push(' ');
                step.rest.push_str(said);
            }
            None => {
                let (word, rest) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
                steps.push(DockerfileStep {
                    line: index + 1,
                    word: word.to_uppercase(),
                    rest: rest.trim().to_owned(),
                });
            }
        }
        goes_on = continues;
    }
    check_steps(&steps)?;
    Ok(steps)
}

fn check_steps(steps: &[DockerfileStep]) -> Result<(), Error> {
    for DockerfileStep { line, word, rest } in steps {
        if !DOCKERFILE_INSTRUCTIONS.contains(&word.as_str()) {
            let near = nearest_names(word, DOCKERFILE_INSTRUCTIONS.iter().map(|&it| (it.to_owned(), it)));
            let near =
                if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) };
            let found = word.escape_debug();
            return Err(Error::new(format!(
                "line {line}: expected an instruction such as `RUN`, found `{found}`{near}"
            )));
        }
        if rest.is_empty() {
            return Err(Error::new(format!("line {line}: expected something after `{word}`, found nothing")));
        }
    }
    match steps.iter().find(|step| step.word != "ARG") {
        Some(DockerfileStep { word, .. }) if word == "FROM" => Ok(()),
        Some(DockerfileStep { line, word, .. }) => Err(Error::new(format!(
            "line {line}: expected `FROM` with the image to begin with, found `{word}`"
        ))),
        None => Err(Error::new("expected `FROM` with the image to begin with, found no instruction")),
    }
}

/// The character that continues a line. A directive at the top may change it.
fn escape_character(text: &str) -> char {
    let directives = text.lines().map_while(|line| line.trim().strip_prefix('#'));
    let mut pairs = directives.map_while(|line| line.split_once('='));
    let chosen = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("escape"));
    if chosen.is_some_and(|(_, value)| value.trim() == "`") { '`' } else { '\\' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_begins_where_its_instruction_stands() {
        let text =
            "# a note\n\nARG X=1\nfrom base\nRUN one \\\n  # within\n\n  two \\\n && three\nCMD [\"a\"]\n";
        let lines: Vec<_> =
            read_steps(text).expect("steps").into_iter().map(|it| (it.line, it.word, it.rest)).collect();
        let expected =
            [(3, "ARG", "X=1"), (4, "FROM", "base"), (5, "RUN", "one two && three"), (10, "CMD", "[\"a\"]")];
        assert_eq!(lines, expected.map(|(line, word, rest)| (line, word.to_owned(), rest.to_owned())));
        let of_windows = read_steps("# escape=`\nFROM a\nRUN b `\n c\nRUN d\\\n").expect("steps");
        assert_eq!(of_windows.iter().map(|it| it.line).collect::<Vec<_>>(), [2, 3, 5]);
    }

    #[test]
    fn a_slip_of_the_pen_is_found_with_its_line() {
        for (text, expected) in [
            (
                "FROM a\nRUNN b",
                "line 2: expected an instruction such as `RUN`, found `RUNN`; did you mean `RUN`?",
            ),
            ("RUN a", "line 1: expected `FROM` with the image to begin with, found `RUN`"),
            ("# nothing", "expected `FROM` with the image to begin with, found no instruction"),
            ("FROM a\nCOPY", "line 2: expected something after `COPY`, found nothing"),
        ] {
            assert_eq!(read_steps(text).expect_err(text).to_string(), expected);
        }
    }
}
