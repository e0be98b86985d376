//! Structured content for people: a table, or indented JSON.

use innkeeper_toolcall::{Json, parse_strict};

use crate::output::Table;

/// Maximum number of columns of a table; an object with more members is shown as JSON.
const MAX_TABLE_COLUMNS: usize = 12;

/// Maximum length of structured content that becomes a table or is compared with the texts of its
/// result, in bytes. Both parse the content as a value, which takes up to 30 times its length.
const MAX_PARSED_BYTES: usize = 1 << 20;

/// The member in which some SDKs wrap a structured result that is no object.
const WRAPPER_MEMBER: &str = "result";

/// Structured content in the form in which people read it.
pub(crate) enum StructuredText {
    Table(Table),
    /// Not a table: for [`Output::print_indented`](crate::output::Output::print_indented).
    Json,
}

impl StructuredText {
    /// Returns a table for a list of flat objects that fits a terminal of this width, otherwise
    /// [`Json`](Self::Json). Content of more than 1 MiB is no table.
    pub(crate) fn new(json: &str, columns: Option<usize>) -> Self {
        let table = parse_short(json).and_then(|value| table_of(list_of(&value)?));
        match table {
            Some(table) if columns.is_none_or(|columns| table.width() <= columns) => {
                Self::Table(table)
            }
            Some(_) | None => Self::Json,
        }
    }
}

fn parse_short(json: &str) -> Option<Json> {
    if json.len() <= MAX_PARSED_BYTES { parse_strict(json).ok() } else { None }
}

/// Whether the text blocks of a result say the same as its structured content.
pub(crate) fn repeats_structured(texts: &[&str], json: &str) -> bool {
    let Some(value) = parse_short(json) else { return false };
    let inner = match &value {
        Json::Object(members) => match &members[..] {
            [(key, inner)] if key == WRAPPER_MEMBER => Some(inner),
            [(_, text @ Json::String(_))] => Some(text),
            _ => None,
        },
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => None,
    };
    [Some(&value), inner].into_iter().flatten().any(|value| match (texts, value) {
        ([text], value) if is_same(text, value) => true,
        (texts, Json::Array(items)) => {
            texts.len() == items.len()
                && texts.iter().zip(items).all(|(text, item)| is_same(text, item))
        }
        _ => false,
    })
}

fn is_same(text: &str, value: &Json) -> bool {
    value.as_str() == Some(text)
        || parse_short(text).is_some_and(|parsed| same_json(&parsed, value))
}

/// Compares two values; the order of members makes no difference.
fn same_json(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Object(left), Json::Object(right_members)) => {
            left.len() == right_members.len()
                && left
                    .iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| same_json(value, other)))
        }
        (Json::Array(left), Json::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| same_json(left, right))
        }
        _ => left == right,
    }
}

/// Returns the list of a value: the value itself, or the only member of an object.
fn list_of(value: &Json) -> Option<&[Json]> {
    match value {
        Json::Array(items) => Some(items),
        Json::Object(members) => match &members[..] {
            [(_, Json::Array(items))] => Some(items),
            _ => None,
        },
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
    }
}

/// Returns a table of objects without lists and objects inside.
fn table_of(items: &[Json]) -> Option<Table> {
    let mut headings: Vec<&str> = Vec::new();
    for item in items {
        let Json::Object(members) = item else { return None };
        for (key, _) in members {
            if !headings.contains(&key.as_str()) {
                headings.push(key);
            }
        }
        if headings.len() > MAX_TABLE_COLUMNS {
            return None;
        }
    }
    if headings.is_empty() {
        return None;
    }
    let mut table = Table::new(&headings);
    for item in items {
        let cells: Option<Vec<&str>> =
            headings.iter().map(|key| item.get(key).map_or(Some(""), cell_text)).collect();
        table.add_row(cells?);
    }
    Some(table)
}

/// Returns the text of a value that fits one cell.
fn cell_text(value: &Json) -> Option<&str> {
    match value {
        Json::Null => Some(""),
        Json::Bool(true) => Some("true"),
        Json::Bool(false) => Some("false"),
        Json::Number(digits) => Some(digits),
        Json::String(text) => Some(text).filter(|text| !text.contains('\n')).map(String::as_str),
        Json::Array(_) | Json::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_table(json: &str, columns: Option<usize>) -> bool {
        matches!(StructuredText::new(json, columns), StructuredText::Table(_))
    }

    #[test]
    fn a_list_of_flat_objects_that_fits_is_a_table() {
        let list = r#"[{"name":"a","size":12345678901234567890123},{"name":"b","x":null}]"#;
        assert!(is_table(list, None) && is_table(list, Some(40)));
        assert!(!is_table(list, Some(20)), "wider than the terminal");
        assert!(is_table(&format!("{{\"entries\":{list}}}"), None));
        for other in [
            "[]",
            "[{}]",
            "[1]",
            r#"[{"a":[1]}]"#,
            r#"[{"a":"1\n2"}]"#,
            r#"{"a":1}"#,
            r#"{"a":[{"b":1}],"c":2}"#,
        ] {
            assert!(!is_table(other, None), "{other}");
        }
    }

    #[test]
    fn text_that_repeats_the_structured_content_is_found() {
        for (texts, json) in [
            (&[r#"{ "b": [1.0], "a": 2 }"#][..], r#"{"a":2,"b":[1.0]}"#),
            (&["plain"], r#"{"result":"plain"}"#),
            (&["plain"], r#"{"content":"plain"}"#),
            (&["5"], r#"{"result":5}"#),
            (&["a", "b"], r#"{"result":["a","b"]}"#),
            (&[r#"{"x":1}"#, r#"{"x":2}"#], r#"[{"x":1},{"x":2}]"#),
        ] {
            assert!(repeats_structured(texts, json), "{texts:?} {json}");
        }
        for (texts, json) in [
            (&["5"][..], r#"{"sum":5}"#),
            (&[], r#"{"a":1}"#),
            (&["a"], r#"{"result":["a","b"]}"#),
            (&[r#"{"a":1}"#], r#"{"a":10}"#),
        ] {
            assert!(!repeats_structured(texts, json), "{texts:?} {json}");
        }
    }
}
