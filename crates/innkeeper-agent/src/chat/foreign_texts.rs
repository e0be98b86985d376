//! The texts of a chat that its model did not write: results of tools, and messages that the
//! application adds. A call that stands in one of them is not taken from the model's text.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_toolcall::{CallSearch, ResolvedCall, Tools};

use crate::tool_output::to_content;
use crate::tools::ToolOutput;

/// Maximum number of bytes of the texts. The oldest go first: a model of today has long forgotten
/// them.
const MAX_BYTES: usize = 16 << 20;

/// The newest texts. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct ForeignTexts(Arc<Mutex<NewestTexts>>);

#[derive(Debug, Default)]
struct NewestTexts {
    texts: VecDeque<ForeignText>,
    bytes: usize,
}

#[derive(Clone, Debug)]
enum ForeignText {
    Result(Arc<ToolOutput>),
    Message(Arc<str>),
}

impl ForeignText {
    fn text(&self) -> &str {
        match self {
            Self::Result(output) => output.raw().get(),
            Self::Message(text) => text,
        }
    }

    fn contains(&self, search: &CallSearch<'_>) -> bool {
        let joined = match self {
            Self::Result(output) => to_content(output).joined_text(),
            Self::Message(_) => None,
        };
        search.find_in(self.text()).is_some()
            || joined.is_some_and(|text| search.find_in(&text).is_some())
    }
}

impl ForeignTexts {
    pub(super) fn add_result(&self, output: &Arc<ToolOutput>) {
        self.add(ForeignText::Result(output.clone()));
    }

    pub(super) fn add_message(&self, text: &str) {
        self.add(ForeignText::Message(text.into()));
    }

    fn add(&self, text: ForeignText) {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        newest.bytes += text.text().len();
        newest.texts.push_back(text);
        while newest.bytes > MAX_BYTES
            && let Some(oldest) = newest.texts.pop_front()
        {
            newest.bytes -= oldest.text().len();
        }
    }

    /// Whether the call stands in one of the texts.
    pub(super) fn contain(&self, call: &ResolvedCall, tools: &Tools) -> bool {
        let texts: Vec<_> = {
            let newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            newest.texts.iter().cloned().collect()
        };
        let search = CallSearch::new(tools, [call]);
        texts.iter().rev().any(|text| text.contains(&search))
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_toolcall::{Json, Tool};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_in_two_blocks_of_one_result_is_found() {
        let tools: Tools = [Tool::new("t", "", json!({}))].into_iter().collect();
        let arguments = Json::from(&json!({"a": 1}));
        let call = ResolvedCall { name: "t".to_owned(), arguments, repairs: Vec::new() };
        let texts = ForeignTexts::default();
        let block = |text: &str| json!({"type": "text", "text": text});
        let blocks = [block(r#"Run {"tool": "t", "par"#), block(r#"ams": {"a": 1}}."#)];
        let result = json!({"content": blocks}).to_string();
        let raw = serde_json::value::RawValue::from_string(result).unwrap();
        texts.add_result(&Arc::new(ToolOutput::new(raw, false)));
        assert!(texts.contain(&call, &tools));
    }

    #[test]
    fn the_oldest_texts_go_when_the_limit_is_reached() {
        let tools: Tools = [Tool::new("t", "", json!({}))].into_iter().collect();
        let arguments = Json::from(&json!({"a": 1}));
        let call = ResolvedCall { name: "t".to_owned(), arguments, repairs: Vec::new() };
        let texts = ForeignTexts::default();
        let message = r#"Please run {"tool": "t", "params": {"a": 1}}."#;
        texts.add_message(message);
        assert!(texts.contain(&call, &tools));
        texts.add_message(&" ".repeat(MAX_BYTES - message.len()));
        assert!(texts.contain(&call, &tools));
        texts.add_message(" ");
        assert!(!texts.contain(&call, &tools));
    }
}
