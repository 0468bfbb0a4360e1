//! Timestamps of build output, fixed so that a later rebuild is identical.

use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::Error;

/// Sets the time of build output, in seconds since 1970; a convention of <https://reproducible-builds.org>.
const EPOCH_VARIABLE: &str = "SOURCE_DATE_EPOCH";

/// Seconds per day, without leap seconds.
pub const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Days from March 1 of the year 0 to January 1, 1970.
const DAYS_TO_1970: u64 = 719_468;

/// The current time, in seconds since 1970.
#[must_use]
pub fn seconds_now() -> u64 {
    // A clock set before 1970 counts as 0.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs())
}

/// The value of `SOURCE_DATE_EPOCH`, if it is set.
///
/// # Errors
///
/// When the value is not a number.
pub fn source_date_epoch() -> Result<Option<u64>, Error> {
    let Some(value) = std::env::var_os(EPOCH_VARIABLE) else { return Ok(None) };
    let time = value.to_str().and_then(|value| value.parse().ok());
    let refuse = || {
        Error::new(format!("expected seconds since 1970 in `{EPOCH_VARIABLE}`, found `{}`", value.display()))
    };
    time.map(Some).ok_or_else(refuse)
}

/// The time for build output: `SOURCE_DATE_EPOCH`, or now.
///
/// # Errors
///
/// When `SOURCE_DATE_EPOCH` is not a number.
pub fn build_time() -> Result<u64, Error> {
    Ok(source_date_epoch()?.unwrap_or_else(seconds_now))
}

/// The timestamp of a source directory: `SOURCE_DATE_EPOCH`, or the time of the last commit.
///
/// # Errors
///
/// When `SOURCE_DATE_EPOCH` is not a number, or git does not know the directory.
pub fn source_time(root: &Path) -> Result<u64, Error> {
    if let Some(time) = source_date_epoch()? {
        return Ok(time);
    }
    let value = Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root).output().ok();
    let value = value.and_then(|value| String::from_utf8_lossy(&value.stdout).trim().parse().ok());
    value.ok_or_else(|| {
        Error::new(format!(
            "expected the time of the sources from git or from `{EPOCH_VARIABLE}`, found neither; set the variable"
        ))
    })
}

/// Formats a time as in the `Release` file of an apt repository, such as `Thu, 01 Jan 1970 00:00:00 UTC`.
#[must_use]
pub fn format_rfc2822(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let (days, rest) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
    let (year, month, day) = civil_from_days(days);
    let (name, month) = (DAYS[(days % 7) as usize], MONTHS[month]);
    format!("{name}, {day:02} {month} {year} {} UTC", format_clock(rest))
}

/// Formats a time as in an OCI image, such as `1970-01-01T00:00:00Z`.
#[must_use]
pub fn format_iso8601(seconds: u64) -> String {
    let (year, month, day) = civil_from_days(seconds / SECONDS_PER_DAY);
    format!("{year:04}-{:02}-{day:02}T{}Z", month + 1, format_clock(seconds % SECONDS_PER_DAY))
}

/// The time of day as `hh:mm:ss`.
fn format_clock(seconds: u64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Parses the format of [`format_rfc2822`] into seconds since 1970.
///
/// # Errors
///
/// When the text is not such a time.
pub fn parse_rfc2822(text: &str) -> Result<u64, Error> {
    let read = || {
        let words: Vec<&str> = text.split([' ', ',', ':']).filter(|word| !word.is_empty()).collect();
        let [_, day, month, year, hour, minute, second, "UTC" | "GMT" | "+0000"] = words[..] else {
            return None;
        };
        let number = |word: &str, most: u64| word.parse::<u64>().ok().filter(|number| *number <= most);
        let month = MONTHS.iter().position(|it| *it == month)? as u64 + 1;
        let (year, day) = (number(year, 9999)?, number(day, 31)?);
        // Counts years from March, so that the leap day is the last day of a year.
        let year = year.checked_sub(u64::from(month < 3))?;
        let since_march = (153 * ((month + 9) % 12) + 2) / 5 + day.checked_sub(1)?;
        let since_0 = 365 * year + year / 4 - year / 100 + year / 400 + since_march;
        let days = since_0.checked_sub(DAYS_TO_1970)?;
        Some(((days * 24 + number(hour, 23)?) * 60 + number(minute, 59)?) * 60 + number(second, 60)?)
    };
    read().ok_or_else(|| {
        Error::new(format!("expected a time such as `Thu, 01 Jan 1970 00:00:00 UTC`, found `{text}`"))
    })
}

/// Year, month from 0 and day from 1, for a day since 1970.
fn civil_from_days(mut days: u64) -> (u64, usize, u64) {
    // The Gregorian calendar repeats every 400 years.
    const DAYS_PER_ERA: u64 = 146_097;
    let mut year = 1970 + days / DAYS_PER_ERA * 400;
    days %= DAYS_PER_ERA;
    let is_long =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while days >= 365 + u64::from(is_long(year)) {
        days -= 365 + u64::from(is_long(year));
        year += 1;
    }
    let february = 28 + u64::from(is_long(year));
    let mut month = 0;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_everybody_says_them() {
        for (seconds, value) in [
            (0, "Thu, 01 Jan 1970 00:00:00 UTC"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 UTC"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 UTC"),
            (1_700_000_000, "Tue, 14 Nov 2023 22:13:20 UTC"),
            (1_735_603_200, "Tue, 31 Dec 2024 00:00:00 UTC"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 UTC"),
            (13_574_563_200, "Tue, 29 Feb 2400 00:00:00 UTC"),
            (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 UTC"),
        ] {
            assert_eq!(format_rfc2822(seconds), value);
            assert_eq!(parse_rfc2822(value), Ok(seconds));
        }
        assert!(format_rfc2822(u64::MAX).ends_with(" UTC"));
    }

    #[test]
    fn times_that_sort_say_the_same() {
        assert_eq!(format_iso8601(0), "1970-01-01T00:00:00Z");
        assert_eq!(format_iso8601(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(format_iso8601(1_735_689_599), "2024-12-31T23:59:59Z");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for wrong in [
            "",
            "yesterday",
            "Tue, 14 Nov 2023 22:13:20 CET",
            "Tue, 14 Nov 2023 24:13:20 UTC",
            "Tue, 0 Jan 1970 00:00:00 UTC",
            "Tue, 31 Dec 1969 00:00:00 UTC",
        ] {
            assert!(parse_rfc2822(wrong).is_err(), "{wrong}");
        }
    }
}
