//! The JSON format of scripts.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{BodyEnding, Script, ScriptedReply};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptJson {
    steps: Vec<ReplyJson>,
    then_always: Option<ReplyJson>,
    chunks: Option<usize>,
    models: Option<Vec<String>>,
    props: Option<Value>,
    chat_template_caps: Option<Value>,
}

/// A reply with its kind and the ending of its body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyJson {
    answer: Option<ModelReplyJson>,
    failure: Option<FailureJson>,
    raw: Option<RawJson>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    breaks_off_after: Option<usize>,
    hangs_after: Option<usize>,
    #[serde(default)]
    hangs: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct ModelReplyJson {
    parts: Vec<ReplyPartJson>,
    usage: Option<(u64, u64)>,
    cached_tokens: u64,
    reasoning_tokens: u64,
    cut: bool,
    refuses: bool,
    ends_in_error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReplyPartJson {
    Text(String),
    Reasoning(String),
    ToolCall(ToolCallJson),
    RawToolCall(RawToolCallJson),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCallJson {
    name: String,
    arguments: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawToolCallJson {
    name: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FailureJson {
    status: u16,
    error: Option<String>,
    code: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawJson {
    status: u16,
    content_type: String,
    body: String,
}

pub(super) fn parse(text: &str) -> Result<Script, String> {
    let script_json: ScriptJson = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let steps = script_json.steps.into_iter().enumerate();
    let replies = steps.map(|(at, reply)| {
        reply.into_reply().map_err(|problem| format!("`steps[{at}]`: {problem}"))
    });
    let mut script = Script::new(replies.collect::<Result<Vec<_>, _>>()?);
    if let Some(repeated) = script_json.then_always {
        script = script.then_repeat(
            repeated.into_reply().map_err(|problem| format!("`then_always`: {problem}"))?,
        );
    }
    match script_json.chunks {
        Some(0) => return Err("`chunks` must be at least 1".to_owned()),
        Some(bytes) => script = script.chunk_bytes(bytes),
        None => {}
    }
    if let Some(names) = script_json.models {
        script = script.models(names);
    }
    match (script_json.props, script_json.chat_template_caps) {
        (Some(_), Some(_)) => {
            Err("`props` and `chat_template_caps` are mutually exclusive".to_owned())
        }
        (Some(props), None) => Ok(script.props(props)),
        (None, Some(caps)) => Ok(script.chat_template_caps(&caps)),
        (None, None) => Ok(script),
    }
}

impl ReplyJson {
    fn into_reply(self) -> Result<ScriptedReply, &'static str> {
        let ending = match (self.breaks_off_after, self.hangs_after, self.hangs) {
            (None, None, false) => BodyEnding::Complete,
            (Some(bytes), None, false) => BodyEnding::Disconnect(bytes),
            (None, Some(bytes), false) => BodyEnding::StallAfter(bytes),
            (None, None, true) => BodyEnding::NeverRespond,
            _ => {
                return Err("only one of `breaks_off_after`, `hangs_after` and `hangs` is allowed");
            }
        };
        let mut reply = match (self.answer, self.failure, self.raw) {
            (Some(model_reply), None, None) => model_reply.into_reply(),
            (None, Some(failure), None) => failure.into_reply(),
            (None, None, Some(raw)) => ScriptedReply::raw(raw.status, &raw.content_type, raw.body),
            (None, None, None) if ending == BodyEnding::NeverRespond => ScriptedReply::new(),
            _ => return Err("exactly one of `answer`, `failure` and `raw` is required"),
        };
        reply.headers = self.headers.into_iter().collect();
        reply.ending = ending;
        Ok(reply)
    }
}

impl ModelReplyJson {
    fn into_reply(self) -> ScriptedReply {
        let parts = self.parts.into_iter();
        let mut reply = parts.fold(ScriptedReply::new(), |reply, part| match part {
            ReplyPartJson::Text(text) => reply.with_text(text),
            ReplyPartJson::Reasoning(text) => reply.with_reasoning(text),
            ReplyPartJson::ToolCall(call) => reply.with_tool_call(call.name, call.arguments),
            ReplyPartJson::RawToolCall(call) => reply.with_raw_tool_call(call.name, call.text),
        });
        reply = reply
            .with_cached_tokens(self.cached_tokens)
            .with_reasoning_tokens(self.reasoning_tokens);
        if let Some((prompt, completion)) = self.usage {
            reply = reply.with_usage(prompt, completion);
        }
        if self.cut {
            reply = reply.truncated();
        }
        if self.refuses {
            reply = reply.refused();
        }
        match self.ends_in_error {
            Some(message) => reply.with_stream_error(message),
            None => reply,
        }
    }
}

impl FailureJson {
    fn into_reply(self) -> ScriptedReply {
        let mut reply = ScriptedReply::status(self.status);
        if let Some(message) = self.error {
            reply = reply.with_error_message(message);
        }
        match self.code {
            Some(code) => reply.with_error_code(code),
            None => reply,
        }
    }
}
