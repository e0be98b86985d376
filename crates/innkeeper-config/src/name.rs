//! Creates and validates names of servers, tools and prompts.

/// Separator between the server name and the item name.
pub const SEPARATOR: char = '.';

/// Maximum length of a name from a configuration or a server, in characters (the limit of the
/// specification for tool names since 2025-11-25).
pub const MAX_NAME_CHARS: usize = 128;

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
    let mut end = name.floor_char_boundary(MAX_NAME_CHARS + SEPARATOR.len_utf8());
    while let Some(dot) = name[..end].rfind(SEPARATOR) {
        let (server, item) = (&name[..dot], &name[dot + 1..]);
        if !item.is_empty() && is_known(server) {
            return Some((server, item));
        }
        end = dot;
    }
    None
}

/// Returns why a server's name for a tool, prompt or template is invalid.
pub fn rejection_reason(item: &str) -> Option<&'static str> {
    if item.is_empty() {
        Some("the name is empty")
    } else if item.chars().count() > MAX_NAME_CHARS {
        Some("the name is longer than 128 characters")
    } else if item.chars().any(|c| c.is_control() || c.is_whitespace()) {
        Some("the name contains control characters or whitespace")
    } else {
        None
    }
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
        let server = "s".repeat(MAX_NAME_CHARS);
        let name = format!("{server}.{}", "tool.".repeat(100));
        assert_eq!(split_name(&name, |s| s == server).map(|(found, _)| found), Some(&*server));
        assert_eq!(split_name(&"ü".repeat(MAX_NAME_CHARS), |_| true), None);
    }

    #[test]
    fn a_name_at_the_limit_is_used_and_one_past_it_is_refused() {
        assert_eq!(rejection_reason(&"a".repeat(MAX_NAME_CHARS)), None);
        assert!(rejection_reason(&"a".repeat(MAX_NAME_CHARS + 1)).is_some());
        assert!(rejection_reason("").is_some());
        assert!(rejection_reason("a\u{1b}b").is_some());
        assert_eq!(rejection_reason("müßig.tool"), None);
    }

    #[test]
    fn a_typo_finds_the_closest_name() {
        let names = ["fs.read_file", "fs.write_file"];
        assert_eq!(closest("fs.raed_file", names.into_iter()), Some("fs.read_file"));
        assert_eq!(closest("zzz", names.into_iter()), None);
        assert_eq!(closest(".echo", ["one.echo", "two.echo"].into_iter()), Some("one.echo"));
    }
}
