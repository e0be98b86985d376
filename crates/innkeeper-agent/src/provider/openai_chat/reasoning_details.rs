//! Collects OpenRouter's `reasoning_details`.
//!
//! Each chunk of a stream has some details of the list. The complete list goes back in later
//! requests.

use serde_json::value::RawValue;

use crate::provider::codec::{ApiError, MAX_CONTENT_PARTS, ObjectView, decode_string};
use crate::provider::openai::ObjectBuilder;

/// The fields that are concatenated over the chunks of one detail.
const APPENDED_FIELDS: [&str; 3] = ["text", "summary", "data"];

/// The details received so far.
#[derive(Default)]
pub(super) struct ReasoningDetails {
    closed: Vec<ObjectBuilder>,
    open: Option<OpenDetail>,
}

/// The last detail, which the next chunk may extend.
struct OpenDetail {
    members: ObjectBuilder,
    appended_texts: [String; APPENDED_FIELDS.len()],
}

impl ReasoningDetails {
    pub(super) fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.open.is_none()
    }

    /// Feeds a detail or a chunk of a detail. A chunk extends the detail before it if both have the
    /// same index and type. A detail without an index is complete.
    pub(super) fn feed(&mut self, detail: &RawValue) -> Result<(), ApiError> {
        let Some(fields) = ObjectView::from_raw(detail) else { return Ok(()) };
        let continues_open = fields.get("index").is_some()
            && self.open.as_ref().is_some_and(|open| {
                ["index", "type"].iter().all(|name| {
                    open.members.get(name).map(RawValue::get) == fields.get(name).map(RawValue::get)
                })
            });
        if !continues_open {
            self.close();
            if self.closed.len() == MAX_CONTENT_PARTS {
                return Err(ApiError::too_many("reasoning details"));
            }
            self.open = Some(OpenDetail {
                members: ObjectBuilder::default(),
                appended_texts: Default::default(),
            });
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        for (name, value) in fields.iter().filter(|(_, value)| value.get() != "null") {
            let growing = APPENDED_FIELDS.iter().position(|field| *field == name);
            match (growing, decode_string(value)) {
                (Some(at), Some(more)) => {
                    open.appended_texts[at].push_str(&more);
                    // The empty value keeps the position of the member.
                    open.members.set_if_absent(name, &"");
                }
                _ => open.members.set_if_absent(name, &value),
            }
        }
        Ok(())
    }

    /// Returns all details in order.
    pub(super) fn finish(mut self) -> Vec<ObjectBuilder> {
        self.close();
        self.closed
    }

    fn close(&mut self) {
        let Some(OpenDetail { mut members, appended_texts }) = self.open.take() else {
            return;
        };
        for (name, text) in APPENDED_FIELDS.iter().zip(appended_texts) {
            if !text.is_empty() {
                members.set(name, &text);
            }
        }
        self.closed.push(members);
    }
}
