//! Structural tags: free text in which a call's marker starts a constrained call.

use serde_json::{Value, json};

use crate::{ModelFamily, Tools};

/// Options of [`structural_tag()`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TagOptions {
    /// Whether the response must contain a call. Default: `false`.
    pub at_least_one: bool,
    /// Whether the response ends after its first call. Default: `false`.
    pub stop_after_first: bool,
}

/// Returns the structural tag of the tools in the family's own call form. vLLM takes the tag in
/// `structured_outputs.structural_tag` (as text), SGLang in `response_format`.
///
/// The schemas are unchanged: the server's grammar compiler enforces the keywords that it supports.
/// Without tools, the tag allows only free text.
pub fn structural_tag(tools: &Tools, family: ModelFamily, options: TagOptions) -> Value {
    let each = tools.iter().map(|tool| {
        let any = json!({"type": "object"});
        let schema = if tool.input_schema.is_object() { &tool.input_schema } else { &any };
        json!({
            "type": "tag",
            "begin": family.call_start(&tool.name),
            "content": {"type": "json_schema", "json_schema": schema},
            "end": family.call_end(),
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
            "at_least_one": options.at_least_one,
            "stop_after_first": options.stop_after_first,
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
        let tag = structural_tag(&tools(), ModelFamily::Qwen25Coder, TagOptions::default());
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
        for family in ModelFamily::ALL {
            let only = TagOptions { at_least_one: true, stop_after_first: true };
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
        let tag = structural_tag(&Tools::default(), ModelFamily::Generic, TagOptions::default());
        assert_eq!(tag["format"], json!({"type": "any_text"}));
    }
}
