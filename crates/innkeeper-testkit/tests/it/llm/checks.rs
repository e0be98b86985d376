//! Tests of request validation: rejections with the provider's message, valid requests.

use innkeeper_testkit::{ScriptedLlm, ScriptedReply};
use serde_json::{Value, json};

use super::normalized_reply::NormalizedReply;
use super::{APIS, api_path, conversation, post_json};

/// Returns the rejection of a changed conversation after reasoning and a call, or "".
async fn rejection_message(
    api: &str,
    first: ScriptedReply,
    change: impl Fn(&mut Vec<Value>),
) -> String {
    let llm = ScriptedLlm::start([first, ScriptedReply::text("Done.")]).await;
    let response =
        post_json(&llm, api, false, &conversation::first_request(api)).await.json().await;
    let id = NormalizedReply::from_body(api, &response).calls[0].0.clone();
    let mut body = conversation::next_request(api, &response, &id);
    change(conversation::messages(api, &mut body));
    let mut reply = post_json(&llm, api, false, &body).await;
    let error_body = reply.json().await;
    let remaining = llm.remaining_replies();
    match reply.status {
        200 => {
            assert_eq!(
                (NormalizedReply::from_body(api, &error_body).text.as_str(), remaining),
                ("Done.", 0),
                "{api}"
            );
            String::new()
        }
        status => {
            assert_eq!((status, remaining), (400, 1), "{api}: {error_body}");
            conversation::error_message(api, &error_body)
        }
    }
}

fn reply_with_reasoning_and_call() -> ScriptedReply {
    ScriptedReply::reasoning("Look first.")
        .with_tool_call("fs.read", json!({"path": "a", "n": 1.5}))
}

/// Returns the first object with this key at any depth.
fn find_key<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    match value {
        Value::Object(fields) => {
            let is_here = fields.contains_key(key);
            let is_match = |(name, field): (&String, &'a mut Value)| match is_here {
                true => (name == key).then_some(field),
                false => find_key(field, key),
            };
            fields.iter_mut().find_map(is_match)
        }
        Value::Array(list) => list.iter_mut().find_map(|item| find_key(item, key)),
        _ => None,
    }
}

#[tokio::test]
async fn a_conversation_with_all_of_an_answer_and_its_result_is_answered() {
    for api in APIS {
        assert_eq!(
            rejection_message(api, reply_with_reasoning_and_call(), |_| {}).await,
            "",
            "{api}"
        );
        let reply = ScriptedReply::text("Now.").with_tool_call("fs.read", json!({}));
        assert_eq!(rejection_message(api, reply, |_| {}).await, "", "{api}");
    }
}

#[tokio::test]
async fn a_result_without_its_call_is_refused() {
    let cases = [
        ("chat", "must be a response to a preceding message with 'tool_calls'"),
        ("responses", "No tool call found for function call output with call_id call_000100."),
        ("anthropic", "messages.1.content.0: unexpected `tool_use_id` found in `tool_result`"),
        ("gemini", "function response turn comes immediately after a function call turn"),
        ("interactions", "Function result for unknown call `call_000100`."),
        ("ollama", "belongs to no call"),
    ];
    for (api, expected) in cases {
        let message =
            rejection_message(api, ScriptedReply::tool_call("fs.read", json!({})), |messages| {
                let result = messages.pop().unwrap();
                messages.truncate(1);
                messages.push(result);
            });
        let message = message.await;
        assert!(message.contains(expected), "{api}: {message}");
    }
}

#[tokio::test]
async fn a_call_without_its_result_is_refused() {
    let cases = [
        ("chat", "The following tool_call_ids did not have response messages: call_000100"),
        ("responses", "No tool output found for function call call_000100."),
        (
            "anthropic",
            "`tool_use` ids were found without `tool_result` blocks immediately after: toolu",
        ),
        ("gemini", "the number of function response parts is equal to the number of function call"),
        ("interactions", "Function call `call_000100` has no function result."),
        ("ollama", "1 calls have no tool message"),
    ];
    for (api, expected) in cases {
        let message =
            rejection_message(api, ScriptedReply::tool_call("fs.read", json!({})), |messages| {
                let result = messages.pop().unwrap();
                let repeated = messages[0].clone();
                messages.push(repeated);
                drop(result);
            });
        let message = message.await;
        assert!(message.contains(expected), "{api}: {message}");
    }
}

#[tokio::test]
async fn changed_reasoning_is_rejected() {
    let cases = [
        ("responses", "summary", "could not be verified"),
        ("responses", "encrypted_content", "could not be verified"),
        ("anthropic", "thinking", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        ("anthropic", "signature", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        ("gemini", "thoughtSignature", "Corrupted thought signature."),
        ("gemini", "args", "Corrupted thought signature."),
        ("interactions", "signature", "Corrupted thought signature."),
        ("interactions", "summary", "Corrupted thought signature."),
    ];
    for (api, key, expected) in cases {
        let rejection = rejection_message(api, reply_with_reasoning_and_call(), |messages| {
            let field = messages.iter_mut().find_map(|message| find_key(message, key)).unwrap();
            *field = match &field {
                Value::Array(_) => json!([{"type": "summary_text", "text": "Look."}]),
                Value::Object(_) => json!({"path": "b"}),
                _ => json!("Other."),
            };
        });
        let rejection = rejection.await;
        assert!(rejection.contains(expected), "{api} {key}: {rejection}");
    }
}

#[tokio::test]
async fn a_call_without_its_reasoning_is_rejected() {
    let cases = [
        ("responses", "of type 'function_call' was provided without its required 'reasoning' item"),
        ("anthropic", "Expected `thinking` or `redacted_thinking`, but found `tool_use`"),
        ("gemini", "missing a thought_signature in functionCall parts"),
        ("interactions", "is missing the thought before it"),
    ];
    for (api, expected) in cases {
        let rejection = rejection_message(api, reply_with_reasoning_and_call(), |messages| {
            messages.retain(|item| !matches!(item["type"].as_str(), Some("thought" | "reasoning")));
            for message in messages {
                let list = match api {
                    "anthropic" => &mut message["content"],
                    _ => &mut message["parts"],
                };
                for part in list.as_array_mut().into_iter().flatten() {
                    part.as_object_mut().unwrap().remove("thoughtSignature");
                }
                if let Some(list) = list.as_array_mut() {
                    list.retain(|part| part["type"] != "thinking");
                }
            }
        });
        let rejection = rejection.await;
        assert!(rejection.contains(expected), "{api}: {rejection}");
    }
}

#[tokio::test]
async fn reasoning_after_its_call_is_rejected() {
    let cases = [
        ("responses", "without its required 'reasoning' item"),
        ("anthropic", "Expected `thinking` or `redacted_thinking`, but found `tool_use`"),
        ("interactions", "is missing the thought before it"),
    ];
    for (api, expected) in cases {
        let message =
            rejection_message(api, reply_with_reasoning_and_call(), |messages| match api {
                "anthropic" => messages[1]["content"].as_array_mut().unwrap().reverse(),
                _ => messages.swap(1, 2),
            });
        let message = message.await;
        assert!(message.contains(expected), "{api}: {message}");
    }
}

#[tokio::test]
async fn reasoning_without_its_following_item_is_rejected_by_responses() {
    let message = rejection_message("responses", reply_with_reasoning_and_call(), |messages| {
        messages.truncate(2);
    })
    .await;
    assert!(
        message.contains("of type 'reasoning' was provided without its required following item")
    );
    let message = rejection_message("responses", reply_with_reasoning_and_call(), |messages| {
        messages[1].as_object_mut().unwrap().remove("encrypted_content");
    });
    assert!(message.await.contains("Items are not persisted when `store` is set to false."));
}

#[tokio::test]
async fn a_sibling_of_a_signed_call_has_no_signature_and_needs_none() {
    let two = ScriptedReply::tool_call("fs.read", json!({"path": "a"}))
        .with_tool_call("fs.read", json!({"path": "b"}));
    let double = |messages: &mut Vec<Value>| {
        let results = messages[2]["parts"].as_array_mut().unwrap();
        results.push(results[0].clone());
    };
    assert_eq!(rejection_message("gemini", two.clone(), double).await, "");
    let message = rejection_message("gemini", two.clone(), |messages| {
        double(messages);
        let signature = messages[1]["parts"][0]["thoughtSignature"].clone();
        assert!(messages[1]["parts"][1].get("thoughtSignature").is_none());
        messages[1]["parts"][1]["thoughtSignature"] = signature;
    });
    assert_eq!(message.await, "Corrupted thought signature.");
    let message = rejection_message("gemini", two, |_| {}).await;
    assert!(message.contains("is equal to the number of function call parts"), "{message}");
}

#[tokio::test]
async fn the_placeholder_for_a_signature_is_accepted() {
    let reply = ScriptedReply::tool_call("fs.read", json!({"path": "a"}));
    let message = rejection_message("gemini", reply, |messages| {
        let placeholder = json!("skip_thought_signature_validator");
        messages[1]["parts"][0]["thoughtSignature"] = placeholder;
    });
    assert_eq!(message.await, "");
}

#[tokio::test]
async fn calls_of_a_finished_turn_need_no_reasoning() {
    for api in ["anthropic", "gemini"] {
        let message = rejection_message(api, reply_with_reasoning_and_call(), |messages| {
            match api {
                "anthropic" => drop(messages[1]["content"].as_array_mut().unwrap().remove(0)),
                _ => {
                    for part in messages[1]["parts"].as_array_mut().unwrap() {
                        part.as_object_mut().unwrap().remove("thoughtSignature");
                    }
                }
            }
            let repeated = messages[0].clone();
            messages.push(repeated);
        });
        assert_eq!(message.await, "", "{api}");
    }
}

#[tokio::test]
async fn results_come_first_in_what_follows_calls_of_anthropic() {
    let text = json!({"type": "text", "text": "And?"});
    let reply = ScriptedReply::tool_call("fs.read", json!({}));
    let message = rejection_message("anthropic", reply.clone(), |messages| {
        messages[2]["content"].as_array_mut().unwrap().push(text.clone());
    });
    assert_eq!(message.await, "");
    let message = rejection_message("anthropic", reply.clone(), |messages| {
        messages[2]["content"].as_array_mut().unwrap().insert(0, text.clone());
    });
    assert!(message.await.contains("without `tool_result` blocks immediately after"));
    let message = rejection_message("anthropic", reply, |messages| {
        let results = messages[2]["content"].as_array_mut().unwrap();
        results.push(results[0].clone());
    });
    assert!(message.await.contains("each tool_use must have a single result"));
}

#[tokio::test]
async fn anthropic_wants_a_limit_and_no_empty_text() {
    let llm = ScriptedLlm::start(ScriptedReply::text("a")).await;
    let mut body = conversation::first_request("anthropic");
    body["messages"][0]["content"] = json!([{"type": "text", "text": ""}]);
    let response = post_json(&llm, "anthropic", false, &body).await.json().await;
    assert_eq!(response["error"]["message"], "messages: text content blocks must be non-empty");
    assert_eq!(response["error"]["type"], "invalid_request_error");
    body.as_object_mut().unwrap().remove("max_tokens");
    let response = post_json(&llm, "anthropic", false, &body).await.json().await;
    assert_eq!(response["error"]["message"], "max_tokens: Field required");
}

#[tokio::test]
async fn what_is_no_json_is_refused() {
    for api in APIS {
        let llm = ScriptedLlm::start(ScriptedReply::text("a")).await;
        let path = api_path(api, false);
        let mut reply = super::HttpExchange::request(&llm, "POST", path, &[], None).await;
        assert_eq!(reply.status, 400);
        assert_eq!(conversation::error_message(api, &reply.json().await), "the body is no JSON");
        assert_eq!(llm.remaining_replies(), 1);
    }
}
