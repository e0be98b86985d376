//! What a scripted model says, one step for each request.

mod json;

use std::borrow::Borrow;

use bytes::Bytes;
use serde_json::{Value, json};

/// The steps of a model, and what goes for all of them.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(super) steps: Vec<Step>,
    pub(super) last: Option<Step>,
    pub(super) chunks: Option<usize>,
    pub(super) models: Vec<String>,
    pub(super) props: Option<Value>,
}

impl Script {
    /// One step for each request to a model's path, in their order. A request more than there are
    /// steps is answered with 500.
    #[must_use]
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let models = vec!["scripted".to_owned()];
        Self { steps: steps.into_iter().collect(), models, ..Self::default() }
    }

    /// Reads a script; the keys are the names of the methods here and of [`Step`], the parts of an
    /// answer are in `parts`.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, and where in it.
    pub fn from_json(text: &str) -> Result<Self, String> {
        json::read(text)
    }

    /// Sends streamed bodies in pieces of so many bytes, each by itself; `usize::MAX` for the whole
    /// at once. By default each event is a piece.
    ///
    /// # Panics
    ///
    /// When it is zero.
    #[must_use]
    pub fn chunks(mut self, bytes: usize) -> Self {
        assert!(bytes > 0, "a piece has at least one byte");
        self.chunks = Some(bytes);
        self
    }

    /// Answers each request behind the last step with this one.
    #[must_use]
    pub fn then_always(mut self, step: Step) -> Self {
        self.last = Some(step);
        self
    }

    /// The names that lists of models have. Default: `scripted`.
    #[must_use]
    pub fn models(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.models = names.into_iter().map(Into::into).collect();
        self
    }

    /// The answer to `GET /props`. By default there is none, and it is answered with 404.
    #[must_use]
    pub fn props(mut self, body: Value) -> Self {
        self.props = Some(body);
        self
    }

    /// An answer to `GET /props` as llama.cpp's server gives it, with these capabilities of the
    /// model's template.
    #[must_use]
    pub fn chat_template_caps(self, caps: &Value) -> Self {
        self.props(json!({
            "default_generation_settings": {"n_ctx": 8192},
            "total_slots": 1,
            "model_path": "scripted.gguf",
            "chat_template": "{{ messages }}",
            "chat_template_caps": caps,
            "build_info": "b10000-scripted",
        }))
    }
}

impl From<Step> for Script {
    fn from(step: Step) -> Self {
        Self::new([step])
    }
}

impl From<Vec<Step>> for Script {
    fn from(steps: Vec<Step>) -> Self {
        Self::new(steps)
    }
}

impl<const N: usize> From<[Step; N]> for Script {
    fn from(steps: [Step; N]) -> Self {
        Self::new(steps)
    }
}

/// What one request is answered with.
#[derive(Clone, Debug)]
pub struct Step {
    pub(super) kind: Kind,
    pub(super) headers: Vec<(String, String)>,
    pub(super) ending: Ending,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Says(Says),
    Fails { status: u16, code: Option<String>, message: String },
    Raw { status: u16, content_type: String, bytes: Bytes },
}

/// How the body goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Whole,
    BreaksOff(usize),
    HangsAfter(usize),
    Hangs,
}

/// An answer of the model.
#[derive(Clone, Debug, Default)]
pub(super) struct Says {
    pub(super) parts: Vec<Part>,
    pub(super) usage: Option<(u64, u64)>,
    pub(super) cached: u64,
    pub(super) reasoning: u64,
    pub(super) cut: bool,
    pub(super) refuses: bool,
    pub(super) error: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) enum Part {
    Thought(String),
    Text(String),
    Call { name: String, arguments: String },
}

impl Default for Step {
    fn default() -> Self {
        Self::new()
    }
}

impl Step {
    fn of(kind: Kind) -> Self {
        Self { kind, headers: Vec::new(), ending: Ending::Whole }
    }

    /// An answer that says nothing yet. What it says is in the order in which it is added, where the
    /// provider has an order.
    #[must_use]
    pub fn new() -> Self {
        Self::of(Kind::Says(Says::default()))
    }

    /// An answer that begins with this text.
    #[must_use]
    pub fn say(text: impl Into<String>) -> Self {
        Self::new().says(text)
    }

    /// An answer that begins with this thought.
    #[must_use]
    pub fn think(text: impl Into<String>) -> Self {
        Self::new().thinks(text)
    }

    /// An answer that begins with this call.
    #[must_use]
    pub fn call(name: impl Into<String>, arguments: impl Borrow<Value>) -> Self {
        Self::new().calls(name, arguments)
    }

    /// A failure with this status, in the provider's form.
    #[must_use]
    pub fn status(status: u16) -> Self {
        let message = format!("the script has status {status} here");
        Self::of(Kind::Fails { status, code: None, message })
    }

    /// Bytes as they are.
    #[must_use]
    pub fn raw(status: u16, content_type: &str, bytes: impl Into<Bytes>) -> Self {
        let content_type = content_type.to_owned();
        Self::of(Kind::Raw { status, content_type, bytes: bytes.into() })
    }

    /// Adds text for the reader.
    ///
    /// # Panics
    ///
    /// This and what is behind it up to [`Self::ends_in_error`]: when the step is no answer.
    #[must_use]
    pub fn says(mut self, text: impl Into<String>) -> Self {
        self.answer().parts.push(Part::Text(text.into()));
        self
    }

    /// Adds a thought.
    #[must_use]
    pub fn thinks(mut self, text: impl Into<String>) -> Self {
        self.answer().parts.push(Part::Thought(text.into()));
        self
    }

    /// Adds a call. It has the name by which the request offers a tool that is spelled like this one
    /// (see the tool's name with `_` for all but letters, digits, `_` and `-`), else this one.
    #[must_use]
    pub fn calls(self, name: impl Into<String>, arguments: impl Borrow<Value>) -> Self {
        self.raw_arguments(name, arguments.borrow().to_string())
    }

    /// Adds a call whose arguments are this text, be it what it may.
    ///
    /// Text that is no JSON object is sent as it is by the forms of OpenAI, and by Anthropic's and
    /// Interactions' while they stream; whole they have an empty object. Gemini says that the call is
    /// malformed, Ollama fails with 500.
    #[must_use]
    pub fn raw_arguments(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.answer().parts.push(Part::Call { name: name.into(), arguments: text.into() });
        self
    }

    /// Tokens read and written, what was cached and thought included. By default one for each four
    /// bytes.
    #[must_use]
    pub fn usage(mut self, prompt: u64, completion: u64) -> Self {
        self.answer().usage = Some((prompt, completion));
        self
    }

    /// Of the tokens read, those from a cache. Default: none.
    #[must_use]
    pub fn cached_tokens(mut self, tokens: u64) -> Self {
        self.answer().cached = tokens;
        self
    }

    /// Of the tokens written, those of thoughts. Default: none.
    #[must_use]
    pub fn reasoning_tokens(mut self, tokens: u64) -> Self {
        self.answer().reasoning = tokens;
        self
    }

    /// It was cut at the greatest length.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.answer().cut = true;
        self
    }

    /// The provider declined. Ollama has no word for it.
    #[must_use]
    pub fn refuses(mut self) -> Self {
        self.answer().refuses = true;
        self
    }

    /// While it streams, the provider's error event comes behind what is said; else it is a failure
    /// with status 500.
    #[must_use]
    pub fn ends_in_error(mut self, message: impl Into<String>) -> Self {
        self.answer().error = Some(message.into());
        self
    }

    /// The message of a failure.
    ///
    /// # Panics
    ///
    /// This and [`Self::code`]: when the step is no failure.
    #[must_use]
    pub fn error(mut self, text: impl Into<String>) -> Self {
        let Kind::Fails { message, .. } = &mut self.kind else {
            panic!("`Step::status` comes before `error`")
        };
        *message = text.into();
        self
    }

    /// The provider's word for a failure, in place of the one that goes with its status.
    #[must_use]
    pub fn code(mut self, word: impl Into<String>) -> Self {
        let Kind::Fails { code, .. } = &mut self.kind else {
            panic!("`Step::status` comes before `code`")
        };
        *code = Some(word.into());
        self
    }

    /// Adds a header to the response.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Closes the connection after so many bytes of the body.
    #[must_use]
    pub fn breaks_off_after(mut self, bytes: usize) -> Self {
        self.ending = Ending::BreaksOff(bytes);
        self
    }

    /// Never answers.
    #[must_use]
    pub fn hangs(mut self) -> Self {
        self.ending = Ending::Hangs;
        self
    }

    /// Sends the head and so many bytes of the body, then nothing more.
    #[must_use]
    pub fn hangs_after(mut self, bytes: usize) -> Self {
        self.ending = Ending::HangsAfter(bytes);
        self
    }

    fn answer(&mut self) -> &mut Says {
        match &mut self.kind {
            Kind::Says(says) => says,
            Kind::Fails { .. } | Kind::Raw { .. } => {
                panic!("a step that is a failure or bytes says nothing beside")
            }
        }
    }
}
