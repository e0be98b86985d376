//! Whole numbers between two bounds, as patterns of digits.

/// The digits one place may have, from and to.
type Place = (u8, u8);

/// Digit patterns that together match exactly the numbers from `low` to `high`, each at least
/// `width` digits long with zeros in front; at most 20 for each digit of `high`.
pub(super) fn patterns(low: u64, high: u64, width: usize) -> Vec<Vec<Place>> {
    let mut all = Vec::new();
    let mut from = low;
    while from <= high {
        let digits = padded(from, width);
        // The largest number with as many digits.
        let largest = 10_u64.checked_pow(digits.len() as u32).map_or(u64::MAX, |next| next - 1);
        let to = high.min(largest);
        between(&digits, &padded(to, width), &mut Vec::new(), &mut all);
        match to.checked_add(1) {
            Some(next) => from = next,
            None => break,
        }
    }
    all
}

fn padded(number: u64, width: usize) -> Vec<u8> {
    format!("{number:0width$}").bytes().map(|digit| digit - b'0').collect()
}

/// The patterns between two numbers of as many digits, behind what they have in common.
fn between(low: &[u8], high: &[u8], front: &mut Vec<Place>, all: &mut Vec<Vec<Place>>) {
    let (Some((first, low)), Some((last, high))) = (low.split_first(), high.split_first()) else {
        all.push(front.clone());
        return;
    };
    let mut with = |place: Place, low: &[u8], high: &[u8]| {
        front.push(place);
        between(low, high, front, all);
        front.pop();
    };
    if first == last {
        with((*first, *first), low, high);
        return;
    }
    let (zeros, nines) = (vec![0; low.len()], vec![9; low.len()]);
    let (mut from, mut to) = (*first, *last);
    if low != zeros {
        with((from, from), low, &nines);
        from += 1;
    }
    if high != nines {
        to -= 1;
    }
    if from <= to {
        whole(from, to, low.len(), front, all);
    }
    if high != nines {
        let mut with = |place: Place| {
            front.push(place);
            between(&zeros, high, front, all);
            front.pop();
        };
        with((*last, *last));
    }
}

/// Any digits behind a first one.
fn whole(from: u8, to: u8, rest: usize, front: &[Place], all: &mut Vec<Vec<Place>>) {
    let mut pattern = front.to_vec();
    pattern.push((from, to));
    pattern.resize(pattern.len() + rest, (0, 9));
    all.push(pattern);
}

/// Places as GBNF writes them, equal ones counted.
pub(super) fn written(places: &[Place]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for run in places.chunk_by(|one, other| one == other) {
        let (from, to) = run[0];
        let one = if from == to { format!("[{from}]") } else { format!("[{from}-{to}]") };
        parts.push(if run.len() == 1 { one } else { format!("{one}{{{}}}", run.len()) });
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &[Place], text: &str) -> bool {
        pattern.len() == text.len()
            && pattern
                .iter()
                .zip(text.bytes())
                .all(|((from, to), digit)| (from + b'0'..=to + b'0').contains(&digit))
    }

    #[test]
    fn a_range_is_a_few_patterns() {
        let text = |low, high| {
            patterns(low, high, 1).iter().map(|it| written(it)).collect::<Vec<_>>().join(" | ")
        };
        assert_eq!(text(0, 9), "[0-9]");
        assert_eq!(text(5, 5), "[5]");
        assert_eq!(text(1, 65_535).len(), "[1-9] | [1-9] [0-9] | [1-9] [0-9]{2} | [1-9] [0-9]{3} | [1-5] [0-9]{4} | [6] [0-4] [0-9]{3} | [6] [5] [0-4] [0-9]{2} | [6] [5]{2} [0-2] [0-9] | [6] [5]{2} [3] [0-5]".len());
        assert_eq!(patterns(0, u64::MAX, 1).iter().map(Vec::len).max(), Some(20));
        assert!(patterns(2, 1, 1).is_empty());
    }

    proptest! {
        #[test]
        fn exactly_the_numbers_in_the_range_match_and_each_once(
            low in 0_u64..3_000, size in 0_u64..3_000, number in 0_u64..7_000, width in 1_usize..5,
        ) {
            let text = format!("{number:0width$}");
            let hits = patterns(low, low + size, width).iter().filter(|it| matches(it, &text)).count();
            prop_assert_eq!(hits, usize::from((low..=low + size).contains(&number)));
        }
    }
}
