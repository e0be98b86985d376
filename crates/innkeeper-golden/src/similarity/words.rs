//! The words of a text, in one spelling.

use unicode_normalization::UnicodeNormalization as _;

use super::markdown::{list_markers, quotations, without_marker};
use super::numbers::{join_digit_groups, number_length, read_number};

/// What a word is, for the comparison of facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    /// A number in one spelling: `1,000.50` is `1000.5`.
    Number,
    /// A file, path, address, identifier or version.
    Name,
    /// A currency, a comparison, an emoji.
    Symbol,
    Negation,
}

#[derive(Debug)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) kind: TokenKind,
    /// Whether the word is written with a capital within a sentence, as the names of people and places.
    pub(super) is_proper: bool,
    /// The number of the clause: a comma, a full stop, a line and an `and` start a new one.
    pub(super) clause: usize,
}

#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) tokens: Vec<Token>,
    /// The words of each short text in quotation marks or back-ticks.
    pub(super) quotations: Vec<Vec<String>>,
    clause: usize,
    /// Whether the next word begins a sentence.
    begins_sentence: bool,
    /// Whether the words that follow are parts of a word with a capital.
    is_capitalized: bool,
}

/// Maximum number of words of a quotation that is a name. A longer one is a sentence.
pub(super) const MAX_QUOTED_WORDS: usize = 8;

/// Negations, and words that negate a success.
const NEGATIONS: &[&str] = &[
    "not",
    "no",
    "none",
    "never",
    "neither",
    "nor",
    "nothing",
    "nobody",
    "without",
    "cannot",
    "fail",
    "failed",
    "fails",
    "failing",
    "failure",
    "unsuccessful",
    "unsuccessfully",
    "unable",
    "impossible",
    "false",
    "wrong",
    "incorrect",
    "invalid",
    "nicht",
    "nichts",
    "nie",
    "niemals",
    "niemand",
    "kein",
    "keine",
    "keinen",
    "keinem",
    "keiner",
    "keines",
    "nein",
    "ohne",
    "fehlgeschlagen",
    "gescheitert",
    "falsch",
    "ungültig",
    "pas",
    "jamais",
    "aucun",
    "aucune",
    "rien",
    "nunca",
    "nada",
    "ningún",
    "❌",
    "✗",
    "✘",
    "✖",
    "non",
    "não",
    "niet",
    "geen",
    "inte",
    "ingen",
    "не",
    "нет",
    "без",
    "不",
    "没",
    "沒",
    "无",
    "無",
];

/// Numbers as words, without `one`, which is also a pronoun.
const NUMBER_WORDS: &[(&str, &str)] = &[
    ("zero", "0"),
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("ten", "10"),
    ("eleven", "11"),
    ("twelve", "12"),
    ("zwei", "2"),
    ("drei", "3"),
    ("vier", "4"),
    ("fünf", "5"),
    ("sechs", "6"),
    ("sieben", "7"),
    ("acht", "8"),
    ("neun", "9"),
    ("zehn", "10"),
];

/// Words that a statement has or has not.
pub(super) const FILLERS: &[&str] = &[
    "a", "an", "the", "is", "are", "was", "were", "be", "been", "has", "have", "had", "and", "or",
    "but", "it", "there", "this", "that", "these", "those", "i", "i've", "ve", "we", "you", "der",
    "die", "das", "den", "dem", "ein", "eine", "ist", "sind", "war", "hat", "haben", "und", "oder",
    "aber", "es", "ich",
];

/// Words that join two statements.
const CONJUNCTIONS: &[&str] = &["and", "or", "but", "und", "oder", "aber", "et", "y"];

impl Text {
    pub(super) fn new(text: &str) -> Self {
        let normal: String = join_digit_groups(text).nfkc().filter(|c| !is_invisible(*c)).collect();
        let normal = normal.replace("!=", "≠");
        let lines: Vec<&str> = normal.lines().collect();
        let markers = list_markers(&lines);
        let mut text = Self::default();
        for (at, line) in lines.iter().enumerate() {
            let line = line.trim_start();
            // The fence of a code block names its language.
            if line.starts_with("```") || line.starts_with("~~~") {
                continue;
            }
            let line = if markers.contains(&at) { without_marker(line) } else { line };
            let line = line.trim_start_matches(['>', ' ', '#']);
            text.push_line(line);
        }
        text
    }

    fn push_line(&mut self, line: &str) {
        let from = self.tokens.len();
        self.begins_sentence = true;
        self.push_words(line);
        let line_tokens = &mut self.tokens[from..];
        // Headings have capitals everywhere.
        let proper = line_tokens.iter().filter(|token| token.is_proper).count();
        if proper * 2 >= line_tokens.len() {
            line_tokens.iter_mut().for_each(|token| token.is_proper = false);
        }
        // A part is not searched again for quotations.
        for quotation in quotations(line) {
            let mut part = Self::default();
            part.push_words(quotation);
            let words: Vec<String> = part.tokens.into_iter().map(|token| token.text).collect();
            if (1..=MAX_QUOTED_WORDS).contains(&words.len()) {
                self.quotations.push(words);
            }
        }
        if self.tokens.len() > from {
            self.clause += 1;
        }
    }

    fn push_words(&mut self, line: &str) {
        for word in line.split(|c: char| c.is_whitespace() || is_bracket(c)) {
            self.is_capitalized =
                word.chars().find(|c| c.is_alphanumeric()).is_some_and(char::is_uppercase);
            let word = &*word.to_lowercase();
            let core = word.trim_matches(|c: char| {
                !c.is_alphanumeric() && !matches!(c, '/' | '\\' | '~' | '@')
            });
            match word.split_once(core).filter(|_| is_name(core)) {
                Some((before, after)) => {
                    self.push_characters(before);
                    self.push(core, TokenKind::Name);
                    self.push_characters(after);
                }
                None => self.push_characters(word),
            }
        }
    }

    fn push_characters(&mut self, word: &str) {
        let mut rest = word;
        let mut is_negative = false;
        while let Some(first) = rest.chars().next() {
            let length = if first.is_ascii_digit() {
                let length = number_length(rest);
                self.push_number(&rest[..length], is_negative);
                is_negative = false;
                length
            } else if is_ideograph(first) {
                let text = &rest[..first.len_utf8()];
                let is_negation = NEGATIONS.contains(&text);
                self.push(text, if is_negation { TokenKind::Negation } else { TokenKind::Word });
                text.len()
            } else if first.is_alphanumeric() {
                is_negative = false;
                let end = rest.find(|c: char| !(c.is_alphanumeric() || is_apostrophe(c)));
                let length = end.unwrap_or(rest.len());
                self.push_word(rest[..length].trim_end_matches(is_apostrophe));
                length
            } else {
                // A sign stands before the first digit, with nothing but a currency between them.
                is_negative = (is_negative && is_currency(first))
                    || (matches!(first, '-' | '−') && rest.len() == word.len());
                self.push_mark(first);
                first.len_utf8()
            };
            rest = &rest[length..];
        }
    }

    fn push_mark(&mut self, mark: char) {
        match mark {
            '.' | '!' | '?' | '。' => {
                self.end_clause();
                self.begins_sentence = true;
            }
            ',' | ';' | '、' => self.end_clause(),
            ':' => self.begins_sentence = true,
            _ if is_symbol(mark) => {
                let text = mark.to_string();
                let is_negation = NEGATIONS.contains(&&*text);
                self.push(&text, if is_negation { TokenKind::Negation } else { TokenKind::Symbol });
            }
            _ => {}
        }
    }

    fn push_word(&mut self, word: &str) {
        if let Some(base) = word.strip_suffix("n't").or_else(|| word.strip_suffix("n’t")) {
            let base = match base {
                "ca" => "can",
                "wo" => "will",
                base => base,
            };
            self.push(base, TokenKind::Word);
            return self.push("not", TokenKind::Negation);
        }
        if word == "cannot" {
            self.push("can", TokenKind::Word);
            return self.push("not", TokenKind::Negation);
        }
        for (at, part) in word.split(is_apostrophe).enumerate() {
            if part.is_empty() || (at > 0 && part == "s") {
                continue;
            }
            if let Some((_, number)) = NUMBER_WORDS.iter().find(|(name, _)| *name == part) {
                self.push(number, TokenKind::Number);
            } else if NEGATIONS.contains(&part) {
                self.push(part, TokenKind::Negation);
            } else if part.contains(|c: char| c.is_ascii_digit()) {
                self.push(part, TokenKind::Name);
            } else {
                self.push(part, TokenKind::Word);
            }
            if CONJUNCTIONS.contains(&part) {
                self.end_clause();
            }
        }
    }

    fn push_number(&mut self, written: &str, is_negative: bool) {
        let plain: String = written.chars().filter(|c| !matches!(c, '_' | '\'' | '’')).collect();
        let sign = if is_negative { "-" } else { "" };
        match read_number(&plain) {
            Some(number) if number == "0" => self.push("0", TokenKind::Number),
            Some(number) => self.push(&format!("{sign}{number}"), TokenKind::Number),
            None if plain.contains(',') => {
                for part in plain.split(',').filter(|part| !part.is_empty()) {
                    self.push_number(part, false);
                    self.end_clause();
                }
            }
            // A version, or the address of a machine.
            None => self.push(&plain, TokenKind::Name),
        }
    }

    fn push(&mut self, text: &str, kind: TokenKind) {
        if text.is_empty() {
            return;
        }
        let is_proper = self.is_capitalized && !self.begins_sentence && kind == TokenKind::Word;
        self.tokens.push(Token { text: text.to_owned(), kind, is_proper, clause: self.clause });
        self.begins_sentence &= kind == TokenKind::Symbol;
    }

    fn end_clause(&mut self) {
        if self.tokens.last().is_some_and(|token| token.clause == self.clause) {
            self.clause += 1;
        }
    }
}

/// Returns whether a word is a file, a path, an address or an identifier.
fn is_name(word: &str) -> bool {
    let has_letter = word.contains(char::is_alphabetic);
    let slashes = word.matches(['/', '\\']).count();
    // `a.txt` and `v1.2`, but neither `u.s` nor `1.5ms`.
    let has_extension = word.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && stem.len() + extension.len() > 2
            && (1..=8).contains(&extension.len())
            && extension.chars().all(char::is_alphanumeric)
            && [word, extension].iter().any(|part| part.starts_with(char::is_alphabetic))
    });
    has_letter
        && (word.contains(['_', '@'])
            || slashes >= 2
            || (slashes == 1 && (word.starts_with(['/', '~']) || word.contains('.')))
            || has_extension)
}

fn is_bracket(c: char) -> bool {
    matches!(
        c,
        '(' | ')' | '[' | ']' | '{' | '}' | '|' | '"' | '`' | '“' | '”' | '„' | '«' | '»' | '*'
    )
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’')
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{ad}' | '\u{fe0f}' | '\u{2060}')
}

/// Returns whether a character is a word of its own, because the script has no blanks.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        && c.is_alphanumeric()
}

fn is_currency(c: char) -> bool {
    matches!(c, '$' | '¢' | '£' | '¥' | '\u{20a0}'..='\u{20cf}')
}

/// Returns whether a mark carries meaning: a currency, an operator, an emoji.
fn is_symbol(c: char) -> bool {
    is_currency(c)
        || matches!(c, '%' | '<' | '>' | '=' | '+' | '±' | '×' | '÷' | '°' | '§')
        || matches!(c, '\u{2100}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
            && !matches!(c, '\u{2500}'..='\u{25ff}')
}
