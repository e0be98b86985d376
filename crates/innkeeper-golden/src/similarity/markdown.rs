//! The marks of Markdown that carry meaning, or seem to.

/// Maximum length of a quotation that is a name.
const MAX_QUOTED_BYTES: usize = 100;

/// Returns the texts in quotation marks or back-ticks of a line.
pub(super) fn quotations(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(['`', '"', '“', '„', '«']) {
        let opening = rest[start..].chars().next().unwrap_or('"');
        let inside = &rest[start + opening.len_utf8()..];
        let closing: &[char] = match opening {
            '“' | '„' => &['”', '“'],
            '«' => &['»'],
            '`' => &['`'],
            _ => &['"'],
        };
        match inside.find(closing) {
            Some(end) if end <= MAX_QUOTED_BYTES => {
                found.push(&inside[..end]);
                let after = &inside[end..];
                rest = &after[after.chars().next().map_or(0, char::len_utf8)..];
            }
            _ => rest = inside,
        }
    }
    found
}

/// Returns the lines of ordered lists, whose numbers are marks. A list has at least two items and
/// counts from 1.
pub(super) fn list_markers(lines: &[&str]) -> Vec<usize> {
    let mut marked = Vec::new();
    // The last item of the list at each indentation.
    let mut lists: Vec<(usize, u32, usize)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let Some(number) = marker(line.trim_start()) else { continue };
        lists.retain(|(other, _, _)| *other <= indent);
        match lists.iter_mut().find(|(other, _, _)| *other == indent) {
            Some((_, last, line)) if number == *last + 1 => {
                if number == 2 {
                    marked.push(*line);
                }
                marked.push(at);
                (*last, *line) = (number, at);
            }
            _ => {
                lists.retain(|(other, _, _)| *other != indent);
                if number == 1 {
                    lists.push((indent, 1, at));
                }
            }
        }
    }
    marked.sort_unstable();
    marked
}

/// Returns the number of an item of an ordered list.
fn marker(line: &str) -> Option<u32> {
    let rest = without_marker(line);
    let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    (rest.len() < line.len()).then(|| line[..digits].parse().ok()).flatten()
}

/// Returns the line behind `12. `.
pub(super) fn without_marker(line: &str) -> &str {
    let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    match line[digits..].strip_prefix(". ").or_else(|| line[digits..].strip_prefix(") ")) {
        Some(rest) if (1..=3).contains(&digits) => rest,
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_list_that_counts_from_1_has_marks() {
        let cases: [(&[&str], &[usize]); 6] = [
            (&["1. a", "2. b", "3. c"], &[0, 1, 2]),
            (&["1. a", "   more", "2) b"], &[0, 2]),
            (&["1. a", "  1. x", "  2. y", "2. b"], &[0, 1, 2, 3]),
            (&["1. a"], &[]),
            (&["42. a", "43. b"], &[]),
            (&["1. a", "5. b"], &[]),
        ];
        for (lines, expected) in cases {
            assert_eq!(list_markers(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn quotations_end_with_their_own_mark() {
        let cases: [(&str, &[&str]); 5] = [
            ("a `b c` and \"d\"", &["b c", "d"]),
            ("„x“ “y” «z»", &["x", "y", "z"]),
            ("a \"b `c` d\" e", &["b `c` d"]),
            ("5\" and more", &[]),
            ("``", &[""]),
        ];
        for (line, expected) in cases {
            assert_eq!(quotations(line), expected, "{line}");
        }
    }
}
