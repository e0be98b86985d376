//! `read`: reads a resource and prints its contents.

use innkeeper_host::{CallOptions, Host};
use serde_json::Value;

use super::CommandContext;
use super::call::call_error;
use crate::cli::ReadArgs;
use crate::configuration::{config_for_server, load_config};
use crate::exit::CliError;
use crate::hosting::with_host;
use crate::output::{Output, Style};

pub(super) async fn run(context: &mut CommandContext, args: &ReadArgs) -> Result<(), CliError> {
    let config = load_config(context)?;
    let config = match &args.server {
        Some(server) => config_for_server(&config, server)?,
        None => config,
    };
    let operation = async |host: &Host, output: &mut Output| {
        let options = CallOptions::default();
        let got = host.read_resource(&args.uri, args.server.as_deref(), options).await;
        let got = got.map_err(|error| call_error(&error))?;
        if output.is_json() {
            return Ok(output.print_json(&got)?);
        }
        let value: Value = serde_json::from_str(got.get()).unwrap_or_default();
        for content in value["contents"].as_array().into_iter().flatten() {
            match content["text"].as_str() {
                Some(text) => output.print_untrusted(text)?,
                None => {
                    let uri = content["uri"].as_str().unwrap_or(&args.uri);
                    let text =
                        format!("the resource `{uri}` is binary; use `--json` to print base64");
                    output.labelled_status(Style::Note, "note", &text)?;
                }
            }
        }
        Ok(())
    };
    with_host(context, config, operation).await.map(drop)
}
