//! A real llama.cpp server takes our grammars, and a model of 135 million weights writes calls by
//! them that fit: it cannot write others. Where there is no such server, one line says why.

use innkeeper_testkit::LlamaServer;
use innkeeper_toolcall::grammar::{GbnfOptions, Shape, UnionOptions, gbnf, union};
use innkeeper_toolcall::prompt::Template;
use innkeeper_toolcall::{Family, Tool, Tools};
use serde_json::{Value, json};

/// Calls in each of the four tests, a hundred together.
const CALLS: u64 = 25;

/// Strings this short keep the run short; a weak model writes on to the limit.
const STRING: u64 = 20;

/// More tokens than the longest call has.
const TOKENS: u64 = 500;

/// The server, or a word on why there is none.
fn started() -> Option<LlamaServer> {
    match LlamaServer::start(&[]) {
        Ok(server) => Some(server),
        Err(reason) => {
            eprintln!("SKIPPED: {reason}");
            None
        }
    }
}

fn tool(name: &str, description: &str, schema: Value) -> Tool {
    Tool::new(name, description, schema)
}

/// Has the model call these tools again and again: by a grammar, and every other time by a schema
/// where such a schema holds all that the tools ask for.
fn prove(tools: Vec<Tool>, asked: &[&str]) {
    let tools: Tools = tools.into_iter().collect();
    assert!((3..=5).contains(&tools.len()));
    let Some(server) = started() else { return };
    let system = Template::of("smollm2").enhance("Call a tool.", &tools).unwrap();
    let grammar = gbnf(&tools, Shape::Call, GbnfOptions { string_limit: Some(STRING) }).unwrap();
    let options = UnionOptions { string_limit: Some(STRING), ..UnionOptions::default() };
    let schema = union(&tools, options).unwrap();
    assert!(grammar.losses.is_empty(), "{:?}", grammar.losses);
    let mut called = std::collections::BTreeSet::new();
    for seed in 0..CALLS {
        let mut request = json!({
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": asked[seed as usize % asked.len()]},
            ],
            "max_tokens": TOKENS, "temperature": 1.0, "seed": seed,
        });
        if seed % 2 == 0 || !schema.losses.is_empty() {
            request["grammar"] = grammar.text.clone().into();
        } else {
            let named = json!({"name": "call", "strict": true, "schema": schema.schema});
            request["response_format"] = json!({"type": "json_schema", "json_schema": named});
        }
        let (status, answer) = server.post("/v1/chat/completions", &request);
        assert_eq!(status, 200, "{answer}");
        let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
        let call: Value =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let tool = call["name"].as_str().and_then(|name| tools.get(name));
        let tool = tool.unwrap_or_else(|| panic!("no such tool: {text}"));
        let validator = jsonschema::validator_for(&tool.input_schema).unwrap();
        assert!(validator.is_valid(&call["arguments"]), "{text}");
        called.insert(tool.name.clone());
    }
    eprintln!("{CALLS} calls that fit, of {called:?}");
}

#[test]
#[ignore = "minutes: `cargo xtask generations` runs it"]
fn the_model_calls_tools_with_strings_numbers_and_choices() {
    prove(
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
#[ignore = "minutes: `cargo xtask generations` runs it"]
fn the_model_calls_tools_with_nested_objects() {
    prove(
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
#[ignore = "minutes: `cargo xtask generations` runs it"]
fn the_model_calls_tools_with_lists() {
    prove(
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
#[ignore = "minutes: `cargo xtask generations` runs it"]
fn the_model_calls_one_of_five_tools_all_of_whose_arguments_are_optional() {
    let named = |name: &str, keys: [&str; 3]| {
        tool(
            name,
            "Does it.",
            json!({"type": "object", "properties": {
            keys[0]: {"type": "string", "maxLength": 12}, keys[1]: {"type": "boolean"}, keys[2]: {"type": "integer", "maximum": 5, "minimum": -5},
        }, "additionalProperties": false}),
        )
    };
    prove(
        vec![
            named("files.search", ["name", "deep", "limit"]),
            named("files-delete", ["path", "force", "days"]),
            named("mail_send", ["to", "urgent", "copies"]),
            named("Music.Play", ["title", "loop", "volume"]),
            named("say \"hi\"", ["who", "loud", "times"]),
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
fn the_server_takes_every_construct_and_every_shape() {
    let Some(server) = started() else { return };
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
    let shapes = Family::ALL.into_iter().flat_map(|it| [Shape::Prose(it), Shape::Triggered(it)]);
    for shape in [Shape::Call, Shape::Calls].into_iter().chain(shapes) {
        let text = gbnf(&tools, shape, GbnfOptions::default()).unwrap().text;
        let request = json!({"prompt": "A call: ", "n_predict": 8, "grammar": text});
        let (status, answer) = server.post("/completion", &request);
        assert_eq!(status, 200, "{shape:?}: {answer}\n{text}");
    }
    let schema = union(&tools, UnionOptions { answer: true, ..UnionOptions::default() }).unwrap();
    let request = json!({"prompt": "A call: ", "n_predict": 8, "json_schema": schema.schema});
    let (status, answer) = server.post("/completion", &request);
    assert_eq!(status, 200, "{answer}");
    let refused = json!({"prompt": "", "n_predict": 8, "grammar": "root ::= nothing"});
    assert_eq!(server.post("/completion", &refused).0, 400, "what is no grammar is told from one");
}

#[test]
fn a_grammar_that_waits_for_its_trigger_lets_prose_pass_and_holds_the_call() {
    let Some(server) = started() else { return };
    let family = Family::Qwen25Coder;
    let schema = json!({"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"]});
    let tools: Tools = [tool("pick", "", schema)].into_iter().collect();
    let text = gbnf(&tools, Shape::Triggered(family), GbnfOptions::default()).unwrap().text;
    let said = |prompt: &str| {
        let request = json!({
            "prompt": prompt, "n_predict": 60, "temperature": 0, "grammar": text, "grammar_lazy": true,
            "grammar_triggers": [{"type": 1, "value": family.trigger()}],
            "preserved_tokens": [family.trigger()],
        });
        let (status, answer) = server.post("/completion", &request);
        assert_eq!(status, 200, "{answer}");
        answer["content"].as_str().unwrap().to_owned()
    };
    assert!(!said("The capital of France is").contains(family.trigger()));
    let repeated =
        format!("{0}x</tool_call>\n{0}x</tool_call>\n{0}x</tool_call>\n", family.trigger());
    let call = said(&repeated);
    let held = format!("{}{{\"n\": 7}}{}", family.begin("pick"), family.end());
    let free = format!("{}{{\"n\":7}}{}", family.begin("pick"), family.end());
    let (_, rest) = call.split_once(family.trigger()).unwrap_or_else(|| panic!("no call: {call}"));
    let whole = format!("{}{rest}", family.trigger());
    assert!(whole.starts_with(&held) || whole.starts_with(&free), "{call}");
}
