//! Properties of skimming: agreement with a parsed tree for all valid JSON.

use innkeeper_protocol::RequestId;
use innkeeper_protocol::skim::{elements, member, members, recover_top_level_id};
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
    }
}
