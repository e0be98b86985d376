//! Takes a key out of what others say: providers repeat keys in their messages, and servers in between
//! whole requests.

use innkeeper_host::config::Secret;

/// What stands for it.
const MASK: &str = "***";

/// The longest piece of a key that may be told, in bytes: providers show a few letters of both ends,
/// so that its owner knows which one it is.
const SHOWN: usize = 8;

/// The text with every piece of the key in it masked that is longer than a few letters. A key that is
/// no longer itself stands for none, as servers of one's own want it, and is left alone.
pub(super) fn redacted(text: String, key: Option<&Secret>) -> String {
    let Some(key) = key.map(|key| key.expose().as_bytes()) else { return text };
    let (bytes, mut kept, mut from) = (text.as_bytes(), String::new(), 0);
    let mut at = 0;
    while at < bytes.len() {
        let piece = longest(&bytes[at..], key);
        // Within a character no piece begins or ends that is one of the text.
        if piece > SHOWN && text.is_char_boundary(at) && text.is_char_boundary(at + piece) {
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

/// How much of the beginning of a text is a piece of the key.
fn longest(text: &[u8], key: &[u8]) -> usize {
    let begins = (0..key.len()).map(|at| key[at..].iter().zip(text).take_while(|(a, b)| a == b));
    begins.map(Iterator::count).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-proj-Zx81mQp0Lw72";

    fn told(text: &str) -> String {
        redacted(text.to_owned(), Some(&Secret::new(KEY)))
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
        assert_eq!(redacted("none".to_owned(), None), "none");
        assert_eq!(redacted("not it".to_owned(), Some(&Secret::new("not"))), "not it");
    }
}
