//! Numbers as people read them.

use std::time::Duration;

/// A duration in milliseconds.
pub fn to_milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// In a suitable unit, with three significant digits.
pub fn format_milliseconds(milliseconds: f64) -> String {
    let (number, unit) = match milliseconds {
        ms if ms >= 1e3 => (ms / 1e3, "s"),
        ms if ms >= 1.0 || ms == 0.0 => (ms, "ms"),
        ms => (ms * 1e3, "µs"),
    };
    format!("{} {unit}", format_figures(number))
}

/// With three significant digits; all digits of the integer part are kept.
pub fn format_figures(number: f64) -> String {
    let before = if number.abs() < 1.0 { 0 } else { number.abs().log10() as usize + 1 };
    format!("{number:.0$}", 3usize.saturating_sub(before))
}

/// In a binary unit, with two or three significant digits.
pub fn format_bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut unit = 0;
    let mut value = count as f64;
    // A value that would print as 1024 moves to the next unit.
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(value < 9.95);
    let value = format!("{value:.digits$}");
    format!("{} {}", value.trim_end_matches(".0"), UNITS[unit])
}

/// `1 plugin`, `2 plugins`.
pub fn format_count(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_three_figures_and_a_unit() {
        let shown = [0.0, 0.000_5, 0.004_12, 1.0, 37.72, 128.4, 2500.0].map(format_milliseconds);
        assert_eq!(shown, ["0.000 ms", "0.500 µs", "4.12 µs", "1.00 ms", "37.7 ms", "128 ms", "2.50 s"]);
    }

    #[test]
    fn bytes_have_a_unit_that_suits_them() {
        let shown = [0, 1023, 1024, 1536, 1 << 20, (1 << 20) - 1, 24 << 30, u64::MAX].map(format_bytes);
        assert_eq!(shown, ["0 B", "1023 B", "1 KiB", "1.5 KiB", "1 MiB", "1 MiB", "24 GiB", "16384 PiB"]);
    }
}
