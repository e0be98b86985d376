//! Parser for files of `NAME=value` lines.
//!
//! The parser does not look up or set variables. The parser skips blank lines and lines that start
//! with `#`, and allows `export` before a name. In double quotes, `\n`, `\r`, `\t`, `\"`, `\\` and
//! `\$` are escapes and a value may span lines. In single quotes, every character is literal. An
//! unquoted value ends at white space before `#`. Values are never expanded.

use indexmap::IndexMap;

/// The variables of a file; the last line with a name wins.
pub(crate) type Variables = IndexMap<String, String>;

/// A line that is not `NAME=value`: its number, starting at 1, and the problem, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidLine {
    pub(crate) line: u32,
    pub(crate) message: &'static str,
}

/// Parses a file; invalid lines are reported and skipped.
pub(crate) fn parse(text: &str) -> (Variables, Vec<InvalidLine>) {
    let mut reader = DotenvReader { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 };
    let mut variables = Variables::new();
    let mut bad = Vec::new();
    while !reader.rest.is_empty() {
        let line = reader.line;
        match reader.assignment() {
            Ok(Some((name, value))) => {
                variables.insert(name, value);
            }
            Ok(None) => {}
            Err(message) => bad.push(InvalidLine { line, message }),
        }
        reader.skip_line();
    }
    (variables, bad)
}

/// Returns whether an environment variable can have this name.
pub(crate) fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

struct DotenvReader<'a> {
    rest: &'a str,
    line: u32,
}

impl<'a> DotenvReader<'a> {
    fn assignment(&mut self) -> Result<Option<(String, String)>, &'static str> {
        self.skip_blanks();
        if self.rest.is_empty() || self.rest.starts_with(['#', '\n', '\r']) {
            return Ok(None);
        }
        if let Some(after) = self.rest.strip_prefix("export")
            && after.starts_with([' ', '\t'])
        {
            self.rest = after;
            self.skip_blanks();
        }
        let end = self.rest.find(['=', '\n']).filter(|end| self.rest[*end..].starts_with('='));
        let end = end.ok_or("expected `NAME=value`")?;
        let name = self.rest[..end].trim_end();
        if !is_variable_name(name) {
            return Err(
                "a name consists of letters, digits and `_` and does not start with a digit",
            );
        }
        let name = name.to_owned();
        self.rest = &self.rest[end + 1..];
        self.skip_blanks();
        let value = match self.rest.chars().next() {
            Some('"') => self.double_quoted()?,
            Some('\'') => self.single_quoted()?.to_owned(),
            _ => self.unquoted().to_owned(),
        };
        Ok(Some((name, value)))
    }

    fn single_quoted(&mut self) -> Result<&'a str, &'static str> {
        let inside = &self.rest[1..];
        let end = inside.find('\'').ok_or("unclosed quote")?;
        self.advance(end + 2);
        self.expect_end().map(|()| &inside[..end])
    }

    fn double_quoted(&mut self) -> Result<String, &'static str> {
        let mut value = String::new();
        let mut characters = self.rest[1..].char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.advance(at + 2);
                    return self.expect_end().map(|()| value);
                }
                '\\' => match characters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, 'r')) => value.push('\r'),
                    Some((_, 't')) => value.push('\t'),
                    Some((_, same @ ('"' | '\\' | '$'))) => value.push(same),
                    // Any other backslash is literal, as in a Windows path.
                    Some((_, other)) => value.extend(['\\', other]),
                    None => break,
                },
                other => value.push(other),
            }
        }
        Err("unclosed quote")
    }

    fn unquoted(&self) -> &'a str {
        let line = self.rest.split(['\n', '\r']).next().unwrap_or_default();
        let comment = line
            .match_indices('#')
            .find(|(at, _)| *at == 0 || line[..*at].ends_with([' ', '\t']))
            .map_or(line.len(), |(at, _)| at);
        line[..comment].trim_end()
    }

    fn expect_end(&mut self) -> Result<(), &'static str> {
        self.skip_blanks();
        if self.rest.is_empty() || self.rest.starts_with(['#', '\n', '\r']) {
            return Ok(());
        }
        Err("unexpected text after the closing quote")
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn skip_line(&mut self) {
        let end = self.rest.find('\n').map_or(self.rest.len(), |end| end + 1);
        self.advance(end);
    }

    fn advance(&mut self, bytes: usize) {
        let lines = self.rest[..bytes].bytes().filter(|byte| *byte == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.rest = &self.rest[bytes..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_lines(text: &str) -> Vec<(String, String)> {
        let (variables, bad) = parse(text);
        assert_eq!(bad, []);
        variables.into_iter().collect()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn plain_quoted_and_exported_lines_are_read() {
        let text = "\u{feff}# comment\r\n\r\nA=1\r\n export B = two words  # rest\nC='a # $b \\n'\nD=\"x\\ty\\\"\\\\\"\nE=\nF=a#b\n";
        let expected = [
            pair("A", "1"),
            pair("B", "two words"),
            pair("C", "a # $b \\n"),
            pair("D", "x\ty\"\\"),
            pair("E", ""),
            pair("F", "a#b"),
        ];
        assert_eq!(parse_lines(text), expected);
    }

    #[test]
    fn a_double_quoted_value_may_go_on_over_lines() {
        assert_eq!(parse_lines("A=\"one\ntwo\"\nB=3"), [pair("A", "one\ntwo"), pair("B", "3")]);
    }

    #[test]
    fn variables_in_values_stand_for_themselves() {
        assert_eq!(
            parse_lines("A=$HOME/${USER}\nB=\"$A\""),
            [pair("A", "$HOME/${USER}"), pair("B", "$A")]
        );
    }

    #[test]
    fn of_two_lines_with_one_name_the_last_counts() {
        assert_eq!(parse_lines("A=1\nA=2"), [pair("A", "2")]);
    }

    #[test]
    fn an_invalid_line_is_reported_by_number_only_and_the_others_are_kept() {
        let (variables, bad) = parse("A=1\nsecret text\n2B=x\nC='open\nD=4\n");
        assert_eq!(variables.get("A").map(String::as_str), Some("1"));
        assert_eq!(variables.get("D").map(String::as_str), Some("4"));
        let lines: Vec<u32> = bad.iter().map(|bad| bad.line).collect();
        assert_eq!(lines, [2, 3, 4]);
        assert!(!format!("{bad:?}").contains("secret text"));
    }
}
