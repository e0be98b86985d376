//! `call`: calls one tool and prints its result.

use innkeeper_host::error::RoutingError;
use innkeeper_host::{CallError, CallOptions, Host, ToolResult};
use innkeeper_protocol::ErrorObject;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc::channel;

use crate::activity::ActivityLine;
use crate::attach::RequestedItem;
use crate::cli::{CallArgs, ResultForm};
use crate::configuration::{LoadedConfig, config_for_item, load_config, server_instead_of_item};
use crate::content::{
    BlobDirectory, ContentPiece, ContentPrinter, StructuredText, repeats_structured,
};
use crate::context::CommandContext;
use crate::error_chain::error_chain;
use crate::exit::{CliError, CliExitCode};
use crate::hosting::{HostOptions, with_host_options};
use crate::output::{Output, Style, escape_inline};
use crate::start_failure::sign_in_hint;
use crate::tool_arguments::ArgumentInput;

/// Capacity of the progress channel; the display needs the latest step only.
const PROGRESS_CAPACITY: usize = 16;

pub(super) async fn run(context: &mut CommandContext, args: &CallArgs) -> Result<(), CliError> {
    let LoadedConfig { config, files } = load_config(context)?;
    let (config, server) = config_for_item(&config, &args.target, "tool")?;
    let tool = own_name(&args.target, server.as_deref());
    let options =
        HostOptions { attached_item: Some(RequestedItem::Tool(tool)), ..HostOptions::default() };
    let input =
        ArgumentInput::read(&args.arguments, args.json_args.as_deref(), std::io::stdin().lock())?;
    let blobs = BlobDirectory::new(args.save.as_deref())?;
    let loaded = LoadedConfig { config, files };
    with_host_options(context, loaded, options, async |host, output| {
        reject_server_name(host, &args.target)?;
        let arguments = convert_arguments(host, &args.target, input)?;
        let result = call_with_progress(host, output, &args.target, arguments).await?;
        let is_error = result.is_error();
        let shown = print_result(output, &result, args, &blobs);
        if let Some(problem) = result.output_schema_violation() {
            let text = format!(
                "the result does not match the output schema of `{}`: {problem}",
                args.target
            );
            output.labelled_status(Style::Note, "warning", &text)?;
        }
        shown?;
        if is_error { Err(CliError::without_message(CliExitCode::Failed)) } else { Ok(()) }
    })
    .await
    .map(drop)
}

/// Returns the own name of an item, from a target with the name of its server or without.
pub(super) fn own_name(target: &str, server: Option<&str>) -> String {
    let own = server.and_then(|server| target.get(server.len() + 1..));
    own.unwrap_or(target).to_owned()
}

/// Rejects the name of a server that is not the bare name of a tool too.
pub(super) fn reject_server_name(host: &Host, target: &str) -> Result<(), CliError> {
    if host.status().contains_key(target) && tool_owners(host, target).is_empty() {
        return Err(server_instead_of_item(target, "tool"));
    }
    Ok(())
}

/// Calls the tool; a terminal shows the progress until the call ends.
async fn call_with_progress(
    host: &Host,
    output: &Output,
    target: &str,
    arguments: Box<RawValue>,
) -> Result<ToolResult, CliError> {
    let (sender, progress) = channel(PROGRESS_CAPACITY);
    let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
    let subject = format!("calling {}", escape_inline(target));
    let call = host.call_tool_with(target, arguments, options);
    let result = ActivityLine::show(output, &subject).follow(&subject, progress, call).await;
    result.map_err(|error| with_failed_servers(host, &error, call_error(&error, target)))
}

/// Adds the servers that failed to the error of a name that no ready server has: one of them may
/// have the item.
fn with_failed_servers(host: &Host, error: &CallError, report: CliError) -> CliError {
    if !matches!(error, CallError::Routing(RoutingError::UnknownServer { .. })) {
        return report;
    }
    let status = host.status();
    let failed = status.iter().filter_map(|(name, status)| {
        Some(format!("server `{name}` is unavailable: {}", status.reason.as_ref()?))
    });
    failed.fold(report, CliError::with_detail)
}

/// Prints the result in the chosen form, or in the form for this stdout.
fn print_result(
    output: &mut Output,
    result: &ToolResult,
    args: &CallArgs,
    blobs: &BlobDirectory,
) -> Result<(), CliError> {
    let is_for_people = output.is_terminal() && !output.is_json();
    let default_form = if is_for_people { ResultForm::Text } else { ResultForm::Json };
    let form = args.output.unwrap_or(default_form);
    let mut view = match (form, result.view()) {
        (ResultForm::Text | ResultForm::Raw, Ok(view)) => view,
        (ResultForm::Json, _) | (_, Err(_)) => return Ok(output.print_json(result)?),
    };
    let blocks = std::mem::take(&mut view.content).into_iter();
    let mut pieces: Vec<ContentPiece> =
        blocks.map(|block| ContentPiece::from_block(block.raw().get())).collect();
    let mut structured = view.structured_content.map(|json| json.get());
    if form == ResultForm::Raw {
        if let Some(json) = structured.filter(|_| pieces.is_empty()) {
            pieces.push(ContentPiece::Other(json.to_owned()));
        }
        let mut printer = ContentPrinter::new(output, blobs);
        printer.print_raw(&pieces)?;
        return printer.finish();
    }
    let texts: Vec<&str> = pieces.iter().filter_map(ContentPiece::as_text).collect();
    if structured.is_some_and(|json| repeats_structured(&texts, json)) {
        if texts.iter().all(|text| text.trim_start().starts_with(['{', '['])) {
            pieces.retain(|piece| piece.as_text().is_none());
        } else {
            structured = None;
        }
    }
    let is_empty = pieces.is_empty() && structured.is_none();
    let mut printer = ContentPrinter::new(output, blobs);
    for piece in &pieces {
        printer.print(piece)?;
    }
    let saved = printer.finish();
    if let Some(json) = structured {
        match StructuredText::new(json, output.columns()) {
            StructuredText::Table(table) => output.print_table(&table)?,
            StructuredText::Json => output.print_indented(json)?,
        }
    }
    if is_empty {
        output.labelled_status(Style::Note, "note", "the result has no content")?;
    }
    if result.is_error() {
        let text = format!("tool `{}` reported an error", args.target);
        output.labelled_status(Style::Error, "error", &text)?;
    }
    saved
}

/// Converts the arguments to the types of the tool, as JSON text that keeps all digits.
fn convert_arguments(
    host: &Host,
    target: &str,
    input: ArgumentInput,
) -> Result<Box<RawValue>, CliError> {
    let arguments = input.convert(&input_schema(host, target)).map_err(|problems| {
        CliError::usage(format!("invalid arguments for `{target}`"))
            .with_argument_errors(&problems)
            .with_hint(format!("run `innkeeper tools {target}` to show the parameters"))
    })?;
    to_raw_value(&arguments)
        .map_err(|error| CliError::failure("cannot serialize the arguments").with_source(error))
}

/// Returns the tool's input schema. Returns an empty schema for an unknown tool; the call reports
/// the error.
fn input_schema(host: &Host, target: &str) -> Value {
    let catalog = host.catalog();
    let owner = tool_owners(host, target);
    let tool = owner.first().filter(|_| owner.len() == 1).and_then(|(server, name)| {
        let mut tools = catalog.server(server)?.listing()?.tools.iter();
        tools.find(|tool| tool.view.name == *name)
    });
    tool.and_then(|tool| serde_json::from_str(tool.view.input_schema.get()).ok())
        .unwrap_or(Value::Bool(true))
}

/// Returns the servers that offer the tool, each with the tool's name on that server: the server
/// that the name starts with, else all servers with a tool of that bare name.
pub(super) fn tool_owners(host: &Host, target: &str) -> Vec<(String, String)> {
    let catalog = host.catalog();
    let has_tool = |server: &str, tool: &str| {
        let listing = catalog.server(server).and_then(|server| server.listing());
        listing.is_some_and(|listed| {
            listed.tools.iter().any(|tool_entry| tool_entry.view.name == tool)
        })
    };
    if let Some((server, tool)) =
        innkeeper_host::split_name(target, |name| catalog.server(name).is_some())
        && has_tool(server, tool)
    {
        return vec![(server.to_owned(), tool.to_owned())];
    }
    let bare =
        catalog.servers().map(|(server, _)| server).filter(|server| has_tool(server, target));
    bare.map(|server| (server.to_owned(), target.to_owned())).collect()
}

/// What a user must know before they repeat a call.
const MAY_HAVE_RUN: &str = "the server may have run the request";

/// Returns whether a gateway says that its server may have run the request.
fn may_have_run(error: &ErrorObject) -> bool {
    let data = error.data.as_deref().map(|data| serde_json::from_str::<Value>(data.get()));
    data.is_some_and(|data| data.is_ok_and(|data| data["mayHaveRun"] == true))
}

/// Converts a call error to an error with the exit code of its class. `definition` is the tool or
/// the server that `innkeeper tools` shows with the parameters.
pub(super) fn call_error(error: &CallError, definition: &str) -> CliError {
    match error {
        CallError::Routing(
            RoutingError::ToolWithheld { .. }
            | RoutingError::ItemWithheld { .. }
            | RoutingError::UnusableItem { .. },
        ) => CliError::usage(error.to_string()),
        CallError::Routing(RoutingError::Ambiguous { .. }) => CliError::usage(error.to_string()),
        CallError::Routing(_) => CliError::usage(error.to_string())
            .with_hint("run `innkeeper tools` to list all tools, prompts and resources"),
        CallError::Validation { item, problems } => {
            let mut failure = CliError::usage(format!("invalid arguments for `{item}`"));
            for problem in problems {
                failure = failure.with_detail(problem.to_string());
            }
            failure
                .with_detail("the request was not sent")
                .with_hint(format!("run `innkeeper tools {definition}` to show the parameters"))
        }
        CallError::Timeout { .. } => CliError::failure(error.to_string())
            .with_hint("use `--timeout SECONDS` to allow more time"),
        CallError::Unavailable { may_have_run: true, .. } => {
            CliError::failure(error.to_string()).with_detail(MAY_HAVE_RUN)
        }
        CallError::Server { error: object, .. } if may_have_run(object) => {
            CliError::failure(error.to_string()).with_detail(MAY_HAVE_RUN)
        }
        CallError::Unavailable { server, .. } if error.needs_user_sign_in() => {
            CliError::failure(error.to_string()).with_hint(sign_in_hint(server))
        }
        CallError::Unavailable { may_have_run: false, .. } | CallError::Server { .. } => {
            CliError::failure(error.to_string())
        }
        CallError::Protocol { source, .. } => {
            let causes: Vec<String> = error_chain(source).map(ToString::to_string).collect();
            CliError::failure(error.to_string()).with_detail(causes.join(": "))
        }
        CallError::Withheld { .. } => CliError::failure(error.to_string())
            .with_hint("do not repeat the call: the tool would run twice"),
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_host::error::ProtocolError;

    use super::*;
    use crate::output::capture;

    #[test]
    fn a_malformed_result_is_reported_with_what_is_wrong_in_it() {
        let problem = innkeeper_protocol::ViewError {
            pointer: "/content".to_owned(),
            expected: "an array",
            found: "a string",
        };
        let error = CallError::Protocol {
            server: "a".into(),
            item: "a.read".into(),
            source: ProtocolError::InvalidResult(problem),
        };
        let (mut output, _, err) = capture::captured_output(false, false);
        call_error(&error, "a.read").report(&mut output);
        insta::assert_snapshot!(err.text(), @r"
        error: server `a` violated the protocol in its response to `a.read`
          invalid result: expected an array at `/content`, found a string
        ");
    }

    #[test]
    fn a_call_that_a_gateway_may_have_run_is_told_as_such() {
        for (data, detail) in [
            (r#"{"kind":"unavailable","mayHaveRun":true}"#, Some(MAY_HAVE_RUN)),
            (r#"{"kind":"unavailable","mayHaveRun":false}"#, None),
        ] {
            let error = CallError::Server {
                server: "a".into(),
                item: "a.read".into(),
                error: ErrorObject {
                    code: -32_603,
                    message: "server `a` is unavailable".to_owned(),
                    data: RawValue::from_string(data.to_owned()).ok(),
                },
            };
            let (mut output, _, err) = capture::captured_output(false, false);
            call_error(&error, "a.read").report(&mut output);
            assert_eq!(err.text().lines().nth(1).map(str::trim), detail);
        }
    }
}
