//! The name a user may have meant.

/// The nearest of some names, if one is near enough to be meant.
pub(crate) fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (wanted.chars().count() / 3).max(1);
    let wanted = wanted.to_lowercase();
    let distances = names.into_iter().map(|name| (distance(&wanted, &name.to_lowercase()), name));
    distances
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many letters must be added, dropped or changed to make one word of another.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, letter) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, other) in right.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let names = ["Softmax", "LogSoftmax", "Softplus"];
        assert_eq!(nearest("Sofmax", names), Some("Softmax"));
        assert_eq!(nearest("softmax", names), Some("Softmax"));
        assert_eq!(nearest("Transpose", names), None);
    }
}
