//! Matches names against patterns in which `*` stands for any characters.

/// True if all of `name` matches `pattern`.
pub(crate) fn matches_pattern(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    // Greedy: matching each middle part at its first occurrence leaves the longest rest for the parts after it.
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters_and_all_else_for_itself() {
        for (pattern, name) in
            [("cuda", "cuda"), ("*", ""), ("cu*", "cu"), ("*a*a*", "banana"), ("a*b*c", "axbxbc")]
        {
            assert!(matches_pattern(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("cuda", "cudax"), ("a*a", "a"), ("", "a"), ("a*b*b", "ab"), ("?", "a")] {
            assert!(!matches_pattern(pattern, name), "{pattern} {name}");
        }
    }
}
