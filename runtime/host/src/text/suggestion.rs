//! Suggests the name that a user probably meant.

/// The candidate closest to `name`, if it is close enough to be a typo.
pub fn nearest_name<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Real names are shorter than this, and the running time is quadratic in the length.
    const MAX_CHARACTERS: usize = 64;
    if name.len() > MAX_CHARACTERS {
        return None;
    }
    let close_enough = name.chars().count() / 3 + 1;
    let measured = candidates.into_iter().map(|candidate| (edit_distance(name, candidate), candidate));
    // A candidate without a common letter is no suggestion, however short it is; `X` and `x` are the same letter.
    let is_meant = |(distance, candidate): &(usize, &str)| {
        let shorter = name.chars().count().min(candidate.chars().count());
        *distance <= close_enough && (*distance < shorter || candidate.eq_ignore_ascii_case(name))
    };
    measured.filter(is_meant).min().map(|(_, candidate)| candidate)
}

/// The end of a message: the nearest name as a question, or nothing.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest_name(name, candidates)
        .map_or_else(String::new, |candidate| format!("; did you mean `{candidate}`"))
}

/// The Levenshtein distance: letters to add, remove or replace.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let names = ["avx2", "avx512f", "fma"];
        assert_eq!(nearest_name("avx512", names), Some("avx512f"));
        assert_eq!(nearest_name("avx", names), Some("avx2"));
        assert_eq!(nearest_name("quantum", names), None);
        assert_eq!(
            (nearest_name("w", ["x"]), nearest_name("", ["x"]), nearest_name("X", ["x"])),
            (None, None, Some("x"))
        );
        assert_eq!(nearest_name("in", ["by", "on"]), Some("on"));
        assert_eq!(nearest_name(&"a".repeat(100_000), names), None);
    }
}
