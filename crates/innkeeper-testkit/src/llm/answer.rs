//! What is said to one request: a step of the script with names, ids and signatures.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use serde_json::Value;

use super::script;

/// Bytes that count as a token where the script does not say how many there were.
const BYTES_A_TOKEN: usize = 4;

/// Characters of a piece of text, and of a call's arguments, while they stream.
const PIECE: usize = 7;

/// When every answer was given, in seconds since 1970: no clock is read.
pub(super) const WHEN: u64 = 1_795_000_000;

/// An answer, ready to be put into a provider's form.
#[derive(Debug)]
pub(super) struct Answer {
    /// Counts the answers of this model from one.
    pub(super) number: usize,
    /// The model as the request names it.
    pub(super) model: String,
    pub(super) parts: Vec<Part>,
    pub(super) finish: Finish,
    pub(super) usage: Usage,
    /// What is said of the failure that it ends in.
    pub(super) error: Option<String>,
    /// Whether usage is told in a stream of Chat Completions.
    pub(super) tells_usage: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Thought(String),
    Text(String),
    Call(Call),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Which one of this answer, from zero.
    pub(super) index: usize,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    Stop,
    Calls,
    Length,
    Refused,
}

/// Tokens, cached ones and those of thoughts included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub(super) prompt: u64,
    pub(super) completion: u64,
    pub(super) cached: u64,
    pub(super) reasoning: u64,
}

impl Answer {
    /// An answer to `request` as a step has it; `offered` are the names of its tools.
    pub(super) fn new(
        says: &script::Says,
        number: usize,
        id_prefix: &str,
        model: &str,
        (request, offered): (&[u8], &[String]),
    ) -> Self {
        let mut index = 0;
        let parts = says.parts.iter().map(|part| match part {
            script::Part::Thought(text) => Part::Thought(text.clone()),
            script::Part::Text(text) => Part::Text(text.clone()),
            script::Part::Call { name, arguments } => {
                let id = format!("{id_prefix}{number:04}{index:02}");
                let (name, arguments) = (known_as(name, offered), arguments.clone());
                let call = Call { index, id, name, arguments };
                index += 1;
                Part::Call(call)
            }
        });
        let parts: Vec<_> = parts.collect();
        let finish = match (says.refuses, says.cut, index) {
            (true, _, _) => Finish::Refused,
            (false, true, _) => Finish::Length,
            (false, false, 0) => Finish::Stop,
            (false, false, _) => Finish::Calls,
        };
        let written = parts.iter().map(Part::bytes).sum::<usize>();
        let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(BYTES_A_TOKEN)).unwrap_or(0);
        let (prompt, completion) =
            says.usage.unwrap_or_else(|| (tokens(request.len()), tokens(written)));
        let usage = Usage { prompt, completion, cached: says.cached, reasoning: says.reasoning };
        let (model, error) = (model.to_owned(), says.error.clone());
        Self { number, model, parts, finish, usage, error, tells_usage: false }
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            Part::Thought(_) | Part::Text(_) => None,
        })
    }

    /// All text for the reader.
    pub(super) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Thought(_) | Part::Call(_) => None,
        });
        texts.collect()
    }

    /// All thoughts.
    pub(super) fn thoughts(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Thought(text) => Some(text.as_str()),
            Part::Text(_) | Part::Call(_) => None,
        });
        texts.collect()
    }

    /// The first call whose arguments are no JSON object.
    pub(super) fn malformed(&self) -> Option<&Call> {
        self.calls().find(|call| !call.is_object())
    }

    /// JSON with the arguments of calls in the places of their [`Call::slot`], as they were written.
    pub(super) fn written(&self, value: &Value) -> String {
        self.calls().fold(value.to_string(), |text, call| {
            text.replace(&Value::String(mark(call.index)).to_string(), &call.arguments)
        })
    }
}

impl Part {
    fn bytes(&self) -> usize {
        match self {
            Self::Thought(text) | Self::Text(text) => text.len(),
            Self::Call(call) => call.name.len() + call.arguments.len(),
        }
    }
}

impl Call {
    /// Whether the arguments are what every call's should be.
    pub(super) fn is_object(&self) -> bool {
        serde_json::from_str::<serde_json::Map<String, Value>>(&self.arguments).is_ok()
    }

    /// Stands for the arguments as an object until the JSON is written; an empty object where they
    /// are none. A [`Value`] would round big numbers.
    pub(super) fn slot(&self) -> Value {
        match self.is_object() {
            true => Value::String(mark(self.index)),
            false => Value::Object(serde_json::Map::new()),
        }
    }

    /// What vouches for this call.
    pub(super) fn signature(&self) -> String {
        let arguments: Value = serde_json::from_str(&self.arguments).unwrap_or_default();
        call_signature(&self.name, &arguments)
    }
}

/// No text of a test has control characters.
fn mark(index: usize) -> String {
    format!("\u{1}{index}\u{1}")
}

/// What vouches for a call with these arguments; neither spaces nor escapes in them count.
pub(super) fn call_signature(name: &str, arguments: &Value) -> String {
    signature(&format!("call {name} {arguments}"))
}

/// What vouches for a thought.
pub(super) fn thought_signature(text: &str) -> String {
    signature(&format!("thought {text}"))
}

/// Made from the content alone; both hexadecimal and Base64.
pub(super) fn signature(content: &str) -> String {
    let word = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, content).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    };
    (0..6).map(word).collect()
}

/// The offered name that is spelled like this one, else this one.
fn known_as(name: &str, offered: &[String]) -> String {
    let wanted = spelled(name);
    let found = offered.iter().find(|one| spelled(one) == wanted);
    found.map_or(name, String::as_str).to_owned()
}

fn spelled(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    name.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect()
}

/// Text in the pieces in which it streams; none of an empty one.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}
