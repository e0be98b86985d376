//! Wall-clock times as RFC 3339 text in UTC, with microseconds.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

const SECONDS_A_DAY: i64 = 86_400;

/// `time` as `2026-11-21T22:58:26.123456Z`.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let mut text = String::with_capacity(27);
    write_rfc3339(time, &mut text);
    text
}

/// A time as text, with room for its microseconds.
type Digits = [u8; 27];

thread_local! {
    /// The second that was written last: a busy log writes thousands of lines in one.
    static LAST: Cell<(i64, Digits)> = const { Cell::new((0, *b"1970-01-01T00:00:00.000000Z")) };
}

/// Appends `time` to a text; a log does so for each line.
pub(crate) fn write_rfc3339(time: SystemTime, text: &mut String) {
    let since = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    let micros = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => since(after),
        Err(before) => -since(before.duration()),
    };
    let (seconds, micros) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let last = LAST.try_with(Cell::get).ok().filter(|(second, _)| *second == seconds);
    let mut digits = last.map_or_else(|| second(seconds), |(_, digits)| digits);
    put(&mut digits[20..26], micros);
    text.push_str(str::from_utf8(&digits).unwrap_or_default());
}

/// The text of the begin of a second, counted from 1970; remembered.
fn second(seconds: i64) -> Digits {
    let (year, month, day) = civil(seconds.div_euclid(SECONDS_A_DAY));
    let second = seconds.rem_euclid(SECONDS_A_DAY);
    let mut digits = *b"0000-00-00T00:00:00.000000Z";
    for (place, number) in [
        // Four digits are all there are: files may claim to be from elsewhere.
        (0..4, year.clamp(0, 9999)),
        (5..7, month),
        (8..10, day),
        (11..13, second / 3600),
        (14..16, second / 60 % 60),
        (17..19, second % 60),
    ] {
        put(&mut digits[place], number);
    }
    // A thread at its end remembers nothing.
    let _ = LAST.try_with(|last| last.set((seconds, digits)));
    digits
}

/// Fills all places with digits.
fn put(places: &mut [u8], mut number: i64) {
    for place in places.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// The Gregorian date of a day counted from 1970-01-01.
///
/// Years are counted from March, so that the leap day is the last day of a year and the lengths
/// of the months before it follow one linear rule.
fn civil(day: i64) -> (i64, i64, i64) {
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

    fn at(seconds: u64, micros: u64) -> String {
        let span = Duration::from_secs(seconds) + Duration::from_micros(micros);
        rfc3339(SystemTime::UNIX_EPOCH + span)
    }

    #[test]
    fn known_instants_are_written_as_rfc_3339() {
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(951_782_399, 999_999), "2000-02-28T23:59:59.999999Z");
        assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00.000000Z");
        assert_eq!(at(4_107_542_400, 1), "2100-03-01T00:00:00.000001Z");
        assert_eq!(at(1_795_302_000, 0), "2026-11-21T23:00:00.000000Z");
    }

    #[test]
    fn times_of_one_second_differ_in_their_microseconds_and_the_next_second_is_another() {
        assert_eq!(at(5, 1), "1970-01-01T00:00:05.000001Z");
        assert_eq!(at(5, 20), "1970-01-01T00:00:05.000020Z");
        assert_eq!(at(6, 0), "1970-01-01T00:00:06.000000Z");
        assert_eq!(at(5, 0), "1970-01-01T00:00:05.000000Z");
    }

    #[test]
    fn a_year_without_four_digits_is_written_as_the_nearest_that_has() {
        assert_eq!(&at(300_000_000_000, 0)[..5], "9999-");
    }

    #[test]
    fn a_time_before_1970_counts_backwards() {
        let time = SystemTime::UNIX_EPOCH - Duration::from_micros(1);
        assert_eq!(rfc3339(time), "1969-12-31T23:59:59.999999Z");
    }
}
