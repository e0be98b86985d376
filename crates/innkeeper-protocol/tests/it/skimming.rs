//! Properties of skimming: agreement with a parsed tree for all valid JSON.

use innkeeper_protocol::RequestId;
use innkeeper_protocol::skim::{
    elements, member, members, recover_top_level_id, remove_member, replace_member,
};
use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::json::{text, tree, written};

fn parsed(raw: &str) -> Value {
    serde_json::from_str(raw).expect("valid JSON")
}

proptest! {
    #[test]
    fn members_are_those_of_the_tree(
        object in prop::collection::vec((text(), tree()), 0..6), pretty: bool,
    ) {
        let object = Map::from_iter(object);
        let written = written(&Value::Object(object.clone()), pretty);
        let skimmed = members(&written)
            .map(|(key, value)| (serde_json::from_str(&format!("\"{key}\"")).unwrap(), parsed(value)))
            .collect::<Vec<(String, Value)>>();
        prop_assert_eq!(skimmed, object.clone().into_iter().collect::<Vec<_>>());
        for (key, value) in object {
            prop_assert_eq!(member(&written, &key).map(parsed), Some(value));
        }
        prop_assert_eq!(elements(&written).count(), 0);
    }

    #[test]
    fn a_changed_member_leaves_the_other_members_byte_for_byte(
        object in prop::collection::vec((text(), tree()), 0..6),
        key in prop_oneof![text(), Just("k".to_owned())],
        index: prop::sample::Index,
        value in tree(),
        pretty: bool,
    ) {
        let key = match object.len() {
            0 => key,
            // Half of the cases change an existing member.
            length => object.get(index.index(2 * length)).map_or(key, |(key, _)| key.clone()),
        };
        let object = Map::from_iter(object);
        let written = written(&Value::Object(object.clone()), pretty);
        let others = |object: &str| {
            let name = serde_json::to_string(&key).unwrap();
            let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
            members(object).map(owned).filter(|(key, _)| format!("\"{key}\"") != name).collect::<Vec<_>>()
        };
        let replaced = replace_member(&written, &key, &value.to_string());
        prop_assert_eq!(others(&replaced), others(&written));
        let mut expected = object.clone();
        expected.insert(key.clone(), value);
        prop_assert_eq!(parsed(&replaced), Value::Object(expected));
        let removed = remove_member(&written, &key);
        prop_assert_eq!(others(&removed), others(&written));
        let mut expected = object;
        expected.shift_remove(&key);
        prop_assert_eq!(parsed(&removed), Value::Object(expected.clone()));
        prop_assert_eq!(parsed(&remove_member(&replaced, &key)), Value::Object(expected));
    }

    #[test]
    fn elements_are_those_of_the_tree(array in prop::collection::vec(tree(), 0..8), pretty: bool) {
        let written = written(&Value::from(array.clone()), pretty);
        prop_assert_eq!(elements(&written).map(parsed).collect::<Vec<_>>(), array);
        prop_assert_eq!(members(&written).count(), 0);
    }

    #[test]
    fn of_two_members_with_one_name_the_last_counts(one in tree(), two in tree()) {
        let object = format!("{{\"a\":{one},\"b\":0,\"a\":{two}}}");
        prop_assert_eq!(member(&object, "a").map(parsed), parsed(&object).get("a").cloned());
    }

    #[test]
    fn the_id_of_an_object_is_that_of_the_tree(
        before in tree(), id in tree(), after in tree(), pretty: bool,
    ) {
        let object = serde_json::json!({"a": before, "id": id, "result": after});
        let (skimmed, answers) = recover_top_level_id(written(&object, pretty).as_bytes());
        prop_assert_eq!(skimmed, RequestId::from_raw(&id.to_string()));
        prop_assert!(answers);
    }

    #[test]
    fn no_text_makes_the_walk_panic(text in "[\\[\\]{}\",:\\\\a1 ]{0,80}") {
        members(&text).count();
        elements(&text).count();
        member(&text, "a");
        replace_member(&text, "a", "1");
        remove_member(&text, "a");
    }
}
