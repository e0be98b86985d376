//! HTML whose untrusted parts cannot be markup.
//!
//! [`Html`] has no function that adds a text unescaped: markup is a `&'static str`, and each value in
//! between writes itself as an [`HtmlValue`].

use std::fmt::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use innkeeper_host::is_deceptive_char;
use innkeeper_protocol::decode_base64;

/// Maximum number of characters of one text; the rest is left out, with its length.
pub(crate) const MAX_TEXT_CHARS: usize = 20_000;

/// Maximum number of characters of a name in a table or a heading.
const MAX_NAME_CHARS: usize = 120;

/// Maximum size of an image in bytes of its base64 text.
pub(crate) const MAX_IMAGE_BYTES: usize = 4 << 20;

/// The types of images that a page contains. SVG is not safe: it can have scripts and references.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A part of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Html(String);

impl Html {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds markup with a value in place of each `{}`.
    pub(crate) fn push(&mut self, markup: &'static str, values: &[&dyn HtmlValue]) {
        debug_assert_eq!(markup.matches("{}").count(), values.len(), "{markup}");
        let mut values = values.iter();
        let mut parts = markup.split("{}");
        self.0.push_str(parts.next().unwrap_or_default());
        for part in parts {
            if let Some(value) = values.next() {
                value.write_html(&mut self.0);
            }
            self.0.push_str(part);
        }
    }

    #[cfg(test)]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// Adds markup to an [`Html`]; each `{}` of the literal is a value.
macro_rules! html {
    ($out:expr, $markup:literal $(, $value:expr)* $(,)?) => {
        $out.push($markup, &[$(&$value),*])
    };
}

pub(crate) use html;

/// A value that knows its form in HTML.
pub(crate) trait HtmlValue {
    fn write_html(&self, out: &mut String);
}

impl HtmlValue for str {
    fn write_html(&self, out: &mut String) {
        write_bounded(self, MAX_TEXT_CHARS, out);
    }
}

fn write_bounded(text: &str, maximum: usize, out: &mut String) {
    let Some((end, _)) = text.char_indices().nth(maximum) else { return write_shown(text, out) };
    write_shown(&text[..end], out);
    write(out, format_args!("… ({} more characters)", text[end..].chars().count()));
}

/// Writes a text for readers: a deceptive character becomes its number.
fn write_shown(text: &str, out: &mut String) {
    for character in text.chars() {
        if is_deceptive_char(character) {
            write(out, format_args!("\\u{{{:x}}}", u32::from(character)));
        } else {
            write_escaped(character, out);
        }
    }
}

/// Writes a character that is no markup, in a text and in a quoted attribute.
fn write_escaped(character: char, out: &mut String) {
    match character {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        _ => out.push(character),
    }
}

/// Writes numbers and texts that the gateway has checked.
fn write(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(arguments);
}

impl HtmlValue for Html {
    fn write_html(&self, out: &mut String) {
        out.push_str(&self.0);
    }
}

impl<T: HtmlValue + ?Sized> HtmlValue for &T {
    fn write_html(&self, out: &mut String) {
        (**self).write_html(out);
    }
}

macro_rules! through_str {
    ($($kind:ty),*) => { $(impl HtmlValue for $kind {
        fn write_html(&self, out: &mut String) {
            let text: &str = self;
            text.write_html(out);
        }
    })* };
}

through_str!(String, Box<str>, std::sync::Arc<str>, std::borrow::Cow<'_, str>);

macro_rules! numbers {
    ($($kind:ty),*) => { $(impl HtmlValue for $kind {
        fn write_html(&self, out: &mut String) {
            write(out, format_args!("{self}"));
        }
    })* };
}

numbers!(u8, u16, u32, u64, usize, i32, i64);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal(pub(crate) f64);

impl HtmlValue for Decimal {
    fn write_html(&self, out: &mut String) {
        write(out, format_args!("{:.1}", self.0));
    }
}

/// A number without a decimal that is zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain(pub(crate) f64);

impl HtmlValue for Plain {
    fn write_html(&self, out: &mut String) {
        write(out, format_args!("{}", self.0));
    }
}

/// A name in a table or a heading: shorter than a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'a>(pub(crate) &'a str);

impl HtmlValue for Name<'_> {
    fn write_html(&self, out: &mut String) {
        write_bounded(self.0, MAX_NAME_CHARS, out);
    }
}

/// A value of a form, which the browser sends back: complete, with its deceptive characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldValue<'a>(pub(crate) &'a str);

impl HtmlValue for FieldValue<'_> {
    fn write_html(&self, out: &mut String) {
        for character in self.0.chars() {
            match character {
                // A parser of HTML changes a carriage return, and has no NUL.
                '\r' => out.push_str("&#13;"),
                '\0' => out.push('\u{fffd}'),
                _ => write_escaped(character, out),
            }
        }
    }
}

/// A point in time, in UTC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time(pub(crate) DateTime<Utc>);

impl HtmlValue for Time {
    fn write_html(&self, out: &mut String) {
        let long = self.0.format("%Y-%m-%dT%H:%M:%SZ");
        let short = self.0.format("%H:%M:%S");
        write(out, format_args!("<time datetime=\"{long}\" title=\"{long}\">{short}</time>"));
    }
}

/// A reference to a page of the console: its name in the source, and a query.
#[derive(Clone, Debug)]
pub(crate) struct Link(String);

impl Link {
    pub(crate) fn to(page: &'static str) -> Self {
        Self(page.to_owned())
    }

    /// Adds a parameter of the query.
    #[must_use]
    pub(crate) fn with(mut self, key: &'static str, value: &str) -> Self {
        let separator = if self.0.contains('?') { '&' } else { '?' };
        let pair =
            url::form_urlencoded::Serializer::new(String::new()).append_pair(key, value).finish();
        self.0.push(separator);
        self.0.push_str(&pair);
        self
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl HtmlValue for Link {
    fn write_html(&self, out: &mut String) {
        FieldValue(&self.0).write_html(out);
    }
}

/// The data URL of an image of a safe type.
#[derive(Clone, Debug)]
pub(crate) struct ImageUrl {
    kind: &'static str,
    data: String,
}

impl ImageUrl {
    /// Returns the URL of an image that a server sent, if its type is safe and its data is base64.
    pub(crate) fn new(kind: &str, data: &str) -> Option<Self> {
        let kind = IMAGE_TYPES.into_iter().find(|known| known.eq_ignore_ascii_case(kind.trim()))?;
        if data.len() > MAX_IMAGE_BYTES {
            return None;
        }
        // Encoded again, so that the text of the server is not used.
        Some(Self { kind, data: STANDARD.encode(decode_base64(data)?) })
    }
}

impl HtmlValue for ImageUrl {
    fn write_html(&self, out: &mut String) {
        write(out, format_args!("data:{};base64,{}", self.kind, self.data));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    /// Attack: remote | a text contains tags, quotes, entities and comments | every character of
    /// markup is escaped, in a text and in an attribute | Foreign text stays text
    #[test]
    fn text_in_a_page_is_never_markup() {
        let mut out = Html::new();
        let text = "<script>alert(\"1\")</script><!--&amp;' onload='x";
        html!(out, "<p title=\"{}\">{}</p>", text, FieldValue(text));
        let escaped = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&lt;!--&amp;amp;&#39; \
                       onload=&#39;x";
        assert_eq!(out.as_str(), format!("<p title=\"{escaped}\">{escaped}</p>"));
    }

    /// Attack: remote | a name has direction marks, zero-width and control characters | the page shows
    /// their numbers | Foreign text stays text
    #[test]
    fn deceptive_characters_are_visible() {
        let mut out = Html::new();
        html!(out, "{}", "a\u{202e}b\u{200b}\u{1b}\0c\n");
        assert_eq!(out.as_str(), "a\\u{202e}b\\u{200b}\\u{1b}\\u{0}c\n");
    }

    #[test]
    fn a_text_longer_than_its_maximum_ends_with_the_number_of_the_missing_characters() {
        let mut out = Html::new();
        html!(out, "{}", Name(&"ä".repeat(MAX_NAME_CHARS)));
        assert_eq!(out.as_str(), "ä".repeat(MAX_NAME_CHARS));
        let mut out = Html::new();
        html!(out, "{}", "<".repeat(MAX_TEXT_CHARS + 2));
        assert!(out.as_str().ends_with("&lt;… (2 more characters)"));
        assert_eq!(out.as_str().matches("&lt;").count(), MAX_TEXT_CHARS);
    }

    /// Attack: remote | an image has a type with a script, or data with quotes | there is no URL of it
    /// | Foreign text stays text
    #[test]
    fn only_images_of_safe_types_have_a_url() {
        assert!(ImageUrl::new("image/svg+xml", "AAAA").is_none());
        assert!(ImageUrl::new("text/html", "AAAA").is_none());
        assert!(ImageUrl::new("image/png\" onerror=\"x", "AAAA").is_none());
        assert!(ImageUrl::new("image/png", "AA\"A").is_none());
        assert!(ImageUrl::new("image/png", &"A".repeat(MAX_IMAGE_BYTES + 4)).is_none());
        let mut out = Html::new();
        html!(out, "{}", ImageUrl::new("IMAGE/PNG", "AAAA").unwrap());
        assert_eq!(out.as_str(), "data:image/png;base64,AAAA");
    }

    #[test]
    fn a_link_contains_any_text_in_its_query() {
        let mut out = Html::new();
        html!(
            out,
            "<a href=\"{}\">",
            Link::to("tool").with("name", "a&b=\"<c>#?/ ü").with("x", "1")
        );
        let query = "name=a%26b%3D%22%3Cc%3E%23%3F%2F+%C3%BC&amp;x=1";
        assert_eq!(out.as_str(), format!("<a href=\"tool?{query}\">"));
    }

    proptest! {
        #[test]
        fn no_text_adds_a_tag_a_quote_or_an_entity(text in any::<String>()) {
            let mut out = Html::new();
            html!(out, "{}", text);
            let rest = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"]
                .iter()
                .fold(out.into_string(), |rest, entity| rest.replace(entity, ""));
            proptest::prop_assert!(!rest.contains(['<', '>', '"', '\'', '&']), "{}", rest);
        }
    }
}
