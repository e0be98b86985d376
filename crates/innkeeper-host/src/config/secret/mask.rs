//! Takes secrets out of what others say: servers repeat keys in their messages, and what stands in
//! between repeats whole requests.

use std::collections::HashSet;

use super::{MASK, Secret};

/// The longest piece of a secret that may be told, in bytes: messages show a few letters of both ends,
/// so that its owner knows which one it is.
const SHOWN: usize = 8;

impl Secret {
    /// The text with every piece of the secret in it masked that is longer than eight bytes. A secret
    /// that is no longer itself stands for none, as servers of one's own want it, and is left alone.
    pub fn mask(&self, text: String) -> String {
        let (bytes, secret) = (text.as_bytes(), self.expose().as_bytes());
        let beginnings: HashSet<&[u8]> = secret.windows(SHOWN + 1).collect();
        let (mut kept, mut from, mut at) = (String::new(), 0, 0);
        while let Some(beginning) = bytes.get(at..=at + SHOWN) {
            let piece =
                if beginnings.contains(beginning) { longest(&bytes[at..], secret) } else { 0 };
            // Within a character no piece begins or ends that is one of the text.
            if piece > 0 && text.is_char_boundary(at) && text.is_char_boundary(at + piece) {
                kept.push_str(&text[from..at]);
                kept.push_str(MASK);
                at += piece;
                from = at;
            } else {
                at += 1;
            }
        }
        if from == 0 {
            return text;
        }
        kept.push_str(&text[from..]);
        kept
    }
}

/// How much of the beginning of a text is a piece of the secret.
fn longest(text: &[u8], secret: &[u8]) -> usize {
    let begins =
        (0..secret.len()).map(|at| secret[at..].iter().zip(text).take_while(|(a, b)| a == b));
    begins.map(Iterator::count).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-proj-Zx81mQp0Lw72";

    fn told(text: &str) -> String {
        Secret::new(KEY).mask(text.to_owned())
    }

    #[test]
    fn a_key_is_masked_wherever_it_stands_and_as_often() {
        assert_eq!(told(KEY), "***");
        assert_eq!(told(&format!("wrong key: `{KEY}`, {KEY}{KEY}!")), "wrong key: `***`, ******!");
        assert_eq!(told(&format!("größer{KEY}é")), "größer***é");
    }

    #[test]
    fn a_key_that_is_cut_is_masked_as_far_as_it_is_there() {
        assert_eq!(told(&format!("it is {}", &KEY[..KEY.len() - 1])), "it is ***");
        assert_eq!(told(&KEY[3..]), "***");
        assert_eq!(told(&KEY[..SHOWN + 1]), "***");
    }

    #[test]
    fn the_few_letters_by_which_an_owner_knows_it_stay() {
        for text in ["Incorrect API key: sk-proj-********Lw72.", &KEY[..SHOWN], "", "nothing"] {
            assert_eq!(told(text), text);
        }
        assert_eq!(Secret::new("not").mask("not it".to_owned()), "not it");
    }
}
