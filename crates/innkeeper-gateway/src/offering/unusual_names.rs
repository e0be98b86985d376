//! Warnings about names that many clients and models do not take.

use innkeeper_host::display_safe;

use super::{ListKind, Offering};

/// Maximum number of characters of a name in MCP (2025-11-25, Tool Names).
const MAX_NAME_CHARS: usize = 128;

/// Maximum number of characters of a name that all models and clients take.
const MAX_COMMON_NAME_CHARS: usize = 64;

impl Offering {
    /// Returns one warning for names of unusual length, and one for names with unusual characters.
    pub(crate) fn name_warnings(&self) -> Vec<String> {
        let items = [ListKind::Tools, ListKind::Prompts].map(|kind| self.list(kind).items());
        let names: Vec<&str> = items.into_iter().flatten().map(|item| &*item.name).collect();
        [long_names(&names), names_with_unusual_characters(&names)].into_iter().flatten().collect()
    }
}

fn long_names(names: &[&str]) -> Option<String> {
    let lengths = names.iter().map(|name| (name.chars().count(), name));
    let long: Vec<_> = lengths.filter(|(length, _)| *length > MAX_COMMON_NAME_CHARS).collect();
    let (length, name) = long.iter().max_by_key(|(length, _)| *length)?;
    let count = long.len();
    let name = display_safe(name);
    Some(format!(
        "{count} names of tools or prompts have more than {MAX_COMMON_NAME_CHARS} characters, which \
         several models and clients do not take; MCP permits {MAX_NAME_CHARS}, and the longest, \
         `{name}`, has {length}: shorten the name of its server, or set `serve.names` to `flat`"
    ))
}

fn names_with_unusual_characters(names: &[&str]) -> Option<String> {
    let mut unusual = names.iter().filter(|name| !name.chars().all(is_usual)).peekable();
    let first = display_safe(unusual.peek()?);
    let count = unusual.count();
    Some(format!(
        "{count} names of tools or prompts, for example `{first}`, have other characters than MCP \
         permits (letters A to Z, digits, `_`, `-`, `.`), which several models and clients do not \
         take: change the name of the server, or set `serve.names` to `flat`"
    ))
}

/// MCP 2025-11-25, Tool Names.
fn is_usual(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_-.".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_unusual_if_it_is_long_or_has_other_characters_than_mcp_permits() {
        let long = "a".repeat(MAX_COMMON_NAME_CHARS + 1);
        assert!(long_names(&[&long[1..], "s.echo"]).is_none());
        assert!(long_names(&[&long]).unwrap().contains("has 65"));
        assert!(names_with_unusual_characters(&["s.echo", "x.go-to_1"]).is_none());
        let warning = names_with_unusual_characters(&["s.a", "My Server.a", "a/b.c"]).unwrap();
        assert!(warning.starts_with("2 names of tools or prompts, for example `My Server.a`"));
    }
}
