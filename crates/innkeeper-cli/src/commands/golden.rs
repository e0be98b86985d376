//! `golden`: lists, shows, replays and maintains recorded runs.

mod accept;
mod author;
pub(super) mod choice;
mod diff;
pub(super) mod files;
mod from_trace;
mod inspect;
pub(super) mod judge;
mod junit;
mod list;
mod model_shutdowns;
pub(super) mod recordable;
mod replay;
mod review;
mod run_view;
mod stale;
mod stats;

#[cfg(test)]
mod samples;

use crate::cli::GoldenCommand;
use crate::context::CommandContext;
use crate::exit::CliError;

/// Runs a subcommand of `golden`.
pub(crate) async fn golden(
    context: &mut CommandContext,
    command: GoldenCommand,
) -> Result<(), CliError> {
    match command {
        GoldenCommand::List(args) => list::run(&args, &mut context.output),
        GoldenCommand::Inspect(args) => inspect::run(&args, &mut context.output),
        GoldenCommand::Diff(args) => diff::run(&args, &mut context.output),
        GoldenCommand::Replay(args) => replay::run(&args, &mut context.output).await,
        GoldenCommand::Accept(args) => accept::run(context, args).await,
        GoldenCommand::Stale(args) => stale::run(context, &args),
        GoldenCommand::Stats(args) => stats::run(&args, &mut context.output),
        GoldenCommand::Review(args) => review::run(context, args),
        GoldenCommand::FromTrace(args) => from_trace::run(&args, &mut context.output).await,
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
