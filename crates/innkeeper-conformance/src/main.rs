//! The host as the client under test of the official conformance suite.
//!
//! The suite appends the server's URL to the command line, and passes the scenario, the protocol
//! version and other data in environment variables. The program calls everything that the server
//! offers. Almost no code depends on the name of a scenario: the host does the same for any
//! application.

mod auth;
mod input_responses;
mod sample;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use innkeeper_host::callback::CallbackCapabilities;
use innkeeper_host::{CallError, CallOptions, Config, Definition, Environment, Host};
use innkeeper_protocol::view::Tool;
use serde_json::{Value, json};

const SERVER_NAME: &str = "under_test";

/// Timeout of one call; the suite limits a scenario to thirty seconds.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);

type BoxError = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> ExitCode {
    let environment = Environment::from_process();
    let Some(url) = std::env::args().next_back().filter(|url| url.contains("://")) else {
        return exit_with_error("the last argument must be the URL of the server");
    };
    match run(&url, &environment).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit_with_error(&error.to_string()),
    }
}

fn exit_with_error(problem: &str) -> ExitCode {
    // A closed stderr is not an error; the exit code also reports the failure.
    drop(writeln!(std::io::stderr(), "innkeeper-conformance: {problem}"));
    ExitCode::FAILURE
}

async fn run(url: &str, environment: &Environment) -> Result<(), BoxError> {
    let scenario = environment.get("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let oauth = auth::oauth_config(scenario, &scenario_context(environment)?);
    let file =
        json!({ "servers": { SERVER_NAME: { "type": "http", "url": url, "oauth": oauth } } });
    let config = Config::from_value(&file, "conformance", ".".as_ref(), environment)?;
    let host = Host::builder(config)
        .callback(&CallbackCapabilities::all(), input_responses::respond)
        .environment(environment.clone())
        .user_agent(auth::HeadlessUserAgent)
        .start()
        .await?;
    let used = call_all_tools(&host, environment).await;
    host.shutdown().await;
    used
}

/// The context that the suite passes for a scenario.
fn scenario_context(environment: &Environment) -> Result<Value, BoxError> {
    Ok(serde_json::from_str(environment.get("MCP_CONFORMANCE_CONTEXT").unwrap_or("{}"))?)
}

/// Makes the calls that the suite requests, and one call of every other tool.
async fn call_all_tools(host: &Host, environment: &Environment) -> Result<(), BoxError> {
    let context = scenario_context(environment)?;
    let tool_calls = context["toolCalls"].as_array().cloned().unwrap_or_default();
    let mut calls: Vec<(String, Value)> = tool_calls
        .into_iter()
        .map(|mut call| {
            let name = format!("{SERVER_NAME}.{}", call["name"].as_str().unwrap_or_default());
            let mut arguments = call["arguments"].take();
            // `null` stands for an absent argument; no schema of the suite allows `null`.
            if let Some(arguments) = arguments.as_object_mut() {
                arguments.retain(|_, value| !value.is_null());
            }
            (name, arguments)
        })
        .collect();
    for (name, arguments) in tools_with_sample_arguments(host) {
        if calls.iter().all(|(called_name, _)| *called_name != name) {
            calls.push((name, arguments));
        }
    }
    let options = CallOptions { timeout: Some(CALL_TIMEOUT), ..CallOptions::default() };
    for (name, arguments) in calls {
        match host.call_tool_with(&name, arguments, options.clone()).await {
            // The sample value does not match the schema; the host sent nothing.
            Ok(_) | Err(CallError::Validation { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Every tool of the server with sample arguments.
fn tools_with_sample_arguments(host: &Host) -> Vec<(String, Value)> {
    let catalog = host.catalog();
    let Some(server) = catalog.server(SERVER_NAME) else {
        return Vec::new();
    };
    let tools = &server.listing().map(|listing| listing.tools.as_slice()).unwrap_or_default();
    let schema = |tool: &Definition<Tool>| -> Value {
        serde_json::from_str(tool.view.input_schema.get()).unwrap_or_default()
    };
    let calls = tools.iter().map(|tool| {
        let mut arguments = sample::sample_arguments(&schema(tool));
        // A tool with a `schema` argument checks that the schema of another tool arrived unchanged.
        if let Some(schema_argument) = arguments.get_mut("schema")
            && let Some(other) = tools.iter().find(|other| other.view.name != tool.view.name)
        {
            *schema_argument = schema(other);
        }
        (format!("{SERVER_NAME}.{}", tool.view.name), arguments)
    });
    calls.collect()
}
