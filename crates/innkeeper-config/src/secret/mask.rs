//! Masks secrets in untrusted text.
//!
//! Servers repeat keys in their messages, and proxies repeat whole requests.

use std::collections::HashSet;

use super::{MASK, Secret};

/// Maximum number of consecutive bytes of a secret in a message: messages show a few letters of
/// both ends, so that the owner can identify the secret.
const MAX_SHOWN_BYTES: usize = 8;

/// Minimum number of bytes of a value that is masked as a whole; shorter values are words.
const MIN_WHOLE_BYTES: usize = 8;

impl Secret {
    /// Masks the whole secret in the text, and each of its lines, if it has at least eight bytes.
    /// In contrast to [`Self::mask`], parts of the secret stay: the value may be a path or an
    /// address whose parts are common words.
    pub fn mask_whole(&self, text: String) -> String {
        let lines = self.expose().lines().map(str::trim);
        lines.filter(|line| line.len() >= MIN_WHOLE_BYTES).fold(text, |text, line| {
            if text.contains(line) { text.replace(line, MASK) } else { text }
        })
    }

    /// Masks every part of the secret in the text that is longer than eight bytes. A secret of at
    /// most eight bytes is a placeholder, as for local test servers, and is not masked.
    pub fn mask(&self, text: String) -> String {
        let bytes = text.as_bytes();
        let secret = self.expose().as_bytes();
        let beginnings: HashSet<&[u8]> = secret.windows(MAX_SHOWN_BYTES + 1).collect();
        let mut output = String::new();
        let mut from = 0;
        let mut at = 0;
        while let Some(beginning) = bytes.get(at..=at + MAX_SHOWN_BYTES) {
            let replacement = if beginnings.contains(beginning) {
                matched_prefix_len(&bytes[at..], secret)
            } else {
                0
            };
            // A part of the secret that is valid text starts and ends at character boundaries.
            if replacement > 0
                && text.is_char_boundary(at)
                && text.is_char_boundary(at + replacement)
            {
                output.push_str(&text[from..at]);
                output.push_str(MASK);
                at += replacement;
                from = at;
            } else {
                at += 1;
            }
        }
        if from == 0 {
            return text;
        }
        output.push_str(&text[from..]);
        output
    }
}

/// Returns how many bytes at the start of the text are part of the secret.
fn matched_prefix_len(text: &[u8], secret: &[u8]) -> usize {
    let begins =
        (0..secret.len()).map(|at| secret[at..].iter().zip(text).take_while(|(a, b)| a == b));
    begins.map(Iterator::count).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-proj-Zx81mQp0Lw72";

    fn mask(text: &str) -> String {
        Secret::new(KEY).mask(text.to_owned())
    }

    #[test]
    fn a_key_is_masked_wherever_it_stands_and_as_often() {
        assert_eq!(mask(KEY), "***");
        assert_eq!(mask(&format!("wrong key: `{KEY}`, {KEY}{KEY}!")), "wrong key: `***`, ******!");
        assert_eq!(mask(&format!("größer{KEY}é")), "größer***é");
    }

    #[test]
    fn a_key_that_is_cut_is_masked_as_far_as_it_is_there() {
        assert_eq!(mask(&format!("it is {}", &KEY[..KEY.len() - 1])), "it is ***");
        assert_eq!(mask(&KEY[3..]), "***");
        assert_eq!(mask(&KEY[..MAX_SHOWN_BYTES + 1]), "***");
    }

    #[test]
    fn a_whole_value_and_its_lines_are_masked_and_its_parts_stay() {
        let mask = |secret: &str, text: &str| Secret::new(secret).mask_whole(text.to_owned());
        assert_eq!(mask("12345678", "key 12345678!"), "key ***!");
        assert_eq!(mask("1234567", "key 1234567!"), "key 1234567!");
        assert_eq!(mask("/srv/data/notes", "in /srv/data/x"), "in /srv/data/x");
        assert_eq!(mask("-----BEGIN\nMIIEpAIBAAKC\n", "at MIIEpAIBAAKC"), "at ***");
    }

    #[test]
    fn the_short_prefix_that_identifies_a_key_is_not_masked() {
        for text in
            ["Incorrect API key: sk-proj-********Lw72.", &KEY[..MAX_SHOWN_BYTES], "", "nothing"]
        {
            assert_eq!(mask(text), text);
        }
        assert_eq!(Secret::new("not").mask("not it".to_owned()), "not it");
    }
}
