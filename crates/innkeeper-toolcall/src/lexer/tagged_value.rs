//! Finds the end of a raw value between tags.
//!
//! A raw value has no escapes, and a file that a model writes may contain example calls in the
//! model's own syntax. So a closing tag is not enough to end a value:
//!
//! - An example that opens inside the value takes its own closing tags with it.
//! - The end of the value must be followed by the end of the call or by the next argument.
//! - Text counts as the next argument only if the tool has such an argument that hasn't come yet.
//!
//! Some texts still have two readings, for example a value that mentions an argument of the same
//! call which isn't given anywhere else. The scan notes the doubt, and the call is refused.

use super::tag_syntax::HeadEnd;
use super::tagged_parameters::{ParameterPhase, TaggedParameters};
use super::{
    LexStatus, MAX_ARGUMENTS, MAX_LOOKAHEAD_BYTES, MAX_NAME_BYTES, PrefixMatch, first_bytes,
    is_name, leading_whitespace_len, match_after_whitespace, match_prefix,
};
use crate::event::TextEnd;

/// The examples that a value has contained so far.
#[derive(Debug, Default)]
pub(super) struct ValueScan {
    /// The example calls that are open.
    open_calls: usize,
    /// The example arguments that are open, outside of example calls.
    open_arguments: usize,
    /// The open elements of a file in the value that have the closing tags of the syntax: of a call
    /// and of an argument.
    open_elements: [usize; 2],
    /// The byte before the current position.
    last_byte: u8,
}

/// The positions in `open_elements`.
const CALL: usize = 0;
const ARGUMENT: usize = 1;

/// What a tag in a value means.
enum ValueStep {
    /// The next bytes are part of the value.
    Part(usize),
    NeedMore,
    End(ValueBoundary),
}

struct ValueBoundary {
    /// The length of the closing tag.
    used: usize,
    phase: ParameterPhase,
    is_closed: bool,
}

/// What follows the closing tag of a value.
enum AfterValue {
    CallEnd,
    /// The start of an argument with this name.
    Argument(String),
    /// The start of an argument whose tag is damaged.
    DamagedArgument,
    TextEnd,
    Other,
    NeedMore,
}

/// The key of an argument at the start of a text.
enum KeyMatch<'t> {
    /// The key's text, and the length up to the end of the key's tag.
    Key(&'t str, usize),
    /// A damaged key, up to the first character that no key contains.
    Invalid(&'t str),
    NeedMore,
}

impl TaggedParameters {
    pub(super) fn lex_value(
        &mut self,
        input: &str,
        at: &mut usize,
        text_end: Option<TextEnd>,
    ) -> Option<LexStatus> {
        loop {
            let rest = &input.as_bytes()[*at..];
            let offset = memchr::memchr(self.syntax.tag_byte(), rest).unwrap_or(rest.len());
            if let Some(last) = rest[..offset].last() {
                self.current.scan.last_byte = *last;
            }
            *at += offset;
            if *at == input.len() {
                return Some(self.need_more(input, input.len()));
            }
            let step = self.match_tag(&input[*at..], text_end);
            match step {
                ValueStep::Part(length) => {
                    self.current.scan.last_byte = input.as_bytes()[*at + length - 1];
                    *at += length;
                }
                ValueStep::NeedMore => return Some(self.need_more(input, *at)),
                ValueStep::End(_) if self.arguments.len() == MAX_ARGUMENTS => {
                    return Some(LexStatus::NotACall { used: *at });
                }
                ValueStep::End(boundary) => {
                    self.push_argument(self.base_offset + *at, boundary.is_closed);
                    *at += boundary.used;
                    self.phase = boundary.phase;
                    return None;
                }
            }
        }
    }

    fn match_tag(&mut self, rest: &str, text_end: Option<TextEnd>) -> ValueStep {
        let value_end = match_prefix(rest, &self.current.value_end);
        if value_end == PrefixMatch::Yes {
            return self.match_value_end(rest, text_end);
        }
        let call_end = match_prefix(rest, &self.syntax.call.end);
        if call_end == PrefixMatch::Yes {
            return self.match_call_end(rest, text_end);
        }
        let call_start = match_prefix(rest, &self.syntax.call.start);
        let argument_start = match_prefix(rest, &self.syntax.argument.start);
        let tags = [value_end, call_end, call_start, argument_start];
        if tags.contains(&PrefixMatch::Partial) && text_end.is_none() {
            return ValueStep::NeedMore;
        }
        if call_start == PrefixMatch::Yes {
            match self.match_example(rest) {
                ExampleMatch::Open(length) => {
                    self.current.scan.open_calls += 1;
                    return ValueStep::Part(length);
                }
                ExampleMatch::Closed(length) => return ValueStep::Part(length),
                ExampleMatch::NeedMore if text_end.is_none() => return ValueStep::NeedMore,
                ExampleMatch::NeedMore | ExampleMatch::No => {}
            }
        }
        if argument_start == PrefixMatch::Yes && self.current.scan.open_calls == 0 {
            return self.match_argument(rest, text_end);
        }
        for (open, start) in
            self.current.scan.open_elements.iter_mut().zip(self.syntax.element_starts)
        {
            let next = rest.strip_prefix(start).and_then(|rest| rest.chars().next());
            *open += usize::from(next.is_some_and(|next| next == '>' || next.is_whitespace()));
        }
        ValueStep::Part(1)
    }

    /// Whether a closing tag that may follow the call starts here, with its length.
    fn match_section_end(&self, rest: &str) -> (PrefixMatch, usize) {
        let tags = self.syntax.call.section_ends.iter();
        let results: Vec<_> = tags.map(|tag| (match_prefix(rest, tag), tag.len())).collect();
        let find = |wanted: PrefixMatch| results.iter().find(|(matched, _)| *matched == wanted);
        find(PrefixMatch::Yes)
            .or_else(|| find(PrefixMatch::Partial))
            .copied()
            .unwrap_or((PrefixMatch::No, 0))
    }

    /// Decides about the closing tag of a value at the start of `rest`.
    fn match_value_end(&mut self, rest: &str, text_end: Option<TextEnd>) -> ValueStep {
        let used = self.current.value_end.len();
        if self.current.scan.open_calls > 0 {
            return ValueStep::Part(used);
        }
        let in_argument = self.current.scan.open_arguments > 0;
        let after = self.match_after_value(&rest[used..], text_end);
        let may_close_element = matches!(after, AfterValue::CallEnd)
            && self.current.scan.open_elements.iter().all(|open| *open > 0);
        match after {
            AfterValue::NeedMore => return ValueStep::NeedMore,
            // Both tags may belong to the file that the value contains.
            _ if may_close_element => {
                match self.match_section_end_after_call(&rest[used..], text_end) {
                    PrefixMatch::Yes => self.doubts.is_ambiguous |= in_argument,
                    PrefixMatch::Partial => return ValueStep::NeedMore,
                    PrefixMatch::No => return self.pass_value_end(),
                }
            }
            // With an open argument in the value, both tags may belong to an example.
            AfterValue::CallEnd | AfterValue::TextEnd => self.doubts.is_ambiguous |= in_argument,
            AfterValue::Argument(key) if self.parameters.wants(&key) => {
                // Either the tag closes an example, or the value.
                self.doubts.is_ambiguous |= in_argument;
            }
            AfterValue::Argument(_) if !in_argument => {}
            AfterValue::DamagedArgument if !in_argument => self.doubts.is_ambiguous = true,
            AfterValue::Argument(_) | AfterValue::DamagedArgument | AfterValue::Other => {
                return self.pass_value_end();
            }
        }
        let phase = ParameterPhase::BetweenArguments;
        ValueStep::End(ValueBoundary { used, phase, is_closed: true })
    }

    /// Takes the closing tag of a value as a part of the value.
    fn pass_value_end(&mut self) -> ValueStep {
        let open_elements = &mut self.current.scan.open_elements[ARGUMENT];
        *open_elements = open_elements.saturating_sub(1);
        self.current.scan.open_arguments = self.current.scan.open_arguments.saturating_sub(1);
        ValueStep::Part(self.current.value_end.len())
    }

    /// Whether the end of the call is followed by the end of its section or of the text. `rest` is
    /// the text after a value.
    fn match_section_end_after_call(&self, rest: &str, text_end: Option<TextEnd>) -> PrefixMatch {
        let call_end = leading_whitespace_len(rest) + self.syntax.call.end.len();
        let ended = text_end.map(|_| true);
        match_after_whitespace(&rest[call_end..], &self.syntax.call.section_ends, ended)
    }

    fn match_after_value(&self, rest: &str, text_end: Option<TextEnd>) -> AfterValue {
        let blank = leading_whitespace_len(rest);
        let rest = &rest[blank..];
        let undecided = match text_end {
            None => AfterValue::NeedMore,
            Some(TextEnd::Stop) if rest.is_empty() => AfterValue::TextEnd,
            Some(_) => AfterValue::Other,
        };
        if blank > MAX_LOOKAHEAD_BYTES {
            return AfterValue::Other;
        }
        if rest.is_empty() {
            return undecided;
        }
        let argument_start = &self.syntax.argument.start;
        match (match_prefix(rest, &self.syntax.call.end), match_prefix(rest, argument_start)) {
            (PrefixMatch::Yes, _) => AfterValue::CallEnd,
            (PrefixMatch::Partial, _) | (_, PrefixMatch::Partial) => undecided,
            (_, PrefixMatch::Yes) => match self.match_key(&rest[argument_start.len()..]) {
                KeyMatch::Key(key, _) => {
                    AfterValue::Argument(self.syntax.parse_argument_key(key).0)
                }
                KeyMatch::NeedMore => undecided,
                KeyMatch::Invalid(_) => AfterValue::DamagedArgument,
            },
            (PrefixMatch::No, PrefixMatch::No) => AfterValue::Other,
        }
    }

    /// Decides about the end of a call at the start of `rest`.
    fn match_call_end(&mut self, rest: &str, text_end: Option<TextEnd>) -> ValueStep {
        let used = self.syntax.call.end.len();
        if self.current.scan.open_calls > 0 {
            self.current.scan.open_calls -= 1;
            return ValueStep::Part(used);
        }
        // The model forgot the closing tag of the value. Only at the end of the text is it certain
        // that the value doesn't go on.
        match self.match_text_end(&rest[used..], text_end) {
            PrefixMatch::Yes => {
                self.doubts.is_ambiguous |= self.current.scan.open_arguments > 0;
                let phase = ParameterPhase::Tail;
                ValueStep::End(ValueBoundary { used, phase, is_closed: false })
            }
            PrefixMatch::Partial if text_end.is_none() => ValueStep::NeedMore,
            PrefixMatch::Partial | PrefixMatch::No => {
                let open_elements = &mut self.current.scan.open_elements[CALL];
                *open_elements = open_elements.saturating_sub(1);
                ValueStep::Part(used)
            }
        }
    }

    /// Whether only closing tags are left.
    fn match_text_end(&self, rest: &str, text_end: Option<TextEnd>) -> PrefixMatch {
        let mut left = rest;
        loop {
            let blank = leading_whitespace_len(left);
            left = &left[blank..];
            if blank > MAX_LOOKAHEAD_BYTES || rest.len() - left.len() > 2 * MAX_LOOKAHEAD_BYTES {
                return PrefixMatch::No;
            }
            let has_tag = !rest[..rest.len() - left.len()].trim().is_empty();
            match (left.is_empty(), text_end) {
                (true, None) => return PrefixMatch::Partial,
                (true, Some(end)) if has_tag || end == TextEnd::Stop => return PrefixMatch::Yes,
                (true, Some(_)) => return PrefixMatch::No,
                (false, _) => {}
            }
            match self.match_section_end(left) {
                (PrefixMatch::Yes, length) => left = &left[length..],
                (PrefixMatch::Partial, _) if text_end.is_none() => return PrefixMatch::Partial,
                (PrefixMatch::Partial | PrefixMatch::No, _) => return PrefixMatch::No,
            }
        }
    }

    /// Decides about the start of an argument at the start of `rest`, without a closing tag before.
    fn match_argument(&mut self, rest: &str, text_end: Option<TextEnd>) -> ValueStep {
        let start = self.syntax.argument.start.len();
        let (key, key_length) = match self.match_key(&rest[start..]) {
            KeyMatch::Key(key, length) => (self.syntax.parse_argument_key(key).0, length),
            KeyMatch::NeedMore if text_end.is_none() => return ValueStep::NeedMore,
            KeyMatch::Invalid(key) => {
                let (name, _) = self.syntax.parse_argument_key(key);
                self.doubts.is_ambiguous |=
                    self.parameters.lists(&name) && self.parameters.wants(&name);
                return ValueStep::Part(1);
            }
            KeyMatch::NeedMore => return ValueStep::Part(1),
        };
        let used = start + key_length;
        let starts_line =
            self.syntax.argument.trims_newlines && self.current.scan.last_byte == b'\n';
        if self.parameters.wants(&key) {
            // Without an argument that it requires, the tool can't be called. So if its tag starts a
            // line, the model forgot the closing tag.
            if starts_line
                && self.current.scan.open_arguments == 0
                && self.parameters.requires(&key)
            {
                let phase = ParameterPhase::BetweenArguments;
                return ValueStep::End(ValueBoundary { used: 0, phase, is_closed: false });
            }
            self.doubts.mentioned.insert(key.clone());
        }
        // Only a tag of the same name closes it, and a tag that is closed at once needs none.
        if self.syntax.argument.value_end(&key) != self.current.value_end
            || rest[..used - 1].ends_with('/')
        {
            return ValueStep::Part(used);
        }
        match self.match_value_start(&rest[used..]) {
            PrefixMatch::Partial if text_end.is_none() => return ValueStep::NeedMore,
            PrefixMatch::Yes => self.current.scan.open_arguments += 1,
            PrefixMatch::Partial | PrefixMatch::No => {}
        }
        ValueStep::Part(used)
    }

    /// Whether a value can start after the key of an argument: prose that mentions the tag goes on
    /// differently in most syntaxes.
    fn match_value_start(&self, rest: &str) -> PrefixMatch {
        if self.syntax.argument.trims_newlines {
            return match match_prefix(rest, "\n") {
                PrefixMatch::No => match_prefix(rest, "\r\n"),
                decided => decided,
            };
        }
        match self.syntax.argument.value_start {
            "" => PrefixMatch::Yes,
            start => match_after_whitespace(rest, &[start], None),
        }
    }

    fn match_key<'t>(&self, text: &'t str) -> KeyMatch<'t> {
        for (offset, letter) in text.char_indices() {
            match match_prefix(&text[offset..], self.syntax.argument.key_end) {
                PrefixMatch::Yes if offset > 0 => {
                    return KeyMatch::Key(
                        &text[..offset],
                        offset + self.syntax.argument.key_end.len(),
                    );
                }
                PrefixMatch::Partial => return KeyMatch::NeedMore,
                PrefixMatch::Yes | PrefixMatch::No => {}
            }
            if offset >= MAX_NAME_BYTES || !is_key_char(letter) || offset == 0 && letter == '/' {
                return KeyMatch::Invalid(&text[..offset]);
            }
        }
        KeyMatch::NeedMore
    }

    /// Whether the text after the start of a call is an example call, and not the mention of a tag.
    fn match_example(&self, rest: &str) -> ExampleMatch {
        let from = self.syntax.call.start.len();
        let head = first_bytes(&rest[from..], MAX_NAME_BYTES + MAX_LOOKAHEAD_BYTES + 1);
        let mut next = vec![&*self.syntax.argument.start, &*self.syntax.call.end];
        if let HeadEnd::NextTag { separator } = self.syntax.call.head_end {
            next.push(separator);
            let first = head.trim_start();
            let results = ["{", "[", "<function="].map(|start| match_prefix(first, start));
            if results.contains(&PrefixMatch::Yes) {
                return ExampleMatch::Open(from);
            }
            if results.contains(&PrefixMatch::Partial) {
                return ExampleMatch::NeedMore;
            }
        }
        let (end, end_length) = match self.syntax.call.head_end {
            HeadEnd::Text(end) => (head.find(end), end.len()),
            HeadEnd::TagEnd => (head.find('>'), 1),
            HeadEnd::NextTag { .. } => (head.find('<'), 0),
        };
        let Some(end) = end.filter(|end| *end <= MAX_NAME_BYTES) else {
            let is_long = head.len() > MAX_NAME_BYTES + MAX_LOOKAHEAD_BYTES;
            return if is_long { ExampleMatch::No } else { ExampleMatch::NeedMore };
        };
        if !self.is_head(&head[..end]) {
            return ExampleMatch::No;
        }
        let length = from + end + end_length;
        if self.syntax.call.head_end == HeadEnd::TagEnd && head[..end].ends_with('/') {
            return ExampleMatch::Closed(length);
        }
        match match_after_whitespace(&rest[length..], &next, None) {
            PrefixMatch::Yes => ExampleMatch::Open(length),
            PrefixMatch::Partial => ExampleMatch::NeedMore,
            PrefixMatch::No => ExampleMatch::No,
        }
    }

    /// Whether a text can be the name of a tool, with its attributes.
    fn is_head(&self, head: &str) -> bool {
        let head = head.trim().trim_end_matches('/');
        !head.contains(['<', '\n'])
            && self.syntax.is_head(head)
            && is_name(self.syntax.name(head).trim())
    }
}

/// Whether the start of a call in a value is an example.
enum ExampleMatch {
    /// An example that goes on after this many bytes.
    Open(usize),
    /// An example without arguments that ends after this many bytes.
    Closed(usize),
    No,
    NeedMore,
}

/// Whether a key may contain the character. A key with a line break or a tag is damaged.
pub(super) fn is_key_char(letter: char) -> bool {
    !"\n\r<>".contains(letter)
}
