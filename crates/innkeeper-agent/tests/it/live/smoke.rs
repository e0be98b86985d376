//! Smoke test with the real model: less than a minute of one core.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use innkeeper_agent::SingleServer;
use innkeeper_agent::agent::AgentSettings;
use innkeeper_agent::conversation::Message;
use innkeeper_agent::provider::{
    FinishReason, LlmProvider as _, ProviderApi, Request, StreamChunk,
};
use innkeeper_agent::run::{CallOrigin, RunOutcome, ToolCallMode, ToolCalling};
use innkeeper_agent::safety::ToolBlocklist;
use innkeeper_agent::tools::ToolRunner as _;
use innkeeper_host::Environment;
use innkeeper_testkit::{LlamaServer, fixture_program};
use tokio::time::{Instant, timeout};

use super::{
    LLAMA_APIS, RecordingTools, connect_model, run_agent, start_server, tasks, test_settings,
};

fn text_request(text: &str, max_tokens: u32) -> Request {
    let messages = vec![Message::User(text.into())];
    let (temperature, max_tokens) = (Some(0.0), Some(max_tokens));
    Request { messages, temperature, max_tokens, ..Request::default() }
}

/// The test asserts the sequence of calls, never the text: the text varies between machines.
#[tokio::test]
#[ignore = "needs the local model: `cargo xtask test` runs it"]
async fn a_real_model_calls_a_tool_and_answers_with_its_result_over_each_api() {
    let server = start_server();
    let case = tasks::load_cases()
        .into_iter()
        .find(|candidate| candidate.question.contains("timer for 12"))
        .unwrap();
    for api in LLAMA_APIS {
        let tools = RecordingTools::for_case(&case);
        let settings = test_settings(ToolCalling::Native);
        let provider = connect_model(api, &server.origin()).await;
        let report = run_agent(provider, tools.clone(), settings, &case.question).await;
        assert!(report.is_success() && !report.text.is_empty(), "{api:?}: {report:?}");
        assert_eq!(report.tool_calls[0].origin, CallOrigin::Native, "{api:?}: {report:?}");
        let (tool, arguments) = &tools.calls()[0];
        assert!(case.is_valid(tool, arguments), "{api:?}: {tool} {arguments}");
        let usage = report.stats.usage;
        assert!(report.stats.usage_is_complete && usage.prompt_tokens > 100, "{api:?}: {usage:?}");
    }
}

/// An MCP server process, a model process, and a call that must match its schema.
#[tokio::test]
#[ignore = "needs the local model: `cargo xtask test` runs it"]
async fn a_constrained_call_fits_its_schema_and_reaches_a_real_server() {
    let server = start_server();
    let program = fixture_program().display().to_string();
    let tools = SingleServer::connect(&program, &[], &Environment::from_process()).await.unwrap();
    let others: Vec<_> =
        tools.list_tools().into_iter().map(|available| available.tool.name).collect();
    let others = others.into_iter().filter(|name| name != "echo" && name != "read");
    let settings = AgentSettings {
        blocklist: ToolBlocklist::new(others).unwrap(),
        ..test_settings(ToolCalling::Constrained)
    };
    let provider = connect_model(ProviderApi::OpenAiChat, &server.origin()).await;
    let report =
        run_agent(provider, Arc::new(tools.clone()), settings, "Echo the message hello.").await;
    let record = &report.tool_calls[0];
    assert_eq!(
        (record.origin, record.attempts.failed_attempts),
        (CallOrigin::Constrained, 0),
        "{report:?}"
    );
    assert!(record.output.is_some(), "the server answered: {report:?}");
    assert!(report.is_success(), "{report:?}");
    tools.host().shutdown().await;
}

#[tokio::test]
#[ignore = "needs the local model: `cargo xtask test` runs it"]
async fn a_response_is_truncated_at_its_token_limit_and_cancelling_frees_the_server() {
    let server = start_server();
    for api in LLAMA_APIS {
        let provider = connect_model(api, &server.origin()).await;
        let full_response =
            provider.generate(text_request("Count from 1 to 100.", 8)).await.unwrap();
        assert_eq!(full_response.finish_reason, FinishReason::Length, "{api:?}: {full_response:?}");
        let mut stream = provider.stream(text_request("Count from 1 to 100.", 8));
        let (mut text, mut last) = (String::new(), None);
        while let Some(chunk) = stream.next().await {
            match chunk.unwrap() {
                StreamChunk::Text(chunk) => text.push_str(&chunk),
                StreamChunk::Done(response) => last = Some(response),
                other @ (StreamChunk::Reasoning(_)
                | StreamChunk::ToolCallStart { .. }
                | StreamChunk::ArgumentsDelta { .. }) => panic!("{api:?}: {other:?}"),
            }
        }
        let last = last.unwrap();
        assert_eq!(last.finish_reason, FinishReason::Length, "{api:?}: {last:?}");
        assert_eq!(last.message.visible_text(), text, "{api:?}");
        drop(stream);

        // The server handles one conversation at a time: a request that is not cancelled would
        // delay the next one.
        let mut long = provider.stream(text_request("Tell me a very long story.", 4000));
        let first = timeout(Duration::from_secs(30), long.next()).await.unwrap();
        assert!(matches!(first, Some(Ok(_))), "{api:?}: {first:?}");
        drop(long);
        let start = Instant::now();
        let next = provider.generate(text_request("Say yes.", 4)).await.unwrap();
        assert!(!next.message.visible_text().is_empty(), "{api:?}: {next:?}");
        assert!(start.elapsed() < Duration::from_secs(10), "{api:?}: {:?}", start.elapsed());
    }
}

/// With the template of the model's file, the server drops tools silently.
#[tokio::test]
#[ignore = "needs the local model: `cargo xtask test` runs it"]
async fn a_server_that_drops_tools_is_noticed_by_its_capabilities_else_by_its_prompt_tokens() {
    let server = LlamaServer::start(&["--alias", super::MODEL_NAME]).unwrap();
    let origin = server.origin();
    for api in [ProviderApi::OpenAiChat, ProviderApi::OpenAiResponses] {
        assert!(!connect_model(api, &origin).await.capabilities().tools.native, "{api:?}");
    }
    let case = tasks::load_cases().pop().unwrap();
    let run = async || {
        // The provider does not probe the server over this API.
        let provider = connect_model(ProviderApi::Anthropic, &origin).await;
        assert!(provider.capabilities().tools.native);
        let tools = RecordingTools::for_case(&case);
        run_agent(provider, tools, test_settings(ToolCalling::Auto), &case.question).await
    };
    // The count of a first answer may leave out what the server has in its cache, so the answer stays.
    let report = run().await;
    assert_eq!(report.tool_call_mode, Some(ToolCallMode::Native), "{report:?}");
    // The same prompt again has cached tokens, and their count shows that the tools are missing.
    let report = run().await;
    assert_eq!(report.tool_call_mode, Some(ToolCallMode::Prompt), "{report:?}");
    assert!(report.stats.requests >= 2, "{report:?}");
    assert!(
        !matches!(report.outcome, RunOutcome::Failed(_) | RunOutcome::NotSent { .. }),
        "{report:?}"
    );
}
