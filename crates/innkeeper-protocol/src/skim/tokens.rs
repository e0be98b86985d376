//! Iteration over the tokens of JSON text.

use super::Cursor;

/// A token of JSON text, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// The start of an object.
    ObjectStart,
    /// The end of an object.
    ObjectEnd,
    /// The start of an array.
    ArrayStart,
    /// The end of an array.
    ArrayEnd,
    /// The key of a member, without quotes; see [`decode_key`](super::decode_key).
    Key(&'a str),
    /// A string, with quotes; see [`decode_string`](super::decode_string).
    String(&'a str),
    /// A number, a boolean or `null`.
    Scalar(&'a str),
}

/// Iterator over the tokens of JSON text; see [`tokens`](super::tokens).
#[derive(Clone, Debug)]
pub struct Tokens<'a> {
    cursor: Cursor<'a>,
    /// The open containers: whether each is an object.
    open: Vec<bool>,
    /// Whether the next token is a value in any case: at the start, and after a key.
    at_value: bool,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(json: &'a str) -> Self {
        Self { cursor: Cursor::new(json), open: Vec::new(), at_value: true }
    }

    fn value(&mut self) -> Option<Token<'a>> {
        self.at_value = false;
        match self.cursor.peek()? {
            b'{' => {
                self.cursor.enter(b'{');
                self.open.push(true);
                Some(Token::ObjectStart)
            }
            b'[' => {
                self.cursor.enter(b'[');
                self.open.push(false);
                Some(Token::ArrayStart)
            }
            b'"' => self.cursor.next_value().map(Token::String),
            _ => self.cursor.next_value().map(Token::Scalar),
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if self.at_value {
            return self.value();
        }
        if *self.open.last()? {
            if let Some(key) = self.cursor.next_key() {
                self.at_value = true;
                return Some(Token::Key(key));
            }
            self.open.pop();
            return Some(Token::ObjectEnd);
        }
        if self.cursor.next_element() {
            return self.value();
        }
        self.open.pop();
        Some(Token::ArrayEnd)
    }
}
