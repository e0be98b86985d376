//! The secrets of one redaction: those that the caller knows, what follows from them, and what the
//! detector finds.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;

use super::FindCredentials;
use super::edits::{Edit, apply};
use super::matcher::{Match, Matcher, merge};
use super::needles::needles;

/// Minimum size of a value that is replaced outside of its place. A shorter one, such as `1` or
/// `true`, occurs in every text.
pub(super) const MIN_SECRET_BYTES: usize = 6;

/// Minimum size of a word of a header value, or of a password, that is a secret of its own.
const MIN_WORD_BYTES: usize = 6;

/// Minimum size of a part of another value that is a secret of its own, if it has letters and digits.
const MIN_PART_BYTES: usize = 8;

/// Maximum number of times that one text is searched again after a replacement.
pub(super) const MAX_PASSES: usize = 8;

/// The name of what the detector finds.
const CREDENTIAL_NAME: &str = "credential";

const PLACEHOLDER_START: &str = "[redacted:";

/// Words before the credentials in a header.
const AUTH_SCHEMES: [&str; 6] = ["bearer", "basic", "token", "apikey", "digest", "negotiate"];

/// Headers whose values say nothing of the user. They occur in every exchange.
const PUBLIC_HEADERS: [&str; 10] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "anthropic-version",
    "cache-control",
    "connection",
    "content-type",
    "mcp-protocol-version",
    "user-agent",
];

struct Secret {
    name: String,
    placeholder: String,
    value: String,
}

pub(super) struct Secrets {
    items: Vec<Secret>,
    placeholders: Vec<String>,
    everywhere: Matcher,
    /// Also the short ones, for URLs of the model.
    in_urls: Matcher,
    find_credentials: FindCredentials,
    /// Texts in which the detector finds nothing.
    clean_texts: HashSet<String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("len", &self.items.len()).finish_non_exhaustive()
    }
}

/// Returns whether a word names how credentials are written, as in `Bearer …`.
pub(super) fn is_auth_scheme(word: &str) -> bool {
    AUTH_SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

impl Secrets {
    pub(super) fn new(find_credentials: FindCredentials) -> Self {
        Self {
            items: Vec::new(),
            placeholders: Vec::new(),
            everywhere: Matcher::default(),
            in_urls: Matcher::default(),
            find_credentials,
            clean_texts: HashSet::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn name(&self, secret: usize) -> &str {
        &self.items[secret].name
    }

    pub(super) fn placeholder(&self, secret: usize) -> &str {
        &self.items[secret].placeholder
    }

    /// Returns whether a value is only digits, as the times in a golden are.
    pub(super) fn is_number(&self, secret: usize) -> bool {
        self.items[secret]
            .value
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
    }

    fn position(&self, value: &str) -> Option<usize> {
        self.items.iter().position(|secret| secret.value == value)
    }

    fn push(&mut self, name: &str, value: &str) -> usize {
        if let Some(known) = self.position(value) {
            return known;
        }
        let name = sanitize_name(name);
        let placeholder = placeholder(&name);
        if !self.placeholders.contains(&placeholder) {
            self.placeholders.push(placeholder.clone());
        }
        self.items.push(Secret { name, placeholder, value: value.to_owned() });
        let secret = self.items.len() - 1;
        if value.len() >= MIN_SECRET_BYTES {
            for needle in needles(value, secret) {
                self.everywhere.add(needle);
            }
        }
        secret
    }

    /// Adds a value and what follows from it. An empty value is no secret.
    pub(super) fn add(&mut self, name: &str, value: &str) {
        if value.is_empty() || is_public_header(name) {
            return;
        }
        self.push(name, value);
        for derived in derived_values(name, value) {
            self.push(name, &derived);
        }
    }

    /// Adds a value that is in every URL of the model, and returns its position; `None` for an empty
    /// one.
    pub(super) fn add_of_url(&mut self, name: &str, value: &str) -> Option<usize> {
        if value.is_empty() {
            return None;
        }
        self.add(name, value);
        let secret = self.push(name, value);
        for needle in needles(value, secret) {
            self.in_urls.add(needle);
        }
        Some(secret)
    }

    /// Returns the placeholder for a value: that of the secret with this value, or that of `name`.
    pub(super) fn placeholder_for(&self, name: &str, value: &str) -> String {
        let known = self.position(value).map(|secret| self.placeholder(secret).to_owned());
        known.unwrap_or_else(|| placeholder(&sanitize_name(name)))
    }

    /// Returns the matches outside of placeholders.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Match> {
        self.outside_of_placeholders(text, self.everywhere.find(text))
    }

    pub(super) fn find_in_url(&self, text: &[u8]) -> Vec<Match> {
        let mut matches = self.everywhere.find(text);
        matches.extend(self.in_urls.find(text));
        self.outside_of_placeholders(text, matches)
    }

    fn outside_of_placeholders(&self, text: &[u8], mut matches: Vec<Match>) -> Vec<Match> {
        if !matches.is_empty() {
            let spans = self.placeholder_spans(text);
            matches.retain(|found| {
                let next = spans.partition_point(|span| span.start <= found.range.start);
                spans[..next].last().is_none_or(|span| found.range.end > span.end)
            });
        }
        matches
    }

    fn placeholder_spans(&self, text: &[u8]) -> Vec<Range<usize>> {
        let starts = text.windows(PLACEHOLDER_START.len()).enumerate();
        let spans = starts
            .filter(|(_, window)| *window == PLACEHOLDER_START.as_bytes())
            .filter_map(|(at, _)| {
                Some(
                    at..at
                        + self
                            .placeholders
                            .iter()
                            .find(|placeholder| text[at..].starts_with(placeholder.as_bytes()))?
                            .len(),
                )
            });
        spans.collect()
    }

    /// Returns the replacements for matches, with overlapping matches joined.
    pub(super) fn edits(&self, matches: Vec<Match>) -> Vec<Edit> {
        merge(matches)
            .into_iter()
            .map(|found| Edit {
                range: found.range,
                text: self.placeholder(found.secret).to_owned(),
            })
            .collect()
    }

    /// Replaces the secrets in a text that `find` finds, and returns them.
    pub(super) fn replace(
        &self,
        text: &mut String,
        find: impl Fn(&Self, &[u8]) -> Vec<Match>,
    ) -> Vec<usize> {
        let mut found = Vec::new();
        for _ in 0..MAX_PASSES {
            let matches = find(self, text.as_bytes());
            if matches.is_empty() {
                break;
            }
            found.extend(matches.iter().map(|found| found.secret));
            *text = apply(text, &self.edits(matches));
        }
        found
    }

    /// Adds what the detector finds in a text. Returns a secret that it found although the secret was
    /// one of the first `known` ones, which had been replaced.
    pub(super) fn collect(&mut self, text: &str, known: usize) -> Option<usize> {
        if self.clean_texts.contains(text) {
            return None;
        }
        let credentials = self.credentials(text);
        if credentials.is_empty() {
            self.clean_texts.insert(text.to_owned());
        }
        self.add_credentials(&credentials, known)
    }

    /// Adds the value of a named member if the detector finds it only next to its name.
    pub(super) fn collect_member(&mut self, key: &str, value: &str, known: usize) -> Option<usize> {
        let text = format!("{key}: {value}");
        if self.clean_texts.contains(&text) {
            return None;
        }
        let mut credentials = self.credentials(&text);
        credentials.retain(|credential| value.contains(credential));
        if credentials.is_empty() {
            self.clean_texts.insert(text.clone());
        }
        self.add_credentials(&credentials, known)
    }

    fn add_credentials(&mut self, credentials: &[&str], known: usize) -> Option<usize> {
        let mut unreplaced = None;
        for credential in credentials {
            match self.position(credential) {
                Some(secret) if secret < known => unreplaced = Some(secret),
                Some(_) => {}
                None => self.add(CREDENTIAL_NAME, credential),
            }
        }
        unreplaced
    }

    /// Runs the detector. What it finds around a placeholder counts only if it finds the rest alone.
    fn credentials<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut credentials = Vec::new();
        for found in (self.find_credentials)(text) {
            let spans = self.placeholder_spans(found.as_bytes());
            let mut begin = 0;
            for span in &spans {
                credentials.extend((self.find_credentials)(&found[begin..span.start]));
                begin = span.end;
            }
            if spans.is_empty() {
                credentials.push(found);
            } else {
                credentials.extend((self.find_credentials)(&found[begin..]));
            }
        }
        credentials.retain(|found| found.len() >= MIN_SECRET_BYTES);
        credentials
    }
}

fn sanitize_name(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric() && !":._-".contains(c), "_")
}

fn placeholder(name: &str) -> String {
    format!("{PLACEHOLDER_START}{name}]")
}

fn is_public_header(name: &str) -> bool {
    let header = name.strip_prefix("header:").unwrap_or_default();
    PUBLIC_HEADERS.iter().any(|public| header.eq_ignore_ascii_case(public))
}

/// Returns further secrets that a value contains: the words of a header, and passwords.
fn derived_values(name: &str, value: &str) -> Vec<String> {
    let mut derived = Vec::new();
    let mut words = value.split([' ', '\t', ',', ';']);
    let has_scheme = words.next().is_some_and(is_auth_scheme);
    if has_scheme || name.starts_with("header:") {
        for word in value.split([' ', '\t', ',', ';']) {
            derived.push(word.to_owned());
            derived
                .extend(word.split_once('=').map(|(_, value)| value.trim_matches('"').to_owned()));
            let pair = STANDARD.decode(word).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            if let Some((_, password)) = pair.as_deref().and_then(|pair| pair.split_once(':')) {
                derived.push(password.to_owned());
            }
        }
    }
    if let Some((_, rest)) = value.split_once("://") {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
        derived.extend(user.map(|(_, password)| decode_percent(password).into_owned()));
    }
    derived.retain(|word| word.len() >= MIN_WORD_BYTES && !is_auth_scheme(word));
    // The values of JSON, of connection strings, and the lines of a key.
    let parts = value
        .split(|c: char| c.is_whitespace() || ";,\"'{}[]()<>=|".contains(c))
        .filter(|part| *part != value && is_random(part));
    derived.extend(parts.map(str::to_owned));
    let trimmed = value.trim();
    if trimmed.len() >= MIN_SECRET_BYTES {
        derived.push(trimmed.to_owned());
    }
    derived
}

/// Returns whether a part of a value is no ordinary word.
fn is_random(part: &str) -> bool {
    part.len() >= MIN_PART_BYTES
        && part.bytes().any(|byte| byte.is_ascii_digit())
        && part.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Undoes percent-encoding; a text that would not be UTF-8 stays.
pub(super) fn decode_percent(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8().unwrap_or(Cow::Borrowed(text))
}
