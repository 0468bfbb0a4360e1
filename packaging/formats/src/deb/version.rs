//! Comparison of Debian versions.

use std::cmp::Ordering;

/// Compares two versions like `dpkg --compare-versions`.
#[must_use]
pub fn compare_versions(one: &str, other: &str) -> Ordering {
    let parts = |version: &str| {
        let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, "0"));
        (epoch.parse::<u64>().unwrap_or(0), upstream.to_owned(), revision.to_owned())
    };
    let (one, other) = (parts(one), parts(other));
    one.0
        .cmp(&other.0)
        .then_with(|| compare_piecewise(&one.1, &other.1))
        .then_with(|| compare_piecewise(&one.2, &other.2))
}

/// Compares alternating text and digits: text character by character, digits as numbers.
fn compare_piecewise(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    while !one.is_empty() || !other.is_empty() {
        let (text, other_text) = (take_run(&mut one, false), take_run(&mut other, false));
        // The end of the shorter text takes part in the comparison.
        for place in 0..text.len().max(other_text.len()) {
            let order = sort_weight(text.get(place)).cmp(&sort_weight(other_text.get(place)));
            if order.is_ne() {
                return order;
            }
        }
        let (number, other_number) = (take_number(&mut one), take_number(&mut other));
        let order = number.len().cmp(&other_number.len()).then_with(|| number.cmp(other_number));
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Order of characters: tilde, end of text, letters, everything else.
fn sort_weight(byte: Option<&u8>) -> u16 {
    match byte {
        Some(b'~') => 0,
        None => 1,
        Some(byte) if byte.is_ascii_alphabetic() => 2 + u16::from(*byte),
        Some(byte) => 0x200 + u16::from(*byte),
    }
}

fn take_run<'a>(rest: &mut &'a [u8], wants_digits: bool) -> &'a [u8] {
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit() == wants_digits).count();
    let (taken, left) = rest.split_at(length);
    *rest = left;
    taken
}

/// Takes the digits at the front, without leading zeros.
fn take_number<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let number = take_run(rest, true);
    &number[number.iter().take_while(|byte| **byte == b'0').count()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_dpkg_orders_them() {
        let rising = [
            "0~~",
            "0~rc1-1",
            "0",
            "0.1~a",
            "0.1",
            "0.1a",
            "0.1+b",
            "0.9",
            "0.10-1~deb13u1",
            "0.10-1",
            "0.10-1+deb13u2",
            "0.10-1+deb13u10",
            "0.10-2",
            "1.0-1-1",
            "1:0.1",
        ];
        for (place, one) in rising.iter().enumerate() {
            for (other_place, other) in rising.iter().enumerate() {
                assert_eq!(compare_versions(one, other), place.cmp(&other_place), "{one} and {other}");
            }
        }
        assert_eq!(compare_versions("1.02-0", "1.2"), Ordering::Equal);
    }
}
