//! `login`: signs in at one remote server, so that the other verbs have its token.

use std::time::Duration;

use innkeeper_host::{Host, config::TransportConfig};
use serde_json::json;

use super::Context;
use crate::args::LoginArgs;
use crate::browser::Browser;
use crate::configuration::{load, only};
use crate::exit::Failure;
use crate::hosting::with_host;
use crate::output::{Output, Tone};

/// How long the start may take: the five minutes a person has, and what a start takes besides.
const START: Duration = Duration::from_secs(360);

pub(super) async fn run(context: &mut Context, args: &LoginArgs) -> Result<(), Failure> {
    let config = load(context)?;
    let mut config = only(&config, &args.server)?;
    config.host.start_timeout = START;
    if let Some(server) = config.servers.get_mut(&args.server) {
        if matches!(server.transport, TransportConfig::Stdio { .. }) {
            let message = format!("server `{}` is a program; nobody signs in there", args.server);
            return Err(Failure::usage(message));
        }
        (server.init_timeout, server.required) = (START, true);
    }
    let browser = Browser::listen()
        .map_err(|error| Failure::failed("browsers cannot be listened to").because(error))?;
    context.browser = Some(browser);
    let work = async |_: &Host, output: &mut Output| {
        if output.is_json() {
            return Ok(output.value(&json!({ "server": args.server, "ready": true }))?);
        }
        let text = format!("server `{}` takes requests", args.server);
        Ok(output.label(Tone::Good, "signed in", &text)?)
    };
    with_host(context, config, work).await.map(drop)
}
