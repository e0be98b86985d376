//! Our host as the client that the official conformance suite drives: one server, all it offers used.
//!
//! The suite appends the server's address to the command line and tells scenario, revision and what
//! else is needed in variables of the environment. There is next to nothing here that knows a
//! scenario by its name: the host does what it does for any application.

mod answer;
mod auth;
mod sample;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use innkeeper_host::callback::Answers;
use innkeeper_host::{CallError, CallOptions, Config, Environment, Host, Offered};
use innkeeper_protocol::view::Tool;
use serde_json::{Value, json};

/// The name the server under test has here.
const SERVER: &str = "under_test";

/// How long one call may take; the suite gives a scenario thirty seconds.
const CALL: Duration = Duration::from_secs(20);

type Failed = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> ExitCode {
    let environment = Environment::of_process();
    let Some(url) = std::env::args().next_back().filter(|url| url.contains("://")) else {
        return told("the last argument has to be the server's address");
    };
    match run(&url, &environment).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => told(&error.to_string()),
    }
}

fn told(problem: &str) -> ExitCode {
    // Nobody may read it; the exit code says it too.
    drop(writeln!(std::io::stderr(), "innkeeper-conformance: {problem}"));
    ExitCode::FAILURE
}

async fn run(url: &str, environment: &Environment) -> Result<(), Failed> {
    let scenario = environment.get("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let oauth = auth::settings(scenario, &context(environment)?);
    let file = json!({ "servers": { SERVER: { "type": "http", "url": url, "oauth": oauth } } });
    let config = Config::from_value(&file, "conformance", ".".as_ref(), environment)?;
    let host = Host::builder(config)
        .callback(&Answers::everything(), answer::answer)
        .environment(environment.clone())
        .user_agent(auth::Headless)
        .start()
        .await?;
    let used = use_everything(&host, environment).await;
    host.shutdown().await;
    used
}

/// What the suite tells of a scenario.
fn context(environment: &Environment) -> Result<Value, Failed> {
    Ok(serde_json::from_str(environment.get("MCP_CONFORMANCE_CONTEXT").unwrap_or("{}"))?)
}

/// Makes the calls the suite asks for, and one of every other tool.
async fn use_everything(host: &Host, environment: &Environment) -> Result<(), Failed> {
    let context = context(environment)?;
    let wanted = context["toolCalls"].as_array().cloned().unwrap_or_default();
    let mut calls: Vec<(String, Value)> = wanted
        .into_iter()
        .map(|mut call| {
            let name = format!("{SERVER}.{}", call["name"].as_str().unwrap_or_default());
            let mut arguments = call["arguments"].take();
            // `null` stands for what is not given; no schema of the suite allows it.
            if let Some(arguments) = arguments.as_object_mut() {
                arguments.retain(|_, value| !value.is_null());
            }
            (name, arguments)
        })
        .collect();
    for (name, arguments) in every_tool(host) {
        if calls.iter().all(|(wanted, _)| *wanted != name) {
            calls.push((name, arguments));
        }
    }
    let options = CallOptions { timeout: Some(CALL), ..CallOptions::default() };
    for (name, arguments) in calls {
        match host.call_tool_with(&name, arguments, options.clone()).await {
            // A schema that a made-up value does not fit; nothing was sent.
            Ok(_) | Err(CallError::Validation { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Every tool of the server with arguments that fit it.
fn every_tool(host: &Host) -> Vec<(String, Value)> {
    let catalog = host.catalog();
    let Some(server) = catalog.server(SERVER) else {
        return Vec::new();
    };
    let tools = &server.offer().map(|offer| offer.tools.as_slice()).unwrap_or_default();
    let schema = |tool: &Offered<Tool>| -> Value {
        serde_json::from_str(tool.view.input_schema.get()).unwrap_or_default()
    };
    let calls = tools.iter().map(|tool| {
        let mut arguments = sample::arguments(&schema(tool));
        // A tool that wants a schema is there to see whether that of another arrived as it was.
        if let Some(wanted) = arguments.get_mut("schema")
            && let Some(other) = tools.iter().find(|other| other.view.name != tool.view.name)
        {
            *wanted = schema(other);
        }
        (format!("{SERVER}.{}", tool.view.name), arguments)
    });
    calls.collect()
}
