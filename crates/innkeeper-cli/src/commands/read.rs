//! `read`: reads a resource and prints its contents.

use innkeeper_host::CallOptions;
use innkeeper_host::error::{CallError, RoutingError};
use innkeeper_protocol::skim;

use super::call::call_error;
use crate::attach::RequestedItem;
use crate::cli::ReadArgs;
use crate::configuration::{LoadedConfig, config_for_server, load_config};
use crate::content::{BlobDirectory, ContentPiece, ContentPrinter};
use crate::context::CommandContext;
use crate::exit::CliError;
use crate::hosting::{HostOptions, with_failed_servers, with_host_options};
use crate::output::{Output, Style};

pub(super) async fn run(context: &mut CommandContext, args: &ReadArgs) -> Result<(), CliError> {
    let LoadedConfig { config, files } = load_config(context)?;
    let config = match args.server() {
        Some(server) => config_for_server(&config, server)?,
        None if context.global.strict => config,
        // Any server may have the resource.
        None => config.with_optional_servers(),
    };
    let blobs = BlobDirectory::new(args.save.as_deref())?;
    let options =
        HostOptions { attached_item: Some(RequestedItem::Resource), ..HostOptions::default() };
    let loaded = LoadedConfig { config, files };
    with_host_options(context, loaded, options, async |host, output| {
        let options = CallOptions::default();
        let got = host.read_resource(&args.uri, args.server(), options).await;
        let got = got.map_err(|error| with_failed_servers(read_error(&error, &args.uri), host))?;
        if output.is_json() {
            return Ok(output.print_json(&got)?);
        }
        let contents = skim::member(got.get(), "contents").unwrap_or("[]");
        print_contents(output, &blobs, contents)
    })
    .await
    .map(drop)
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
    contents: &str,
) -> Result<(), CliError> {
    let (is_empty, has_several) = match skim::elements(contents).take(2).count() {
        0 => (true, false),
        1 => (false, false),
        _ => (false, true),
    };
    if is_empty {
        output.labelled_status(Style::Note, "note", "the resource has no contents")?;
    }
    let is_terminal = output.is_terminal();
    let mut printer = ContentPrinter::new(output, blobs);
    let has_headings = is_terminal && has_several;
    for piece in skim::elements(contents).map(ContentPiece::from_resource) {
        match piece {
            ContentPiece::ResourceText { text, .. } if !has_headings => {
                printer.print(&ContentPiece::Text(text))?;
            }
            ContentPiece::Blob(_) if !is_terminal && !has_several => printer.print_raw(&[piece])?,
            ContentPiece::Blob(blob) if !is_terminal => printer.save_aside(&blob)?,
            other => printer.print(&other)?,
        }
    }
    printer.finish()
}
