//! Formats wall-clock times as RFC 3339 in UTC with microseconds.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

const SECONDS_PER_DAY: i64 = 86_400;

/// Formats a time as `2026-11-21T22:58:26.123456Z`.
pub(crate) fn format_rfc3339(time: SystemTime) -> String {
    let mut text = String::with_capacity(27);
    write_rfc3339(time, &mut text);
    text
}

/// A formatted time.
type TimestampText = [u8; 27];

thread_local! {
    /// The second formatted last, with its text: a busy log writes thousands of lines per second.
    static LAST: Cell<(i64, TimestampText)> = const { Cell::new((0, *b"1970-01-01T00:00:00.000000Z")) };
}

/// Appends a formatted time to a text.
pub(crate) fn write_rfc3339(time: SystemTime, text: &mut String) {
    let since = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    let micros = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => since(after),
        Err(before) => -since(before.duration()),
    };
    let (seconds, micros) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let last = LAST.try_with(Cell::get).ok().filter(|(second, _)| *second == seconds);
    let mut digits = last.map_or_else(|| format_second(seconds), |(_, digits)| digits);
    write_digits(&mut digits[20..26], micros);
    text.push_str(str::from_utf8(&digits).unwrap_or_default());
}

/// Formats the start of a second since 1970 and caches the text.
fn format_second(seconds: i64) -> TimestampText {
    let (year, month, day) = civil_from_days(seconds.div_euclid(SECONDS_PER_DAY));
    let second = seconds.rem_euclid(SECONDS_PER_DAY);
    let mut digits = *b"0000-00-00T00:00:00.000000Z";
    for (range, number) in [
        // The format has four digits for the year, but a file may have any timestamp.
        (0..4, year.clamp(0, 9999)),
        (5..7, month),
        (8..10, day),
        (11..13, second / 3600),
        (14..16, second / 60 % 60),
        (17..19, second % 60),
    ] {
        write_digits(&mut digits[range], number);
    }
    // An exiting thread has no cache.
    let _ = LAST.try_with(|last| last.set((seconds, digits)));
    digits
}

/// Fills the slice with decimal digits.
fn write_digits(digits: &mut [u8], mut number: i64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Returns the Gregorian date of a day counted from 1970-01-01.
///
/// Years start in March, so that the leap day is the last day of a year and the month lengths
/// before it follow one linear rule.
fn civil_from_days(day: i64) -> (i64, i64, i64) {
    const DAYS_IN_400_YEARS: i64 = 146_097;
    const FROM_YEAR_ZERO_TO_1970: i64 = 719_468;
    let day = day + FROM_YEAR_ZERO_TO_1970;
    let era = day.div_euclid(DAYS_IN_400_YEARS);
    let day_of_era = day.rem_euclid(DAYS_IN_400_YEARS);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * march_month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format_at(seconds: u64, micros: u64) -> String {
        let span = Duration::from_secs(seconds) + Duration::from_micros(micros);
        format_rfc3339(SystemTime::UNIX_EPOCH + span)
    }

    #[test]
    fn known_instants_are_written_as_rfc_3339() {
        assert_eq!(format_at(0, 0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(format_at(951_782_399, 999_999), "2000-02-28T23:59:59.999999Z");
        assert_eq!(format_at(951_782_400, 0), "2000-02-29T00:00:00.000000Z");
        assert_eq!(format_at(4_107_542_400, 1), "2100-03-01T00:00:00.000001Z");
        assert_eq!(format_at(1_795_302_000, 0), "2026-11-21T23:00:00.000000Z");
    }

    #[test]
    fn times_of_one_second_differ_in_their_microseconds_and_the_next_second_is_another() {
        assert_eq!(format_at(5, 1), "1970-01-01T00:00:05.000001Z");
        assert_eq!(format_at(5, 20), "1970-01-01T00:00:05.000020Z");
        assert_eq!(format_at(6, 0), "1970-01-01T00:00:06.000000Z");
        assert_eq!(format_at(5, 0), "1970-01-01T00:00:05.000000Z");
    }

    #[test]
    fn a_year_without_four_digits_is_written_as_the_nearest_that_has() {
        assert_eq!(&format_at(300_000_000_000, 0)[..5], "9999-");
    }

    #[test]
    fn a_time_before_1970_counts_backwards() {
        let time = SystemTime::UNIX_EPOCH - Duration::from_micros(1);
        assert_eq!(format_rfc3339(time), "1969-12-31T23:59:59.999999Z");
    }
}
