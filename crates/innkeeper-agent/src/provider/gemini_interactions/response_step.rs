//! A response step, assembled from its start event and its deltas.

use serde_json::value::{RawValue, to_raw_value};

use crate::conversation::{ContentPart, PartContent, ProviderBlock, ToolCall};
use crate::provider::ProviderApi;
use crate::provider::codec::{
    ApiError, MAX_CONTENT_PARTS, ObjectView, StringJoiner, arguments_object, is_json,
    is_sendable_object,
};
use crate::provider::gemini::decode_error_object;

/// A step received so far.
pub(super) struct ResponseStep {
    pub(super) kind: StepKind,
    /// Whether the stop event of the step came.
    pub(super) stopped: bool,
    /// The start object.
    raw: Box<RawValue>,
    /// The fields of the start object, updated by later events.
    fields: Vec<(String, Box<RawValue>)>,
    /// Whether the step changed after its start.
    is_modified: bool,
    /// The concatenated text, reasoning or arguments.
    content_text: String,
    joiner: StringJoiner,
    /// The content items of a model output, or the summary items of a thought.
    items: Vec<ContentItem>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum StepKind {
    ModelOutput,
    Thought,
    FunctionCall {
        /// The index of the call in the response, from 0.
        index: usize,
        name: String,
    },
    Other,
}

enum ContentItem {
    /// Concatenated text deltas with their citations.
    Text(String, Vec<Box<RawValue>>),
    /// The item as received.
    Raw(Box<RawValue>),
}

impl ResponseStep {
    pub(super) fn is_call(&self) -> bool {
        matches!(self.kind, StepKind::FunctionCall { .. })
    }

    /// Creates a step from its start object, which is complete in an unstreamed response.
    ///
    /// # Errors
    ///
    /// The step has too many items.
    pub(super) fn from_raw(kind: StepKind, raw: &RawValue) -> Result<Self, ApiError> {
        let start = ObjectView::from_raw(raw).unwrap_or_default();
        let fields = start.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut step = Self {
            kind,
            stopped: false,
            raw: raw.to_owned(),
            fields: fields.collect(),
            is_modified: false,
            content_text: String::new(),
            joiner: StringJoiner::default(),
            items: Vec::new(),
        };
        let items = match &step.kind {
            StepKind::ModelOutput => start.bounded_list("content")?,
            StepKind::Thought => start.bounded_list("summary")?,
            StepKind::FunctionCall { .. } | StepKind::Other => Vec::new(),
        };
        for item in items {
            step.append_item(item)?;
        }
        step.is_modified = false;
        Ok(step)
    }

    /// Returns the text, reasoning or arguments so far.
    pub(super) fn content_text(&self) -> &str {
        &self.content_text
    }

    /// Appends text of a model output.
    pub(super) fn append_text(&mut self, more: &str) -> Result<(), ApiError> {
        self.is_modified = true;
        self.content_text.push_str(more);
        if let Some(ContentItem::Text(text, _)) = self.items.last_mut() {
            text.push_str(more);
            return Ok(());
        }
        self.push_item(ContentItem::Text(more.to_owned(), Vec::new()))
    }

    /// Appends citations to the last text item.
    pub(super) fn append_citations(&mut self, more: &[&RawValue]) -> Result<(), ApiError> {
        self.is_modified = true;
        if !matches!(self.items.last(), Some(ContentItem::Text(..))) {
            self.push_item(ContentItem::Text(String::new(), Vec::new()))?;
        }
        if let Some(ContentItem::Text(_, citations)) = self.items.last_mut() {
            citations.extend(more.iter().map(|&citation| citation.to_owned()));
            if citations.len() > MAX_CONTENT_PARTS {
                return Err(ApiError::too_many("parts"));
            }
        }
        Ok(())
    }

    /// Appends a delta of the arguments and returns its text.
    pub(super) fn append_arguments(&mut self, more: &RawValue) -> String {
        let more = self.joiner.decode_next(more).unwrap_or_default();
        self.is_modified |= !more.is_empty();
        self.content_text.push_str(&more);
        more
    }

    /// Appends a content item and returns its text.
    pub(super) fn append_item(&mut self, item: &RawValue) -> Result<String, ApiError> {
        self.is_modified = true;
        let fields = ObjectView::from_raw(item).unwrap_or_default();
        let text = fields.text("text").unwrap_or_default();
        self.content_text.push_str(&text);
        let plain = fields.iter().all(|(name, _)| matches!(name, "type" | "text"));
        let joined = self.kind == StepKind::ModelOutput && plain && fields.get("text").is_some();
        match self.items.last_mut() {
            Some(ContentItem::Text(before, citations)) if joined && citations.is_empty() => {
                before.push_str(&text);
            }
            _ if joined => self.push_item(ContentItem::Text(text.clone(), Vec::new()))?,
            _ => self.push_item(ContentItem::Raw(item.to_owned()))?,
        }
        Ok(text)
    }

    pub(super) fn set_fields(&mut self, delta: &ObjectView<'_>) {
        self.is_modified = true;
        for (name, value) in delta.iter().filter(|(name, _)| *name != "type") {
            self.set_field(name, value.to_owned());
        }
    }

    /// Sets the signature. Servers send an empty signature before the real one.
    pub(super) fn set_signature(&mut self, signature: &RawValue) {
        if signature.get() != "\"\"" {
            self.is_modified = true;
            self.set_field("signature", signature.to_owned());
        }
    }

    /// Returns the arguments of the start object if no argument deltas came.
    pub(super) fn take_initial_arguments(&mut self) -> Option<String> {
        if !matches!(self.kind, StepKind::FunctionCall { .. }) || !self.content_text.is_empty() {
            return None;
        }
        let start = ObjectView::from_raw(&self.raw).unwrap_or_default();
        let arguments = start.text("arguments").unwrap_or_else(|| {
            start.get("arguments").map_or_else(|| "{}".to_owned(), |raw| raw.get().to_owned())
        });
        self.content_text.clone_from(&arguments);
        Some(arguments)
    }

    pub(super) fn into_part(mut self, model: &str) -> Option<ContentPart> {
        let content = match &self.kind {
            StepKind::ModelOutput => PartContent::Text(self.content_text.clone()),
            StepKind::Thought => PartContent::Reasoning(self.content_text.clone()),
            StepKind::FunctionCall { name, .. } => PartContent::ToolCall(ToolCall {
                id: ObjectView::from_raw(&self.raw)
                    .and_then(|result| result.text("id"))
                    .unwrap_or_default(),
                name: name.clone(),
                arguments: self.content_text.clone(),
                // Without the end of the step, a call is complete only if its arguments are.
                is_cut: !self.stopped && !is_json(&self.content_text),
            }),
            StepKind::Other => PartContent::Other,
        };
        if self.kind == StepKind::ModelOutput && self.is_plain_text() {
            return (!self.content_text.is_empty()).then(|| ContentPart::new(content));
        }
        if self.is_modified {
            self.rebuild_raw();
        }
        let api = ProviderApi::GeminiInteractions;
        let model = model.to_owned();
        let goes_back = self.is_replayable();
        let native = ProviderBlock { api, model, json: self.raw };
        let provider_block = goes_back.then_some(native);
        Some(ContentPart { content, provider_block })
    }

    /// Whether the API accepts the raw step in a later request. A call needs an id for its result,
    /// and its arguments have to be an object.
    fn is_replayable(&self) -> bool {
        let fields = ObjectView::from_raw(&self.raw).unwrap_or_default();
        match &self.kind {
            StepKind::FunctionCall { .. } => {
                let object = fields
                    .get("arguments")
                    .is_some_and(|arguments| is_sendable_object(arguments.get()));
                object && fields.text("id").is_some_and(|id| !id.is_empty())
            }
            StepKind::ModelOutput | StepKind::Thought | StepKind::Other => true,
        }
    }

    pub(super) fn decode_failure(&self) -> Option<ApiError> {
        let fields = ObjectView::from_raw(&self.raw)?;
        fields.get("error").map(|_| decode_error_object(&fields, 500))
    }

    /// Whether the step has only text.
    fn is_plain_text(&self) -> bool {
        let fields = self.fields.iter().all(|(name, _)| matches!(&**name, "type" | "content"));
        fields
            && self
                .items
                .iter()
                .all(|item| matches!(item, ContentItem::Text(_, more) if more.is_empty()))
    }

    /// Rebuilds the raw step with the deltas after its start.
    fn rebuild_raw(&mut self) {
        match &self.kind {
            StepKind::ModelOutput => self.set_items("content"),
            StepKind::Thought if !self.items.is_empty() => self.set_items("summary"),
            StepKind::FunctionCall { .. } => {
                // The API does not accept arguments that are not JSON; they are wrapped in an
                // object.
                self.set_field("arguments", arguments_object(&self.content_text));
            }
            StepKind::Thought | StepKind::Other => {}
        }
        let mut text = String::from("{");
        for (at, (name, value)) in self.fields.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(&json_string(name));
            text.push(':');
            text.push_str(value.get());
        }
        text.push('}');
        if let Ok(raw) = RawValue::from_string(text) {
            self.raw = raw;
        }
    }

    fn set_items(&mut self, name: &str) {
        let items: Vec<_> = self.items.iter().map(ContentItem::to_json).collect();
        if let Ok(list) = RawValue::from_string(format!("[{}]", items.join(","))) {
            self.set_field(name, list);
        }
    }

    fn set_field(&mut self, name: &str, value: Box<RawValue>) {
        match self.fields.iter_mut().find(|(field, _)| field == name) {
            Some((_, before)) => *before = value,
            None => self.fields.push((name.to_owned(), value)),
        }
    }

    fn push_item(&mut self, item: ContentItem) -> Result<(), ApiError> {
        if self.items.len() == MAX_CONTENT_PARTS {
            return Err(ApiError::too_many("parts"));
        }
        self.items.push(item);
        Ok(())
    }
}

impl ContentItem {
    fn to_json(&self) -> String {
        match self {
            Self::Raw(raw) => raw.get().to_owned(),
            Self::Text(text, citations) if citations.is_empty() => {
                format!(r#"{{"type":"text","text":{}}}"#, json_string(text))
            }
            Self::Text(text, citations) => {
                let citations: Vec<_> = citations.iter().map(|citation| citation.get()).collect();
                let text = json_string(text);
                let citations = citations.join(",");
                format!(r#"{{"type":"text","text":{text},"annotations":[{citations}]}}"#)
            }
        }
    }
}

fn json_string(text: &str) -> String {
    to_raw_value(text).map(|raw| raw.get().to_owned()).unwrap_or_default()
}
