//! `tools`: lists the tools, prompts and resources of all servers, or shows the definitions of one.

mod catalog_json;
mod definition;
mod list;

pub(super) use definition::DefinitionWriter;
use definition::shell_words;

use indexmap::IndexMap;
use innkeeper_host::config::{name, redact_argument, redact_url};
use innkeeper_host::{Config, Host};

use super::call::tool_owners;
use crate::cli::ToolsArgs;
use crate::configuration::{LoadedConfig, config_for_item, config_for_server, load_config};
use crate::context::CommandContext;
use crate::exit::{CliError, CliExitCode};
use crate::hosting::{HostOptions, with_available_servers, with_host};
use crate::output::Output;

pub(super) async fn run(context: &mut CommandContext, args: &ToolsArgs) -> Result<(), CliError> {
    let LoadedConfig { config, files } = load_config(context)?;
    let (config, selection) = match &args.target {
        Some(target) => select(&config, target)?,
        None => (config, Selection::All),
    };
    let servers =
        config.servers.iter().map(|(name, server)| (name.clone(), Some(server.transport.kind())));
    let invalid = config.invalid.iter().map(|(name, server)| (name.clone(), server.transport));
    let transports: Vec<(String, Option<&'static str>)> =
        servers.chain(invalid).filter(|(name, _)| selection.includes_server(name)).collect();
    let program = program_text(context);
    let operation = async |host: &Host, output: &mut Output| {
        let selection = selection.resolve(host)?;
        if output.is_json() {
            let mut transports = transports;
            let mut only_tool = None;
            if let Selection::Tool { server, tool } = &selection {
                transports.retain(|(name, _)| name == server);
                only_tool = Some(tool.as_str());
            }
            let mask = output.secret_mask();
            let servers = catalog_json::catalog_json(host, &transports, only_tool, mask);
            let servers = servers.map_err(|error| {
                CliError::failure("cannot serialize the catalog").with_source(error)
            })?;
            output.print_json(&IndexMap::from([("servers", servers)]))?;
            return selection.ready(host);
        }
        match &selection {
            Selection::All => list::print_catalog(host, output, &transports)?,
            Selection::Server(server) => {
                list::print_server_definitions(host, output, server, &program)?;
            }
            Selection::Tool { server, tool } => {
                list::print_tool_definition(host, output, server, tool, &program)?;
            }
            Selection::BareTool(_) => {}
        }
        selection.ready(host)
    };
    let loaded = LoadedConfig { config, files };
    if matches!(selection, Selection::All) {
        return with_available_servers(context, loaded, HostOptions::default(), operation).await;
    }
    with_host(context, loaded, operation).await.map(drop)
}

/// The servers and tools to show.
enum Selection {
    All,
    Server(String),
    Tool {
        server: String,
        tool: String,
    },
    /// A tool's own name, whose server is known only after the start.
    BareTool(String),
}

impl Selection {
    /// Fails if the one selected server is not ready; the output has the reason.
    fn ready(&self, host: &Host) -> Result<(), CliError> {
        match self {
            Self::Server(server) | Self::Tool { server, .. }
                if host.catalog().server(server).is_none() =>
            {
                Err(CliError::without_message(CliExitCode::Failed))
            }
            _ => Ok(()),
        }
    }

    fn includes_server(&self, name: &str) -> bool {
        match self {
            Self::All | Self::BareTool(_) => true,
            Self::Server(server) | Self::Tool { server, .. } => server == name,
        }
    }

    /// Finds the server of a bare name, and checks that the tool exists.
    fn resolve(&self, host: &Host) -> Result<Self, CliError> {
        match self {
            Self::All => Ok(Self::All),
            Self::Server(server) => Ok(Self::Server(server.clone())),
            Self::Tool { server, tool } => {
                check_tool(host, server, tool)?;
                Ok(Self::Tool { server: server.clone(), tool: tool.clone() })
            }
            Self::BareTool(name) => match &tool_owners(host, name)[..] {
                [(server, tool)] => Ok(Self::Tool { server: server.clone(), tool: tool.clone() }),
                [] => Err(CliError::usage(format!("no ready server has a tool `{name}`"))
                    .with_hint("run `innkeeper tools` to list all tools")),
                several => {
                    let names: Vec<_> =
                        several.iter().map(|(server, _)| format!("`{server}.{name}`")).collect();
                    Err(CliError::usage(format!("several servers have a tool `{name}`"))
                        .with_hint(format!("use one of {}", names.join(", "))))
                }
            },
        }
    }
}

/// Returns the part of the configuration that the target needs.
fn select(config: &Config, target: &str) -> Result<(Config, Selection), CliError> {
    let is_server = |name: &str| {
        config.servers.contains_key(name)
            || config.invalid.contains_key(name)
            || config.disabled.contains_key(name)
    };
    let names_tool = innkeeper_host::split_name(target, is_server).is_some();
    if is_server(target) || !(names_tool || config.host.allow_bare_names) {
        let config = config_for_server(config, target)?;
        return Ok((config, Selection::Server(target.to_owned())));
    }
    let (config, server) = config_for_item(config, target, "tool")?;
    let selection = match server {
        Some(server) => {
            let tool = target.get(server.len() + 1..).unwrap_or_default().to_owned();
            Selection::Tool { server, tool }
        }
        None => Selection::BareTool(target.to_owned()),
    };
    Ok((config, selection))
}

/// Rejects a tool that a ready server does not have.
fn check_tool(host: &Host, server: &str, tool: &str) -> Result<(), CliError> {
    let catalog = host.catalog();
    let Some(listing) = catalog.server(server).and_then(|ready| ready.listing()) else {
        return Ok(());
    };
    if listing.tools.iter().any(|listed| listed.view.name == tool) {
        return Ok(());
    }
    let excluded = host
        .status()
        .get(server)
        .is_some_and(|status| status.excluded_tools.iter().any(|(name, _)| **name == *tool));
    let failure = CliError::usage(format!("server `{server}` has no tool `{tool}`"));
    let names = listing.tools.iter().map(|listed| listed.view.name.as_str());
    Err(match name::closest(tool, names) {
        _ if excluded => failure.with_hint(format!(
            "run `innkeeper why {server}.{tool}` to see why the tool is hidden"
        )),
        Some(similar) => failure.with_hint(format!("did you mean `{server}.{similar}`?")),
        None => failure.with_hint(format!("run `innkeeper tools {server}` to list its tools")),
    })
}

/// Returns the program with the options that find the servers of this command, as a user types
/// them. The values of headers and variables can be secrets and are placeholders; a secret in the
/// command or in the URL is masked.
pub(super) fn program_text(context: &CommandContext) -> String {
    let global = &context.global;
    let mut words = vec!["innkeeper".to_owned()];
    let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
    for file in &global.config {
        add("--config", file.display().to_string());
    }
    if let Some(command) = &global.server.stdio {
        add("--stdio", redact_command(command));
    }
    if let Some(url) = &global.server.url {
        add("--url", redact_url(url));
    }
    for _ in &global.server.header {
        add("--header", "NAME: VALUE".to_owned());
    }
    for _ in &global.server.env {
        add("--env", "NAME=VALUE".to_owned());
    }
    shell_words(&words)
}

/// Returns a command line with a mask for each secret; a command line without a secret stays as the
/// user typed it.
fn redact_command(command: &str) -> String {
    let Some(words) = shlex::split(command) else { return redact_argument(command, None) };
    let before = std::iter::once(None).chain(words.iter().map(|word| Some(word.as_str())));
    let shown: Vec<String> =
        words.iter().zip(before).map(|(word, before)| redact_argument(word, before)).collect();
    if shown == words { command.to_owned() } else { shell_words(&shown) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_to_copy_has_masks_in_place_of_secrets() {
        for (command, shown) in [
            ("npx -y '@a/b c'", "npx -y '@a/b c'"),
            ("run --api-key hunter2-abc -v", "run --api-key '***' -v"),
            ("run --token '${TOKEN}'", "run --token '${TOKEN}'"),
            ("run https://u:hunter2@h/x", "run 'https://***@h/x'"),
            ("run 'Authorization: Bearer hunter2'", "run '***'"),
        ] {
            assert_eq!(redact_command(command), shown);
        }
    }
}
