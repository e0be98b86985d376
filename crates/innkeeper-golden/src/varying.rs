//! What differs between two runs that do the same: one list of fields, each with its reason.
//!
//! A replay of a golden repeats the recorded times and ids, so nothing differs there. The list is
//! for a golden and a live run, or a run of a changed program.

use crate::pointer::matches;

/// Why a field may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaryingKind {
    /// A duration.
    Duration,
    /// An id that a provider or the program made. It may have another name, but must stand for the
    /// same thing in every place.
    Id,
}

/// A field that differs from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VaryingField {
    /// The JSON pointer, with `*` for any one step.
    pub pattern: &'static str,
    /// How the field varies.
    pub kind: VaryingKind,
    /// Why the field varies, in words.
    pub reason: &'static str,
}

const fn field(pattern: &'static str, kind: VaryingKind, reason: &'static str) -> VaryingField {
    VaryingField { pattern, kind, reason }
}

/// The varying fields of `golden_output`.
pub const VARYING_OUTPUT_FIELDS: [VaryingField; 9] = [
    field("/execution_metadata/total_execution_time", VaryingKind::Duration, "measured time"),
    field("/execution_metadata/tool_times/*/p50", VaryingKind::Duration, "measured time"),
    field("/execution_metadata/tool_times/*/p95", VaryingKind::Duration, "measured time"),
    field("/tool_chain/*/execution_time", VaryingKind::Duration, "measured time"),
    field(
        "/conversation_history/*/tool_calls/*/id",
        VaryingKind::Id,
        "each provider numbers its calls in its own way, most of them at random",
    ),
    field("/conversation_history/*/tool_call_id", VaryingKind::Id, "repeats the id of a call"),
    field("/tool_chain/*/tool_call_id", VaryingKind::Id, "repeats the id of a call"),
    field("/tool_chain/*/visible_results/*", VaryingKind::Id, "repeats the ids of calls"),
    field("/errors/*/tool_call_id", VaryingKind::Id, "repeats the id of a call"),
];

/// The varying fields of the body of a request to the model: none that every API has. A live run
/// repeats the provider's ids, but a request is only matched with recorded ids, which it repeats too.
pub const VARYING_REQUEST_FIELDS: [VaryingField; 0] = [];

/// Returns whether the field of `golden_output` with this JSON pointer differs from run to run.
pub fn is_varying_in_output(pointer: &str) -> bool {
    VARYING_OUTPUT_FIELDS.iter().any(|field| matches(field.pattern, pointer))
}

/// Returns whether the field of a request's body with this JSON pointer differs from run to run.
pub fn is_varying_in_request(pointer: &str) -> bool {
    VARYING_REQUEST_FIELDS.iter().any(|field| matches(field.pattern, pointer))
}

/// The units of measured times in messages.
const TIME_UNITS: [&str; 16] = [
    "ms",
    "s",
    "sec",
    "secs",
    "second",
    "seconds",
    "millisecond",
    "milliseconds",
    "m",
    "min",
    "mins",
    "minute",
    "minutes",
    "µs",
    "h",
    "hours",
];

/// Minimum number of characters of an id in a message. Shorter words with digits are names.
const MIN_ID_CHARS: usize = 8;

/// Returns the message in lower case, with one blank between words, and with a mark in the place of
/// what differs from run to run: ids, dates, times of day, durations and local ports.
pub fn normalize_message(message: &str) -> String {
    let lower = message.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let mut text = String::with_capacity(lower.len());
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let core = word.trim_matches(|c: char| !c.is_alphanumeric());
        let next =
            words.get(at + 1).map(|next| next.trim_end_matches(|c: char| !c.is_alphanumeric()));
        text.push_str(if text.is_empty() { "" } else { " " });
        if is_decimal(core) && next.is_some_and(|unit| TIME_UNITS.contains(&unit)) {
            push_mark(words[at + 1], next.unwrap_or_default(), "<duration>", &mut text);
            at += 2;
            continue;
        }
        match mark(core) {
            Some(mark) => push_mark(word, core, mark, &mut text),
            None => text.push_str(&without_local_port(word)),
        }
        at += 1;
    }
    text
}

/// Writes a word with the mark in the place of its core.
fn push_mark(word: &str, core: &str, mark: &str, text: &mut String) {
    let (before, after) = word.split_once(core).unwrap_or_default();
    text.push_str(before);
    text.push_str(mark);
    text.push_str(after);
}

/// Returns the mark for a word that differs from run to run.
fn mark(word: &str) -> Option<&'static str> {
    if is_uuid(word) || is_minted_id(word) {
        return Some("<id>");
    }
    let has_duration =
        TIME_UNITS.iter().any(|unit| word.strip_suffix(unit).is_some_and(is_decimal));
    if has_duration {
        return Some("<duration>");
    }
    is_date_or_time(word).then_some("<time>")
}

fn is_decimal(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn is_uuid(word: &str) -> bool {
    let groups: Vec<&str> = word.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.chars().all(|c| c.is_ascii_hexdigit()))
}

/// Returns whether a word is a long hexadecimal number, or such a number or more behind `call_`,
/// `toolu_`, `req_` or the like.
fn is_minted_id(word: &str) -> bool {
    let last = word.rsplit('_').next().unwrap_or(word);
    let is_long = last.len() >= MIN_ID_CHARS
        && last.contains(|c: char| c.is_ascii_digit())
        && last.contains(|c: char| c.is_ascii_alphabetic());
    let is_hexadecimal = last.chars().all(|c| c.is_ascii_hexdigit());
    let is_prefixed = ["call", "toolu", "req", "msg", "resp", "fc", "chatcmpl"]
        .iter()
        .any(|prefix| word.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(['_', '-'])));
    let is_word = last.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    is_long && (is_hexadecimal || (is_prefixed && is_word))
}

/// Returns whether a word is `2026-11-29`, `05:40:12` or both, joined with a `t`.
fn is_date_or_time(word: &str) -> bool {
    let mut shape = String::with_capacity(word.len());
    for c in word.chars() {
        shape.push(if c.is_ascii_digit() { '9' } else { c });
    }
    ["9999-99-99", "99:99:99", "99:99"].contains(&&*shape)
        || shape.starts_with("9999-99-99t99:99")
        || shape.starts_with("99:99:99.9")
}

/// Returns the word with `<port>` in the place of a port of this machine, which the system chose.
fn without_local_port(word: &str) -> String {
    for host in ["127.0.0.1:", "localhost:", "[::1]:"] {
        if let Some((before, after)) = word.split_once(host) {
            let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
            if rest.len() < after.len() {
                return format!("{before}{host}<port>{rest}");
            }
        }
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_ids_vary_and_nothing_else_does() {
        let varying = [
            "/execution_metadata/total_execution_time",
            "/execution_metadata/tool_times/fs.read/p95",
            "/tool_chain/3/execution_time",
            "/tool_chain/3/visible_results/0",
            "/conversation_history/2/tool_calls/0/id",
            "/errors/0/tool_call_id",
        ];
        let fixed = [
            "",
            "/execution_metadata",
            "/execution_metadata/tool_times/fs.read/calls",
            "/tool_chain/3",
            "/tool_chain/3/arguments/execution_time",
            "/tool_chain/3/arguments/tool_call_id",
            "/conversation_history/2/content",
            "/final_result",
        ];
        for pointer in varying {
            assert!(is_varying_in_output(pointer), "{pointer}");
        }
        for pointer in fixed {
            assert!(!is_varying_in_output(pointer), "{pointer}");
        }
        assert!(!is_varying_in_request("/messages/0/tool_call_id"));
    }

    #[test]
    fn every_varying_field_has_a_reason_and_its_own_line() {
        for (at, field) in VARYING_OUTPUT_FIELDS.iter().chain(&VARYING_REQUEST_FIELDS).enumerate() {
            assert!(!field.reason.is_empty(), "{}", field.pattern);
            assert!(
                !VARYING_OUTPUT_FIELDS
                    .iter()
                    .skip(at + 1)
                    .any(|other| other.pattern == field.pattern)
            );
        }
    }

    #[test]
    fn messages_that_differ_in_ids_dates_and_durations_are_the_same() {
        let cases = [
            ("Timed out after 1.53 s.", "timed  out after 12 s.", true),
            ("took 15ms", "took 9ms", true),
            ("no call `call_8fGh2kLmQ`", "no call `call_0aBc9dEfG`", true),
            ("request 3f2a9c1b0d failed", "request 77aa00bb11 failed", true),
            (
                "lock 123e4567-e89b-12d3-a456-426614174000",
                "lock 00000000-e89b-12d3-a456-426614174000",
                true,
            ),
            ("at 2026-11-29T05:40:00Z", "at 2027-01-02T03:04:05Z", true),
            ("http://127.0.0.1:4711/mcp is down", "http://127.0.0.1:80/mcp is down", true),
            ("line 3 is wrong", "line 5 is wrong", false),
            ("returned status 429", "returned status 503", false),
            ("no file `a.txt`", "no file `b.txt`", false),
            ("no table users_archive2024", "no table users_archive2025", false),
            ("after 3 s", "after 3 attempts", false),
            ("10.0.0.1:4711 is down", "10.0.0.1:80 is down", false),
        ];
        for (left, right, same) in cases {
            let [left, right] = [left, right].map(normalize_message);
            assert_eq!(left == right, same, "{left} | {right}");
        }
    }
}
