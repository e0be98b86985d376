//! Formats wall-clock times as RFC 3339 in UTC with microseconds.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use chrono::DateTime;

/// `0000-01-01T00:00:00Z`, in seconds since 1970.
const FIRST_SECOND: i64 = -62_167_219_200;

/// `9999-12-31T23:59:59Z`, in seconds since 1970.
const LAST_SECOND: i64 = 253_402_300_799;

/// Formats a time as `2026-11-21T22:58:26.123456Z`.
pub(crate) fn format_rfc3339(time: SystemTime) -> String {
    let mut text = String::with_capacity(27);
    write_rfc3339(time, &mut text);
    text
}

/// Formats the second of a time as `2026-11-21T22:58:26Z`.
pub(crate) fn format_second_rfc3339(time: SystemTime) -> String {
    let text = format_rfc3339(time);
    let second = text.split('.').next().unwrap_or_default();
    format!("{second}Z")
}

/// Formats the second of a time for the name of a file: `20261121-225826`.
pub(crate) fn format_for_file_name(time: SystemTime) -> String {
    let time = format_rfc3339(time);
    let second = time.split('.').next().unwrap_or_default();
    second.replace(['-', ':'], "").replace('T', "-")
}

/// A formatted time.
type TimestampText = [u8; 27];

thread_local! {
    /// The second formatted last, with its text: a busy log writes thousands of lines per second.
    static LAST: Cell<(i64, TimestampText)> = const { Cell::new((0, *b"1970-01-01T00:00:00.000000Z")) };
}

/// Appends a formatted time to a text.
pub(crate) fn write_rfc3339(time: SystemTime, text: &mut String) {
    let micros = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => to_micros(after),
        Err(before) => -to_micros(before.duration()),
    };
    let seconds = micros.div_euclid(1_000_000);
    let micros = micros.rem_euclid(1_000_000);
    let last = LAST.try_with(Cell::get).ok().filter(|(second, _)| *second == seconds);
    let mut digits = last.map_or_else(|| format_second(seconds), |(_, digits)| digits);
    write_digits(&mut digits[20..26], micros);
    text.push_str(str::from_utf8(&digits).unwrap_or_default());
}

fn to_micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// Formats the start of a second since 1970 and caches the text.
fn format_second(seconds: i64) -> TimestampText {
    // The format has four digits for the year, but a file may have any timestamp.
    let shown = seconds.clamp(FIRST_SECOND, LAST_SECOND);
    let text = DateTime::from_timestamp(shown, 0).unwrap_or_default();
    let text = text.format("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
    let digits = text.as_bytes().try_into().unwrap_or(*b"1970-01-01T00:00:00.000000Z");
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
    fn a_file_name_and_a_recording_have_the_second_of_a_time() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_micros(951_782_399_999_999);
        assert_eq!(format_for_file_name(time), "20000228-235959");
        assert_eq!(format_second_rfc3339(time), "2000-02-28T23:59:59Z");
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
        assert_eq!(format_at(253_402_300_800, 0), "9999-12-31T23:59:59.000000Z");
        let time = SystemTime::UNIX_EPOCH - Duration::from_secs(62_167_219_201);
        assert_eq!(format_rfc3339(time), "0000-01-01T00:00:00.000000Z");
    }

    #[test]
    fn a_time_before_1970_counts_backwards() {
        let time = SystemTime::UNIX_EPOCH - Duration::from_micros(1);
        assert_eq!(format_rfc3339(time), "1969-12-31T23:59:59.999999Z");
    }
}
