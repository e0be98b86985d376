//! Normalized replies, from complete bodies or from event streams.

use serde_json::{Map, Value, json};

/// A reply in one format for all APIs.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct NormalizedReply {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    /// Id, name, arguments as JSON text.
    pub(crate) calls: Vec<(String, String, String)>,
    /// The signatures in order.
    pub(crate) signatures: Vec<String>,
    pub(crate) finish: String,
    pub(crate) usage: Value,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

impl NormalizedReply {
    /// Parses a complete body.
    pub(crate) fn from_body(api: &str, response: &Value) -> Self {
        let mut reply = Self::default();
        match api {
            "chat" => {
                let choice = &response["choices"][0];
                reply.add_chat_message(&choice["message"]);
                reply.finish = text(&choice["finish_reason"]);
                reply.usage = response["usage"].clone();
            }
            "responses" => {
                list(&response["output"]).iter().for_each(|item| reply.add_responses_item(item));
                reply.finish =
                    text(&response["status"]) + &text(&response["incomplete_details"]["reason"]);
                reply.usage = response["usage"].clone();
            }
            "anthropic" => {
                list(&response["content"])
                    .iter()
                    .for_each(|block| reply.add_anthropic_block(block));
                reply.finish = text(&response["stop_reason"]);
                reply.usage = response["usage"].clone();
            }
            "gemini" => reply.add_gemini_candidate(response),
            "interactions" => {
                list(&response["steps"]).iter().for_each(|step| reply.add_interactions_step(step));
                reply.finish = text(&response["status"]);
                reply.usage = response["usage"].clone();
            }
            "ollama" => reply.add_ollama_line(response),
            other => panic!("no wire `{other}`"),
        }
        reply
    }

    /// Parses a stream of events or lines.
    pub(crate) fn from_stream(api: &str, body: &str) -> Self {
        if api == "ollama" {
            let mut reply = Self::default();
            for line in body.lines() {
                reply.add_ollama_line(&serde_json::from_str(line).unwrap());
            }
            return reply;
        }
        let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
        let (end_markers, data): (Vec<&str>, Vec<&str>) = data.partition(|data| *data == "[DONE]");
        assert_eq!(end_markers.len(), usize::from(matches!(api, "chat" | "interactions")), "{api}");
        let events: Vec<Value> =
            data.iter().map(|data| serde_json::from_str(data).unwrap()).collect();
        match api {
            "chat" => Self::from_chat_chunks(&events),
            "responses" => Self::from_responses_events(&events),
            "anthropic" => Self::from_anthropic_events(&events),
            "gemini" => {
                let mut reply = Self::default();
                events.iter().for_each(|event| reply.add_gemini_candidate(event));
                reply
            }
            _ => Self::from_interactions_events(&events),
        }
    }

    fn add_chat_message(&mut self, message: &Value) {
        self.text += &text(&message["content"]);
        self.reasoning += &text(&message["reasoning_content"]);
        for call in list(&message["tool_calls"]) {
            let function = &call["function"];
            let arguments = text(&function["arguments"]);
            match call["index"].as_u64().map(|index| usize::try_from(index).unwrap()) {
                Some(index) if index < self.calls.len() => self.calls[index].2 += &arguments,
                _ => self.calls.push((text(&call["id"]), text(&function["name"]), arguments)),
            }
        }
    }

    fn from_chat_chunks(events: &[Value]) -> Self {
        let mut reply = Self::default();
        assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
        let (last, chunks) = events.split_last().unwrap();
        for chunk in chunks {
            assert!(chunk["usage"].is_null());
            reply.add_chat_message(&chunk["choices"][0]["delta"]);
            reply.finish += &text(&chunk["choices"][0]["finish_reason"]);
        }
        assert_eq!(last["choices"], json!([]));
        reply.usage = last["usage"].clone();
        reply
    }

    fn add_responses_item(&mut self, item: &Value) {
        for part in list(&item["summary"]) {
            self.reasoning += &text(&part["text"]);
        }
        for part in list(&item["content"]) {
            self.text += &text(&part["text"]);
        }
        if item["type"] == "reasoning" {
            self.signatures.push(text(&item["encrypted_content"]));
        }
        if item["type"] == "function_call" {
            let name = text(&item["name"]);
            self.calls.push((text(&item["call_id"]), name, text(&item["arguments"])));
        }
    }

    /// Combines the deltas and compares them with the completed items and the final response.
    fn from_responses_events(events: &[Value]) -> Self {
        let mut reply = Self::default();
        let mut done = Vec::new();
        for (number, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], number);
            match text(&event["type"]).as_str() {
                "response.output_text.delta" => reply.text += &text(&event["delta"]),
                "response.reasoning_summary_text.delta" => {
                    reply.reasoning += &text(&event["delta"]);
                }
                "response.function_call_arguments.delta" => {
                    reply.calls.last_mut().unwrap().2 += &text(&event["delta"]);
                }
                "response.output_item.added" if event["item"]["type"] == "function_call" => {
                    let item = &event["item"];
                    reply.calls.push((text(&item["call_id"]), text(&item["name"]), String::new()));
                }
                "response.output_item.done" => done.push(event["item"].clone()),
                _ => {}
            }
        }
        let last = &events.last().unwrap()["response"];
        assert_eq!(last["output"], json!(done));
        let complete = Self::from_body("responses", last);
        let Self { signatures, finish, usage, .. } = complete;
        Self { signatures, finish, usage, ..reply }
    }

    fn add_anthropic_block(&mut self, block: &Value) {
        self.text += &text(&block["text"]);
        self.reasoning += &text(&block["thinking"]);
        if block["type"] == "thinking" {
            self.signatures.push(text(&block["signature"]));
        }
        if block["type"] == "tool_use" {
            let arguments = block["input"].to_string();
            self.calls.push((text(&block["id"]), text(&block["name"]), arguments));
        }
    }

    fn from_anthropic_events(events: &[Value]) -> Self {
        let mut reply = Self::default();
        let mut usage = events[0]["message"]["usage"].as_object().unwrap().clone();
        for event in events {
            match text(&event["type"]).as_str() {
                "content_block_start" => {
                    let block = &event["content_block"];
                    assert_eq!(block.get("input").unwrap_or(&json!({})), &json!({}));
                    if block["type"] == "tool_use" {
                        let (id, name) = (text(&block["id"]), text(&block["name"]));
                        reply.calls.push((id, name, String::new()));
                    }
                }
                "content_block_delta" => {
                    let delta = &event["delta"];
                    reply.text += &text(&delta["text"]);
                    reply.reasoning += &text(&delta["thinking"]);
                    reply.signatures.extend(delta["signature"].as_str().map(str::to_owned));
                    if let Some(chunk) = delta["partial_json"].as_str() {
                        reply.calls.last_mut().unwrap().2 += chunk;
                    }
                }
                "message_delta" => {
                    reply.finish = text(&event["delta"]["stop_reason"]);
                    usage.extend(event["usage"].as_object().unwrap().clone());
                }
                _ => {}
            }
        }
        assert_eq!(events.last().unwrap()["type"], "message_stop");
        reply.usage = Value::Object(usage);
        reply
    }

    fn add_gemini_candidate(&mut self, response: &Value) {
        let candidate = &response["candidates"][0];
        for part in list(&candidate["content"]["parts"]) {
            match part["thought"].as_bool() {
                Some(true) => self.reasoning += &text(&part["text"]),
                _ => self.text += &text(&part["text"]),
            }
            self.signatures.extend(part["thoughtSignature"].as_str().map(str::to_owned));
            if let Some(call) = part.get("functionCall") {
                let arguments = call["args"].to_string();
                self.calls.push((text(&call["id"]), text(&call["name"]), arguments));
            }
        }
        self.finish += &text(&candidate["finishReason"]);
        self.usage = response["usageMetadata"].clone();
    }

    fn add_interactions_step(&mut self, step: &Value) {
        self.add_responses_item(step);
        self.signatures.extend(step["signature"].as_str().map(str::to_owned));
        if step["type"] == "function_call" {
            let call = self.calls.last_mut().unwrap();
            call.0 = text(&step["id"]);
            call.2 = step["arguments"].to_string();
        }
    }

    fn from_interactions_events(events: &[Value]) -> Self {
        let mut reply = Self::default();
        for event in events {
            let delta = &event["delta"];
            reply.text += &text(&delta["text"]);
            reply.reasoning += &text(&delta["content"]["text"]);
            reply.signatures.extend(delta["signature"].as_str().map(str::to_owned));
            if event["step"]["type"] == "function_call" {
                let step = &event["step"];
                reply.calls.push((text(&step["id"]), text(&step["name"]), String::new()));
            }
            if let Some(chunk) = delta["arguments"].as_str() {
                reply.calls.last_mut().unwrap().2 += chunk;
            }
        }
        let last = &events.last().unwrap()["interaction"];
        reply.finish = text(&last["status"]);
        reply.usage = last["usage"].clone();
        reply
    }

    fn add_ollama_line(&mut self, line: &Value) {
        let message = &line["message"];
        self.text += &text(&message["content"]);
        self.reasoning += &text(&message["thinking"]);
        for call in list(&message["tool_calls"]) {
            let function = &call["function"];
            let arguments = function["arguments"].to_string();
            self.calls.push((text(&call["id"]), text(&function["name"]), arguments));
        }
        self.finish += &text(&line["done_reason"]);
        let counts = line.as_object().into_iter().flatten();
        let counts: Map<String, Value> = counts
            .filter(|(key, _)| key.ends_with("_count"))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        self.usage = Value::Object(counts);
    }
}
