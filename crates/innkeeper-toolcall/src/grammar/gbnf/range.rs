//! Digit patterns of integers between two bounds.

/// First and last digit that one position may have.
type DigitRange = (u8, u8);

/// Returns digit patterns that together match exactly the numbers from `low` to `high`, padded with
/// zeros to at least `width` digits; at most 20 patterns per digit of `high`.
pub(super) fn digit_patterns(low: u64, high: u64, width: usize) -> Vec<Vec<DigitRange>> {
    let mut all = Vec::new();
    let mut from = low;
    while from <= high {
        let digits = padded_digits(from, width);
        // The largest number with the same number of digits.
        let largest = 10_u64.checked_pow(digits.len() as u32).map_or(u64::MAX, |next| next - 1);
        let to = high.min(largest);
        push_patterns_between(&digits, &padded_digits(to, width), &mut Vec::new(), &mut all);
        match to.checked_add(1) {
            Some(next) => from = next,
            None => break,
        }
    }
    all
}

fn padded_digits(number: u64, width: usize) -> Vec<u8> {
    format!("{number:0width$}").bytes().map(|digit| digit - b'0').collect()
}

/// Adds the patterns between two numbers of the same length, after their common prefix.
fn push_patterns_between(
    low: &[u8],
    high: &[u8],
    prefix: &mut Vec<DigitRange>,
    all: &mut Vec<Vec<DigitRange>>,
) {
    let (Some((first, low)), Some((last, high))) = (low.split_first(), high.split_first()) else {
        all.push(prefix.clone());
        return;
    };
    let mut with = |range: DigitRange, low: &[u8], high: &[u8]| {
        prefix.push(range);
        push_patterns_between(low, high, prefix, all);
        prefix.pop();
    };
    if first == last {
        with((*first, *first), low, high);
        return;
    }
    let zeros = vec![0; low.len()];
    let nines = vec![9; low.len()];
    let mut from = *first;
    let mut to = *last;
    if low != zeros {
        with((from, from), low, &nines);
        from += 1;
    }
    if high != nines {
        to -= 1;
    }
    if from <= to {
        push_any_digits(from, to, low.len(), prefix, all);
    }
    if high != nines {
        prefix.push((*last, *last));
        push_patterns_between(&zeros, high, prefix, all);
        prefix.pop();
    }
}

/// Adds a pattern with a first digit range and any following digits.
fn push_any_digits(
    from: u8,
    to: u8,
    rest: usize,
    prefix: &[DigitRange],
    all: &mut Vec<Vec<DigitRange>>,
) {
    let mut pattern = prefix.to_vec();
    pattern.push((from, to));
    pattern.resize(pattern.len() + rest, (0, 9));
    all.push(pattern);
}

/// Writes a pattern as GBNF; equal positions become a repetition.
pub(super) fn to_gbnf(ranges: &[DigitRange]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for run in ranges.chunk_by(|left, other| left == other) {
        let (from, to) = run[0];
        let class = if from == to { format!("[{from}]") } else { format!("[{from}-{to}]") };
        parts.push(if run.len() == 1 { class } else { format!("{class}{{{}}}", run.len()) });
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &[DigitRange], text: &str) -> bool {
        pattern.len() == text.len()
            && pattern
                .iter()
                .zip(text.bytes())
                .all(|((from, to), digit)| (from + b'0'..=to + b'0').contains(&digit))
    }

    #[test]
    fn a_range_is_a_few_patterns() {
        let text = |low, high| {
            digit_patterns(low, high, 1)
                .iter()
                .map(|pattern| to_gbnf(pattern))
                .collect::<Vec<_>>()
                .join(" | ")
        };
        assert_eq!(text(0, 9), "[0-9]");
        assert_eq!(text(5, 5), "[5]");
        assert_eq!(text(1, 65_535).len(), "[1-9] | [1-9] [0-9] | [1-9] [0-9]{2} | [1-9] [0-9]{3} | [1-5] [0-9]{4} | [6] [0-4] [0-9]{3} | [6] [5] [0-4] [0-9]{2} | [6] [5]{2} [0-2] [0-9] | [6] [5]{2} [3] [0-5]".len());
        assert_eq!(digit_patterns(0, u64::MAX, 1).iter().map(Vec::len).max(), Some(20));
        assert!(digit_patterns(2, 1, 1).is_empty());
    }

    proptest! {
        #[test]
        fn exactly_the_numbers_in_the_range_match_and_each_once(
            low in 0_u64..3_000, size in 0_u64..3_000, number in 0_u64..7_000, width in 1_usize..5,
        ) {
            let text = format!("{number:0width$}");
            let hits = digit_patterns(low, low + size, width).iter().filter(|it| matches(it, &text)).count();
            prop_assert_eq!(hits, usize::from((low..=low + size).contains(&number)));
        }
    }
}
