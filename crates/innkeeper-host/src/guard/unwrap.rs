//! What a text says once look-alikes, hidden characters, percent signs and base64 are taken off.
//!
//! The wrappings are those that published injections use against filters: Unicode TR 39 look-alikes,
//! tag characters, zero-width characters, percent-encoding and base64, one inside the other.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use unicode_normalization::UnicodeNormalization;
use unicode_security::confusable_detection::skeleton;

use crate::text::deceives;

/// How many wrappings are taken off, one inside the other.
pub(super) const DEPTH: usize = 2;

/// Runs of base64 that are read in one text.
pub(super) const RUNS: usize = 16;

/// The longest run that is decoded; what is longer is a file.
pub(super) const LONGEST: usize = 64 << 10;

/// The shortest run: less than a few words cannot be an order.
const SHORTEST: usize = 24;

/// Percent signs that make a text one that is encoded.
const PERCENTS: usize = 3;

/// Stands for each letter that looks like none of ASCII: the rules have none of them.
const OTHER: char = '\u{1}';

/// The length that lines of wrapped base64 have at least.
const LINE: usize = 60;

/// A text without one more of its wrappings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// As it is spelled, without hidden characters.
    pub(super) exact: String,
    /// In small letters of ASCII, each look-alike as the letter it looks like, runs of blanks as one.
    pub(super) plain: String,
}

impl Form {
    pub(super) fn of(text: &str) -> Self {
        let exact: String = text.chars().filter_map(seen).collect();
        let plain = plain(&exact);
        Self { exact, plain }
    }
}

/// The text itself, and what is wrapped in it.
pub(super) fn forms(text: &str) -> Vec<Form> {
    let mut forms = vec![Form::of(text)];
    let mut from = 0;
    for _ in 0..DEPTH {
        let to = forms.len();
        for at in from..to {
            let inner = inside(&forms[at].exact);
            let room = RUNS.saturating_sub(forms.len() - 1);
            forms.extend(inner.into_iter().take(room).map(|text| Form::of(&text)));
        }
        from = to;
    }
    forms
}

/// A character as it is meant: tags stand for the letters they hide.
fn seen(character: char) -> Option<char> {
    match character {
        '\u{e0020}'..='\u{e007e}' => char::from_u32(u32::from(character) - 0xe0000),
        hidden if deceives(hidden) && hidden != '\r' => None,
        other => Some(other),
    }
}

/// How many bytes longer a text may become by being made plain.
const GROWTH: usize = 1 << 10;

fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut blank = true;
    for character in text.nfkc() {
        // One letter can stand for eighteen.
        if plain.len() > text.len() + GROWTH {
            break;
        }
        // Emphasis between words is nothing that is said.
        if character == '*' || deceives(character) && character != '\r' {
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
            other => look_alike(other, &mut plain),
        }
    }
    plain
}

/// Adds a letter that is not ASCII as the one it looks like, if there is such a one.
fn look_alike(character: char, plain: &mut String) {
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
        plain.push(as_ascii(small).unwrap_or(OTHER));
    }
}

/// The texts that are encoded in this one.
fn inside(text: &str) -> Vec<String> {
    let mut found: Vec<String> = percent_decoded(text).into_iter().collect();
    found.extend(runs(text).into_iter().filter_map(|run| base64_decoded(&run)));
    found
}

fn percent_decoded(text: &str) -> Option<String> {
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
    if count < PERCENTS { None } else { Some(String::from_utf8_lossy(&decoded).into_owned()) }
}

/// Runs of letters that base64 has: the lines of a wrapped one joined, and each line where there is
/// room.
fn runs(text: &str) -> Vec<String> {
    let is_run = |c: char| c.is_ascii_alphanumeric() || "+/-_=".contains(c);
    let (mut runs, mut lines) = (Vec::new(), Vec::new());
    let mut joined = String::new();
    for line in text.lines().map(str::trim_end) {
        let whole = line.chars().all(is_run);
        if whole && line.len() >= LINE && !line.ends_with('=') && joined.len() <= LONGEST {
            keep(&mut lines, line);
            joined.push_str(line);
            continue;
        }
        let block = std::mem::take(&mut joined);
        if whole && !block.is_empty() {
            // It may be the last line, and it may be something else.
            keep(&mut runs, &format!("{block}{line}"));
        }
        keep(&mut runs, &block);
        line.split(|c| !is_run(c)).for_each(|word| keep(&mut runs, word));
        if runs.len() >= RUNS {
            break;
        }
    }
    keep(&mut runs, &joined);
    // A block of one line is there already.
    lines.retain(|line| !runs.contains(line));
    runs.extend(lines);
    runs.truncate(RUNS);
    runs
}

fn keep(runs: &mut Vec<String>, run: &str) {
    // `name=` before it is not part of it.
    let run = run.trim_end_matches('=').rsplit('=').next().unwrap_or_default();
    if (SHORTEST..=LONGEST).contains(&run.len()) && runs.len() < RUNS {
        runs.push(run.to_owned());
    }
}

fn base64_decoded(run: &str) -> Option<String> {
    let alphabet = if run.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let decoded = GeneralPurpose::new(&alphabet, config).decode(run).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let readable = |c: char| c.is_alphanumeric() || c.is_ascii_graphic() || c.is_whitespace();
    let odd = text.chars().filter(|c| !readable(*c)).count();
    // Bytes that are not text seldom make so much of it.
    (odd * 10 <= text.chars().count()).then_some(text)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    use super::*;

    const SAID: &str = "please water the plants on the balcony";

    fn says(text: &str) -> bool {
        forms(text).iter().any(|form| form.plain.contains(SAID))
    }

    #[test]
    fn each_wrapping_is_taken_off_and_one_inside_another() {
        let tags: String =
            SAID.chars().map(|c| char::from_u32(0xe0000 + u32::from(c)).unwrap()).collect();
        let percent = SAID.replace(' ', "%20");
        let base64 = STANDARD.encode(SAID);
        let long = STANDARD.encode(format!("{}. {SAID}", "x ".repeat(80)));
        let lines: Vec<&str> =
            long.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
        for text in [
            "PLEASE  **Water**\tthe\u{a0}plants on the balcony".to_owned(),
            "ple\u{200b}ase wat\u{200d}er the plants on the balcony".to_owned(),
            "рlеаsе wаtеr thе рlаnts оn thе bаlсоny".to_owned(),
            "\u{ff50}lease water the plants on the balcony".to_owned(),
            tags,
            percent,
            base64.clone(),
            format!("data={base64}"),
            lines.join("\n"),
            URL_SAFE_NO_PAD.encode(SAID),
            STANDARD.encode(format!("see {base64} there")),
        ] {
            assert!(says(&text), "{text}");
        }
    }

    #[test]
    fn as_many_wrappings_are_taken_off_as_the_limit_and_no_more() {
        let wrapped = |times| (0..times).fold(SAID.to_owned(), |text, _| STANDARD.encode(text));
        assert!(says(&wrapped(DEPTH)));
        assert!(!says(&wrapped(DEPTH + 1)));
        let many = |before: usize| {
            let other = STANDARD.encode("nothing to see in this one here");
            format!("{}{}", format!("{other} ").repeat(before), STANDARD.encode(SAID))
        };
        assert!(says(&many(RUNS - 1)));
        assert!(!says(&many(RUNS)));
    }

    #[test]
    fn an_order_in_any_line_of_a_wrapped_text_is_read() {
        for filler in [20 * 57, 0, 29 * 57] {
            let said = format!("{}. {SAID}.", "y ".repeat(filler / 2));
            let text = format!("{said}{}", " z".repeat((30 * 57 - said.len().min(30 * 57)) / 2));
            let long = STANDARD.encode(text);
            let lines: Vec<&str> =
                long.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
            assert!(lines.len() >= 30);
            assert!(says(&lines.join("\n")), "{filler}");
            assert!(says(&format!("here:\n{}\nthere", lines.join("\r\n"))), "{filler}");
        }
        let alone = STANDARD.encode(format!("{SAID} {SAID}"));
        assert!(says(&format!("{}\n{alone}\nend of it", "0".repeat(61))), "other lines before");
    }

    #[test]
    fn letters_that_stand_for_many_make_a_text_longer_up_to_the_limit_and_no_further() {
        // Each is three bytes, and eighteen letters.
        let many = |count: usize| "\u{fdfa}".repeat(count);
        let plain = |text: &str| Form::of(text).plain;
        let behind = |count: usize| plain(&format!("{} {SAID}", many(count))).ends_with(SAID);
        assert!(behind(GROWTH / 18));
        assert!(!behind(GROWTH / 10));
        let text = many(16 << 10);
        assert!((text.len()..=text.len() + GROWTH + 4).contains(&plain(&text).len()));
    }

    #[test]
    fn a_run_at_the_longest_is_decoded_and_one_past_it_is_not() {
        let said = |extra: usize| {
            let rest = "x".repeat(LONGEST / 4 * 3 - SAID.len() + extra);
            STANDARD.encode(format!("{SAID}{rest}"))
        };
        assert_eq!(said(0).len(), LONGEST);
        assert!(says(&said(0)));
        assert!(!says(&said(3)));
    }

    #[test]
    fn what_only_looks_encoded_is_left() {
        for text in
            ["100% of 50%", "0123456789abcdef0123456789abcdef", "/usr/local/lib/some/path/x"]
        {
            assert_eq!(forms(text).len(), 1, "{text}");
        }
    }
}
