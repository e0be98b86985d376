//! The report of replays in the JUnit format, which build servers show.

use std::fmt::Write as _;

use super::replay::{ReplayedGolden, Verdict, count};

/// Returns a file with one suite, whose cases are the goldens.
pub(super) fn report(replayed: &[ReplayedGolden]) -> String {
    let failures = replayed.len() - count(replayed, Verdict::Ok);
    let time = seconds(replayed.iter().map(|golden| golden.ms).sum());
    let tests = replayed.len();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        xml,
        "  <testsuite name=\"innkeeper golden replay\" tests=\"{tests}\" failures=\"{failures}\" \
         errors=\"0\" skipped=\"0\" time=\"{time}\">"
    );
    for golden in replayed {
        push_case(golden, &mut xml);
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn push_case(golden: &ReplayedGolden, xml: &mut String) {
    let name = attribute(&golden.test_name);
    let file = attribute(&golden.file);
    let time = seconds(golden.ms);
    let case =
        format!("<testcase name=\"{name}\" classname=\"golden\" file=\"{file}\" time=\"{time}\"");
    if golden.verdict == Verdict::Ok {
        let _ = writeln!(xml, "    {case}/>");
        return;
    }
    let verdict = golden.verdict.as_str();
    let message = attribute(golden.report.lines().next().unwrap_or_default());
    let text = text(&golden.report);
    let _ = writeln!(
        xml,
        "    {case}>\n      <failure type=\"{verdict}\" message=\"{message}\">{text}</failure>\n    \
         </testcase>"
    );
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// Escapes the text of an element.
fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' => escaped.push(character),
            _ => push_escaped(character, &mut escaped),
        }
    }
    escaped
}

/// Escapes the value of an attribute. A parser would turn a line end in it into a blank.
fn attribute(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            _ => push_escaped(character, &mut escaped),
        }
    }
    escaped
}

/// Appends a character. XML 1.0 has no form at all for some characters, so their number is spelled
/// out as in Rust: `\u{1b}`.
fn push_escaped(character: char, escaped: &mut String) {
    match character {
        '&' => escaped.push_str("&amp;"),
        '<' => escaped.push_str("&lt;"),
        '>' => escaped.push_str("&gt;"),
        '"' => escaped.push_str("&quot;"),
        '\r' => escaped.push_str("&#13;"),
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
            escaped.extend(character.escape_unicode());
        }
        _ => escaped.push(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden(test_name: &str, verdict: Verdict, report: &str) -> ReplayedGolden {
        ReplayedGolden {
            file: "goldens/a&b.json".to_owned(),
            test_name: test_name.to_owned(),
            verdict,
            ms: 1_042,
            report: report.to_owned(),
        }
    }

    #[test]
    fn a_case_that_changed_or_failed_has_a_failure_with_its_report() {
        let replayed = [
            golden("one", Verdict::Ok, ""),
            golden("two", Verdict::Changed, "`/a` was \"<b>\", is now \"]]>\"\n`/c` is new: 1"),
            golden("three", Verdict::Failed, "no recording answers request 2"),
        ];
        insta::assert_snapshot!(report(&replayed));
    }

    #[test]
    fn every_character_has_a_form_that_xml_accepts() {
        let all: String =
            ('\u{0}'..='\u{ff}').chain(['\u{fffe}', '\u{ffff}', '世', '🦀']).collect();
        for escaped in [text(&all), attribute(&all)] {
            assert!(escaped.chars().all(|character| matches!(character, '\n' | '\t' | ' '..='~' | '\u{a0}'..='\u{fffd}' | '🦀')), "{escaped}");
            assert!(!escaped.contains(['<', '>', '"']), "{escaped}");
            assert!(escaped.contains("\\u{1b}") && escaped.contains("\\u{fffe}"), "{escaped}");
            assert!(escaped.contains("&#13;") && escaped.contains("&amp;"), "{escaped}");
            let entities = escaped.split('&').skip(1);
            assert!(entities.into_iter().all(|rest| rest[..rest.len().min(6)].contains(';')));
        }
        assert!(!attribute("a\n\tb").contains(['\n', '\t']));
        assert_eq!(text("a\n\tb"), "a\n\tb");
    }
}
