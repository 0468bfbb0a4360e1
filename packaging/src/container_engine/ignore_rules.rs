//! `.dockerignore` rules, as Docker documents them.

/// The rules in order; the last one that matches a path decides.
#[derive(Debug, Default)]
pub(super) struct IgnoreRules {
    lines: Vec<IgnoreRule>,
}

#[derive(Debug)]
struct IgnoreRule {
    /// The pattern, split at slashes.
    parts: Vec<String>,
    /// True for an exception (`!`), which includes matching paths again.
    but: bool,
}

impl IgnoreRules {
    pub(super) fn parse_rules(text: &str) -> Self {
        let line = |line: &str| {
            let line = line.trim_start_matches('\u{feff}');
            if line.starts_with('#') {
                return None;
            }
            let (but, pattern) = match line.trim().strip_prefix('!') {
                Some(rest) => (true, rest.trim()),
                None => (false, line.trim()),
            };
            let mut parts: Vec<String> = Vec::new();
            for part in pattern.split('/').filter(|part| !part.is_empty() && *part != ".") {
                if part == ".." {
                    parts.pop();
                } else {
                    parts.push(part.to_owned());
                }
            }
            (!parts.is_empty()).then_some(IgnoreRule { parts, but })
        };
        Self { lines: text.lines().filter_map(line).collect() }
    }

    /// True if a path or one of its parent directories is ignored.
    pub(super) fn is_ignored(&self, path: &str) -> bool {
        let path: Vec<&str> = path.split('/').collect();
        let means =
            |line: &&IgnoreRule| (1..=path.len()).any(|count| matches_path(&line.parts, &path[..count]));
        self.lines.iter().rev().find(means).is_some_and(|line| !line.but)
    }

    /// True if an ignored directory may contain included files.
    pub(super) fn has_exceptions(&self) -> bool {
        self.lines.iter().any(|line| line.but)
    }
}

/// True if a pattern matches exactly this path.
fn matches_path(pattern: &[String], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "**" => {
            // A trailing `**` matches the contents of a directory but not the directory.
            let least = usize::from(rest.is_empty());
            (least..=path.len()).any(|count| matches_path(rest, &path[count..]))
        }
        (Some((first, rest)), Some((name, below))) => {
            let (first, name): (Vec<char>, Vec<char>) = (first.chars().collect(), name.chars().collect());
            matches_name(&first, &name) && matches_path(rest, below)
        }
        _ => false,
    }
}

/// True if one part of a pattern matches a name.
fn matches_name(pattern: &[char], name: &[char]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        (['*', rest @ ..], _) => (0..=name.len()).any(|count| matches_name(rest, &name[count..])),
        (['?', rest @ ..], [_, below @ ..]) => matches_name(rest, below),
        (['[', rest @ ..], [letter, below @ ..]) => match rest.iter().skip(1).position(|it| *it == ']') {
            Some(end) => is_in_class(&rest[..=end], *letter) && matches_name(&rest[end + 2..], below),
            None => false,
        },
        (['\\', letter, rest @ ..], [first, below @ ..]) | ([letter, rest @ ..], [first, below @ ..]) => {
            letter == first && matches_name(rest, below)
        }
        _ => false,
    }
}

/// True if a character is in a class such as `a-z`, or `^0-9` for its complement.
fn is_in_class(letters: &[char], letter: char) -> bool {
    let (is_other, mut letters) = match letters {
        ['^', rest @ ..] => (true, rest),
        all => (false, all),
    };
    let mut is_there = false;
    while let [first, rest @ ..] = letters {
        letters = match rest {
            ['-', last, rest @ ..] => {
                is_there |= (*first..=*last).contains(&letter);
                rest
            }
            rest => {
                is_there |= *first == letter;
                rest
            }
        };
    }
    is_there != is_other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_meant_as_docker_means_them() {
        for (lines, meant, others) in [
            ("temp", &["temp", "temp/deep/file"][..], &["a/temp", "temporary"][..]),
            ("/temp/", &["temp", "temp/file"], &["a/temp"]),
            ("*/temp*", &["a/temp", "a/temp.txt", "a/temporary/file"], &["temp", "a/b/temp"]),
            ("**/*.pyc", &["a.pyc", "a/b/c.pyc"], &["a.py"]),
            ("a/**", &["a/b", "a/b/c"], &["a", "b"]),
            ("a/**/z", &["a/z", "a/b/c/z"], &["a/b"]),
            ("file?.[a-c]", &["file1.b"], &["file.b", "file1.d", "file12.b"]),
            ("[^a]b", &["cb"], &["ab"]),
            (r"\*", &["*"], &["a"]),
            ("# note\n\n  x  \n./y/../z", &["x", "z"], &["# note", "y"]),
            ("*.md\n!README.md", &["a.md"], &["README.md"]),
            ("*.md\n!README*.md\nREADME-secret.md", &["a.md", "README-secret.md"], &["README.md"]),
            ("deep\n!deep/kept", &["deep", "deep/file"], &["deep/kept"]),
        ] {
            let ignored = IgnoreRules::parse_rules(lines);
            meant.iter().for_each(|path| assert!(ignored.is_ignored(path), "{lines:?} means {path}"));
            others
                .iter()
                .for_each(|path| assert!(!ignored.is_ignored(path), "{lines:?} does not mean {path}"));
        }
    }
}
