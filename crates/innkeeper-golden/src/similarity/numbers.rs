//! Numbers in one spelling.

/// Removes thin and fixed blanks between digits, which group them in some languages.
pub(super) fn join_digit_groups(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let is_group = matches!(c, '\u{a0}' | '\u{2009}' | '\u{202f}')
            && joined.ends_with(|c: char| c.is_ascii_digit())
            && characters.peek().is_some_and(char::is_ascii_digit);
        if !is_group {
            joined.push(c);
        }
    }
    joined
}

/// Returns the length of the number that the text begins with.
pub(super) fn number_length(text: &str) -> usize {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',' | '_' | '\'' | '’'))
        .unwrap_or(text.len());
    let last = text[..end].rfind(|c: char| c.is_ascii_digit()).unwrap_or(0);
    // `3.txt` is read as 3 and a word, and `3..5` as 3 and 5.
    text[..=last].find("..").unwrap_or(last + 1)
}

/// Returns the number in one spelling; `None` if the text is several numbers or a version.
pub(super) fn read_number(text: &str) -> Option<String> {
    let [dots, commas] = ['.', ','].map(|mark| text.matches(mark).count());
    let decimal = match (dots, commas) {
        (0 | 1, 0) => text.to_owned(),
        (_, 0) if is_grouped(text, '.') => text.replace('.', ""),
        (0 | 1, _) => {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            if is_grouped(whole, ',') && !fraction.contains(',') {
                text.replace(',', "")
            } else if dots == 0 && commas == 1 {
                text.replace(',', ".")
            } else if commas == 1 && text.split_once(',').is_some_and(|(it, _)| is_grouped(it, '.'))
            {
                text.replace('.', "").replace(',', ".")
            } else {
                return None;
            }
        }
        (_, 1) if text.split_once(',').is_some_and(|(whole, _)| is_grouped(whole, '.')) => {
            text.replace('.', "").replace(',', ".")
        }
        _ => return None,
    };
    let (whole, fraction) = decimal.split_once('.').unwrap_or((&decimal, ""));
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") })
}

/// Returns whether the mark stands between groups of three digits.
fn is_grouped(text: &str, mark: char) -> bool {
    let mut groups = text.split(mark);
    let first = groups.next().unwrap_or_default();
    let starts = (1..=3).contains(&first.len()) && !first.starts_with('0');
    starts && text.contains(mark) && groups.all(|group| group.len() == 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_spelling_whatever_its_marks() {
        let cases = [
            ("5", Some("5")),
            ("007", Some("7")),
            ("3.0", Some("3")),
            ("2.50", Some("2.5")),
            ("0.05", Some("0.05")),
            ("1,000", Some("1000")),
            ("12,345,678.90", Some("12345678.9")),
            ("1,5", Some("1.5")),
            ("1.234,5", Some("1234.5")),
            ("1.234.567,5", Some("1234567.5")),
            ("1.234.567", Some("1234567")),
            ("1.000", Some("1")),
            // Versions, addresses and lists.
            ("1.2.3", None),
            ("10.0.0.1", None),
            ("1,2,3", None),
            ("1,2.3,4", None),
        ];
        for (text, expected) in cases {
            assert_eq!(read_number(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_number_ends_with_its_last_digit() {
        let cases =
            [("5.", 1), ("1,000, and", 5), ("7..9", 1), ("10ms", 2), ("3.txt", 1), ("1'000'", 5)];
        for (text, expected) in cases {
            assert_eq!(number_length(text), expected, "{text}");
        }
    }
}
