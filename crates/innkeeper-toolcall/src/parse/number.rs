//! What JSON calls a number, by its letters.

/// The kinds of text that stand where a number may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Digits {
    /// A number in JSON's grammar.
    Number,
    /// It would be one without the zeros in front.
    LeadingZero,
    /// None.
    Other,
}

/// Whether `text` is a number in JSON's grammar.
pub(crate) fn is_number(text: &str) -> bool {
    kind(text) == Digits::Number
}

/// What `text` is, read once.
pub(super) fn kind(text: &str) -> Digits {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, rest) = digits(unsigned);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("0", rest),
    };
    let (exponent, rest) = match rest.strip_prefix(['e', 'E']) {
        Some(rest) => digits(rest.strip_prefix(['+', '-']).unwrap_or(rest)),
        None => ("0", rest),
    };
    if whole.is_empty() || fraction.is_empty() || exponent.is_empty() || !rest.is_empty() {
        Digits::Other
    } else if whole.len() > 1 && whole.starts_with('0') {
        Digits::LeadingZero
    } else {
        Digits::Number
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_of_json_decides_what_a_number_is() {
        for text in ["0", "-0", "10", "1.50", "1e400", "-2E-07", "123456789012345678901"] {
            assert_eq!(kind(text), Digits::Number, "{text}");
        }
        for text in ["007", "-01", "02139", "00.5", "01e2"] {
            assert_eq!(kind(text), Digits::LeadingZero, "{text}");
        }
        for text in ["", "-", "+1", ".5", "5.", "1e", "0x1F", "1_000", "1.2.3", "--1", "1 ", "٣"] {
            assert_eq!(kind(text), Digits::Other, "{text}");
        }
    }
}
