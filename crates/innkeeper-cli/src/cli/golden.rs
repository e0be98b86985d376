//! The arguments of `golden`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use innkeeper_agent::golden::GoldenMode;

/// The directory of goldens, if a command names none.
const GOLDENS_DIR: &str = "tests/goldens";

/// The directory of goldens that were traces.
const TRACES_DIR: &str = "tests/goldens/traces";

/// What a run does with its golden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GoldenModeArg {
    /// Run without the golden
    Live,
    /// Run, and write the golden
    Record,
    /// Replay the golden; warn of recorded answers that nothing asks for
    Replay,
    /// Replay the golden if it exists, else record it
    Auto,
    /// Replay the golden; recorded answers that nothing asks for are an error
    Strict,
}

impl From<GoldenModeArg> for GoldenMode {
    fn from(mode: GoldenModeArg) -> Self {
        match mode {
            GoldenModeArg::Live => Self::Live,
            GoldenModeArg::Record => Self::Record,
            GoldenModeArg::Replay => Self::Replay,
            GoldenModeArg::Auto => Self::Auto,
            GoldenModeArg::Strict => Self::Strict,
        }
    }
}

/// Arguments of `golden`.
#[derive(Args, Debug)]
pub(crate) struct GoldenArgs {
    #[command(subcommand)]
    pub(crate) command: GoldenCommand,
}

/// A subcommand of `golden`.
#[derive(Debug, Subcommand)]
pub(crate) enum GoldenCommand {
    /// List the goldens of a directory
    List(ListArgs),
    /// Show a recorded run step by step
    Inspect(InspectArgs),
    /// Compare recorded runs side by side
    Diff(DiffArgs),
    /// Run goldens again without a network, and report every change of the result
    Replay(ReplayArgs),
    /// Take the changed result of a replay as the golden result
    Accept(AcceptArgs),
    /// Warn about goldens that are old, or whose model, tools or program have changed
    Stale(StaleArgs),
    /// Count what the goldens cover
    Stats(StatsArgs),
    /// Mark a golden as good or wrong, or show its marks
    Review(ReviewArgs),
    /// Turn the traces of runs into goldens
    FromTrace(FromTraceArgs),
}

/// Arguments of `golden list`.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Directory with goldens
    #[arg(value_name = "DIR", default_value = GOLDENS_DIR)]
    pub(crate) dir: PathBuf,
}

/// Arguments of `golden inspect`.
#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    /// Golden
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Arguments of `golden diff`.
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// Goldens; the tool calls of the others are compared with those of the first
    #[arg(value_name = "FILE", num_args = 2.., required = true)]
    pub(crate) files: Vec<PathBuf>,
}

/// Arguments of `golden replay`.
#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// Goldens, or directories with goldens
    #[arg(value_name = "FILE|DIR", default_value = GOLDENS_DIR)]
    pub(crate) paths: Vec<PathBuf>,
    /// Write a report in the JUnit format too
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// Arguments of `golden accept`.
#[derive(Args, Debug)]
pub(crate) struct AcceptArgs {
    /// Golden
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Why the new result is right
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: String,
    /// Your name; default: the name of your account
    #[arg(long, value_name = "NAME")]
    pub(crate) who: Option<String>,
}

/// Arguments of `golden stale`.
#[derive(Args, Debug)]
pub(crate) struct StaleArgs {
    /// Directory with goldens
    #[arg(value_name = "DIR", default_value = GOLDENS_DIR)]
    pub(crate) dir: PathBuf,
    /// Age from which a golden is old
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    pub(crate) max_age: u32,
    /// Lock with the present definitions of the tools; default: `mcp.lock` beside the first
    /// `--config`, else in this directory, if it exists
    #[arg(long, value_name = "FILE")]
    pub(crate) lock: Option<PathBuf>,
}

/// Arguments of `golden stats`.
#[derive(Args, Debug)]
pub(crate) struct StatsArgs {
    /// Goldens, or directories with goldens
    #[arg(value_name = "DIR", default_value = GOLDENS_DIR)]
    pub(crate) paths: Vec<PathBuf>,
}

/// Arguments of `golden review`.
#[derive(Args, Debug)]
pub(crate) struct ReviewArgs {
    /// Golden; its marks are beside it, in a file that ends with `.review.json`
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Add a mark; without this option, the marks are printed
    #[arg(long, value_name = "MARK", value_enum)]
    pub(crate) mark: Option<MarkArg>,
    /// Note to the mark
    #[arg(long, value_name = "TEXT", requires = "mark")]
    pub(crate) note: Option<String>,
    /// Your name; default: the name of your account
    #[arg(long, value_name = "NAME", requires = "mark")]
    pub(crate) who: Option<String>,
}

/// What a person thinks of a recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MarkArg {
    /// The model did the right thing
    Good,
    /// The model did the wrong thing
    Wrong,
    /// Somebody else should look
    Unsure,
}

/// Arguments of `golden from-trace`.
#[derive(Args, Debug)]
pub(crate) struct FromTraceArgs {
    /// Files with one trace on each line
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Directory of the new goldens
    #[arg(long, value_name = "DIR", default_value = TRACES_DIR)]
    pub(crate) out: PathBuf,
}
