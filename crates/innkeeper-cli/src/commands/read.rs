//! `read`: reads one resource.

use innkeeper_host::{CallOptions, Host};
use serde_json::Value;

use super::Context;
use super::call::refuse;
use crate::args::ReadArgs;
use crate::configuration::{load, only};
use crate::exit::Failure;
use crate::hosting::with_host;
use crate::output::{Output, Tone};

pub(super) async fn run(context: &mut Context, args: &ReadArgs) -> Result<(), Failure> {
    let config = load(context)?;
    let config = match &args.server {
        Some(server) => only(&config, server)?,
        None => config,
    };
    let work = async |host: &Host, output: &mut Output| {
        let options = CallOptions::default();
        let got = host.read_resource(&args.uri, args.server.as_deref(), options).await;
        let got = got.map_err(|error| refuse(&error))?;
        if output.is_json() {
            return Ok(output.value(&got)?);
        }
        let value: Value = serde_json::from_str(got.get()).unwrap_or_default();
        for content in value["contents"].as_array().into_iter().flatten() {
            match content["text"].as_str() {
                Some(text) => output.foreign(text)?,
                None => {
                    let uri = content["uri"].as_str().unwrap_or(&args.uri);
                    let text = format!("`{uri}` is not text; `--json` prints it in base64");
                    output.label(Tone::Note, "note", &text)?;
                }
            }
        }
        Ok(())
    };
    with_host(context, config, work).await.map(drop)
}
