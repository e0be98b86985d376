//! What of a conversation is sent when all of it is too long: the newest, in whole exchanges.

use super::message::{Message, Said, opens_step};

/// Bytes of text for one token: what English and JSON have on the average. It is an estimate for
/// bounds, never reported as a count.
const BYTES_PER_TOKEN: usize = 4;

/// Tokens around each message: its role and its marks.
const AROUND: usize = 4;

/// How many tokens of history go along with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The most tokens of all messages together, as estimated; what the model answers is not in it.
    pub tokens: usize,
}

/// As much as the smallest context windows in use have.
impl Default for Budget {
    fn default() -> Self {
        Self { tokens: 8192 }
    }
}

/// About how many tokens a text is.
pub fn tokens(text: &str) -> usize {
    text.len().div_ceil(BYTES_PER_TOKEN)
}

impl Budget {
    /// The messages that fit beside a system text of `system` tokens.
    ///
    /// The last message of the person is always there, with as many of the newest steps behind it as
    /// fit, one at least; before it, as many whole exchanges as fit. A call and its result stay or go
    /// together.
    pub fn fit(&self, messages: &[Message], system: usize) -> Vec<Message> {
        let mut left = self.tokens.saturating_sub(system);
        let asked = messages.iter().rposition(|it| matches!(it, Message::User(_))).unwrap_or(0);
        let (before, now) = messages.split_at(asked);
        let Some((question, steps)) = now.split_first() else { return Vec::new() };
        left = left.saturating_sub(weight(question));
        let kept = newest(&units(steps, opens_step), &mut left, 1);
        let whole = kept.len() == steps.len();
        let mut fitting = Vec::new();
        if whole {
            fitting.extend(newest(&units(before, opens_exchange), &mut left, 0));
        }
        fitting.push(question.clone());
        fitting.extend(kept);
        fitting
    }
}

/// The messages in parts that stay or go together; each begins where `opens` says so.
fn units(messages: &[Message], opens: fn(Option<&Message>, &Message) -> bool) -> Vec<&[Message]> {
    let mut units = Vec::new();
    let mut rest = messages;
    while !rest.is_empty() {
        let next = rest.windows(2).position(|pair| opens(Some(&pair[0]), &pair[1]));
        let length = next.map_or(rest.len(), |at| at + 1);
        let (unit, behind) = rest.split_at(length);
        units.push(unit);
        rest = behind;
    }
    units
}

fn opens_exchange(_: Option<&Message>, message: &Message) -> bool {
    matches!(message, Message::User(_))
}

/// The last units that fit, and `least` of them in any case.
fn newest(units: &[&[Message]], left: &mut usize, least: usize) -> Vec<Message> {
    let mut first = units.len();
    for (at, unit) in units.iter().enumerate().rev() {
        let weight: usize = unit.iter().map(weight).sum();
        if weight > *left && units.len() - at > least {
            break;
        }
        *left = left.saturating_sub(weight);
        first = at;
    }
    units[first..].concat()
}

/// About how many tokens a message is.
fn weight(message: &Message) -> usize {
    let text: usize = match message {
        Message::User(text) => tokens(text),
        Message::Answer(answer) => answer
            .parts
            .iter()
            .map(|part| match (&part.native, &part.said) {
                (Some(native), _) => tokens(native.block.get()),
                (None, Said::Text(text) | Said::Reasoning(text)) => tokens(text),
                (None, Said::Call(call)) => tokens(&call.name) + tokens(&call.arguments),
                (None, Said::Other) => 0,
            })
            .sum(),
        Message::Results(results) => {
            results.iter().map(|result| tokens(&result.text) + AROUND).sum()
        }
    };
    text + AROUND
}
