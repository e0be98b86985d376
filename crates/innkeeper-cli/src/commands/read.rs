//! `read`: reads a resource and prints its contents.

use innkeeper_host::error::{CallError, RoutingError};
use innkeeper_host::{CallOptions, Host};
use serde_json::Value;

use super::CommandContext;
use super::call::call_error;
use crate::cli::ReadArgs;
use crate::configuration::{config_for_server, load_config};
use crate::content::{BlobDirectory, ContentPiece, ContentPrinter};
use crate::exit::CliError;
use crate::hosting::{with_failed_servers, with_host};
use crate::output::{Output, Style};

pub(super) async fn run(context: &mut CommandContext, args: &ReadArgs) -> Result<(), CliError> {
    let config = load_config(context)?;
    let config = match args.server() {
        Some(server) => config_for_server(&config, server)?,
        None if context.global.strict => config,
        // Any server may have the resource.
        None => config.with_optional_servers(),
    };
    let blobs = BlobDirectory::new(args.save.as_deref())?;
    let operation = async |host: &Host, output: &mut Output| {
        let options = CallOptions::default();
        let got = host.read_resource(&args.uri, args.server(), options).await;
        let got = got.map_err(|error| with_failed_servers(read_error(&error, &args.uri), host))?;
        if output.is_json() {
            return Ok(output.print_json(&got)?);
        }
        let value: Value = serde_json::from_str(got.get()).unwrap_or_default();
        let contents = value["contents"].as_array().map(Vec::as_slice).unwrap_or_default();
        let pieces: Vec<ContentPiece> = contents.iter().map(ContentPiece::from_resource).collect();
        print_contents(output, &blobs, pieces)
    };
    with_host(context, config, operation).await.map(drop)
}

/// Converts an error of a read to an error with the next step.
fn read_error(error: &CallError, uri: &str) -> CliError {
    match error {
        CallError::Routing(RoutingError::Ambiguous { name, candidates }) => {
            let server = candidates.first().map_or("SERVER", |server| server);
            call_error(error, uri)
                .with_hint(format!("name the server: `innkeeper read {server} {name}`"))
        }
        CallError::Routing(RoutingError::UnknownResource { .. }) => {
            CliError::usage(error.to_string())
                .with_hint("run `innkeeper tools` to list all resources and templates")
        }
        _ => call_error(error, uri),
    }
}

/// Prints text as lines. The only blob goes to a pipe as bytes; every other blob becomes a file. On
/// a terminal, each of several texts has a heading with its address.
fn print_contents(
    output: &mut Output,
    blobs: &BlobDirectory,
    pieces: Vec<ContentPiece>,
) -> Result<(), CliError> {
    if pieces.is_empty() {
        output.labelled_status(Style::Note, "note", "the resource has no contents")?;
    }
    let is_terminal = output.is_terminal();
    let mut printer = ContentPrinter::new(output, blobs);
    if let ([ContentPiece::Blob(_)], false) = (&pieces[..], is_terminal) {
        printer.print_raw(&pieces)?;
        return printer.finish();
    }
    let has_headings = is_terminal && pieces.len() > 1;
    for piece in pieces {
        match piece {
            ContentPiece::ResourceText { text, .. } if !has_headings => {
                printer.print(&ContentPiece::Text(text))?;
            }
            ContentPiece::Blob(blob) if !is_terminal => printer.save_aside(&blob)?,
            other => printer.print(&other)?,
        }
    }
    printer.finish()
}
