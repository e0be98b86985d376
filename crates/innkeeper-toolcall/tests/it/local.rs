//! Grammars on a real llama.cpp server: a model with 135 million parameters can write only valid
//! calls. Without a server, the test prints the reason and passes.

use innkeeper_testkit::LlamaServer;
use innkeeper_toolcall::grammar::{CallSchemaOptions, GbnfOptions, OutputShape, call_schema, gbnf};
use innkeeper_toolcall::prompt::Template;
use innkeeper_toolcall::{ModelFamily, Tool, Tools};
use serde_json::{Value, json};

/// Number of calls in each of the four tests, 100 in total.
const CALLS_PER_TEST: u64 = 25;

/// Short strings keep the test fast; a weak model writes up to the limit.
const MAX_STRING_CHARS: u64 = 20;

/// More tokens than the longest call needs.
const MAX_TOKENS: u64 = 500;

/// Starts the server.
fn start_server() -> LlamaServer {
    LlamaServer::start(&[]).unwrap_or_else(|reason| panic!("{reason}"))
}

fn tool(name: &str, description: &str, schema: Value) -> Tool {
    Tool::new(name, description, schema)
}

/// Lets the model call these tools repeatedly: with a grammar, and every other time with a call
/// schema if that schema has no losses.
fn assert_valid_calls(tools: Vec<Tool>, prompts: &[&str]) {
    let tools: Tools = tools.into_iter().collect();
    assert!((3..=5).contains(&tools.len()));
    let server = start_server();
    let system = Template::for_model("smollm2").system_prompt("Call a tool.", &tools).unwrap();
    let grammar =
        gbnf(&tools, OutputShape::Call, GbnfOptions { string_limit: Some(MAX_STRING_CHARS) })
            .unwrap();
    let options =
        CallSchemaOptions { string_limit: Some(MAX_STRING_CHARS), ..CallSchemaOptions::default() };
    let schema = call_schema(&tools, options).unwrap();
    assert!(grammar.losses.is_empty(), "{:?}", grammar.losses);
    let mut called_names = std::collections::BTreeSet::new();
    for seed in 0..CALLS_PER_TEST {
        let mut request = json!({
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": prompts[seed as usize % prompts.len()]},
            ],
            "max_tokens": MAX_TOKENS, "temperature": 1.0, "seed": seed,
        });
        if seed % 2 == 0 || !schema.losses.is_empty() {
            request["grammar"] = grammar.text.clone().into();
        } else {
            let json_schema = json!({"name": "call", "strict": true, "schema": schema.schema});
            request["response_format"] = json!({"type": "json_schema", "json_schema": json_schema});
        }
        let (status, response) = server.post("/v1/chat/completions", &request);
        assert_eq!(status, 200, "{response}");
        let text = response["choices"][0]["message"]["content"].as_str().unwrap();
        let call: Value =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let tool = call["name"].as_str().and_then(|name| tools.get(name));
        let tool = tool.unwrap_or_else(|| panic!("no such tool: {text}"));
        let validator = jsonschema::validator_for(&tool.input_schema).unwrap();
        assert!(validator.is_valid(&call["arguments"]), "{text}");
        called_names.insert(tool.name.clone());
    }
    eprintln!("{CALLS_PER_TEST} calls that fit, of {called_names:?}");
}

#[test]
#[ignore = "minutes: `cargo xtask eval-grammars` runs it"]
fn the_model_calls_tools_with_strings_numbers_and_choices() {
    assert_valid_calls(
        vec![
            tool(
                "weather",
                "The weather of a city.",
                json!({"type": "object", "properties": {
                "city": {"type": "string", "minLength": 1},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
            }, "required": ["city", "unit"], "additionalProperties": false}),
            ),
            tool(
                "add",
                "Adds two numbers.",
                json!({"type": "object", "properties": {
                "a": {"type": "number", "minimum": -1000, "maximum": 1000},
                "b": {"type": "number", "minimum": -0.5, "exclusiveMaximum": 99.5},
            }, "required": ["a", "b"], "additionalProperties": false}),
            ),
            tool(
                "now",
                "The time.",
                json!({"type": "object", "properties": {}, "additionalProperties": false}),
            ),
        ],
        &["How is the weather in Paris, in celsius?", "What is 12 plus 30.5?", "What time is it?"],
    );
}

#[test]
#[ignore = "minutes: `cargo xtask eval-grammars` runs it"]
fn the_model_calls_tools_with_nested_objects() {
    assert_valid_calls(
        vec![
            tool(
                "book_flight",
                "Books a flight.",
                json!({"type": "object", "properties": {
                    "from": {"type": "object", "properties": {
                        "airport": {"type": "string", "minLength": 3, "maxLength": 3}, "date": {"type": "string", "format": "date"},
                    }, "required": ["airport", "date"], "additionalProperties": false},
                    "traveller": {"$ref": "#/$defs/person"},
                }, "required": ["from", "traveller"], "additionalProperties": false, "$defs": {
                    "person": {"type": "object", "properties": {
                        "name": {"type": "string"}, "age": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 130}, {"type": "null"}]},
                    }, "required": ["name", "age"], "additionalProperties": false},
                }}),
            ),
            tool(
                "cancel",
                "Cancels a flight.",
                json!({"type": "object", "properties": {
                "reason": {"anyOf": [{"const": "illness"}, {"type": "object", "properties": {
                    "other": {"type": "string"},
                }, "required": ["other"], "additionalProperties": false}]},
            }, "required": ["reason"], "additionalProperties": false}),
            ),
            tool(
                "flight",
                "Looks a flight up.",
                json!({"type": "object", "properties": {
                "id": {"type": "string", "format": "uuid"},
            }, "required": ["id"], "additionalProperties": false}),
            ),
            tool(
                "seat",
                "Chooses a seat.",
                json!({"type": "object", "properties": {
                "row": {"type": "integer", "minimum": 1, "maximum": 40}, "letter": {"enum": ["A", "B", "C"]}, "window": {"type": "boolean"},
            }, "required": ["row"], "additionalProperties": false}),
            ),
        ],
        &["Book a flight for Ada, 36, from CDG.", "I am ill, cancel.", "I want seat 12A."],
    );
}

#[test]
#[ignore = "minutes: `cargo xtask eval-grammars` runs it"]
fn the_model_calls_tools_with_lists() {
    assert_valid_calls(
        vec![
            tool(
                "order",
                "Orders food.",
                json!({"type": "object", "properties": {
                "items": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "object", "properties": {
                    "dish": {"enum": ["pizza", "soup", "salad"]}, "count": {"type": "integer", "minimum": 1, "maximum": 9},
                }, "required": ["dish", "count"], "additionalProperties": false}},
            }, "required": ["items"], "additionalProperties": false}),
            ),
            tool(
                "tag",
                "Tags a note.",
                json!({"type": "object", "properties": {
                "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 4},
                "place": {"type": "array", "items": {"type": "number", "minimum": -180, "maximum": 180}, "minItems": 2, "maxItems": 2},
            }, "required": ["tags"], "additionalProperties": false}),
            ),
            tool(
                "sort",
                "Sorts numbers.",
                json!({"type": "object", "properties": {
                "numbers": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 999}, "minItems": 2, "maxItems": 6},
                "order": {"enum": ["up", "down"]},
            }, "required": ["numbers", "order"], "additionalProperties": false}),
            ),
        ],
        &[
            "Two pizzas and a soup, please.",
            "Tag this note: work, urgent.",
            "Sort 5, 3 and 9 downwards.",
        ],
    );
}

#[test]
#[ignore = "minutes: `cargo xtask eval-grammars` runs it"]
fn the_model_calls_one_of_five_tools_all_of_whose_arguments_are_optional() {
    let tool_named = |name: &str, keys: [&str; 3]| {
        tool(
            name,
            "Does it.",
            json!({"type": "object", "properties": {
            keys[0]: {"type": "string", "maxLength": 12}, keys[1]: {"type": "boolean"}, keys[2]: {"type": "integer", "maximum": 5, "minimum": -5},
        }, "additionalProperties": false}),
        )
    };
    assert_valid_calls(
        vec![
            tool_named("files.search", ["name", "deep", "limit"]),
            tool_named("files-delete", ["path", "force", "days"]),
            tool_named("mail_send", ["to", "urgent", "copies"]),
            tool_named("Music.Play", ["title", "loop", "volume"]),
            tool_named("say \"hi\"", ["who", "loud", "times"]),
        ],
        &[
            "Find notes.txt.",
            "Delete old.txt now.",
            "Write to Bob.",
            "Play some jazz.",
            "Say hi to Eve.",
        ],
    );
}

#[test]
#[ignore = "needs the local model: `cargo xtask test` runs it"]
fn the_server_takes_every_construct_and_every_shape() {
    let server = start_server();
    let schema = json!({"type": "object", "properties": {
        "na\"me\\ é\u{1F600}": {"type": "string", "minLength": 2, "maxLength": 1000},
        "time": {"type": "string", "format": "date-time"}, "ip": {"type": "string", "format": "ipv4"},
        "big": {"type": "integer", "minimum": -1_000_000, "exclusiveMaximum": 123_456_789},
        "part": {"type": "number", "exclusiveMinimum": -0.125, "maximum": 2.5},
        "map": {"type": "object", "properties": {"a-b]": {}, "a^": {}}, "additionalProperties": {"type": "null"}},
        "tree": {"$ref": "#/$defs/tree"}, "any": {}, "list": {"type": "array", "minItems": 1001},
        "pair": {"prefixItems": [{"type": "string"}, {"enum": ["\u{7F}\u{2028}\t", 1.5, null]}], "maxItems": 2},
        "all": {"allOf": [{"properties": {"x": {"type": "integer"}}}, {"required": ["x"]}]},
    }, "required": ["tree"], "$defs": {"tree": {"type": "object", "properties": {
        "sides": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 1000},
    }}}});
    let tools: Tools =
        [tool("tööl \"1\"", "", schema), tool("2", "", json!({}))].into_iter().collect();
    let shapes = ModelFamily::ALL
        .into_iter()
        .flat_map(|family| [OutputShape::FreeText(family), OutputShape::Triggered(family)]);
    for shape in [OutputShape::Call, OutputShape::Calls].into_iter().chain(shapes) {
        let text = gbnf(&tools, shape, GbnfOptions::default()).unwrap().text;
        let request = json!({"prompt": "A call: ", "n_predict": 8, "grammar": text});
        let (status, response) = server.post("/completion", &request);
        assert_eq!(status, 200, "{shape:?}: {response}\n{text}");
    }
    let schema = call_schema(
        &tools,
        CallSchemaOptions { allow_answer: true, ..CallSchemaOptions::default() },
    )
    .unwrap();
    let request = json!({"prompt": "A call: ", "n_predict": 8, "json_schema": schema.schema});
    let (status, response) = server.post("/completion", &request);
    assert_eq!(status, 200, "{response}");
    let invalid_grammar = json!({"prompt": "", "n_predict": 8, "grammar": "root ::= nothing"});
    assert_eq!(
        server.post("/completion", &invalid_grammar).0,
        400,
        "what is no grammar is told from one"
    );
}

#[test]
#[ignore = "needs the local model: `cargo xtask test` runs it"]
fn a_grammar_that_waits_for_its_trigger_lets_text_pass_and_constrains_the_call() {
    let server = start_server();
    let family = ModelFamily::Qwen25Coder;
    let schema = json!({"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"]});
    let tools: Tools = [tool("pick", "", schema)].into_iter().collect();
    let text = gbnf(&tools, OutputShape::Triggered(family), GbnfOptions::default()).unwrap().text;
    let complete = |prompt: &str| {
        let request = json!({
            "prompt": prompt, "n_predict": 60, "temperature": 0, "grammar": text, "grammar_lazy": true,
            "grammar_triggers": [{"type": 1, "value": family.trigger()}],
            "preserved_tokens": [family.trigger()],
        });
        let (status, response) = server.post("/completion", &request);
        assert_eq!(status, 200, "{response}");
        response["content"].as_str().unwrap().to_owned()
    };
    assert!(!complete("The capital of France is").contains(family.trigger()));
    let repeated =
        format!("{0}x</tool_call>\n{0}x</tool_call>\n{0}x</tool_call>\n", family.trigger());
    let call = complete(&repeated);
    let expected = format!("{}{{\"n\": 7}}{}", family.call_start("pick"), family.call_end());
    let free = format!("{}{{\"n\":7}}{}", family.call_start("pick"), family.call_end());
    let (_, rest) = call.split_once(family.trigger()).unwrap_or_else(|| panic!("no call: {call}"));
    let full_text = format!("{}{rest}", family.trigger());
    assert!(full_text.starts_with(&expected) || full_text.starts_with(&free), "{call}");
}
