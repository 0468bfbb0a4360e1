//! Times, in seconds since the beginning of 1970. What is built has one, that of its sources and not that of the clock.

use std::path::Path;
use std::process::Command;

use crate::error::Error;

/// What says the time of a build, as everywhere.
const VARIABLE: &str = "SOURCE_DATE_EPOCH";

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The time of the sources in a directory: what `SOURCE_DATE_EPOCH` says, or when they were last committed.
///
/// # Errors
///
/// When the variable is no number, or it is not set and git knows nothing of the directory.
pub fn of_sources(root: &Path) -> Result<u64, Error> {
    let number = |text: &str, of: &str| {
        let refuse = || Error::new(format!("expected seconds since 1970 of {of}, found `{}`", text.trim()));
        text.trim().parse().map_err(|_| refuse())
    };
    if let Some(text) = std::env::var_os(VARIABLE) {
        return number(&text.to_string_lossy(), VARIABLE);
    }
    let said = Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root).output();
    match said {
        Ok(said) if said.status.success() => number(&String::from_utf8_lossy(&said.stdout), "git"),
        _ => Err(Error::new(format!(
            "expected the time of the sources from git or from `{VARIABLE}`, found neither; set the variable"
        ))),
    }
}

/// A time as mail, logs of changes and repositories have it, such as `Mon, 23 Nov 2026 13:42:49 +0000`.
pub(crate) fn rfc_2822(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let weekday = DAYS[usize::try_from(days % 7).unwrap_or_default()];
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{weekday}, {day:02} {} {year} {hour:02}:{minute:02}:{second:02} +0000", MONTHS[month])
}

/// The year, the month from 0 on and the day from 1 on of a day since 1970.
fn civil(mut days: u64) -> (u64, usize, u64) {
    let is_long =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_long(year)) {
        days -= 365 + u64::from(is_long(year));
        year += 1;
    }
    let mut month = 0;
    for length in [31, 28 + u64::from(is_long(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
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
    fn times_are_written_as_mail_has_them() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 +0000"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 +0000"),
            (1_704_067_199, "Sun, 31 Dec 2023 23:59:59 +0000"),
            (1_795_441_369, "Mon, 23 Nov 2026 13:42:49 +0000"),
        ] {
            assert_eq!(rfc_2822(seconds), text);
        }
    }
}
