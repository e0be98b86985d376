//! Scripts as JSON.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Ending, Script, Step};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    steps: Vec<One>,
    then_always: Option<One>,
    chunks: Option<usize>,
    models: Option<Vec<String>>,
    props: Option<Value>,
    chat_template_caps: Option<Value>,
}

/// What kind of step it is, and how its body goes on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    answer: Option<Answer>,
    failure: Option<Failure>,
    raw: Option<Raw>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    breaks_off_after: Option<usize>,
    hangs_after: Option<usize>,
    #[serde(default)]
    hangs: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Answer {
    parts: Vec<Part>,
    usage: Option<(u64, u64)>,
    cached_tokens: u64,
    reasoning_tokens: u64,
    cut: bool,
    refuses: bool,
    ends_in_error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Says(String),
    Thinks(String),
    Calls(Call),
    RawArguments(RawCall),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    arguments: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCall {
    name: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    status: u16,
    error: Option<String>,
    code: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    status: u16,
    content_type: String,
    body: String,
}

pub(super) fn read(text: &str) -> Result<Script, String> {
    let whole: Whole = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let steps = whole.steps.into_iter().enumerate();
    let steps = steps.map(|(at, one)| one.step().map_err(|it| format!("`steps[{at}]`: {it}")));
    let mut script = Script::new(steps.collect::<Result<Vec<_>, _>>()?);
    if let Some(one) = whole.then_always {
        script = script.then_always(one.step().map_err(|it| format!("`then_always`: {it}"))?);
    }
    match whole.chunks {
        Some(0) => return Err("`chunks` is at least 1".to_owned()),
        Some(bytes) => script = script.chunks(bytes),
        None => {}
    }
    if let Some(names) = whole.models {
        script = script.models(names);
    }
    match (whole.props, whole.chat_template_caps) {
        (Some(_), Some(_)) => Err("`props` and `chat_template_caps` exclude each other".to_owned()),
        (Some(props), None) => Ok(script.props(props)),
        (None, Some(caps)) => Ok(script.chat_template_caps(&caps)),
        (None, None) => Ok(script),
    }
}

impl One {
    fn step(self) -> Result<Step, &'static str> {
        let ending = match (self.breaks_off_after, self.hangs_after, self.hangs) {
            (None, None, false) => Ending::Whole,
            (Some(bytes), None, false) => Ending::BreaksOff(bytes),
            (None, Some(bytes), false) => Ending::HangsAfter(bytes),
            (None, None, true) => Ending::Hangs,
            _ => return Err("it has two of `breaks_off_after`, `hangs_after` and `hangs`"),
        };
        let mut step = match (self.answer, self.failure, self.raw) {
            (Some(answer), None, None) => answer.step(),
            (None, Some(failure), None) => failure.step(),
            (None, None, Some(raw)) => Step::raw(raw.status, &raw.content_type, raw.body),
            (None, None, None) if ending == Ending::Hangs => Step::new(),
            _ => return Err("it is one of `answer`, `failure` and `raw`"),
        };
        step.headers = self.headers.into_iter().collect();
        step.ending = ending;
        Ok(step)
    }
}

impl Answer {
    fn step(self) -> Step {
        let parts = self.parts.into_iter();
        let mut step = parts.fold(Step::new(), |step, part| match part {
            Part::Says(text) => step.says(text),
            Part::Thinks(text) => step.thinks(text),
            Part::Calls(call) => step.calls(call.name, call.arguments),
            Part::RawArguments(call) => step.raw_arguments(call.name, call.text),
        });
        step = step.cached_tokens(self.cached_tokens).reasoning_tokens(self.reasoning_tokens);
        if let Some((prompt, completion)) = self.usage {
            step = step.usage(prompt, completion);
        }
        if self.cut {
            step = step.cut();
        }
        if self.refuses {
            step = step.refuses();
        }
        match self.ends_in_error {
            Some(message) => step.ends_in_error(message),
            None => step,
        }
    }
}

impl Failure {
    fn step(self) -> Step {
        let mut step = Step::status(self.status);
        if let Some(message) = self.error {
            step = step.error(message);
        }
        match self.code {
            Some(code) => step.code(code),
            None => step,
        }
    }
}
