//! Tools for a chat application that keeps its own model.
//!
//! The application keeps its model, its history and its display. The application passes each
//! response of the model as a stream of text ([`ChatRun::read_response`]), displays the
//! [`TextSegment`]s, and sends the message of [`StreamingResponse::results_as_message`] to the
//! model. Calls run while the text is still streaming.

mod call_scheduler;
pub mod event_log;
mod foreign_texts;
mod queue;
mod response;
mod response_task;
mod run;
mod segment;
mod tool_results;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::Stream;
use innkeeper_toolcall::prompt::{self, Template};
use innkeeper_toolcall::{Format, ModelFamily, ParserLimits, ParserOptions, ToolCallParser, Tools};

use crate::executor::{CallQueue, CallSettings, Executor, ExecutorSettings, StartRule};
use crate::safety::{ApprovalPolicy, Approver, ToolBlocklist};
use crate::timing::Timing;
use crate::tools::ToolRunner;
use call_scheduler::CallScheduler;
use event_log::{LogEventKind, LogWriter};
use foreign_texts::ForeignTexts;
use segment::SegmentClassifier;

pub use crate::executor::{
    CacheSettings, DEFAULT_PARALLEL_CALLS, MAX_CALLS_PER_RESPONSE, ToolExecution,
};
pub use queue::{MAX_UNREAD_BYTES, StreamEnd, TEXT_BUFFER_BYTES};
pub use response::{
    ExecutionStream, ResponseItem, ResponseResults, SegmentStream, StreamingResponse,
};
pub use run::{ChatErrorRecord, ChatRunResult};
pub use segment::TextSegment;

/// The treatment of tool calls in a model's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamingMode {
    /// Calls are removed from the text and run.
    SmartBuffering {
        /// Maximum number of characters of a possible call that are held before the call has named
        /// an available tool. Default: 200. A call with a name may be longer: see
        /// [`ChatSettings::max_call_bytes`].
        max_buffer_chars: usize,
    },
    /// The text passes through unchanged, and no call is run.
    Passthrough,
    /// Calls are run, and a placeholder replaces each call in the text.
    WithPlaceholders {
        /// The text of the placeholder.
        placeholder_text: String,
    },
}

impl Default for StreamingMode {
    fn default() -> Self {
        Self::SmartBuffering { max_buffer_chars: ParserLimits::default().max_undecided_chars }
    }
}

/// Settings of the event log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogConfig {
    /// The log file, to which one JSON object per line is appended. A new file is readable by its
    /// owner only. Default: none.
    pub log_path: Option<PathBuf>,
    /// Whether the log contains the class of every text segment, with the first characters of the
    /// segment. Default: no.
    pub token_classifications: bool,
    /// Whether the log contains durations, as `duration_ms`. Default: no.
    pub performance_metrics: bool,
}

/// Settings of a chat.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatSettings {
    /// The treatment of tool calls.
    pub mode: StreamingMode,
    /// Whether [`Chat::enhance_system_prompt`] adds the tools. Default: yes.
    pub enhance_system_prompts: bool,
    /// The family of the model, in whose form [`Chat::enhance_system_prompt`] describes the tools
    /// and the calls. Default: generic, the form for any model.
    pub model_family: ModelFamily,
    /// Maximum number of iterations per run: responses whose calls are executed. Default: 3; with
    /// 0, no call is executed.
    pub max_tool_iterations: usize,
    /// The event log. Default: no log.
    pub log_config: LogConfig,
    /// The format of the model's calls. Default: detected.
    pub format: Format,
    /// Maximum number of bytes in one call; a longer call is displayed as text and is not run.
    /// Default: 1 MiB.
    pub max_call_bytes: usize,
    /// The cache of results for repeated calls of tools that are annotated as read-only or
    /// idempotent. Default: no cache.
    pub cache: Option<CacheSettings>,
    /// Maximum number of concurrent calls per response. Default: [`DEFAULT_PARALLEL_CALLS`].
    pub max_parallel_calls: usize,
    /// The tools that the model does not see and cannot call. Default: none.
    pub blocklist: ToolBlocklist,
    /// The policy that decides which calls need approval. Default: no call needs approval.
    pub approval_policy: ApprovalPolicy,
    /// Maximum number of tool calls in any 60 seconds; further calls are refused. Default: no
    /// limit.
    pub call_rate_limit_per_minute: Option<u32>,
}

impl Default for ChatSettings {
    fn default() -> Self {
        Self {
            mode: StreamingMode::default(),
            enhance_system_prompts: true,
            model_family: ModelFamily::default(),
            max_tool_iterations: 3,
            log_config: LogConfig::default(),
            format: Format::Detect,
            max_call_bytes: ParserLimits::default().max_call_bytes,
            cache: None,
            max_parallel_calls: DEFAULT_PARALLEL_CALLS,
            blocklist: ToolBlocklist::default(),
            approval_policy: ApprovalPolicy::default(),
            call_rate_limit_per_minute: None,
        }
    }
}

/// Errors of a chat.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// The log file cannot be opened.
    #[error("cannot open log `{}` for writing", path.display())]
    Log {
        /// The path as configured.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The caller is outside of a Tokio runtime.
    #[error("reading a response requires a Tokio runtime")]
    NoRuntime(#[from] tokio::runtime::TryCurrentError),
}

/// The tools of a [`ToolRunner`] for a chat application. Clones share the chat.
///
/// # Examples
///
/// ```
/// # use std::sync::Arc;
/// # use innkeeper_agent::{Chat, ChatSettings};
/// # use innkeeper_host::{Config, Host};
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let host = Host::start(Config::default()).await?;
/// let chat = Chat::new(Arc::new(host), ChatSettings::default())?;
/// let chunks = futures_util::stream::iter(["Hello, ".to_owned(), "world.".to_owned()]);
/// let mut response = chat.start_run().read_response(chunks)?;
/// while let Some(segment) = response.segment_stream.recv().await {
///     print!("{}", segment.visible_text().unwrap_or_default());
/// }
/// assert_eq!(response.results_as_message().await, None);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Chat {
    executor: Executor,
    settings: Arc<ChatSettings>,
    log_writer: LogWriter,
    foreign_texts: ForeignTexts,
}

impl std::fmt::Debug for Chat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chat").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Chat {
    /// Creates a chat over these tools.
    ///
    /// # Errors
    ///
    /// [`ChatError::Log`] if the log file cannot be opened.
    pub fn new(runner: Arc<dyn ToolRunner>, settings: ChatSettings) -> Result<Self, ChatError> {
        let timing = Timing::default();
        let log_writer = LogWriter::open(&settings.log_config, timing.clone())?;
        let rules = ExecutorSettings {
            blocklist: settings.blocklist.clone(),
            approval_policy: settings.approval_policy,
            calls: CallSettings {
                rate_limit_per_minute: settings.call_rate_limit_per_minute,
                max_parallel: settings.max_parallel_calls,
                cache: settings.cache.clone(),
                timeout: None,
            },
        };
        let executor = Executor::new(runner, rules, timing);
        Ok(Self {
            executor,
            settings: Arc::new(settings),
            log_writer,
            foreign_texts: ForeignTexts::default(),
        })
    }

    /// Sets the approver, which decides about calls that need approval, one after the other. Calls
    /// that are already approved run in the meantime. Without an approver, calls that need approval
    /// are denied.
    #[must_use]
    pub fn with_approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.executor.set_approver(approver);
        self
    }

    /// Returns the settings.
    pub fn settings(&self) -> &ChatSettings {
        &self.settings
    }

    /// Returns the system prompt with the available tools, their arguments and the call syntax of
    /// [`ChatSettings::model_family`]. Returns `system` unchanged if the settings disable the
    /// addition or no tool is available. For a family other than the generic one, the example calls
    /// an available tool, and a prompt that is too long has the generic form.
    pub fn enhance_system_prompt(&self, system: &str) -> String {
        let tools = self.executor.tool_snapshot().tools.available.clone();
        if !self.settings.enhance_system_prompts || tools.is_empty() {
            return system.to_owned();
        }
        let recorder = &self.log_writer;
        let start_time = recorder.log_start(LogEventKind::PromptEnhancementStart);
        let text = system_prompt(self.settings.model_family, system, &tools);
        recorder.log_complete(LogEventKind::PromptEnhancementComplete, start_time, || {
            serde_json::json!({"tools": tools.len(), "added_bytes": text.len().saturating_sub(system.len())})
        });
        text
    }

    /// Adds a text of the conversation that the model did not write, such as a message of the user or
    /// a resource that the application put into the prompt. A call that stands in the text is not
    /// run when the model repeats it. The results of the chat's own calls need not be added.
    ///
    /// The newest 16 MiB of these texts and results are kept, for all conversations of the chat.
    pub fn add_foreign_text(&self, text: &str) {
        self.foreign_texts.add_message(text);
    }

    /// Starts a run: all responses of the model to one user message. See [`ChatRun`].
    pub fn start_run(&self) -> ChatRun {
        ChatRun { chat: self.clone(), iterations: Arc::default() }
    }

    /// Waits until all earlier log entries are in the file, for at most one second. Dropping the
    /// future ends only the wait; a thread writes the entries.
    pub async fn flush(&self) {
        self.log_writer.flush().await;
    }

    /// Returns the options of the parser; `None` if text passes through.
    fn parser_options(&self) -> Option<ParserOptions> {
        let settings = &self.settings;
        let max_undecided_chars = match &settings.mode {
            StreamingMode::SmartBuffering { max_buffer_chars } => *max_buffer_chars,
            StreamingMode::WithPlaceholders { .. } => ParserLimits::default().max_undecided_chars,
            StreamingMode::Passthrough => return None,
        };
        let limits = ParserLimits { max_undecided_chars, max_call_bytes: settings.max_call_bytes };
        Some(ParserOptions { format: settings.format, limits, prompt: None })
    }
}

fn system_prompt(family: ModelFamily, system: &str, tools: &Tools) -> String {
    let in_family_form = match family {
        ModelFamily::Generic => None,
        ModelFamily::Llama31 | ModelFamily::Mistral | ModelFamily::Qwen25Coder => {
            Template::for_family(family).system_prompt(system, tools).ok()
        }
    };
    in_family_form.unwrap_or_else(|| prompt::streaming_system_prompt(system, tools))
}

/// The responses of a model to one user message, and the number of responses whose calls were run.
///
/// Each response whose results are taken with [`StreamingResponse::results_as_message`] is an
/// iteration. After [`ChatSettings::max_tool_iterations`] iterations, the calls of the next
/// response are not run, and the count restarts after that response; the count also restarts after
/// a response without calls. Clones share the count. Read one response of a run at a time:
/// concurrent responses count as iterations of one another.
#[derive(Clone, Debug)]
pub struct ChatRun {
    chat: Chat,
    iterations: Arc<AtomicUsize>,
}

impl ChatRun {
    /// Reads a response of the model from a stream of text, in chunks of any size. A background
    /// task reads the stream until the response is dropped.
    ///
    /// The stream does not say why it ended, so a call that is incomplete at the end is not run.
    ///
    /// # Errors
    ///
    /// [`ChatError::NoRuntime`] outside of a Tokio runtime.
    pub fn read_response<S>(&self, stream: S) -> Result<StreamingResponse, ChatError>
    where
        S: Stream<Item = String> + Send + Unpin + 'static,
    {
        let Chat { executor, settings, log_writer, foreign_texts } = &self.chat;
        let runs = self.iterations.load(Ordering::Relaxed) < settings.max_tool_iterations;
        if !runs {
            self.reset();
        }
        let placeholder = match &settings.mode {
            StreamingMode::WithPlaceholders { placeholder_text } => Some(placeholder_text.clone()),
            StreamingMode::SmartBuffering { .. } | StreamingMode::Passthrough => None,
        };
        let snapshot = executor.tool_snapshot();
        let parser = self.chat.parser_options().map(|options| {
            // The parser knows the blocked tools, so that the executor refuses their calls.
            ToolCallParser::new(snapshot.tools.known.clone(), &options)
        });
        let classifier = SegmentClassifier::new(
            placeholder,
            settings.blocklist.clone(),
            snapshot.tools.known.clone(),
            foreign_texts.clone(),
        );
        let calls = CallQueue::new(executor.clone(), snapshot, StartRule::AfterItsDecision);
        let scheduler = CallScheduler::new(calls, log_writer.clone(), foreign_texts.clone());
        let reader = response_task::ResponseTask::new(parser, classifier, scheduler, runs);
        let iterations = self.iterations.clone();
        StreamingResponse::start(stream, reader, iterations)
    }

    /// Resets the count of iterations, for a new user message.
    pub fn reset(&self) {
        self.iterations.store(0, Ordering::Relaxed);
    }
}
