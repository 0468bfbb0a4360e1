//! Times, as seconds since 1970 and as texts.

use crate::error::Error;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// How many days the years had, counted from March of the year 0, before 1970 began.
const BEFORE: u64 = 719_468;

/// Days in 400 years, in 100 of those that end without a day more, in 4 and in one.
const AGES: [u64; 4] = [146_097, 36_524, 1_461, 365];

/// A time such as `Sat, 15 Nov 2025 09:21:07 UTC` in seconds since 1970.
pub(super) fn read(date: &str) -> Result<u64, Error> {
    let read = || {
        let words: Vec<&str> = date.split([' ', ',', ':']).filter(|word| !word.is_empty()).collect();
        let [_, day, month, year, hour, minute, second, "UTC" | "GMT" | "+0000"] = words[..] else {
            return None;
        };
        let number = |word: &str, most: u64| word.parse::<u64>().ok().filter(|number| *number <= most);
        let month = MONTHS.iter().position(|it| *it == month)? as u64 + 1;
        let (year, day) = (number(year, 9999)?, number(day, 31)?);
        // Years that begin in March end with the day that some of them lack.
        let year = year.checked_sub(u64::from(month < 3))?;
        let since_march = (153 * ((month + 9) % 12) + 2) / 5 + day.checked_sub(1)?;
        let days = (365 * year + year / 4 - year / 100 + year / 400 + since_march).checked_sub(BEFORE)?;
        Some(((days * 24 + number(hour, 23)?) * 60 + number(minute, 59)?) * 60 + number(second, 60)?)
    };
    read().ok_or_else(|| {
        Error::new(format!("expected a time such as `Sat, 15 Nov 2025 09:21:07 UTC`, found `{date}`"))
    })
}

/// The same as a text such as `2025-11-15T09:21:07Z`.
pub(super) fn write(seconds: u64) -> String {
    let mut days = seconds / 86_400 + BEFORE;
    let mut year = 0;
    for (age, years) in AGES.into_iter().zip([400, 100, 4, 1]) {
        // The last day of an age that has a day more is no day of a fifth part.
        let whole = if age == AGES[0] || age == AGES[2] { days / age } else { (days / age).min(3) };
        year += whole * years;
        days -= whole * age;
    }
    let month = (5 * days + 2) / 153;
    let day = days - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 { (month + 3, year) } else { (month - 9, year + 1) };
    let rest = seconds % 86_400;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_since_1970() {
        for (text, seconds, written) in [
            ("Thu, 01 Jan 1970 00:00:00 UTC", 0, "1970-01-01T00:00:00Z"),
            ("Tue, 29 Feb 2000 12:34:56 UTC", 951_827_696, "2000-02-29T12:34:56Z"),
            ("Tue, 14 Nov 2023 22:13:20 GMT", 1_700_000_000, "2023-11-14T22:13:20Z"),
            ("Thu, 28 Feb 2100 23:59:59 +0000", 4_107_542_399, "2100-02-28T23:59:59Z"),
        ] {
            assert_eq!(read(text), Ok(seconds));
            assert_eq!(write(seconds), written);
        }
        assert_eq!(write(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(write(1_735_603_200), "2024-12-31T00:00:00Z");
        for wrong in ["", "yesterday", "Tue, 14 Nov 2023 22:13:20 CET", "Tue, 0 Jan 1970 00:00:00 UTC"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
