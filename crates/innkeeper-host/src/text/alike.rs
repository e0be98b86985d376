//! Names of tools that a hurried reader takes for one another.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::deceives;

/// The shortest name that may be taken for another one with a single letter different; shorter ones
/// are alike by chance (`add` and `and`).
const SHORTEST: usize = 6;

/// The longest name that is compared letter by letter, so that a full list of names at their limit
/// takes memory for a third of their letters and not for all.
const LONGEST: usize = 40;

/// Names of one server that are kept under a key.
const OF_ONE: usize = 2;

/// Names that are kept under a key; what looks like more than that is told of one of them.
const OF_ALL: usize = 16;

/// A name and its server.
type Owned<'n> = (&'n str, &'n str);

/// Names to compare others with. Takes the same time for each, however many there are.
#[derive(Debug, Default)]
pub(crate) struct Alike<'n>(HashMap<u64, Vec<Owned<'n>>>);

impl<'n> Alike<'n> {
    pub(crate) fn add(&mut self, server: &'n str, tool: &'n str) {
        for key in keys(&at_a_glance(tool)) {
            let kept = self.0.entry(key).or_default();
            let of_it = kept.iter().filter(|(owner, _)| *owner == server).count();
            if kept.len() < OF_ALL && of_it < OF_ONE {
                kept.push((server, tool));
            }
        }
    }

    /// The tool of another server whose name looks like this one and is spelled otherwise.
    pub(crate) fn find(&self, server: &str, tool: &str) -> Option<Owned<'n>> {
        let seen = at_a_glance(tool);
        let looks = |(owner, name): &&Owned<'n>| {
            *owner != server && *name != tool && {
                let other = at_a_glance(name);
                let by_chance = only_numbered(tool, name) || one_word_apart(tool, name);
                seen == other || one_edit_apart(&seen, &other) && !by_chance
            }
        };
        keys(&seen).find_map(|key| self.0.get(&key)?.iter().find(looks).copied())
    }
}

/// A name without what a hurried reader does not see: case, separators, hidden characters and
/// which of several look-alike letters it is.
fn at_a_glance(tool: &str) -> String {
    let kept = tool.chars().filter(|c| !deceives(*c) && !"_-.".contains(*c));
    let folded: String = kept.flat_map(char::to_lowercase).collect();
    unicode_security::confusable_detection::skeleton(&folded).collect()
}

/// Keys of which two names have one in common where they are equal or one edit apart: the name
/// itself, and what is left of it without each of its letters.
fn keys(seen: &str) -> impl Iterator<Item = u64> {
    let letters = seen.chars().count();
    let within = (SHORTEST..=LONGEST).contains(&letters);
    let without = seen.char_indices().filter(move |_| within).map(|(at, letter)| {
        let (front, back) = (&seen[..at], &seen[at + letter.len_utf8()..]);
        hashed(front.chars().chain(back.chars()))
    });
    std::iter::once(hashed(seen.chars())).chain(without)
}

fn hashed(letters: impl Iterator<Item = char>) -> u64 {
    let mut hasher = DefaultHasher::new();
    letters.for_each(|letter| letter.hash(&mut hasher));
    hasher.finish()
}

/// Whether one letter more, less or other makes one text the other.
fn one_edit_apart(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    if short.len() < SHORTEST || long.len() > short.len() + 1 {
        return false;
    }
    let front = short.iter().zip(&long).take_while(|(a, b)| a == b).count();
    let rest = short.len() - front;
    let back = short.iter().rev().zip(long.iter().rev()).take(rest).take_while(|(a, b)| a == b);
    front + back.count() + 1 >= long.len()
}

/// Whether names differ in their digits only: `query1` is not taken for `query2`.
fn only_numbered(one: &str, other: &str) -> bool {
    let rest = |name: &str| name.replace(|c: char| c.is_ascii_digit(), "");
    rest(one) == rest(other)
}

/// Whether one is the plural of the other, or one gets what the other sets: nobody hurries past
/// that.
fn one_word_apart(one: &str, other: &str) -> bool {
    let plural = |long: &str, short: &str| long.strip_suffix('s') == Some(short);
    let pair = |one: &str, other: &str| {
        one.strip_prefix("get").is_some_and(|rest| other.strip_prefix("set") == Some(rest))
    };
    plural(one, other) || plural(other, one) || pair(one, other) || pair(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(one: &str, other: &str) -> bool {
        let mut names = Alike::default();
        names.add("a", one);
        names.find("b", other).is_some()
    }

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
        ] {
            assert!(alike("send_mail", other) && alike(other, "send_mail"), "{other}");
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
            assert!(!alike(one, other), "{one} {other}");
        }
        let mut names = Alike::default();
        names.add("a", "send_mail");
        assert!(
            names.find("a", "send-mail").is_none(),
            "one server may name its tools as it likes"
        );
    }

    #[test]
    fn a_server_with_many_names_of_one_look_does_not_hide_those_of_others() {
        let many: Vec<String> = (0..1_000).map(|n| format!("send{}mail", "_".repeat(n))).collect();
        let mut names = Alike::default();
        for name in &many {
            names.add("hostile", name);
        }
        names.add("trusted", "send_mail");
        assert_eq!(names.find("hostile", "sendMail"), Some(("trusted", "send_mail")));
    }

    #[test]
    fn a_name_at_the_longest_is_compared_letter_by_letter_and_one_past_it_as_a_whole() {
        let name = "a".repeat(LONGEST);
        assert!(alike(&name, &name.replacen('a', "b", 1)));
        let longer = "a".repeat(LONGEST + 1);
        assert!(!alike(&longer, &longer.replacen('a', "b", 1)));
        assert!(alike(&longer, &longer.to_uppercase()));
    }
}
