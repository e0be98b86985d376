//! A few questions to the real model in every run of the tests: less than a minute of one core.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use innkeeper_agent::OneServer;
use innkeeper_agent::agent::Settings;
use innkeeper_agent::conversation::Message;
use innkeeper_agent::provider::{Finish, LlmProvider as _, Piece, Request, Wire};
use innkeeper_agent::safety::Patterns;
use innkeeper_agent::tools::ToolRunner as _;
use innkeeper_agent::turn::{Ended, Mechanism, ToolCalling, Way};
use innkeeper_host::Environment;
use innkeeper_testkit::{LlamaServer, fx_program};
use tokio::time::{Instant, timeout};

use super::{Desk, OWN, ask, model, settings, started, tasks, told};

fn question(text: &str, max_tokens: u32) -> Request {
    let messages = vec![Message::User(text.into())];
    let (temperature, max_tokens) = (Some(0.0), Some(max_tokens));
    Request { messages, temperature, max_tokens, ..Request::default() }
}

/// What is asserted is the way of a call and never a text: a model may say it another way on another
/// machine.
#[tokio::test]
async fn a_real_model_calls_a_tool_and_answers_with_its_result_over_each_wire() {
    let Some(server) = started() else { return };
    let case = tasks::cases().into_iter().find(|it| it.asked.contains("timer for 12")).unwrap();
    for wire in OWN {
        let desk = Desk::of(&case);
        let settings = settings(ToolCalling::Native);
        let provider = model(wire, &server.origin()).await;
        let report = ask(provider, desk.clone(), settings, &case.asked).await;
        assert!(report.is_success() && !report.text.is_empty(), "{wire:?}: {report:?}");
        assert_eq!(report.steps[0].mechanism, Mechanism::Native, "{wire:?}: {report:?}");
        let (tool, arguments) = &desk.called()[0];
        assert!(case.is_valid(tool, arguments), "{wire:?}: {tool} {arguments}");
        let usage = report.tally.usage;
        assert!(report.tally.usage_is_whole && usage.prompt_tokens > 100, "{wire:?}: {usage:?}");
    }
}

/// A server of MCP's that is a process, a model that is one, and a call that has to fit.
#[tokio::test]
async fn a_call_that_is_wanted_is_held_to_its_form_and_reaches_a_real_server() {
    let Some(server) = started() else { return };
    let program = fx_program().display().to_string();
    let tools = OneServer::connect(&program, &[], &Environment::of_process()).await.unwrap();
    let others: Vec<_> = tools.offered().into_iter().map(|it| it.tool.name).collect();
    let others = others.into_iter().filter(|name| name != "echo" && name != "read");
    let settings =
        Settings { blocked: Patterns::new(others).unwrap(), ..settings(ToolCalling::Constrained) };
    let provider = model(Wire::OpenAiChat, &server.origin()).await;
    let report = ask(provider, Arc::new(tools.clone()), settings, "Echo the message hello.").await;
    let step = &report.steps[0];
    assert_eq!((step.mechanism, step.retries), (Mechanism::Constrained, 0), "{report:?}");
    assert!(step.output.is_some(), "the server answered: {report:?}");
    assert!(report.is_success(), "{report:?}");
    tools.host().shutdown().await;
}

#[tokio::test]
async fn an_answer_is_cut_where_it_is_asked_to_be_and_what_is_cancelled_keeps_nobody_waiting() {
    let Some(server) = started() else { return };
    for wire in OWN {
        let provider = model(wire, &server.origin()).await;
        let whole = provider.generate(question("Count from 1 to 100.", 8)).await.unwrap();
        assert_eq!(whole.finish, Finish::Length, "{wire:?}: {whole:?}");
        let mut stream = provider.stream(question("Count from 1 to 100.", 8));
        let (mut text, mut last) = (String::new(), None);
        while let Some(piece) = stream.next().await {
            match piece.unwrap() {
                Piece::Text(piece) => text.push_str(&piece),
                Piece::Done(response) => last = Some(response),
                other @ (Piece::Reasoning(_)
                | Piece::CallStart { .. }
                | Piece::Arguments { .. }) => panic!("{wire:?}: {other:?}"),
            }
        }
        let last = last.unwrap();
        assert_eq!(last.finish, Finish::Length, "{wire:?}: {last:?}");
        assert_eq!(last.answer.shown(), text, "{wire:?}");
        drop(stream);

        // It serves one conversation at a time: whoever comes next waits for what is not cancelled.
        let mut long = provider.stream(question("Tell me a very long story.", 4000));
        let first = timeout(Duration::from_secs(30), long.next()).await.unwrap();
        assert!(matches!(first, Some(Ok(_))), "{wire:?}: {first:?}");
        drop(long);
        let begun = Instant::now();
        let next = provider.generate(question("Say yes.", 4)).await.unwrap();
        assert!(!next.answer.shown().is_empty(), "{wire:?}: {next:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{wire:?}: {:?}", begun.elapsed());
    }
}

/// With the template of its own file the server drops tools without a word.
#[tokio::test]
async fn a_server_that_drops_tools_is_noticed_by_what_it_says_of_itself_else_by_what_it_read() {
    let Some(server) = told(LlamaServer::start(&["--alias", super::MODEL])) else { return };
    let origin = server.origin();
    for wire in [Wire::OpenAiChat, Wire::OpenAiResponses] {
        assert!(!model(wire, &origin).await.capabilities().native_tools, "{wire:?}");
    }
    // Over this wire the server is not asked what it is.
    let provider = model(Wire::Anthropic, &origin).await;
    assert!(provider.capabilities().native_tools);
    let case = tasks::cases().pop().unwrap();
    let report = ask(provider, Desk::of(&case), settings(ToolCalling::Auto), &case.asked).await;
    assert_eq!(report.way, Some(Way::Prompt), "{report:?}");
    assert!(report.tally.requests >= 2, "{report:?}");
    assert!(!matches!(report.ended, Ended::Failed(_) | Ended::Unasked { .. }), "{report:?}");
}
