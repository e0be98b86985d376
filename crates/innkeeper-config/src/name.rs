//! Creates and validates names of servers, tools and prompts.

/// Separator between the server name and the item name.
pub const SEPARATOR: char = '.';

/// Maximum length of a name from a configuration or a server, in characters (the limit of the
/// specification for tool names since 2025-11-25).
pub const MAX_NAME_CHARS: usize = 128;

/// Maximum length of a name in bytes.
const MAX_NAME_BYTES: usize = MAX_NAME_CHARS * 4;

/// Returns the public name: `{server}.{item}`.
pub fn public_name(server: &str, item: &str) -> Box<str> {
    let mut name = String::with_capacity(server.len() + 1 + item.len());
    name.push_str(server);
    name.push(SEPARATOR);
    name.push_str(item);
    name.into_boxed_str()
}

/// Splits a public name at the longest known server name; the rest is the item, with its dots.
pub fn split_name(name: &str, is_known: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    // The length limit of server names bounds the cost of a name with many dots.
    let mut end = name.floor_char_boundary(MAX_NAME_BYTES + SEPARATOR.len_utf8());
    while let Some(dot) = name[..end].rfind(SEPARATOR) {
        let server = &name[..dot];
        let item = &name[dot + 1..];
        if !item.is_empty() && is_known(server) {
            return Some((server, item));
        }
        end = dot;
    }
    None
}

/// Returns what is wrong with a server's name for a tool, prompt or template: the rest of a sentence
/// that starts with "the name".
pub fn name_problem(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("is empty")
    } else if name.chars().count() > MAX_NAME_CHARS {
        Some("is longer than 128 characters")
    } else if name.chars().all(char::is_whitespace) {
        Some("contains only whitespace")
    } else if name.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        Some("contains control characters or line breaks")
    } else {
        None
    }
}

/// Returns what is wrong with the name of a server. A file of a project chooses it, and a user
/// approves the server by it, so it must not look like another name.
pub fn server_name_problem(name: &str) -> Option<&'static str> {
    name_problem(name)
        .or_else(|| name.contains(is_invisible).then_some("contains invisible characters"))
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Maximum length of a compared text in bytes: two names at their limit.
const MAX_COMPARED_BYTES: usize = 2 * MAX_NAME_CHARS + 1;

/// Returns the closest of `names` to `name`, if it is similar enough; the first of equals.
pub fn closest<'k>(name: &str, names: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    if name.len() > MAX_COMPARED_BYTES {
        return None;
    }
    names
        .filter(|candidate| candidate.len() <= MAX_COMPARED_BYTES)
        .map(|candidate| (strsim::normalized_damerau_levenshtein(name, candidate), candidate))
        .filter(|(score, _)| *score >= 0.6)
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: FR4.2
    #[test]
    fn the_longest_known_server_name_wins_and_the_rest_is_the_item() {
        let is_known = |s: &str| ["fs", "x.y", "x"].contains(&s);
        assert_eq!(split_name("fs.a.b", is_known), Some(("fs", "a.b")));
        assert_eq!(split_name("x.y.tool", is_known), Some(("x.y", "tool")));
        assert_eq!(split_name("x.z.tool", is_known), Some(("x", "z.tool")));
        assert_eq!(split_name("nope.tool", is_known), None);
        assert_eq!(split_name("fs.", is_known), None);
        assert_eq!(split_name("fs", is_known), None);
    }

    #[test]
    fn a_server_name_at_the_limit_is_found_before_its_dot() {
        for letter in ["s", "ü", "\u{1f980}"] {
            let server = letter.repeat(MAX_NAME_CHARS);
            let name = format!("{server}.{}", "tool.".repeat(500));
            assert_eq!(split_name(&name, |s| s == server).map(|(found, _)| found), Some(&*server));
        }
        assert_eq!(split_name(&"ü".repeat(MAX_NAME_CHARS), |_| true), None);
    }

    #[test]
    fn a_name_at_the_limit_is_used_and_one_past_it_is_refused() {
        assert_eq!(name_problem(&"ü".repeat(MAX_NAME_CHARS)), None);
        for name in ["", " ", "a\u{1b}b", "a\u{2028}b", &"a".repeat(MAX_NAME_CHARS + 1)] {
            assert!(name_problem(name).is_some(), "{name:?}");
        }
        for name in ["müßig.tool", "User Summary", "a/b", "日本語"] {
            assert_eq!(name_problem(name), None);
            assert_eq!(server_name_problem(name), None);
        }
    }

    #[test]
    fn the_name_of_a_server_has_no_invisible_characters() {
        for name in ["git\u{200b}", "\u{202e}tig", "a\u{e0041}"] {
            assert_eq!(server_name_problem(name), Some("contains invisible characters"));
        }
        assert_eq!(
            server_name_problem("\u{1f469}\u{200d}\u{1f4bb}"),
            None,
            "an emoji with a joiner"
        );
    }

    #[test]
    fn a_typo_finds_the_closest_name() {
        let names = ["fs.read_file", "fs.write_file"];
        assert_eq!(closest("fs.raed_file", names.into_iter()), Some("fs.read_file"));
        assert_eq!(closest("zzz", names.into_iter()), None);
        assert_eq!(closest(".echo", ["one.echo", "two.echo"].into_iter()), Some("one.echo"));
    }
}
