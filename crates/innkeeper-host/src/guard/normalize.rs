//! Normalizes text: decodes look-alikes, hidden characters, percent-encoding and base64.
//!
//! Published injections use these encodings, also nested, to evade filters: Unicode TR 39
//! look-alikes, tag characters, zero-width characters, percent-encoding and base64.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use unicode_normalization::UnicodeNormalization;
use unicode_security::confusable_detection::skeleton;

use crate::text::is_deceptive_char;

/// Maximum number of nested encodings that are decoded.
pub(super) const MAX_ENCODING_DEPTH: usize = 2;

/// Maximum number of base64 runs decoded in a text.
pub(super) const MAX_RUNS: usize = 16;

/// Maximum length of a decoded run in bytes; a longer run is a file.
pub(super) const MAX_RUN_BYTES: usize = 64 << 10;

/// Minimum length of a run in bytes: a few words cannot be an instruction.
const MIN_RUN_BYTES: usize = 24;

/// Minimum number of percent escapes in a percent-encoded text.
const MIN_PERCENT_ESCAPES: usize = 3;

/// Placeholder for a letter without an ASCII look-alike; no rule contains such letters.
const NON_ASCII_PLACEHOLDER: char = '\u{1}';

/// Minimum line length of wrapped base64.
const MIN_WRAPPED_LINE_LEN: usize = 60;

/// A text after decoding one more encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NormalizedText {
    /// The text as written, without hidden characters.
    pub(super) exact: String,
    /// The text in ASCII lower case, with look-alikes replaced and white space collapsed.
    pub(super) plain: String,
}

impl NormalizedText {
    pub(super) fn new(text: &str) -> Self {
        let exact: String = text.chars().filter_map(visible_char).collect();
        let plain = to_plain(&exact);
        Self { exact, plain }
    }
}

/// Returns the text itself and the texts encoded in it.
pub(super) fn normalized_forms(text: &str) -> Vec<NormalizedText> {
    let mut forms = vec![NormalizedText::new(text)];
    let mut from = 0;
    for _ in 0..MAX_ENCODING_DEPTH {
        let to = forms.len();
        for at in from..to {
            let inner = decode_embedded(&forms[at].exact);
            let remaining = MAX_RUNS.saturating_sub(forms.len() - 1);
            forms.extend(inner.into_iter().take(remaining).map(|text| NormalizedText::new(&text)));
        }
        from = to;
    }
    forms
}

/// Returns the visible form of a character; a tag character becomes its letter.
fn visible_char(character: char) -> Option<char> {
    match character {
        '\u{e0020}'..='\u{e007e}' => char::from_u32(u32::from(character) - 0xe0000),
        hidden if is_deceptive_char(hidden) && hidden != '\r' => None,
        other => Some(other),
    }
}

/// Maximum growth of a text during normalization, in bytes.
const MAX_GROWTH_BYTES: usize = 1 << 10;

fn to_plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut blank = true;
    for character in text.nfkc() {
        // One character can expand to eighteen letters.
        if plain.len() > text.len() + MAX_GROWTH_BYTES {
            break;
        }
        // Emphasis between words has no meaning.
        if character == '*' || is_deceptive_char(character) && character != '\r' {
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
            '\u{2018}' | '\u{2019}' | '\u{2bc}' => plain.push('\''),
            '\u{201c}' | '\u{201d}' => plain.push('"'),
            '\u{2010}'..='\u{2015}' => plain.push('-'),
            ascii if ascii.is_ascii() => plain.push(ascii.to_ascii_lowercase()),
            other => push_look_alike(other, &mut plain),
        }
    }
    plain
}

/// Adds the ASCII look-alike of a non-ASCII letter, if there is one.
fn push_look_alike(character: char, plain: &mut String) {
    let as_ascii = |character: char| {
        let mut letters = [0; 4];
        let letters = character.encode_utf8(&mut letters);
        let mut like = skeleton(letters);
        let first = like.next().filter(char::is_ascii_alphanumeric)?;
        like.next().is_none().then(|| first.to_ascii_lowercase())
    };
    if let Some(like) = as_ascii(character) {
        return plain.push(like);
    }
    for small in character.to_lowercase() {
        plain.push(as_ascii(small).unwrap_or(NON_ASCII_PLACEHOLDER));
    }
}

/// Returns the texts encoded in this text.
fn decode_embedded(text: &str) -> Vec<String> {
    let mut decoded: Vec<String> = decode_percent(text).into_iter().collect();
    decoded.extend(base64_runs(text).into_iter().filter_map(|run| decode_base64(&run)));
    decoded
}

fn decode_percent(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let digit =
        |at: usize| char::from(*bytes.get(at)?).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let mut decoded = Vec::with_capacity(bytes.len());
    let (mut at, mut count) = (0, 0);
    let spaced = bytes.contains(&b' ');
    while let Some(&byte) = bytes.get(at) {
        if byte == b'%'
            && let (Some(high), Some(low)) = (digit(at + 1), digit(at + 2))
        {
            decoded.push(high * 16 + low);
            count += 1;
            at += 3;
            continue;
        }
        decoded.push(if byte == b'+' && !spaced { b' ' } else { byte });
        at += 1;
    }
    if count < MIN_PERCENT_ESCAPES {
        None
    } else {
        Some(String::from_utf8_lossy(&decoded).into_owned())
    }
}

/// Returns runs of base64 letters: the joined lines of wrapped base64, and also each line within
/// the limit.
fn base64_runs(text: &str) -> Vec<String> {
    let is_run = |c: char| c.is_ascii_alphanumeric() || "+/-_=".contains(c);
    let (mut runs, mut lines) = (Vec::new(), Vec::new());
    let mut joined = String::new();
    for line in text.lines().map(str::trim_end) {
        let is_single_run = line.chars().all(is_run);
        if is_single_run
            && line.len() >= MIN_WRAPPED_LINE_LEN
            && !line.ends_with('=')
            && joined.len() <= MAX_RUN_BYTES
        {
            push_run(&mut lines, line);
            joined.push_str(line);
            continue;
        }
        let block = std::mem::take(&mut joined);
        if is_single_run && !block.is_empty() {
            // The line may be the last of the block or unrelated.
            push_run(&mut runs, &format!("{block}{line}"));
        }
        push_run(&mut runs, &block);
        line.split(|c| !is_run(c)).for_each(|run| push_run(&mut runs, run));
        if runs.len() >= MAX_RUNS {
            break;
        }
    }
    push_run(&mut runs, &joined);
    // A block of one line is already in the list.
    lines.retain(|line| !runs.contains(line));
    runs.extend(lines);
    runs.truncate(MAX_RUNS);
    runs
}

fn push_run(runs: &mut Vec<String>, run: &str) {
    // A preceding `name=` is not part of the run.
    let run = run.trim_end_matches('=').rsplit('=').next().unwrap_or_default();
    if (MIN_RUN_BYTES..=MAX_RUN_BYTES).contains(&run.len()) && runs.len() < MAX_RUNS {
        runs.push(run.to_owned());
    }
}

fn decode_base64(run: &str) -> Option<String> {
    let alphabet = if run.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let decoded = GeneralPurpose::new(&alphabet, config).decode(run).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let readable = |c: char| c.is_alphanumeric() || c.is_ascii_graphic() || c.is_whitespace();
    let odd = text.chars().filter(|c| !readable(*c)).count();
    // Binary data rarely contains so much text.
    (odd * 10 <= text.chars().count()).then_some(text)
}

#[cfg(test)]
mod tests;
