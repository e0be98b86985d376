//! What an answer says, read from the whole and put together from its events.

use serde_json::{Map, Value, json};

/// An answer in one form for all providers.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) thoughts: String,
    /// Id, name, arguments as JSON text.
    pub(crate) calls: Vec<(String, String, String)>,
    /// Signatures and the like, in their order.
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

impl Said {
    /// Reads an answer that came whole.
    pub(crate) fn whole(wire: &str, answer: &Value) -> Self {
        let mut said = Self::default();
        match wire {
            "chat" => {
                let choice = &answer["choices"][0];
                said.chat(&choice["message"]);
                said.finish = text(&choice["finish_reason"]);
                said.usage = answer["usage"].clone();
            }
            "responses" => {
                list(&answer["output"]).iter().for_each(|item| said.item(item));
                said.finish =
                    text(&answer["status"]) + &text(&answer["incomplete_details"]["reason"]);
                said.usage = answer["usage"].clone();
            }
            "anthropic" => {
                list(&answer["content"]).iter().for_each(|block| said.block(block));
                said.finish = text(&answer["stop_reason"]);
                said.usage = answer["usage"].clone();
            }
            "gemini" => said.candidate(answer),
            "interactions" => {
                list(&answer["steps"]).iter().for_each(|step| said.step(step));
                said.finish = text(&answer["status"]);
                said.usage = answer["usage"].clone();
            }
            "ollama" => said.line(answer),
            other => panic!("no wire `{other}`"),
        }
        said
    }

    /// Reads an answer that came as events or lines.
    pub(crate) fn streamed(wire: &str, body: &str) -> Self {
        if wire == "ollama" {
            let mut said = Self::default();
            for line in body.lines() {
                said.line(&serde_json::from_str(line).unwrap());
            }
            return said;
        }
        let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
        let (ends, data): (Vec<&str>, Vec<&str>) = data.partition(|data| *data == "[DONE]");
        assert_eq!(ends.len(), usize::from(matches!(wire, "chat" | "interactions")), "{wire}");
        let events: Vec<Value> =
            data.iter().map(|data| serde_json::from_str(data).unwrap()).collect();
        match wire {
            "chat" => Self::of_chunks(&events),
            "responses" => Self::of_responses(&events),
            "anthropic" => Self::of_blocks(&events),
            "gemini" => {
                let mut said = Self::default();
                events.iter().for_each(|event| said.candidate(event));
                said
            }
            _ => Self::of_steps(&events),
        }
    }

    fn chat(&mut self, message: &Value) {
        self.text += &text(&message["content"]);
        self.thoughts += &text(&message["reasoning_content"]);
        for call in list(&message["tool_calls"]) {
            let function = &call["function"];
            let arguments = text(&function["arguments"]);
            match call["index"].as_u64().map(|index| usize::try_from(index).unwrap()) {
                Some(index) if index < self.calls.len() => self.calls[index].2 += &arguments,
                _ => self.calls.push((text(&call["id"]), text(&function["name"]), arguments)),
            }
        }
    }

    fn of_chunks(events: &[Value]) -> Self {
        let mut said = Self::default();
        assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
        let (last, chunks) = events.split_last().unwrap();
        for chunk in chunks {
            assert!(chunk["usage"].is_null());
            said.chat(&chunk["choices"][0]["delta"]);
            said.finish += &text(&chunk["choices"][0]["finish_reason"]);
        }
        assert_eq!(last["choices"], json!([]));
        said.usage = last["usage"].clone();
        said
    }

    fn item(&mut self, item: &Value) {
        for part in list(&item["summary"]) {
            self.thoughts += &text(&part["text"]);
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

    /// From the deltas, compared with the items at their end and the whole answer in the last event.
    fn of_responses(events: &[Value]) -> Self {
        let mut said = Self::default();
        let mut done = Vec::new();
        for (number, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], number);
            match text(&event["type"]).as_str() {
                "response.output_text.delta" => said.text += &text(&event["delta"]),
                "response.reasoning_summary_text.delta" => said.thoughts += &text(&event["delta"]),
                "response.function_call_arguments.delta" => {
                    said.calls.last_mut().unwrap().2 += &text(&event["delta"]);
                }
                "response.output_item.added" if event["item"]["type"] == "function_call" => {
                    let item = &event["item"];
                    said.calls.push((text(&item["call_id"]), text(&item["name"]), String::new()));
                }
                "response.output_item.done" => done.push(event["item"].clone()),
                _ => {}
            }
        }
        let last = &events.last().unwrap()["response"];
        assert_eq!(last["output"], json!(done));
        let whole = Self::whole("responses", last);
        let Self { signatures, finish, usage, .. } = whole;
        Self { signatures, finish, usage, ..said }
    }

    fn block(&mut self, block: &Value) {
        self.text += &text(&block["text"]);
        self.thoughts += &text(&block["thinking"]);
        if block["type"] == "thinking" {
            self.signatures.push(text(&block["signature"]));
        }
        if block["type"] == "tool_use" {
            let arguments = block["input"].to_string();
            self.calls.push((text(&block["id"]), text(&block["name"]), arguments));
        }
    }

    fn of_blocks(events: &[Value]) -> Self {
        let mut said = Self::default();
        let mut usage = events[0]["message"]["usage"].as_object().unwrap().clone();
        for event in events {
            match text(&event["type"]).as_str() {
                "content_block_start" => {
                    let block = &event["content_block"];
                    assert_eq!(block.get("input").unwrap_or(&json!({})), &json!({}));
                    if block["type"] == "tool_use" {
                        let (id, name) = (text(&block["id"]), text(&block["name"]));
                        said.calls.push((id, name, String::new()));
                    }
                }
                "content_block_delta" => {
                    let delta = &event["delta"];
                    said.text += &text(&delta["text"]);
                    said.thoughts += &text(&delta["thinking"]);
                    said.signatures.extend(delta["signature"].as_str().map(str::to_owned));
                    if let Some(piece) = delta["partial_json"].as_str() {
                        said.calls.last_mut().unwrap().2 += piece;
                    }
                }
                "message_delta" => {
                    said.finish = text(&event["delta"]["stop_reason"]);
                    usage.extend(event["usage"].as_object().unwrap().clone());
                }
                _ => {}
            }
        }
        assert_eq!(events.last().unwrap()["type"], "message_stop");
        said.usage = Value::Object(usage);
        said
    }

    fn candidate(&mut self, answer: &Value) {
        let candidate = &answer["candidates"][0];
        for part in list(&candidate["content"]["parts"]) {
            match part["thought"].as_bool() {
                Some(true) => self.thoughts += &text(&part["text"]),
                _ => self.text += &text(&part["text"]),
            }
            self.signatures.extend(part["thoughtSignature"].as_str().map(str::to_owned));
            if let Some(call) = part.get("functionCall") {
                let arguments = call["args"].to_string();
                self.calls.push((text(&call["id"]), text(&call["name"]), arguments));
            }
        }
        self.finish += &text(&candidate["finishReason"]);
        self.usage = answer["usageMetadata"].clone();
    }

    fn step(&mut self, step: &Value) {
        self.item(step);
        self.signatures.extend(step["signature"].as_str().map(str::to_owned));
        if step["type"] == "function_call" {
            let call = self.calls.last_mut().unwrap();
            call.0 = text(&step["id"]);
            call.2 = step["arguments"].to_string();
        }
    }

    fn of_steps(events: &[Value]) -> Self {
        let mut said = Self::default();
        for event in events {
            let delta = &event["delta"];
            said.text += &text(&delta["text"]);
            said.thoughts += &text(&delta["content"]["text"]);
            said.signatures.extend(delta["signature"].as_str().map(str::to_owned));
            if event["step"]["type"] == "function_call" {
                let step = &event["step"];
                said.calls.push((text(&step["id"]), text(&step["name"]), String::new()));
            }
            if let Some(piece) = delta["arguments"].as_str() {
                said.calls.last_mut().unwrap().2 += piece;
            }
        }
        let last = &events.last().unwrap()["interaction"];
        said.finish = text(&last["status"]);
        said.usage = last["usage"].clone();
        said
    }

    fn line(&mut self, line: &Value) {
        let message = &line["message"];
        self.text += &text(&message["content"]);
        self.thoughts += &text(&message["thinking"]);
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
