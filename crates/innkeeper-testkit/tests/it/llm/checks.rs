//! What each provider refuses is refused, in its words, and what it takes is answered.

use innkeeper_testkit::{ScriptedLlm, Step};
use serde_json::{Value, json};

use super::fold::Said;
use super::{WIRES, path, post, talk};

/// The model thinks and calls; then the changed conversation gets the words of a refusal, or "".
async fn refusal(wire: &str, first: Step, change: impl Fn(&mut Vec<Value>)) -> String {
    let llm = ScriptedLlm::start([first, Step::say("Done.")]).await;
    let answer = post(&llm, wire, false, &talk::begin(wire)).await.json().await;
    let id = Said::whole(wire, &answer).calls[0].0.clone();
    let mut body = talk::go_on(wire, &answer, &id);
    change(talk::messages(wire, &mut body));
    let mut reply = post(&llm, wire, false, &body).await;
    let told = reply.json().await;
    let left = llm.steps_left();
    match reply.status {
        200 => {
            assert_eq!((Said::whole(wire, &told).text.as_str(), left), ("Done.", 0), "{wire}");
            String::new()
        }
        status => {
            assert_eq!((status, left), (400, 1), "{wire}: {told}");
            talk::message(wire, &told)
        }
    }
}

fn thinks() -> Step {
    Step::think("Look first.").calls("fs.read", json!({"path": "a", "n": 1.5}))
}

/// The first object anywhere that has this key.
fn find<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    match value {
        Value::Object(fields) => {
            let is_here = fields.contains_key(key);
            let found = |(name, field): (&String, &'a mut Value)| match is_here {
                true => (name == key).then_some(field),
                false => find(field, key),
            };
            fields.iter_mut().find_map(found)
        }
        Value::Array(list) => list.iter_mut().find_map(|item| find(item, key)),
        _ => None,
    }
}

#[tokio::test]
async fn a_conversation_with_all_of_an_answer_and_its_result_is_answered() {
    for wire in WIRES {
        assert_eq!(refusal(wire, thinks(), |_| {}).await, "", "{wire}");
        let step = Step::say("Now.").calls("fs.read", json!({}));
        assert_eq!(refusal(wire, step, |_| {}).await, "", "{wire}");
    }
}

#[tokio::test]
async fn a_result_without_its_call_is_refused() {
    let words = [
        ("chat", "must be a response to a preceding message with 'tool_calls'"),
        ("responses", "No tool call found for function call output with call_id call_000100."),
        ("anthropic", "messages.1.content.0: unexpected `tool_use_id` found in `tool_result`"),
        ("gemini", "function response turn comes immediately after a function call turn"),
        ("interactions", "Function result for unknown call `call_000100`."),
        ("ollama", "answers no call"),
    ];
    for (wire, words) in words {
        let told = refusal(wire, Step::call("fs.read", json!({})), |messages| {
            let result = messages.pop().unwrap();
            messages.truncate(1);
            messages.push(result);
        });
        let told = told.await;
        assert!(told.contains(words), "{wire}: {told}");
    }
}

#[tokio::test]
async fn a_call_without_its_result_is_refused() {
    let words = [
        ("chat", "The following tool_call_ids did not have response messages: call_000100"),
        ("responses", "No tool output found for function call call_000100."),
        (
            "anthropic",
            "`tool_use` ids were found without `tool_result` blocks immediately after: toolu",
        ),
        ("gemini", "the number of function response parts is equal to the number of function call"),
        ("interactions", "Function call `call_000100` has no function result."),
        ("ollama", "1 calls have no message of a tool behind them"),
    ];
    for (wire, words) in words {
        let told = refusal(wire, Step::call("fs.read", json!({})), |messages| {
            let result = messages.pop().unwrap();
            let again = messages[0].clone();
            messages.push(again);
            drop(result);
        });
        let told = told.await;
        assert!(told.contains(words), "{wire}: {told}");
    }
}

#[tokio::test]
async fn a_thought_that_was_changed_is_refused() {
    let words = [
        ("responses", "summary", "could not be verified"),
        ("responses", "encrypted_content", "could not be verified"),
        ("anthropic", "thinking", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        ("anthropic", "signature", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        ("gemini", "thoughtSignature", "Corrupted thought signature."),
        ("gemini", "args", "Corrupted thought signature."),
        ("interactions", "signature", "Corrupted thought signature."),
        ("interactions", "summary", "Corrupted thought signature."),
    ];
    for (wire, key, words) in words {
        let told = refusal(wire, thinks(), |messages| {
            let place = messages.iter_mut().find_map(|message| find(message, key)).unwrap();
            *place = match &place {
                Value::Array(_) => json!([{"type": "summary_text", "text": "Look."}]),
                Value::Object(_) => json!({"path": "b"}),
                _ => json!("Other."),
            };
        });
        let told = told.await;
        assert!(told.contains(words), "{wire} {key}: {told}");
    }
}

#[tokio::test]
async fn a_call_whose_thought_is_left_out_is_refused() {
    let words = [
        ("responses", "of type 'function_call' was provided without its required 'reasoning' item"),
        ("anthropic", "Expected `thinking` or `redacted_thinking`, but found `tool_use`"),
        ("gemini", "missing a thought_signature in functionCall parts"),
        ("interactions", "is missing the thought before it"),
    ];
    for (wire, words) in words {
        let told = refusal(wire, thinks(), |messages| {
            messages.retain(|it| !matches!(it["type"].as_str(), Some("thought" | "reasoning")));
            for message in messages {
                let list = match wire {
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
        let told = told.await;
        assert!(told.contains(words), "{wire}: {told}");
    }
}

#[tokio::test]
async fn a_thought_behind_its_call_is_refused() {
    let words = [
        ("responses", "without its required 'reasoning' item"),
        ("anthropic", "Expected `thinking` or `redacted_thinking`, but found `tool_use`"),
        ("interactions", "is missing the thought before it"),
    ];
    for (wire, words) in words {
        let told = refusal(wire, thinks(), |messages| match wire {
            "anthropic" => messages[1]["content"].as_array_mut().unwrap().reverse(),
            _ => messages.swap(1, 2),
        });
        let told = told.await;
        assert!(told.contains(words), "{wire}: {told}");
    }
}

#[tokio::test]
async fn a_thought_without_what_it_led_to_is_refused_by_responses() {
    let told = refusal("responses", thinks(), |messages| messages.truncate(2)).await;
    assert!(told.contains("of type 'reasoning' was provided without its required following item"));
    let told = refusal("responses", thinks(), |messages| {
        messages[1].as_object_mut().unwrap().remove("encrypted_content");
    });
    assert!(told.await.contains("Items are not persisted when `store` is set to false."));
}

#[tokio::test]
async fn a_sibling_of_a_signed_call_has_no_signature_and_needs_none() {
    let two = Step::call("fs.read", json!({"path": "a"})).calls("fs.read", json!({"path": "b"}));
    let double = |messages: &mut Vec<Value>| {
        let results = messages[2]["parts"].as_array_mut().unwrap();
        results.push(results[0].clone());
    };
    assert_eq!(refusal("gemini", two.clone(), double).await, "");
    let told = refusal("gemini", two.clone(), |messages| {
        double(messages);
        let signature = messages[1]["parts"][0]["thoughtSignature"].clone();
        assert!(messages[1]["parts"][1].get("thoughtSignature").is_none());
        messages[1]["parts"][1]["thoughtSignature"] = signature;
    });
    assert_eq!(told.await, "Corrupted thought signature.");
    let told = refusal("gemini", two, |_| {}).await;
    assert!(told.contains("is equal to the number of function call parts"), "{told}");
}

#[tokio::test]
async fn the_word_that_stands_for_a_signature_is_taken() {
    let step = Step::call("fs.read", json!({"path": "a"}));
    let told = refusal("gemini", step, |messages| {
        let word = json!("skip_thought_signature_validator");
        messages[1]["parts"][0]["thoughtSignature"] = word;
    });
    assert_eq!(told.await, "");
}

#[tokio::test]
async fn calls_of_a_turn_that_is_over_need_no_thought() {
    for wire in ["anthropic", "gemini"] {
        let told = refusal(wire, thinks(), |messages| {
            match wire {
                "anthropic" => drop(messages[1]["content"].as_array_mut().unwrap().remove(0)),
                _ => {
                    for part in messages[1]["parts"].as_array_mut().unwrap() {
                        part.as_object_mut().unwrap().remove("thoughtSignature");
                    }
                }
            }
            let again = messages[0].clone();
            messages.push(again);
        });
        assert_eq!(told.await, "", "{wire}");
    }
}

#[tokio::test]
async fn results_come_first_in_what_follows_calls_of_anthropic() {
    let text = json!({"type": "text", "text": "And?"});
    let step = Step::call("fs.read", json!({}));
    let told = refusal("anthropic", step.clone(), |messages| {
        messages[2]["content"].as_array_mut().unwrap().push(text.clone());
    });
    assert_eq!(told.await, "");
    let told = refusal("anthropic", step.clone(), |messages| {
        messages[2]["content"].as_array_mut().unwrap().insert(0, text.clone());
    });
    assert!(told.await.contains("without `tool_result` blocks immediately after"));
    let told = refusal("anthropic", step, |messages| {
        let results = messages[2]["content"].as_array_mut().unwrap();
        results.push(results[0].clone());
    });
    assert!(told.await.contains("each tool_use must have a single result"));
}

#[tokio::test]
async fn anthropic_wants_a_limit_and_no_empty_text() {
    let llm = ScriptedLlm::start(Step::say("a")).await;
    let mut body = talk::begin("anthropic");
    body["messages"][0]["content"] = json!([{"type": "text", "text": ""}]);
    let told = post(&llm, "anthropic", false, &body).await.json().await;
    assert_eq!(told["error"]["message"], "messages: text content blocks must be non-empty");
    assert_eq!(told["error"]["type"], "invalid_request_error");
    body.as_object_mut().unwrap().remove("max_tokens");
    let told = post(&llm, "anthropic", false, &body).await.json().await;
    assert_eq!(told["error"]["message"], "max_tokens: Field required");
}

#[tokio::test]
async fn what_is_no_json_is_refused() {
    for wire in WIRES {
        let llm = ScriptedLlm::start(Step::say("a")).await;
        let path = path(wire, false);
        let mut reply = super::Http::ask(&llm, "POST", path, &[], None).await;
        assert_eq!(reply.status, 400);
        assert_eq!(talk::message(wire, &reply.json().await), "the body is no JSON");
        assert_eq!(llm.steps_left(), 1);
    }
}
