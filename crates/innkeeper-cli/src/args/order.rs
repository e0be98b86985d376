//! `--config` before the verb joined with `--config` after it.

use std::ffi::OsString;

/// The global options that take a value, which may be the next word.
const WITH_VALUE: [&str; 4] = ["--config", "--log-level", "--log-format", "--timeout"];

/// Moves every `--config` that stands before the verb behind it, where the others are.
///
/// The parser lets a repeated option after the verb replace the same option before it; a file
/// that was named would then silently not be read.
pub(super) fn config_after_verb(line: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words = line.into_iter();
    let mut ordered: Vec<OsString> = words.next().into_iter().collect();
    let mut config = Vec::new();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let is_option = text.starts_with('-');
        let into = if text.starts_with("--config") { &mut config } else { &mut ordered };
        let takes_next = WITH_VALUE.contains(&&*text);
        into.push(word);
        if takes_next {
            into.extend(words.next());
        } else if !is_option {
            break;
        }
    }
    ordered.append(&mut config);
    ordered.extend(words);
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(line: &str) -> String {
        let words = config_after_verb(line.split(' ').map(OsString::from));
        let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn files_named_before_the_verb_come_first_among_those_after_it() {
        assert_eq!(
            ordered("i --json --config a --timeout 5 --config=b call --config c x --config d"),
            "i --json --timeout 5 call --config a --config=b --config c x --config d"
        );
    }

    #[test]
    fn words_after_the_verb_stay_where_they_are() {
        for line in ["i call x --config", "i", "i --json", "i --log-level call tools"] {
            assert_eq!(ordered(line), line);
        }
    }
}
