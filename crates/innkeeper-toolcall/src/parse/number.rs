//! Classification of text as a JSON number.

/// The class of a text in the position of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberSyntax {
    /// A number in JSON syntax.
    Number,
    /// A number with leading zeros.
    LeadingZero,
    /// Not a number.
    Other,
}

/// Whether `text` is a number in JSON syntax.
pub(crate) fn is_number(text: &str) -> bool {
    classify_number(text) == NumberSyntax::Number
}

/// Classifies `text` in one pass.
pub(super) fn classify_number(text: &str) -> NumberSyntax {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (integer, rest) = split_digits(unsigned);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("0", rest),
    };
    let (exponent, rest) = match rest.strip_prefix(['e', 'E']) {
        Some(rest) => split_digits(rest.strip_prefix(['+', '-']).unwrap_or(rest)),
        None => ("0", rest),
    };
    if integer.is_empty() || fraction.is_empty() || exponent.is_empty() || !rest.is_empty() {
        NumberSyntax::Other
    } else if integer.len() > 1 && integer.starts_with('0') {
        NumberSyntax::LeadingZero
    } else {
        NumberSyntax::Number
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_of_json_decides_what_a_number_is() {
        for text in ["0", "-0", "10", "1.50", "1e400", "-2E-07", "123456789012345678901"] {
            assert_eq!(classify_number(text), NumberSyntax::Number, "{text}");
        }
        for text in ["007", "-01", "02139", "00.5", "01e2"] {
            assert_eq!(classify_number(text), NumberSyntax::LeadingZero, "{text}");
        }
        for text in ["", "-", "+1", ".5", "5.", "1e", "0x1F", "1_000", "1.2.3", "--1", "1 ", "٣"] {
            assert_eq!(classify_number(text), NumberSyntax::Other, "{text}");
        }
    }
}
