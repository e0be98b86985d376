//! Tools for a chat application: its model's text goes in, what to show and what was run come out.
//!
//! The application keeps its model, its history and its display. It hands over each answer of the
//! model as a stream of text ([`Turn::answer`]), shows the [`Token`]s, and gives the model what
//! [`Answer::results_as_message`] says. Calls run while the text goes on.

mod answer;
mod cache;
mod calls;
mod message;
mod queue;
mod reading;
pub mod record;
mod rounds;
mod token;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::Stream;
use innkeeper_toolcall::{Format, Limits, Options, Toolbox, prompt};

use crate::tools::{Offered, ToolRunner};
use cache::Cache;
use calls::Kitchen;
use record::{Kind, Recorder};

pub use answer::{Answer, Part, Results, TokenStream, ToolStream};
pub use cache::CacheSettings;
pub use calls::{CALLS, Executed, PARALLEL};
pub use queue::{Ended, ROOM, UNTAKEN};
pub use rounds::{Rounds, RoundsError};
pub use token::Token;

/// What is done with the calls in a model's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They are taken out of the text and run.
    SmartBuffering {
        /// How many characters of what may be a call are kept until it has named an offered tool.
        /// 200 by default. A call that has may be longer: see [`Settings::max_call_bytes`].
        max_buffer_chars: usize,
    },
    /// Nothing: the text goes through piece by piece, and nothing is run.
    Passthrough,
    /// They are run, and the reader is shown a text in the place of each.
    WithPlaceholders {
        /// The text.
        placeholder_text: String,
    },
}

impl Default for Mode {
    fn default() -> Self {
        Self::SmartBuffering { max_buffer_chars: Limits::default().undecided }
    }
}

/// What is written down, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The file that one JSON object a line is appended to; only its owner can read a new one.
    /// Default: none.
    pub log_path: Option<PathBuf>,
    /// Whether it tells of every piece of text what it was taken for, with the beginning of the
    /// piece. Default: no.
    pub token_classifications: bool,
    /// Whether it tells how long things took, as `duration_ms`. Default: no.
    pub performance_metrics: bool,
}

/// How a chat works.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What is done with calls.
    pub mode: Mode,
    /// Whether [`Chat::enhance_system_prompt`] adds the tools. Default: yes.
    pub enhance_system_prompts: bool,
    /// How many answers of one turn may have their calls run. 3 by default; 0 runs none.
    pub max_tool_rounds: usize,
    /// What is written down. Default: nothing.
    pub recording: Recording,
    /// The format of the model's calls; whatever turns up by default.
    pub format: Format,
    /// How long one call may be, in bytes. 1 MiB by default.
    pub max_call_bytes: usize,
    /// Whether a call that was made before is answered without running it again, for tools that say
    /// that this does no harm. Default: no.
    pub cache: Option<CacheSettings>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            enhance_system_prompts: true,
            max_tool_rounds: 3,
            recording: Recording::default(),
            format: Format::Detect,
            max_call_bytes: Limits::default().call,
            cache: None,
        }
    }
}

/// Why there is no chat, or no answer.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// The file cannot be written to.
    #[error("the log `{}` cannot be opened for writing", path.display())]
    Log {
        /// The file as it was named.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It was called outside of a runtime.
    #[error("an answer is read on a Tokio runtime, and there is none here")]
    NoRuntime(#[from] tokio::runtime::TryCurrentError),
}

/// The tools of a [`ToolRunner`] for a chat. Clones share it.
#[derive(Clone)]
pub struct Chat(Arc<Inner>);

struct Inner {
    runner: Arc<dyn ToolRunner>,
    settings: Settings,
    recorder: Recorder,
    cache: Option<Arc<Cache>>,
    /// The tools as they were last offered: their schemas are compiled once.
    known: Mutex<Arc<Known>>,
}

/// The tools of one moment.
#[derive(Debug, Default)]
struct Known {
    offered: Vec<Offered>,
    toolbox: Toolbox,
    /// The same for the interceptor.
    tools: Arc<innkeeper_toolcall::Tools>,
}

impl std::fmt::Debug for Chat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chat").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

impl Chat {
    /// A chat over these tools.
    ///
    /// # Errors
    ///
    /// A log that cannot be opened.
    pub fn new(runner: Arc<dyn ToolRunner>, settings: Settings) -> Result<Self, ChatError> {
        let recorder = Recorder::open(&settings.recording)?;
        let cache = settings.cache.clone().map(|settings| Arc::new(Cache::new(settings)));
        let known = Mutex::default();
        Ok(Self(Arc::new(Inner { runner, settings, recorder, cache, known })))
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The system prompt with the tools that are offered now, their arguments and how to call them;
    /// as it is if the settings say so or nothing is offered.
    pub fn enhance_system_prompt(&self, system: &str) -> String {
        let known = self.known();
        if !self.0.settings.enhance_system_prompts || known.tools.is_empty() {
            return system.to_owned();
        }
        let recorder = &self.0.recorder;
        let begun = recorder.begin(Kind::PromptEnhancementStart);
        let text = prompt::streaming(system, &known.tools);
        recorder.complete(Kind::PromptEnhancementComplete, begun, || {
            serde_json::json!({"tools": known.tools.len(), "added_bytes": text.len().saturating_sub(system.len())})
        });
        text
    }

    /// A turn: from what the user says to the model's last answer. See [`Turn`].
    pub fn turn(&self) -> Turn {
        Turn { chat: self.clone(), rounds: Arc::default() }
    }

    /// Waits until everything that was recorded so far is in the file; a second at most.
    pub async fn flush(&self) {
        self.0.recorder.flush().await;
    }

    /// The tools of this moment.
    fn known(&self) -> Arc<Known> {
        let offered = self.0.runner.offered();
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.offered != offered {
            let tools: innkeeper_toolcall::Tools =
                offered.iter().map(|offered| offered.tool.clone()).collect();
            let toolbox = Toolbox::new(tools.clone());
            *known = Arc::new(Known { offered, toolbox, tools: Arc::new(tools) });
        }
        Arc::clone(&known)
    }

    /// How the interceptor reads; `None` where it does not.
    fn options(&self) -> Option<Options> {
        let settings = &self.0.settings;
        let undecided = match &settings.mode {
            Mode::SmartBuffering { max_buffer_chars } => *max_buffer_chars,
            Mode::WithPlaceholders { .. } => Limits::default().undecided,
            Mode::Passthrough => return None,
        };
        let limits = Limits { undecided, call: settings.max_call_bytes };
        Some(Options { format: settings.format, limits, prompt: None })
    }
}

/// The answers of a model to one thing the user said, and how many of them had their calls run.
///
/// Each answer whose results are taken with [`Answer::results_as_message`] is a round. When there
/// have been [`Settings::max_tool_rounds`], the calls of the next answer are not run, and the turn
/// begins anew behind it; so it does behind an answer without calls. Clones share the count. One
/// answer of a turn at a time: those that are read side by side count as one another's rounds.
#[derive(Clone, Debug)]
pub struct Turn {
    chat: Chat,
    rounds: Arc<AtomicUsize>,
}

impl Turn {
    /// Reads an answer of the model from a stream of its text, cut anywhere. It is read in the
    /// background from now on, until the answer is dropped.
    ///
    /// How the stream ended is not known, so a call that it ends in is not run.
    ///
    /// # Errors
    ///
    /// Outside of a Tokio runtime.
    pub fn answer<S>(&self, stream: S) -> Result<Answer, ChatError>
    where
        S: Stream<Item = String> + Send + Unpin + 'static,
    {
        let Inner { runner, settings, recorder, cache, .. } = &*self.chat.0;
        let runs = self.rounds.load(Ordering::Relaxed) < settings.max_tool_rounds;
        if !runs {
            self.begin_anew();
        }
        let known = self.chat.known();
        let kitchen = Kitchen {
            runner: runner.clone(),
            known,
            cache: cache.clone(),
            recorder: recorder.clone(),
        };
        let placeholder = match &settings.mode {
            Mode::WithPlaceholders { placeholder_text } => Some(placeholder_text.clone()),
            Mode::SmartBuffering { .. } | Mode::Passthrough => None,
        };
        let reader = reading::Reader::new(kitchen, self.chat.options(), placeholder, runs);
        let rounds = self.rounds.clone();
        Answer::begin(stream, reader, rounds)
    }

    /// Forgets the rounds there have been, as for something new the user said.
    pub fn begin_anew(&self) {
        self.rounds.store(0, Ordering::Relaxed);
    }
}
