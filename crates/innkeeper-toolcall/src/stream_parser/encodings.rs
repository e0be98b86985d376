//! Other spellings of a text: without the escapes and decorations with which a page may contain a call.

use percent_encoding::percent_decode_str;
use unicode_normalization::UnicodeNormalization as _;

use crate::sanitize::is_hidden;

/// Maximum length of a tag that is removed.
const MAX_TAG_BYTES: usize = 256;

/// Tags of calls, which stay.
const CALL_TAGS: [&str; 4] = ["function", "parameter", "param", "invoke"];

/// Removes one level of escapes, of character references and of percent encoding; `None` if the text
/// has none.
pub(super) fn decoded(text: &str) -> Option<String> {
    let unescaped = unescape(text);
    let text = unescaped.as_deref().unwrap_or(text);
    decode_percent(text).or(unescaped)
}

/// Removes tags and invisible characters, and replaces typographic quotation marks and compatibility
/// characters such as fullwidth letters; `None` if the text has none of them.
pub(super) fn plain(text: &str) -> Option<String> {
    let untagged = without_tags(text);
    if untagged.is_none() && text.is_ascii() {
        return None;
    }
    let letters = untagged.as_deref().unwrap_or(text).nfkc().filter_map(|letter| match letter {
        '“' | '”' | '„' | '‟' | '«' | '»' => Some('"'),
        '‘' | '’' | '‚' | '‛' => Some('\''),
        '\n' | '\r' | '\t' => Some(letter),
        _ if is_hidden(letter) => None,
        _ => Some(letter),
    });
    let plain: String = letters.collect();
    (plain != text).then_some(plain)
}

/// Removes the tags of HTML and its comments; `None` if there are none.
fn without_tags(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut rest = text;
    // Without this, each comment without an end would be searched up to the end of the text.
    let last_comment_end = text.rfind("-->").unwrap_or_default();
    while let Some(at) = memchr::memchr(b'<', rest.as_bytes()) {
        let ends_comments = text.len() - rest.len() + at < last_comment_end;
        let length = tag_length(&rest[at..], ends_comments);
        plain.push_str(&rest[..at]);
        // Without a tag, the sign stays.
        plain.push_str(if length.is_some() { "" } else { "<" });
        rest = &rest[at + length.unwrap_or(1)..];
    }
    plain.push_str(rest);
    (plain.len() < text.len()).then_some(plain)
}

/// Returns the length of the tag or the comment at the start of the text. `ends_comments` says
/// whether the text has the end of a comment.
fn tag_length(text: &str, ends_comments: bool) -> Option<usize> {
    if ends_comments && text.starts_with("<!--") {
        return Some(text.find("-->")? + "-->".len());
    }
    let window = &text[..text.floor_char_boundary(MAX_TAG_BYTES)];
    let inner = &window[1..window.find('>')?];
    let name = inner.trim_start_matches('/').split([' ', '\n', '\t', '/']).next()?;
    let is_tag = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|letter| letter.is_ascii_alphanumeric())
        && !inner.contains('<')
        && !CALL_TAGS.contains(&name);
    is_tag.then_some(inner.len() + "<>".len())
}

/// Decodes the words that are percent-encoded, in which `+` stands for a space; `None` if there are
/// none.
fn decode_percent(text: &str) -> Option<String> {
    memchr::memchr(b'%', text.as_bytes())?;
    let mut plain = Vec::with_capacity(text.len());
    for word in text.split_inclusive(char::is_whitespace) {
        let decoded: Vec<u8> = percent_decode_str(&word.replace('+', " ")).collect();
        let is_encoded = decoded.len() < word.len();
        plain.extend_from_slice(if is_encoded { &decoded } else { word.as_bytes() });
    }
    (plain.len() < text.len()).then(|| String::from_utf8_lossy(&plain).into_owned())
}

/// Removes numbers and signs at the starts of lines; `None` if there are none.
pub(super) fn without_line_prefixes(text: &str) -> Option<String> {
    if !text.contains('\n') {
        return None;
    }
    let lines = text.lines().map(|line| {
        line.trim_start_matches(|letter: char| {
            letter.is_ascii_digit() || letter.is_whitespace() || ">#|:*/\u{2192}+-".contains(letter)
        })
    });
    let plain = lines.collect::<Vec<_>>().join("\n");
    (plain.len() < text.len()).then_some(plain)
}

/// Removes one level of JSON escapes and of character references; `None` if the text has neither.
fn unescape(text: &str) -> Option<String> {
    memchr::memchr2(b'\\', b'&', text.as_bytes())?;
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'\\', b'&', rest.as_bytes()) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let (letter, length) = escaped_char(rest).unwrap_or_else(|| {
            let first = if rest.starts_with('&') { '&' } else { '\\' };
            (first, 1)
        });
        plain.push(letter);
        rest = &rest[length..];
    }
    plain.push_str(rest);
    (plain != text).then_some(plain)
}

/// Returns the character that the escape at the start of the text stands for, with the length of the
/// escape.
fn escaped_char(text: &str) -> Option<(char, usize)> {
    const REFERENCES: &[(&str, char)] = &[
        ("&quot;", '"'),
        ("&apos;", '\''),
        ("&lt;", '<'),
        ("&gt;", '>'),
        ("&amp;", '&'),
        ("&nbsp;", ' '),
        ("&lbrace;", '{'),
        ("&rbrace;", '}'),
        ("&lcub;", '{'),
        ("&rcub;", '}'),
        ("&lbrack;", '['),
        ("&rbrack;", ']'),
        ("&lsqb;", '['),
        ("&rsqb;", ']'),
        ("&lpar;", '('),
        ("&rpar;", ')'),
        ("&colon;", ':'),
        ("&comma;", ','),
        ("&period;", '.'),
        ("&equals;", '='),
        ("&lowbar;", '_'),
        ("&sol;", '/'),
        ("&bsol;", '\\'),
        ("&tab;", '\t'),
        ("&newline;", '\n'),
    ];
    let named = REFERENCES.iter().find(|(reference, _)| {
        text.get(..reference.len()).is_some_and(|start| start.eq_ignore_ascii_case(reference))
    });
    if let Some((reference, letter)) = named {
        return Some((*letter, reference.len()));
    }
    if let Some(number) = text.strip_prefix("&#") {
        let (digits, _) = number[..number.floor_char_boundary(8)].split_once(';')?;
        let code = match digits.strip_prefix(['x', 'X']) {
            Some(hexadecimal) => parse_digits(hexadecimal, 16),
            None => parse_digits(digits, 10),
        };
        return Some((char::from_u32(code?)?, "&#;".len() + digits.len()));
    }
    let letter = match text.strip_prefix('\\')?.as_bytes().first()? {
        // JSON escapes some of these, Markdown all.
        letter if letter.is_ascii_punctuation() => char::from(*letter),
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        escape @ (b'x' | b'u') => {
            let length = if *escape == b'x' { 4 } else { 6 };
            let code = parse_digits(text.get(2..length)?, 16)?;
            return Some((char::from_u32(code)?, length));
        }
        _ => return None,
    };
    Some((letter, 2))
}

fn parse_digits(digits: &str, radix: u32) -> Option<u32> {
    // The integer parser would accept a sign.
    let are_digits = digits.chars().all(|digit| digit.is_digit(radix));
    are_digits.then(|| u32::from_str_radix(digits, radix).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_with_a_sign_is_plain_text() {
        for text in ["%+5", "&#x+41;", "&#+65;", "\\x+5", "\\u+041"] {
            assert_eq!(decoded(text), None, "{text}");
        }
    }
}
