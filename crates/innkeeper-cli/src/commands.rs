//! One module per command.

mod add;
mod ask;
mod call;
mod chat;
mod check;
mod completions;
mod demo;
mod doctor;
mod edit_server;
mod export_retries;
mod extract;
mod golden;
mod graph;
mod import;
mod lock;
mod log_stats;
mod login;
mod model;
mod prompt;
mod read;
#[cfg(unix)]
mod record;
#[cfg(unix)]
mod replay;
mod run_recording;
mod schema;
mod serve;
mod tools;
mod why;

use crate::cli::HostCommand;
use crate::context::CommandContext;
use crate::exit::CliError;

pub(crate) use ask::print_failure as print_ask_failure;
pub(crate) use completions::completions;
pub(crate) use export_retries::export_retries;
pub(crate) use extract::extract;
pub(crate) use golden::golden;
pub(crate) use import::import;
pub(crate) use log_stats::log_stats;
pub(crate) use model::model;
#[cfg(unix)]
pub(crate) use record::record;
#[cfg(unix)]
pub(crate) use replay::replay;

pub(crate) async fn run(
    context: &mut CommandContext,
    command: HostCommand,
) -> Result<(), CliError> {
    match command {
        HostCommand::Check => check::run(context),
        HostCommand::Tools(args) => tools::run(context, &args).await,
        HostCommand::Call(args) => call::run(context, &args).await,
        HostCommand::Prompt(args) => prompt::run(context, &args).await,
        HostCommand::Read(args) => read::run(context, &args).await,
        HostCommand::Graph => graph::run(context),
        HostCommand::Schema => schema::run(context),
        HostCommand::Lock(args) => lock::run(context, &args).await,
        HostCommand::Login(args) => login::run(context, &args).await,
        HostCommand::Why(args) => why::run(context, &args).await,
        HostCommand::Add(args) => add::run(context, &args),
        HostCommand::Remove(args) => edit_server::remove(context, &args),
        HostCommand::Enable(args) => edit_server::set_enabled(context, &args, true),
        HostCommand::Disable(args) => edit_server::set_enabled(context, &args, false),
        HostCommand::Doctor => doctor::run(context).await,
        HostCommand::Ask(args) => ask::run(context, &args).await,
        HostCommand::Chat(args) => chat::run(context, &args).await,
        HostCommand::Serve(args) => serve::run(context, &args).await,
        HostCommand::Demo(args) => demo::run(context, &args).await,
    }
}
