//! Names of servers, tools and prompts: the only place where a public name is made or checked.

/// What stands between a server's name and the name of what it offers.
pub(crate) const SEPARATOR: char = '.';

/// The longest name accepted from a configuration or a server, in characters (the specification's
/// own bound for tool names since 2025-11-25).
pub(crate) const NAME_LIMIT: usize = 128;

/// The name an application uses: `{server}.{item}`.
pub(crate) fn public(server: &str, item: &str) -> Box<str> {
    let mut name = String::with_capacity(server.len() + 1 + item.len());
    name.push_str(server);
    name.push(SEPARATOR);
    name.push_str(item);
    name.into_boxed_str()
}

/// Splits a public name at the longest known server name; what follows is the item, dots included.
pub fn split(name: &str, known: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    // No server's name is longer, so that a name full of dots costs no more than a short one.
    let mut end = name.floor_char_boundary(NAME_LIMIT + SEPARATOR.len_utf8());
    while let Some(dot) = name[..end].rfind(SEPARATOR) {
        let (server, item) = (&name[..dot], &name[dot + 1..]);
        if !item.is_empty() && known(server) {
            return Some((server, item));
        }
        end = dot;
    }
    None
}

/// Why a name a server gave to a tool, prompt or template cannot be used, if so.
pub(crate) fn refuse(item: &str) -> Option<&'static str> {
    if item.is_empty() {
        Some("the name is empty")
    } else if item.chars().count() > NAME_LIMIT {
        Some("the name is longer than 128 characters")
    } else if item.chars().any(|c| c.is_control() || c.is_whitespace()) {
        Some("the name has control characters or white space")
    } else {
        None
    }
}

/// The longest text that is compared with others, in bytes: two names at their limit.
const COMPARED: usize = 2 * NAME_LIMIT + 1;

/// The closest of `known` to `name`, if it is close enough to be meant; the first of equals.
pub(crate) fn closest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    if name.len() > COMPARED {
        return None;
    }
    known
        .filter(|candidate| candidate.len() <= COMPARED)
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
        let known = |s: &str| ["fs", "x.y", "x"].contains(&s);
        assert_eq!(split("fs.a.b", known), Some(("fs", "a.b")));
        assert_eq!(split("x.y.tool", known), Some(("x.y", "tool")));
        assert_eq!(split("x.z.tool", known), Some(("x", "z.tool")));
        assert_eq!(split("nope.tool", known), None);
        assert_eq!(split("fs.", known), None);
        assert_eq!(split("fs", known), None);
    }

    #[test]
    fn a_server_name_at_the_limit_is_found_before_its_dot() {
        let server = "s".repeat(NAME_LIMIT);
        let name = format!("{server}.{}", "tool.".repeat(100));
        assert_eq!(split(&name, |s| s == server).map(|(found, _)| found), Some(&*server));
        assert_eq!(split(&"ü".repeat(NAME_LIMIT), |_| true), None);
    }

    #[test]
    fn a_name_at_the_limit_is_used_and_one_past_it_is_refused() {
        assert_eq!(refuse(&"a".repeat(NAME_LIMIT)), None);
        assert!(refuse(&"a".repeat(NAME_LIMIT + 1)).is_some());
        assert!(refuse("").is_some());
        assert!(refuse("a\u{1b}b").is_some());
        assert_eq!(refuse("müßig.tool"), None);
    }

    #[test]
    fn a_slip_of_the_finger_finds_what_was_meant() {
        let known = ["fs.read_file", "fs.write_file"];
        assert_eq!(closest("fs.raed_file", known.into_iter()), Some("fs.read_file"));
        assert_eq!(closest("zzz", known.into_iter()), None);
        assert_eq!(closest(".echo", ["one.echo", "two.echo"].into_iter()), Some("one.echo"));
    }
}
