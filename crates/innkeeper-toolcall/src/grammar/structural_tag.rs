//! Structural tags: free text, in which a call's marker begins what has to follow a tool's schema.

use serde_json::{Value, json};

use crate::{Family, Tools};

/// How many calls one answer may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tags {
    /// The answer has to hold a call. Default: it may be text alone.
    pub at_least_one: bool,
    /// The answer ends with its first call. Default: more may follow.
    pub stop_after_first: bool,
}

/// The structural tag of the tools in the family's own call form, as vLLM takes it in
/// `structured_outputs.structural_tag` (as text) and SGLang in `response_format`.
///
/// A schema goes in as it is: the engine's grammar compiler holds of it what it can. Without tools
/// there are no tags, and all is text.
pub fn structural_tag(tools: &Tools, family: Family, tags: Tags) -> Value {
    let each = tools.iter().map(|tool| {
        let any = json!({"type": "object"});
        let schema = if tool.input_schema.is_object() { &tool.input_schema } else { &any };
        json!({
            "type": "tag",
            "begin": family.begin(&tool.name),
            "content": {"type": "json_schema", "json_schema": schema},
            "end": family.end(),
        })
    });
    let each: Vec<Value> = each.collect();
    let format = if each.is_empty() {
        json!({"type": "any_text"})
    } else {
        json!({
            "type": "triggered_tags",
            "triggers": [family.trigger()],
            "tags": each,
            "at_least_one": tags.at_least_one,
            "stop_after_first": tags.stop_after_first,
        })
    };
    json!({"type": "structural_tag", "format": format})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tool;

    fn tools() -> Tools {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        [Tool::new("weather", "", schema), Tool::new("odd\"name", "", json!(null))]
            .into_iter()
            .collect()
    }

    #[test]
    fn each_tool_has_one_tag_in_the_familys_form() {
        let tag = structural_tag(&tools(), Family::Qwen25Coder, Tags::default());
        assert_eq!(
            tag["format"]["tags"][0],
            json!({
                "type": "tag",
                "begin": "<tool_call>\n{\"name\": \"weather\", \"arguments\": ",
                "content": {
                    "type": "json_schema",
                    "json_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
                },
                "end": "}\n</tool_call>",
            })
        );
        let odd = &tag["format"]["tags"][1];
        assert_eq!(odd["begin"], "<tool_call>\n{\"name\": \"odd\\\"name\", \"arguments\": ");
        assert_eq!(odd["content"]["json_schema"], json!({"type": "object"}));
        assert_eq!(tag["format"]["stop_after_first"], false);
    }

    #[test]
    fn every_tag_begins_with_the_trigger_in_every_family() {
        for family in Family::ALL {
            let only = Tags { at_least_one: true, stop_after_first: true };
            let format = structural_tag(&tools(), family, only)["format"].take();
            let trigger = format["triggers"][0].as_str().unwrap().to_owned();
            for tag in format["tags"].as_array().unwrap() {
                assert!(tag["begin"].as_str().unwrap().starts_with(&trigger), "{family:?}");
            }
            assert_eq!(format["at_least_one"], true);
            assert_eq!(format["stop_after_first"], true);
        }
    }

    #[test]
    fn without_tools_all_is_text() {
        let tag = structural_tag(&Tools::default(), Family::Generic, Tags::default());
        assert_eq!(tag["format"], json!({"type": "any_text"}));
    }
}
