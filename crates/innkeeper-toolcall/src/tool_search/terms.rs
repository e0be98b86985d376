//! Splits text into the terms of the index, in any script.
//!
//! A term of a spaced script is the stem of a word. An identifier such as `readFile` or `read_file`
//! gives the terms of its words, and one term for each pair of adjacent words, so that `GitHub`
//! equals `github`. A script without spaces gives the pairs of adjacent characters.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::stem::stem;

/// Maximum number of characters of a term. A longer word, such as an encoded image, is cut.
const MAX_TERM_CHARS: usize = 64;

/// Words that most English descriptions and requests contain, sorted. The rests of `user's` and
/// `don't` are words too.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been",
    "being", "but", "by", "can", "could", "d", "did", "do", "does", "doing", "each", "for", "from",
    "had", "has", "have", "having", "he", "her", "here", "hers", "him", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "just", "like", "ll", "m", "may", "me", "might", "must", "my",
    "need", "no", "not", "of", "on", "or", "our", "please", "re", "s", "shall", "she", "should",
    "so", "some", "such", "t", "than", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "those", "to", "too", "use", "used", "using", "ve", "very", "via", "want",
    "was", "we", "were", "what", "when", "where", "which", "while", "who", "whom", "why", "will",
    "with", "would", "you", "your",
];

pub(super) struct QueryTerms {
    /// The terms, in their order and with repetitions.
    pub(super) terms: Vec<String>,
    /// The terms that two words with a space between them give without the space, because names and
    /// users write words such as `todo` in both ways.
    pub(super) joined_terms: Vec<String>,
}

/// Returns the terms of a text in their order, with repetitions. The number of terms is at most
/// twice the number of characters of the normalized text.
pub(super) fn extract_terms(text: &str) -> Vec<String> {
    split(text).terms
}

pub(super) fn extract_query_terms(text: &str) -> QueryTerms {
    let Splitter { terms, joined_terms, .. } = split(text);
    QueryTerms { terms, joined_terms }
}

fn split(text: &str) -> Splitter {
    let mut splitter = Splitter::default();
    // Accents of Latin letters are removed: users omit them. Marks of other scripts are letters.
    let letters = text.nfkd().filter(|character| !('\u{300}'..='\u{36F}').contains(character));
    let characters: Vec<char> = letters.nfc().collect();
    for at in 0..characters.len() {
        splitter.push(&characters[at..]);
    }
    splitter.end_identifier();
    splitter
}

/// The state between two characters.
#[derive(Default)]
struct Splitter {
    terms: Vec<String>,
    joined_terms: Vec<String>,
    /// The last word, if only spaces follow the word.
    word_before_space: Option<String>,
    /// The words of the current identifier, in lower case.
    identifier: Vec<String>,
    /// The last word of the identifier, which may continue.
    word: String,
    word_chars: usize,
    /// The last character of a script without spaces, with whether it is part of a pair.
    unspaced: Option<(char, bool)>,
    before: char,
}

impl Splitter {
    /// Reads the first of the remaining characters.
    fn push(&mut self, remaining: &[char]) {
        let Some(character) = remaining.first().copied() else { return };
        if is_unspaced(character) {
            self.end_identifier_before_unspaced();
            let in_pair = self.unspaced.is_some();
            if let Some((before, _)) = self.unspaced {
                self.terms.push([before, character].iter().collect());
            }
            self.unspaced = Some((character, in_pair));
        } else if character.is_alphanumeric() || is_combining_mark(character) {
            self.end_unspaced();
            let is_after_lower = self.before.is_lowercase();
            let is_after_acronym = self.before.is_uppercase() && begins_word(&remaining[1..]);
            if character.is_uppercase() && (is_after_lower || is_after_acronym) {
                self.end_word();
            }
            if self.word_chars < MAX_TERM_CHARS {
                self.word.extend(character.to_lowercase());
                self.word_chars += 1;
            }
        } else if matches!(character, '_' | '-')
            && remaining.get(1).is_some_and(|next| next.is_alphanumeric())
        {
            self.end_unspaced();
            self.end_word();
        } else {
            self.end_identifier();
            if character != ' ' {
                self.word_before_space = None;
            }
        }
        self.before = character;
    }

    fn end_word(&mut self) {
        if !self.word.is_empty() {
            self.identifier.push(std::mem::take(&mut self.word));
        }
        self.word_chars = 0;
    }

    fn end_identifier(&mut self) {
        self.end_unspaced();
        self.end_identifier_before_unspaced();
    }

    fn end_identifier_before_unspaced(&mut self) {
        self.end_word();
        let words = std::mem::take(&mut self.identifier);
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return };
        if let Some(before) = self.word_before_space.replace(last.clone()) {
            self.joined_terms.push(stem(before + first));
        }
        for pair in words.windows(2) {
            self.terms.push(stem(pair.concat()));
        }
        for word in words {
            if STOP_WORDS.binary_search(&word.as_str()).is_err() {
                self.terms.push(stem(word));
            }
        }
    }

    /// A single character of a script without spaces is a term.
    fn end_unspaced(&mut self) {
        if let Some((character, false)) = self.unspaced.take() {
            self.terms.push(character.to_string());
        }
    }
}

/// Whether a capital letter with these characters behind it begins a word, unlike in `URLs`.
fn begins_word(after: &[char]) -> bool {
    match after {
        ['s'] => false,
        ['s', next, ..] => next.is_lowercase(),
        [next, ..] => next.is_lowercase(),
        [] => false,
    }
}

/// Whether the script of a character has no spaces between words: Thai, Lao, Myanmar, Khmer, Hangul
/// (whose spaces separate phrases), Kana and Han.
fn is_unspaced(character: char) -> bool {
    matches!(
        u32::from(character),
        0xE00..=0xEFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3041..=0x30FF | 0x3400..=0x4DBF
            | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0x20000..=0x3FFFF
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_split_at_capitals_and_separators() {
        for (text, expected) in [
            ("read_file", &["readfil", "read", "fil"][..]),
            ("HTTPServer", &["httpserv", "http", "serv"]),
            ("fs.readFile", &["fs", "readfil", "read", "fil"]),
            ("GitHub", &["github", "git", "hub"]),
            ("github", &["github"]),
            ("s3 v2", &["s3", "v2"]),
            ("URLs", &["url"]),
            ("-x_ y", &["x", "y"]),
        ] {
            assert_eq!(extract_terms(text), expected, "{text}");
        }
    }

    #[test]
    fn words_of_a_query_with_a_space_between_them_are_joined_too() {
        let query = extract_query_terms("to do  lists, gitHub");
        assert_eq!(query.terms, ["list", "github", "git", "hub"]);
        assert_eq!(query.joined_terms, ["todo", "dolist"]);
    }

    #[test]
    fn stop_words_are_no_terms() {
        assert!(STOP_WORDS.is_sorted());
        assert_eq!(extract_terms("What is the user's weather?"), ["user", "weath"]);
    }

    #[test]
    fn accents_and_widths_of_letters_do_not_matter() {
        assert_eq!(extract_terms("Café"), extract_terms("cafe\u{301}"));
        assert_eq!(extract_terms("Café"), extract_terms("ＣＡＦＥ"));
    }

    #[test]
    fn scripts_without_spaces_give_pairs_of_characters() {
        assert_eq!(extract_terms("東京の天気"), ["東京", "京の", "の天", "天気"]);
        assert_eq!(extract_terms("雨 x雨y"), ["雨", "x", "雨", "y"]);
        assert_eq!(extract_terms("прогноз погоды"), ["прогноз", "погоды"]);
    }

    #[test]
    fn a_long_word_is_cut() {
        assert_eq!(extract_terms(&"x1".repeat(99))[0].chars().count(), MAX_TERM_CHARS);
    }
}
