//! Models over HTTP, in each of the six forms: a script on the other side, everything else as it is.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use innkeeper_agent::agent::{Agent, Report, Settings};
use innkeeper_agent::provider::{
    Capabilities, Class, Finish, LlmError, LlmProvider as _, Request, Wire,
};
use innkeeper_agent::result::Outcome;
use innkeeper_agent::tools::{Hints, Offered, Output, Running, ToolRunner};
use innkeeper_agent::transport::{Endpoint, HttpProvider};
use innkeeper_agent::turn::{Ended, Mechanism, ToolCalling, Way};
use innkeeper_host::config::Secret;
use innkeeper_testkit::{Script, ScriptedLlm, Step};
use innkeeper_toolcall::Tool;
use serde_json::{Value, json};

/// The tools of the chain, and what each was called with.
#[derive(Default)]
struct Chain(Mutex<Vec<(String, Value)>>);

/// What the model calls, one after the other, and with what.
fn steps() -> [(&'static str, Value); 5] {
    [
        ("files.list", json!({"folder": "/data"})),
        ("files.read", json!({"path": "/data/ä \"b\".txt", "lines": 3})),
        ("text.count", json!({"text": "a\nb\u{1F600}", "what": ["words", "lines"]})),
        ("notes.add", json!({"note": {"title": "t", "stars": 4.5}, "pinned": true})),
        ("clock.now", json!({})),
    ]
}

fn schema(arguments: &Value) -> Value {
    let members = arguments.as_object().unwrap();
    let typed = members.iter().map(|(name, value)| {
        let of = match value {
            Value::String(_) => json!({"type": "string"}),
            Value::Array(_) => json!({"type": "array", "items": {"type": "string"}}),
            Value::Object(_) => schema(value),
            Value::Bool(_) => json!({"type": "boolean"}),
            Value::Number(number) if number.is_f64() => json!({"type": "number"}),
            Value::Number(_) | Value::Null => json!({"type": "integer"}),
        };
        (name.clone(), of)
    });
    let properties: serde_json::Map<_, _> = typed.collect();
    let required: Vec<_> = members.keys().collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

impl ToolRunner for Chain {
    fn offered(&self) -> Vec<Offered> {
        let tool = |(name, arguments): &(&str, Value)| {
            let tool = Tool::new(*name, format!("Does {name}."), schema(arguments));
            Offered { tool, hints: Hints::default() }
        };
        steps().iter().map(tool).collect()
    }

    fn run<'r>(&'r self, name: &'r str, arguments: Value) -> Running<'r> {
        self.0.lock().unwrap().push((name.to_owned(), arguments));
        let text = format!("result of {name}");
        let result = json!({"content": [{"type": "text", "text": text}]});
        let result = serde_json::value::to_raw_value(&result).unwrap();
        Box::pin(async move { Ok(Output::new(result, false)) })
    }
}

/// A model that people use over each wire.
fn model(wire: Wire) -> &'static str {
    match wire {
        Wire::OpenAiChat => "gpt-4.1",
        Wire::OpenAiResponses => "gpt-6.1-terra",
        Wire::Anthropic => "claude-opus-5-5",
        Wire::GeminiGenerate => "gemini-3.8-flash",
        Wire::GeminiInteractions => "gemini-4-argon",
        Wire::Ollama => "qwen3:8b",
    }
}

fn endpoint(wire: Wire, llm: &ScriptedLlm) -> Endpoint {
    let base_url = match wire {
        Wire::OpenAiChat | Wire::OpenAiResponses => format!("{}/v1", llm.origin()),
        Wire::Anthropic | Wire::GeminiGenerate | Wire::GeminiInteractions | Wire::Ollama => {
            llm.origin().to_owned()
        }
    };
    let key = Some(Secret::new(KEY));
    Endpoint { base_url, key, ..Endpoint::new("test", wire, model(wire)) }
}

/// A key that is looked for in all that is said.
const KEY: &str = "sk-planted-0123456789";

fn chain(wire: Wire) -> Vec<Step> {
    let mut script: Vec<_> = steps()
        .into_iter()
        .map(|(name, arguments)| {
            // OpenAI itself tells no thoughts over this wire.
            let begun = match wire {
                Wire::OpenAiChat => Step::new(),
                _ => Step::think(format!("I need {name}.")),
            };
            begun.says("One moment.").calls(name, arguments).usage(100, 20)
        })
        .collect();
    script.push(Step::say("All five are done: größer.").usage(200, 30));
    script
}

async fn run(wire: Wire, script: Script, streaming: bool) -> (Report, Arc<Chain>, ScriptedLlm) {
    run_as(wire, script, streaming, Settings::default()).await
}

async fn run_as(
    wire: Wire,
    script: Script,
    streaming: bool,
    settings: Settings,
) -> (Report, Arc<Chain>, ScriptedLlm) {
    let llm = ScriptedLlm::start(script).await;
    let chain = Arc::new(Chain::default());
    let provider = Arc::new(HttpProvider::new(endpoint(wire, &llm)));
    let mut agent = Agent::new(provider, chain.clone(), settings);
    let report = if streaming {
        agent.run_streaming("Do all five.", |_| {}).await
    } else {
        agent.run("Do all five.").await
    };
    (report, chain, llm)
}

/// Where the requests go that `cargo xtask providers` holds against the providers' own types.
fn keep(wire: Wire, name: &str, llm: &ScriptedLlm) {
    let Some(folder) = std::env::var_os("INNKEEPER_KEEP_REQUESTS") else { return };
    let file = std::path::Path::new(&folder).join(format!("{wire:?}-{name}.jsonl"));
    let lines = llm.requests().into_iter().map(|seen| {
        let headers: serde_json::Map<_, _> =
            seen.headers.into_iter().map(|(name, value)| (name, value.into())).collect();
        let line = json!({"method": seen.method, "path": seen.path, "headers": headers, "body": seen.body});
        format!("{line}\n")
    });
    std::fs::write(file, lines.collect::<String>()).unwrap();
}

/// Proves: G16, G62, P-b1
#[tokio::test]
async fn the_same_chain_of_five_tools_runs_over_every_wire_in_any_pieces() {
    for wire in Wire::ALL {
        for (name, chunks, streaming) in [
            ("whole", usize::MAX, false),
            ("bytes", 1, true),
            ("stream", usize::MAX, true),
            ("sevens", 7, true),
        ] {
            let script = Script::new(chain(wire)).chunks(chunks);
            let (report, tools, llm) = run(wire, script, streaming).await;
            let what = format!("{wire:?} {name}");
            assert!(report.is_success(), "{what}: {report:?}");
            assert_eq!(report.text, "All five are done: größer.", "{what}");
            let called: Vec<_> = tools.0.lock().unwrap().clone();
            let wanted: Vec<_> =
                steps().into_iter().map(|(name, arguments)| (name.to_owned(), arguments)).collect();
            assert_eq!(called, wanted, "{what}");
            assert!(report.steps.iter().all(|step| step.mechanism == Mechanism::Native), "{what}");
            let usage = report.tally.usage;
            assert_eq!((usage.prompt_tokens, usage.completion_tokens), (700, 130), "{what}");
            assert!(report.tally.usage_is_whole, "{what}");
            let seen = llm.requests();
            assert_eq!(seen.len(), 6, "{what}");
            assert!(seen.iter().all(|seen| seen.status == Some(200)), "{what}: {seen:?}");
            assert!(seen[0].text.contains("Do all five."), "{what}");
            keep(wire, name, &llm);
        }
    }
}

/// Proves: G30
#[tokio::test]
async fn the_tokens_of_a_result_are_the_sums_that_the_provider_told() {
    for wire in Wire::ALL {
        for streaming in [false, true] {
            let script = Script::new([
                Step::call("files.list", json!({"folder": "a"})).usage(1_000_003, 17),
                Step::say("Done.").usage(2_000, 5).cached_tokens(20),
            ]);
            let (report, _, llm) = run(wire, script, streaming).await;
            let provider = HttpProvider::new(endpoint(wire, &llm));
            let outcome = serde_json::to_value(Outcome::new(&report, &provider, 5)).unwrap();
            let told = &outcome["execution_metadata"]["token_usage"];
            assert_eq!(told["prompt_tokens"], json!(1_002_003), "{wire:?} {streaming}");
            assert_eq!(told["completion_tokens"], json!(22), "{wire:?} {streaming}");
            assert_eq!(told["total_tokens"], json!(1_002_025), "{wire:?} {streaming}");
            assert_eq!(told["available"], json!(true), "{wire:?} {streaming}");
        }
    }
}

/// Proves: G53
#[tokio::test]
async fn parallel_calls_are_answered_in_their_order_over_every_wire() {
    for wire in Wire::ALL {
        let two = Step::say("Both.")
            .calls("files.list", json!({"folder": "a"}))
            .calls("files.list", json!({"folder": "b"}));
        let (report, tools, llm) = run(wire, Script::new([two, Step::say("Done.")]), true).await;
        assert!(report.is_success(), "{wire:?}: {report:?}");
        assert_eq!(tools.0.lock().unwrap().len(), 2, "{wire:?}");
        keep(wire, "parallel", &llm);
    }
}

#[tokio::test]
async fn arguments_with_numbers_no_machine_holds_are_kept_to_the_digit() {
    for wire in Wire::ALL {
        let big = r#"{"folder": "a", "size": 123456789012345678901234567890}"#;
        let script =
            Script::new([Step::new().raw_arguments("files.list", big), Step::say("Done.")]);
        let (report, _, llm) = run(wire, script, true).await;
        assert!(report.is_success(), "{wire:?}: {report:?}");
        let said = &llm.requests()[1].text;
        assert!(said.contains("123456789012345678901234567890"), "{wire:?}: {said}");
    }
}

/// Proves: G55, G79
#[tokio::test(start_paused = true)]
async fn a_failure_has_the_same_class_over_every_wire() {
    for wire in Wire::ALL {
        for (status, class) in [(401, Class::Key), (404, Class::NotFound), (400, Class::Request)] {
            let script = Script::new([Step::status(status).error("as asked")]);
            let (report, _, llm) = run(wire, script, false).await;
            let Ended::Failed(error) = &report.ended else { panic!("{wire:?}: {report:?}") };
            assert_eq!(error.class, class, "{wire:?} {status}: {error}");
            assert_eq!(error.status, Some(status), "{wire:?}");
            assert!(error.to_string().contains("as asked"), "{wire:?}: {error}");
            assert_eq!(llm.requests().len(), 1, "{wire:?} {status}");
        }
    }
}

/// Proves: G55
#[tokio::test]
async fn a_provider_that_is_overloaded_is_asked_again_when_it_says() {
    for wire in Wire::ALL {
        for status in [429, 500, 503] {
            let busy = Step::status(status).header("retry-after", "0.01").error("busy");
            let script = Script::new([busy, Step::say("Now.")]);
            let (report, _, llm) = run(wire, script, true).await;
            assert!(report.is_success(), "{wire:?} {status}: {report:?}");
            assert_eq!(report.tally.repeated, 1, "{wire:?} {status}");
            assert_eq!(llm.requests().len(), 2, "{wire:?} {status}");
        }
        let long = Step::status(429).header("retry-after", "3600").error("tomorrow");
        let (report, ..) = run(wire, Script::new([long]), false).await;
        let Ended::Failed(error) = &report.ended else { panic!("{wire:?}: {report:?}") };
        let after = Some(Duration::from_secs(3600));
        assert_eq!(error.class, Class::Later { after }, "{wire:?}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_asked_for_again_and_no_half_of_it_is_run() {
    for wire in Wire::ALL {
        let half = Step::call("files.list", json!({"folder": "a"})).breaks_off_after(200);
        let script = Script::new([half, Step::say("Whole.")]);
        let (report, tools, _) = run(wire, script, true).await;
        assert!(report.is_success(), "{wire:?}: {report:?}");
        assert_eq!(report.text, "Whole.", "{wire:?}");
        assert!(tools.0.lock().unwrap().is_empty(), "{wire:?}");
    }
}

/// Proxies keep connections open, and servers close them without a good-bye.
#[tokio::test]
async fn an_answer_that_is_whole_counts_however_its_connection_ends() {
    for wire in [Wire::OpenAiChat, Wire::OpenAiResponses, Wire::Anthropic, Wire::Ollama] {
        for step in [
            Step::say("Whole.").hangs_after(1 << 20),
            Step::say("Whole.").breaks_off_after(1 << 20),
        ] {
            let running = run(wire, Script::new([step]), true);
            let (report, _, llm) =
                tokio::time::timeout(Duration::from_secs(20), running).await.unwrap();
            assert!(report.is_success(), "{wire:?}: {report:?}");
            assert_eq!(llm.requests().len(), 1, "{wire:?}");
        }
    }
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_is_one() {
    for wire in Wire::ALL {
        let step = Step::say("Half an").ends_in_error("the model fell over");
        let llm = ScriptedLlm::start(Script::new([step])).await;
        let provider = HttpProvider::new(endpoint(wire, &llm));
        let messages = vec![innkeeper_agent::conversation::Message::User("Hi".into())];
        let mut stream = provider.stream(Request { messages, ..Request::default() });
        let mut last = None;
        while let Some(piece) = futures_util::StreamExt::next(&mut stream).await {
            last = Some(piece);
        }
        let error = last.unwrap().unwrap_err();
        assert!(error.to_string().contains("fell over"), "{wire:?}: {error}");
    }
}

/// Proves: G77
#[tokio::test]
async fn an_answer_cut_by_its_token_limit_is_told_over_every_wire() {
    for wire in Wire::ALL {
        for streaming in [false, true] {
            let (report, ..) =
                run(wire, Script::new([Step::say("Half an").cut()]), streaming).await;
            assert!(matches!(report.ended, Ended::Cut), "{wire:?}: {report:?}");
            assert_eq!(report.text, "Half an", "{wire:?}");
        }
    }
}

/// Two wires have no word for it.
#[tokio::test]
async fn a_model_that_declines_is_told_apart() {
    for wire in [Wire::OpenAiChat, Wire::OpenAiResponses, Wire::Anthropic, Wire::GeminiGenerate] {
        for streaming in [false, true] {
            let script = Script::new([Step::say("I will not.").refuses()]);
            let (report, ..) = run(wire, script, streaming).await;
            assert!(matches!(report.ended, Ended::Refused), "{wire:?} {streaming}: {report:?}");
        }
    }
}

/// Proves: G56
#[tokio::test]
async fn malformed_arguments_become_an_error_to_the_model_over_every_wire() {
    for wire in Wire::ALL {
        for streaming in [false, true] {
            let bad = Step::new().raw_arguments("files.list", r#"{"folder": "#);
            let good = Step::call("files.list", json!({"folder": "a"}));
            let script = Script::new([bad, good, Step::say("Done.")]);
            let settings =
                Settings { retry_delay: Duration::from_millis(1), ..Settings::default() };
            let (report, tools, _) = run_as(wire, script, streaming, settings).await;
            assert!(report.is_success(), "{wire:?} {streaming}: {report:?}");
            let called = tools.0.lock().unwrap().clone();
            assert_eq!(called, [("files.list".to_owned(), json!({"folder": "a"}))], "{wire:?}");
        }
    }
}

/// Proves: P2, P4
#[tokio::test]
async fn by_prompt_no_wire_is_sent_tools() {
    for wire in Wire::ALL {
        let call = r#"{"tool": "files.list", "params": {"folder": "a"}}"#;
        let script = Script::new([Step::say(call), Step::say("Done.")]);
        let calling = ToolCalling::Prompt;
        let settings = Settings { calling, temperature: Some(0.7), ..Settings::default() };
        let (report, tools, llm) = run_as(wire, script, true, settings).await;
        assert!(report.is_success(), "{wire:?}: {report:?}");
        assert_eq!(tools.0.lock().unwrap().len(), 1, "{wire:?}");
        for seen in llm.requests() {
            assert!(seen.body.get("tools").is_none(), "{wire:?}");
        }
        if wire == Wire::Ollama {
            let options = &llm.requests()[0].body["options"];
            assert_eq!(options["temperature"], json!(0.7));
            assert_eq!(options["num_predict"], json!(4096));
        }
        keep(wire, "prompt", &llm);
    }
}

/// Proves: P25
#[tokio::test]
async fn a_model_without_tools_is_asked_by_prompt_after_its_server_said_so() {
    let refuses =
        Step::status(400).error("registry.ollama.ai/library/llama3.1:8b does not support tools");
    let call = r#"{"name": "files.list", "parameters": {"folder": "a"}}"#;
    let script = Script::new([refuses, Step::say(call), Step::say("Done.")]);
    let (report, tools, llm) = run(Wire::Ollama, script, false).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(report.way, Some(Way::Prompt));
    assert_eq!(tools.0.lock().unwrap().len(), 1);
    assert!(llm.requests()[0].body.get("tools").is_some());
    assert!(llm.requests()[1].body.get("tools").is_none());
}

#[tokio::test]
async fn a_llama_server_whose_template_knows_no_tools_is_noticed_before_it_is_asked() {
    let script = Script::new([Step::say("Hello.")])
        .chat_template_caps(&json!({"supports_tools": false, "supports_tool_calls": false}))
        .models(["small"]);
    let llm = ScriptedLlm::start(script).await;
    let base_url = format!("{}/v1", llm.origin());
    let endpoint = Endpoint { base_url, ..Endpoint::new("local", Wire::OpenAiChat, "") };
    let mut provider = HttpProvider::new(endpoint);
    assert!(provider.capabilities().native_tools);
    provider.look().await.unwrap();
    assert!(!provider.capabilities().native_tools && provider.capabilities().constraints.gbnf);
    assert_eq!(provider.model(), "small");
    assert_eq!(provider.capabilities().context_tokens, Some(8192));
}

#[tokio::test]
async fn ollama_is_given_a_window_in_which_what_is_sent_has_room() {
    let (report, _, llm) = run(Wire::Ollama, Script::new([Step::say("Hi.")]), false).await;
    assert!(report.is_success());
    let options = &llm.requests()[0].body["options"];
    assert_eq!((&options["num_ctx"], &options["num_predict"]), (&json!(16_384), &json!(4096)));
}

#[tokio::test]
async fn a_cut_that_llama_cpp_does_not_tell_is_noticed_by_its_count_of_tokens() {
    for (tokens, finish) in [(7, Finish::Stop), (8, Finish::Length)] {
        let script = Script::new([Step::say("Half an").usage(5, tokens)])
            .chat_template_caps(&json!({"supports_tools": true}));
        let llm = ScriptedLlm::start(script).await;
        let base_url = format!("{}/v1", llm.origin());
        let endpoint = Endpoint { base_url, ..Endpoint::new("local", Wire::OpenAiResponses, "m") };
        let mut provider = HttpProvider::new(endpoint);
        provider.look().await.unwrap();
        let messages = vec![innkeeper_agent::conversation::Message::User("Hi".into())];
        let request = Request { messages, max_tokens: Some(8), ..Request::default() };
        assert_eq!(provider.generate(request).await.unwrap().finish, finish, "{tokens}");
    }
}

/// Proves: G52
#[tokio::test]
async fn the_same_request_gives_the_same_answer_over_every_wire() {
    let mut answers = BTreeSet::new();
    for wire in Wire::ALL {
        let step = Step::say("Look.").calls("files.list", json!({"folder": "a"})).usage(11, 7);
        let llm = ScriptedLlm::start(Script::new([step])).await;
        let provider = HttpProvider::new(endpoint(wire, &llm));
        let tools = Chain::default().offered().into_iter().map(|offered| offered.tool).collect();
        let messages = vec![innkeeper_agent::conversation::Message::User("Hi".into())];
        let request = Request { messages, tools: Arc::new(tools), ..Request::default() };
        let response = provider.generate(request).await.unwrap();
        let calls: Vec<_> = response
            .answer
            .calls()
            .map(|call| {
                (call.name.clone(), serde_json::from_str::<Value>(&call.arguments).unwrap())
            })
            .collect();
        answers.insert(format!(
            "{:?} {:?} {:?} {:?}",
            response.answer.shown(),
            calls,
            response.usage.map(|usage| (usage.prompt_tokens, usage.completion_tokens)),
            response.finish
        ));
    }
    assert_eq!(answers.len(), 1, "{answers:#?}");
}

#[tokio::test]
async fn a_key_is_sent_to_its_provider_and_told_to_nobody_else() {
    for wire in Wire::ALL {
        let wrong = Step::status(401).error("no");
        let (report, _, llm) = run(wire, Script::new([wrong]), false).await;
        let seen = &llm.requests()[0];
        assert!(seen.headers.iter().any(|(_, value)| value.contains(KEY)), "{wire:?}");
        assert!(!seen.text.contains(KEY) && !seen.query.contains(KEY), "{wire:?}");
        let Ended::Failed(error) = &report.ended else { panic!("{wire:?}") };
        let told = format!("{error} {error:?} {report:?} {:?}", endpoint(wire, &llm));
        assert!(!told.contains(KEY), "{told}");
    }
}

/// Nothing is sent to where nobody listens, and the error names no secret part of the address.
#[tokio::test]
async fn an_address_that_is_not_reached_is_an_error_that_names_the_provider() {
    let endpoint = Endpoint {
        base_url: format!("http://user:{KEY}@127.0.0.1:9/v1"),
        capabilities: Capabilities::default(),
        ..Endpoint::new("mine", Wire::OpenAiChat, "m")
    };
    let messages = vec![innkeeper_agent::conversation::Message::User("Hi".into())];
    let request = Request { messages, ..Request::default() };
    let error: LlmError = HttpProvider::new(endpoint).generate(request).await.unwrap_err();
    assert_eq!(error.class, Class::Connection);
    let told = innkeeper_agent_chain(&error);
    assert!(told.contains("`mine`") && !told.contains(KEY), "{told}");
}

/// An error with all that is behind it.
fn innkeeper_agent_chain(error: &dyn std::error::Error) -> String {
    let mut told = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(behind) = source {
        told.push_str(&format!(" <- {behind} {behind:?}"));
        source = behind.source();
    }
    told
}
