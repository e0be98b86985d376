//! The visible and the plain form of a text, without what only dresses its letters.
//!
//! The guard and the check of forms compare both forms with words. Published injections dress words
//! in look-alike letters (Unicode TR 39), letters of full width or of mathematics, accents, tag
//! characters, and characters without a width.

use unicode_normalization::char::{decompose_compatible, is_combining_mark};
use unicode_security::confusable_detection::skeleton;

use super::is_deceptive_char;

/// Placeholder for a letter without an ASCII look-alike; no rule contains such letters.
const NON_ASCII_PLACEHOLDER: char = '\u{1}';

/// Maximum growth of a text in its plain form, in bytes.
const MAX_GROWTH_BYTES: usize = 1 << 10;

/// Returns the text without hidden characters. Tag characters and letters of full width or of
/// mathematics become their ASCII letters, and fillers that look like a blank become one.
pub(crate) fn visible_text(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' | '\r' | ' '..='~' => visible.push(character),
            '\u{e0020}'..='\u{e007e}' => {
                visible.extend(char::from_u32(u32::from(character) - 0xe0000));
            }
            '\u{2800}' | '\u{3164}' | '\u{ffa0}' => visible.push(' '),
            hidden if is_invisible(hidden) => {}
            other => push_as_ascii(other, &mut visible),
        }
    }
    visible
}

/// Returns whether a character adds nothing to a text that a reader sees: also selectors and vowel
/// signs that ordinary text may have.
fn is_invisible(character: char) -> bool {
    is_deceptive_char(character)
        || is_variation_selector(character)
        || matches!(character, '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{fffd}')
}

/// Returns whether a character selects the look of the character before it.
pub(crate) fn is_variation_selector(character: char) -> bool {
    matches!(character, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Adds the compatible form of a character if the form is ASCII, or else the character.
fn push_as_ascii(character: char, visible: &mut String) {
    let start = visible.len();
    let mut is_ascii = true;
    decompose_compatible(character, |part| {
        is_ascii &= part.is_ascii();
        visible.push(part);
    });
    if !is_ascii {
        visible.truncate(start);
        visible.push(character);
    }
}

/// Returns a visible text in ASCII lower case, with look-alikes replaced, without accents and with
/// white space collapsed.
pub(crate) fn plain_text(visible: &str) -> String {
    let mut plain = String::with_capacity(visible.len());
    let mut blank = true;
    for character in visible.chars() {
        // One character can expand to eighteen letters.
        if plain.len() > visible.len() + MAX_GROWTH_BYTES {
            break;
        }
        // Emphasis between words has no meaning.
        if character == '*' {
            continue;
        }
        if character.is_whitespace() {
            let line = matches!(character, '\n' | '\r');
            if line && plain.ends_with(' ') {
                plain.pop();
                blank = plain.ends_with('\n');
            }
            if !blank {
                plain.push(if line { '\n' } else { ' ' });
            }
            blank = true;
            continue;
        }
        blank = false;
        match character {
            ascii if ascii.is_ascii() => plain.push(ascii.to_ascii_lowercase()),
            '\u{2018}' | '\u{2019}' | '\u{2bc}' => plain.push('\''),
            '\u{201c}' | '\u{201d}' => plain.push('"'),
            '\u{2010}'..='\u{2015}' => plain.push('-'),
            // Ideographs and Hangul look like no ASCII letter.
            '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => plain.push(NON_ASCII_PLACEHOLDER),
            other => decompose_compatible(other, |part| push_plain_part(part, &mut plain)),
        }
    }
    plain
}

fn push_plain_part(part: char, plain: &mut String) {
    if part.is_ascii() {
        plain.push(part.to_ascii_lowercase());
    } else if !is_combining_mark(part) && !is_invisible(part) {
        push_look_alike(part, plain);
    }
}

/// Adds the ASCII look-alike of a non-ASCII letter, if there is one.
fn push_look_alike(character: char, plain: &mut String) {
    if let Some(like) = ascii_look_alike(character) {
        return plain.push(like);
    }
    for small in character.to_lowercase() {
        plain.push(ascii_look_alike(small).unwrap_or(NON_ASCII_PLACEHOLDER));
    }
}

fn ascii_look_alike(character: char) -> Option<char> {
    let mut letters = [0; 4];
    let letters = character.encode_utf8(&mut letters);
    let mut like = skeleton(letters).filter(|part| !is_combining_mark(*part));
    let first = like.next().filter(char::is_ascii_alphanumeric)?;
    like.next().is_none().then(|| first.to_ascii_lowercase())
}

/// Returns one letter for all letters and digits of a plain text that look alike, or `None` for
/// another character.
pub(crate) fn look_alike_letter(byte: u8) -> Option<u8> {
    Some(match byte {
        b'0' => b'o',
        b'1' | b'l' => b'i',
        b'2' => b'z',
        b'3' => b'e',
        b'4' | b'@' => b'a',
        b'5' | b'$' => b's',
        b'6' | b'9' => b'g',
        b'7' => b't',
        b'8' => b'b',
        b'a'..=b'z' => byte,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        plain_text(&visible_text(text))
    }

    #[test]
    fn a_hidden_character_has_no_visible_form_and_a_tag_character_has_that_of_its_letter() {
        for (text, visible) in [
            ("a", "a"),
            ("\r\n\t", "\r\n\t"),
            ("\u{200b}\u{1b}\u{e001f}\u{e007f}\u{fe0f}\u{e0100}\u{ad}\u{fffd}", ""),
            ("\u{e0020}\u{e0041}\u{e007e}", " A~"),
            ("a\u{2800}b\u{3164}c\u{ffa0}d", "a b c d"),
            ("１６９．２５４", "169.254"),
            ("\u{1d41a}\u{2460}", "a1"),
            ("é世", "é世"),
        ] {
            assert_eq!(visible_text(text), visible, "{text:?}");
        }
    }

    /// Attack: data | letters with accents, of other alphabets or of mathematics spell a word | the
    /// plain form has the word in ASCII | Complete checks
    #[test]
    fn the_plain_form_has_ascii_letters_for_what_looks_like_them() {
        for (text, expected) in [
            ("P\u{335}a\u{335}s\u{335}s\u{335}", "pass"),
            ("рассw\u{43e}rd", "paccword"),
            ("Ｐａｓｓｗｏｒｄ", "password"),
            ("pass\u{1160}word", "password"),
            ("crème brûlée", "creme brulee"),
            ("a \u{2003}\n\n b**c**", "a\nbc"),
            ("“it’s” – so", "\"it's\" - so"),
        ] {
            assert_eq!(plain(text), expected, "{text}");
        }
    }

    /// Attack: data | ligatures that expand to 18 letters each | the plain text grows up to its
    /// limit | No unbounded memory
    #[test]
    fn a_text_of_ligatures_grows_up_to_the_limit() {
        // Each ligature has three bytes and expands to eighteen letters.
        let ligatures = |count: usize| "\u{fdfa}".repeat(count);
        let is_found = |count: usize| plain(&format!("{} end", ligatures(count))).ends_with("end");
        assert!(is_found(MAX_GROWTH_BYTES / 18));
        assert!(!is_found(MAX_GROWTH_BYTES / 10));
        let text = ligatures(16 << 10);
        assert!(plain(&text).len() <= text.len() + MAX_GROWTH_BYTES + 18);
    }
}
