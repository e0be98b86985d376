//! Changes to one member of an object's text, with every other byte unchanged.

use super::Cursor;
use crate::text;

/// Replaces the value of the top-level member `key` of a JSON object by the JSON text `value`.
///
/// Every other byte stays as written: the key, white space and the other members. An absent member
/// is added after the last member. With several members of this name, every value is replaced, so
/// that all readers see the same value. A text that is not an object is returned unchanged.
pub fn replace_member(object: &str, key: &str, value: &str) -> String {
    let mut cursor = Cursor::new(object);
    if !cursor.enter(b'{') {
        return object.to_owned();
    }
    let mut output = String::with_capacity(object.len() + key.len() + value.len() + 4);
    let mut copied = 0;
    let mut found = false;
    let mut end = cursor.position();
    let mut is_empty = true;
    while let Some(member) = cursor.next_member() {
        if text::key_is(member.key, key) {
            output.push_str(&object[copied..member.value_start]);
            output.push_str(value);
            copied = member.end;
            found = true;
        }
        end = member.end;
        is_empty = false;
    }
    if !found {
        output.push_str(&object[..end]);
        copied = end;
        if !is_empty {
            output.push(',');
        }
        output.push_str(&serde_json::Value::from(key).to_string());
        output.push(':');
        output.push_str(value);
    }
    output.push_str(&object[copied..]);
    output
}

/// Removes the top-level member `key` from a JSON object, with the comma that belongs to the
/// member.
///
/// The other members stay as written. With several members of this name, every one is removed. A
/// text that is not an object is returned unchanged.
pub fn remove_member(object: &str, key: &str) -> String {
    remove_members(object, |name| text::key_is(name, key))
}

/// Removes the members whose raw key satisfies `is_removed`; see [`remove_member`].
pub(crate) fn remove_members(object: &str, is_removed: impl Fn(&str) -> bool) -> String {
    let mut cursor = Cursor::new(object);
    if !cursor.enter(b'{') {
        return object.to_owned();
    }
    let mut output = String::with_capacity(object.len());
    let mut has_kept = false;
    // The end of the previous member, or of the opening bracket.
    let mut end = 0;
    while let Some(member) = cursor.next_member() {
        if end == 0 {
            output.push_str(&object[..member.start]);
            end = member.start;
        }
        if !is_removed(member.key) {
            // The bytes before a member contain its comma, which the first member does not need.
            let from = if has_kept { end } else { member.start };
            output.push_str(&object[from..member.end]);
            has_kept = true;
        }
        end = member.end;
    }
    output.push_str(&object[end..]);
    output
}

#[cfg(test)]
mod tests {
    use super::{remove_member, replace_member};

    #[test]
    fn a_value_is_replaced_and_every_other_byte_stays() {
        let object = "{ \"a\" : [1, {\"name\":2}],\n\t\"n\\u0061me\" : \"x\" , \"b\":1.50 }\n";
        let expected =
            "{ \"a\" : [1, {\"name\":2}],\n\t\"n\\u0061me\" : {\"y\":1} , \"b\":1.50 }\n";
        assert_eq!(replace_member(object, "name", "{\"y\":1}"), expected);
        assert_eq!(replace_member(r#"{"name":1}"#, "name", "2"), r#"{"name":2}"#);
    }

    #[test]
    fn an_absent_member_is_added_after_the_last_member() {
        let cases = [
            ("{}", r#"{"k\"":1}"#),
            (" { \n} ", " {\"k\\\"\":1 \n} "),
            (r#"{"a":{"k\"":2} }"#, r#"{"a":{"k\"":2},"k\"":1 }"#),
        ];
        for (object, expected) in cases {
            assert_eq!(replace_member(object, "k\"", "1"), expected, "{object}");
        }
    }

    #[test]
    fn a_member_is_removed_with_its_comma() {
        let cases = [
            (r#"{"k":1}"#, "{}"),
            (r#"{ "k":1 , "a":2 }"#, r#"{ "a":2 }"#),
            (r#"{"a":1 , "k":[{}] ,"b":2}"#, r#"{"a":1 ,"b":2}"#),
            (r#"{"a":1 , "\u006b":"}" }"#, r#"{"a":1 }"#),
            (r#"{"a":{"k":1}}"#, r#"{"a":{"k":1}}"#),
            (" {\n} ", " {\n} "),
        ];
        for (object, expected) in cases {
            assert_eq!(remove_member(object, "k"), expected, "{object}");
        }
    }

    #[test]
    fn several_members_of_one_name_are_changed_alike() {
        let object = r#"{"k":1,"a":2,"k":3,"b":4,"\u006b":5}"#;
        assert_eq!(replace_member(object, "k", "0"), r#"{"k":0,"a":2,"k":0,"b":4,"\u006b":0}"#);
        assert_eq!(remove_member(object, "k"), r#"{"a":2,"b":4}"#);
    }

    #[test]
    fn a_text_that_is_no_object_stays() {
        for text in ["", "null", "[\"k\"]", "\"{\"", " 5"] {
            assert_eq!(replace_member(text, "k", "1"), text);
            assert_eq!(remove_member(text, "k"), text);
        }
    }
}
