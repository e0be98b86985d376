//! Detects tool names that a reader may confuse.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::is_deceptive_char;

/// Minimum length of a name for a comparison with one edit; shorter names are similar by chance
/// (`add` and `and`).
const MIN_FUZZY_CHARS: usize = 6;

/// Maximum length of a name for a comparison with one edit, so that a full list of names at their
/// limit takes a third of the memory.
const MAX_FUZZY_CHARS: usize = 40;

/// Maximum number of names of one server under a key.
const MAX_PER_SERVER: usize = 2;

/// Maximum number of names under a key; further similar names are not stored.
const MAX_PER_KEY: usize = 16;

type ServerTool<'n> = (&'n str, &'n str);

/// An index of names. A look-up takes the same time for any number of names.
#[derive(Debug, Default)]
pub(crate) struct ConfusableNames<'n>(HashMap<u64, Vec<ServerTool<'n>>>);

impl<'n> ConfusableNames<'n> {
    pub(crate) fn add(&mut self, server: &'n str, tool: &'n str) {
        for key in keys(&visual_skeleton(tool)) {
            let tools = self.0.entry(key).or_default();
            let of_it = tools.iter().filter(|(owner, _)| *owner == server).count();
            if tools.len() < MAX_PER_KEY && of_it < MAX_PER_SERVER {
                tools.push((server, tool));
            }
        }
    }

    /// Returns the tool of another server with a similar but not equal name.
    pub(crate) fn find(&self, server: &str, tool: &str) -> Option<ServerTool<'n>> {
        let skeleton = visual_skeleton(tool);
        keys(&skeleton).find_map(|key| {
            self.0
                .get(&key)?
                .iter()
                .find(|(owner, name)| {
                    *owner != server && *name != tool && {
                        let other = visual_skeleton(name);
                        let by_chance = differ_in_digits_only(tool, name)
                            || is_plural_or_getter_setter(tool, name);
                        skeleton == other || one_edit_apart(&skeleton, &other) && !by_chance
                    }
                })
                .copied()
        })
    }
}

/// Returns a name without the differences that a reader overlooks: case, separators, hidden
/// characters and the choice among look-alike letters.
fn visual_skeleton(tool: &str) -> String {
    let visible = tool.chars().filter(|c| !is_hidden(*c) && !"_-.".contains(*c));
    let folded: String = visible.flat_map(char::to_lowercase).collect();
    unicode_security::confusable_detection::skeleton(&folded).collect()
}

/// Whether a reader doesn't see a character of a name: also the selectors and fillers that text may
/// have, such as the one after a heart, and the blank of Braille.
fn is_hidden(c: char) -> bool {
    is_deceptive_char(c)
        || c.is_whitespace()
        || matches!(c, '\u{fe0f}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}')
}

/// Returns the keys of a name: the name itself, and the name without each of its letters. Names
/// that are equal or one edit apart share a key.
fn keys(skeleton: &str) -> impl Iterator<Item = u64> {
    let letters = skeleton.chars().count();
    let within = (MIN_FUZZY_CHARS..=MAX_FUZZY_CHARS).contains(&letters);
    let without = skeleton.char_indices().filter(move |_| within).map(|(at, letter)| {
        let prefix = &skeleton[..at];
        let suffix = &skeleton[at + letter.len_utf8()..];
        hash_chars(prefix.chars().chain(suffix.chars()))
    });
    std::iter::once(hash_chars(skeleton.chars())).chain(without)
}

fn hash_chars(letters: impl Iterator<Item = char>) -> u64 {
    let mut hasher = DefaultHasher::new();
    letters.for_each(|letter| letter.hash(&mut hasher));
    hasher.finish()
}

/// Returns whether one inserted, removed or replaced letter makes the texts equal.
fn one_edit_apart(left: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (left.chars().collect(), other.chars().collect());
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    if short.len() < MIN_FUZZY_CHARS || long.len() > short.len() + 1 {
        return false;
    }
    let prefix = short.iter().zip(&long).take_while(|(a, b)| a == b).count();
    let rest = short.len() - prefix;
    let suffix = short.iter().rev().zip(long.iter().rev()).take(rest).take_while(|(a, b)| a == b);
    prefix + suffix.count() + 1 >= long.len()
}

/// Returns whether names differ only in digits: `query1` is not confused with `query2`.
fn differ_in_digits_only(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|name| name.replace(|c: char| c.is_ascii_digit(), ""));
    one == other
}

/// Returns whether one name is the plural of the other, or the names are a getter and a setter,
/// which readers do not confuse.
fn is_plural_or_getter_setter(one: &str, other: &str) -> bool {
    [(one, other), (other, one)].into_iter().any(|(one, other)| {
        let is_pair =
            one.strip_prefix("get").is_some_and(|rest| other.strip_prefix("set") == Some(rest));
        is_pair || one.strip_suffix('s') == Some(other)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_confusable(one: &str, other: &str) -> bool {
        let mut names = ConfusableNames::default();
        names.add("a", one);
        names.find("b", other).is_some()
    }

    /// Attack: data | names with look-alike letters, invisible characters or one other letter | the
    /// names count as alike | Complete checks
    #[test]
    fn names_that_differ_in_case_separators_look_alike_letters_or_one_letter_are_alike() {
        for other in [
            "send-mail",
            "sendMail",
            "s\u{435}nd_mail",
            "send_mai1",
            "sendt_mail",
            "send_mal",
            "send_nail",
            "xsend_mail",
            "send\u{200b}_mail",
            "send_mail\u{fe0f}",
            "send\u{2800}mail",
            "send\u{3000}mail",
            "send_mail\u{180b}",
        ] {
            assert!(
                are_confusable("send_mail", other) && are_confusable(other, "send_mail"),
                "{other}"
            );
        }
    }

    #[test]
    fn the_same_name_another_one_a_short_one_and_a_numbered_one_are_not() {
        for (one, other) in [
            ("send_mail", "send_mail"),
            ("send_mail", "read_mail"),
            ("add", "and"),
            ("query1", "query2"),
            ("list_tables", "list_labels"),
            ("list_issue", "list_issues"),
            ("get_config", "set_config"),
        ] {
            assert!(!are_confusable(one, other), "{one} {other}");
        }
        let mut names = ConfusableNames::default();
        names.add("a", "send_mail");
        assert!(
            names.find("a", "send-mail").is_none(),
            "one server may name its tools as it likes"
        );
    }

    /// Attack: data | a server lists 1,000 names of one look to displace the name of another server
    /// | the name of the other server is found | Complete checks
    #[test]
    fn a_server_with_many_names_of_one_look_does_not_hide_those_of_others() {
        let many: Vec<String> = (0..1_000).map(|n| format!("send{}mail", "_".repeat(n))).collect();
        let mut names = ConfusableNames::default();
        for name in &many {
            names.add("hostile", name);
        }
        names.add("trusted", "send_mail");
        assert_eq!(names.find("hostile", "sendMail"), Some(("trusted", "send_mail")));
    }

    #[test]
    fn a_name_at_the_longest_is_compared_letter_by_letter_and_one_past_it_as_a_whole() {
        let name = "a".repeat(MAX_FUZZY_CHARS);
        assert!(are_confusable(&name, &name.replacen('a', "b", 1)));
        let longer = "a".repeat(MAX_FUZZY_CHARS + 1);
        assert!(!are_confusable(&longer, &longer.replacen('a', "b", 1)));
        assert!(are_confusable(&longer, &longer.to_uppercase()));
    }

    #[test]
    fn one_letter_more_or_less_is_one_edit_and_the_order_of_the_texts_does_not_matter() {
        for (one, other, expected) in [
            ("abcdefgh", "abcdefgh", true),
            ("abcdefgh", "abcdefghi", true),
            ("abcdefgh", "xabcdefgh", true),
            ("abcdefgh", "abcxefgh", true),
            ("abcdefgh", "abcdefghij", false),
            ("abcdefgh", "abcdefghijk", false),
            ("abcdefgh", "axcdefgx", false),
            ("abcdefgh", "bacdefgh", false),
            ("abcdef", "abcdeg", true),
            ("abcde", "abcdf", false),
            ("abcde", "abcdef", false),
            ("abcd", "abcx", false),
        ] {
            assert_eq!(one_edit_apart(one, other), expected, "{one} {other}");
            assert_eq!(one_edit_apart(other, one), expected, "{other} {one}");
        }
    }
}
