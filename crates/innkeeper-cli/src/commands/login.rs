//! `login`: signs in to a remote server and stores its token.

use std::sync::atomic::Ordering;
use std::time::Duration;

use innkeeper_host::{Config, config::TransportConfig};
use serde_json::json;

use crate::cli::LoginArgs;
use crate::configuration::{LoadedConfig, config_for_server, load_config};
use crate::context::CommandContext;
use crate::exit::CliError;
use crate::hosting::{HostOptions, with_host_options};
use crate::output::Style;
use crate::redirect_listener::RedirectListener;

/// Timeout of the server start: five minutes for the user, one minute for the start itself.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(360);

pub(super) async fn run(context: &mut CommandContext, args: &LoginArgs) -> Result<(), CliError> {
    let LoadedConfig { config, files } = load_config(context)?;
    let name = selected_server(&config, args)?;
    let mut config = config_for_server(&config, &name)?;
    config.host.start_timeout = LOGIN_TIMEOUT;
    if let Some(server) = config.servers.get_mut(&name) {
        match &server.transport {
            TransportConfig::Stdio { .. } | TransportConfig::InProcess => {
                let kind = server.transport.kind();
                let message = format!("server `{name}` uses {kind} and has no sign-in");
                return Err(CliError::usage(message));
            }
            TransportConfig::Http { .. }
            | TransportConfig::Sse { .. }
            | TransportConfig::WebSocket { .. } => {}
        }
        (server.lifecycle.init_timeout, server.required) = (LOGIN_TIMEOUT, true);
    }
    let oauth = config.servers.get(&name).and_then(|server| server.oauth.as_ref());
    let redirect_uri = oauth.and_then(|oauth| oauth.redirect_uri.as_ref());
    let redirect_uri = redirect_uri.map(|uri| uri.expose().as_str());
    let browser = RedirectListener::listen(redirect_uri).map_err(|error| {
        CliError::failure("cannot listen for the browser redirect").with_source(error)
    })?;
    let was_redirected = browser.was_redirected();
    let options = HostOptions { browser: Some(browser), ..HostOptions::default() };
    let loaded = LoadedConfig { config, files };
    with_host_options(context, loaded, options, async |host, output| {
        if !was_redirected.load(Ordering::Relaxed) {
            // Some servers ask for a token only at calls.
            let signing_in = host.sign_in(&name).await;
            signing_in.map_err(|error| CliError::failure(error.to_string()))?;
        }
        let signed_in = was_redirected.load(Ordering::Relaxed);
        if output.is_json() {
            let result = json!({ "server": name, "ready": true, "signedIn": signed_in });
            return Ok(output.print_json(&result)?);
        }
        let (label, text) = if signed_in {
            ("signed in", format!("server `{name}` is ready"))
        } else {
            ("ready", format!("server `{name}` asked for no sign-in"))
        };
        Ok(output.labelled_status(Style::Good, label, &text)?)
    })
    .await
    .map(drop)
}

/// Returns the server of the command line, or the only server of the configuration.
fn selected_server(config: &Config, args: &LoginArgs) -> Result<String, CliError> {
    if let Some(server) = &args.server {
        return Ok(server.clone());
    }
    let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
    match names[..] {
        [only] => Ok(only.to_owned()),
        _ => Err(CliError::usage("`login` needs the name of a server")
            .with_hint(format!("the servers are {}", names.join(", ")))),
    }
}
