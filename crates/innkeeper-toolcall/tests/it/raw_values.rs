//! Raw values with any text: the exact call or a refusal, and never another call.
//!
//! The values are made of prose, code, fragments of tags and whole example calls of every raw
//! syntax, from a fixed seed. Each call is written by a renderer of its own.

use std::sync::Arc;

use innkeeper_toolcall::{
    Format, Json, ParseEvent, ParserOptions, TextEnd, Tool, ToolCallParser, Tools,
};
use serde_json::json;

/// A generator of pseudo-random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// A syntax with raw values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    QwenXml,
    Glm,
    GlmWithoutLines,
    MiniMax,
    MiniMaxM3,
    FunctionCalls,
    Dsml,
    DsmlV41,
    Step,
    Xtml,
    Gemma,
    FunctionGemma,
    MiniCpm,
}

const SYNTAXES: &[Syntax] = &[
    Syntax::QwenXml,
    Syntax::Glm,
    Syntax::GlmWithoutLines,
    Syntax::MiniMax,
    Syntax::MiniMaxM3,
    Syntax::FunctionCalls,
    Syntax::Dsml,
    Syntax::DsmlV41,
    Syntax::Step,
    Syntax::Xtml,
    Syntax::Gemma,
    Syntax::FunctionGemma,
    Syntax::MiniCpm,
];

type Arguments<'t> = [(&'t str, String)];

fn join(arguments: &Arguments<'_>, argument: impl Fn(&str, &str) -> String) -> String {
    arguments.iter().map(|(key, value)| argument(key, value)).collect()
}

impl Syntax {
    fn format(self) -> Format {
        match self {
            Self::QwenXml | Self::MiniCpm => Format::QwenXml,
            Self::Glm | Self::GlmWithoutLines => Format::Glm,
            Self::MiniMax | Self::MiniMaxM3 | Self::FunctionCalls | Self::Step => Format::Invoke,
            Self::Dsml | Self::DsmlV41 => Format::DeepSeek,
            Self::Xtml => Format::Kimi,
            Self::Gemma | Self::FunctionGemma => Format::Gemma,
        }
    }

    /// Writes a call as the model's template does.
    fn write(self, name: &str, arguments: &Arguments<'_>) -> String {
        match self {
            Self::QwenXml => {
                let body = join(arguments, |key, value| {
                    format!("<parameter={key}>\n{value}\n</parameter>\n")
                });
                format!("<tool_call>\n<function={name}>\n{body}</function>\n</tool_call>")
            }
            Self::Glm => {
                let body = join(arguments, |key, value| {
                    format!("<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n")
                });
                format!("<tool_call>{name}\n{body}</tool_call>")
            }
            Self::GlmWithoutLines => {
                let body = join(arguments, |key, value| {
                    format!("<arg_key>{key}</arg_key><arg_value>{value}</arg_value>")
                });
                format!("<tool_call>{name}{body}</tool_call>")
            }
            Self::MiniMax => Self::write_invoke("", "minimax:tool_call", name, arguments),
            Self::FunctionCalls => Self::write_invoke("", "function_calls", name, arguments),
            Self::Step => Self::write_invoke("steptml:", "steptml:toolcall", name, arguments),
            Self::MiniMaxM3 => {
                let ns = "]<]minimax[>[";
                let body =
                    join(arguments, |key, value| format!("{ns}<{key}>{value}{ns}</{key}>\n"));
                format!(
                    "{ns}<tool_call>\n{ns}<invoke name=\"{name}\">\n{body}{ns}</invoke>\n{ns}</tool_call>"
                )
            }
            Self::Dsml => Self::write_dsml("", "tool_calls", name, arguments),
            Self::DsmlV41 => Self::write_dsml(" ", "calls", name, arguments),
            Self::Xtml => {
                let body = join(arguments, |key, value| {
                    format!(
                        "<|open|>argument key=\"{key}\" type=\"string\"<|sep|>{value}<|close|>argument<|sep|>"
                    )
                });
                format!(
                    "<|open|>tools<|sep|><|open|>call tool=\"{name}\" index=\"1\"<|sep|>{body}<|close|>call<|sep|><|close|>tools<|sep|>"
                )
            }
            Self::Gemma => {
                let all: Vec<String> = arguments
                    .iter()
                    .map(|(key, value)| format!("{key}:<|\"|>{value}<|\"|>"))
                    .collect();
                format!("<|tool_call>call:{name}{{{}}}<tool_call|>", all.join(","))
            }
            Self::FunctionGemma => {
                let all: Vec<String> = arguments
                    .iter()
                    .map(|(key, value)| format!("{key}:<escape>{value}<escape>"))
                    .collect();
                format!("<start_function_call>call:{name}{{{}}}<end_function_call>", all.join(","))
            }
            Self::MiniCpm => {
                let body =
                    join(arguments, |key, value| format!("<param name=\"{key}\">{value}</param>"));
                format!("<function name=\"{name}\">{body}</function>")
            }
        }
    }

    fn write_invoke(prefix: &str, section: &str, name: &str, arguments: &Arguments<'_>) -> String {
        let body = join(arguments, |key, value| {
            format!("<{prefix}parameter name=\"{key}\">{value}</{prefix}parameter>\n")
        });
        format!(
            "<{section}>\n<{prefix}invoke name=\"{name}\">\n{body}</{prefix}invoke>\n</{section}>"
        )
    }

    fn write_dsml(space: &str, section: &str, name: &str, arguments: &Arguments<'_>) -> String {
        let mark = format!("｜DSML｜{space}");
        let body = join(arguments, |key, value| {
            format!("<{mark}parameter name=\"{key}\" string=\"true\">{value}</{mark}parameter>\n")
        });
        format!(
            "<{mark}{section}>\n<{mark}invoke name=\"{name}\">\n{body}</{mark}invoke>\n</{mark}{section}>"
        )
    }
}

/// The tools with their arguments. Only some are required.
const TOOLS: &[(&str, &[&str], &[&str])] = &[
    ("write_file", &["path", "content", "mode"], &["path", "content"]),
    ("run_shell", &["command", "timeout"], &["command"]),
    ("delete_files", &["pattern"], &[]),
    ("get_time", &[], &[]),
];

fn tools() -> Arc<Tools> {
    let tool = |(name, keys, required): &(&str, &[&str], &[&str])| {
        let properties: serde_json::Map<_, _> =
            keys.iter().map(|key| ((*key).to_owned(), json!({"type": "string"}))).collect();
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Tool::new(*name, "", schema)
    };
    Arc::new(TOOLS.iter().map(tool).collect())
}

const WORDS: &[&str] = &[
    "the file",
    "a < b && c > d",
    "It's \"quoted\"",
    "naïve 日本語",
    "fn main() {",
    "}",
    "x = [1, 2];",
    "<div class=\"a\">",
    "</div>",
    "- item",
    "# Title",
    "```",
    "`code`",
    "{\"a\": 1}",
    "\n",
    "\n\n",
    "\t",
    "call: f",
    "key:value, other:2}",
    "]",
    "don't",
    "=> \\n",
];

/// Pieces of tags of every syntax.
const FRAGMENTS: &[&str] = &[
    "<tool_call>",
    "</tool_call>",
    "<function=run>",
    "<function=",
    "</function>",
    "<parameter=x>",
    "<parameter=x>\n",
    "\n<parameter=path>\n",
    "\n<parameter=mode>\n",
    "<parameter=",
    "</parameter>",
    "\n</parameter>\n",
    "<arg_key>",
    "<arg_key>x</arg_key>",
    "<arg_key>timeout</arg_key>\n<arg_value>",
    "<arg_value>",
    "</arg_value>",
    "<invoke name=\"f\">",
    "</invoke>",
    "<parameter name=\"x\">",
    "<parameter name=\"timeout\">",
    "<minimax:tool_call>",
    "</minimax:tool_call>",
    "<｜DSML｜invoke name=\"f\">",
    "</｜DSML｜parameter>",
    "<｜DSML｜parameter name=\"mode\" string=\"true\">",
    "<|open|>call tool=\"f\"<|sep|>",
    "<|close|>argument<|sep|>",
    "<|open|>argument key=\"mode\" type=\"string\"<|sep|>",
    "<|\"|>",
    "<|\"|>,",
    "<|\"|>}",
    ",mode:<|\"|>",
    "<|tool_call>",
    "<tool_call|>",
    "<escape>",
    "<escape>,mode:<escape>",
    "]<]minimax[>[<x>",
    "]<]minimax[>[</content>",
    "]<]minimax[>[<mode>",
    "</content>",
    "<param name=\"mode\">",
    "</param>",
    "\n</parameter>\n</function>\n</tool_call>",
    "</arg_value>\n</tool_call>",
    "</parameter>\n</invoke>\n</minimax:tool_call>",
    "<|\"|>}<tool_call|>",
];

/// A part of a value, and whether the part has markup.
fn part(random: &mut Random, own: Syntax) -> (String, bool) {
    match random.below(10) {
        0..=6 => ((random.pick(WORDS)).to_owned(), false),
        7 => ((random.pick(FRAGMENTS)).to_owned(), true),
        _ => {
            let syntax = if random.below(2) == 0 { own } else { random.pick(SYNTAXES) };
            let (name, keys, _) = random.pick(TOOLS);
            let arguments: Vec<_> =
                keys.iter().map(|key| (*key, (random.pick(WORDS)).to_owned())).collect();
            let example = syntax.write(name, &arguments);
            let cut = match random.below(4) {
                0 => random.below(example.len() + 1),
                _ => example.len(),
            };
            let cut = (cut..).find(|cut| example.is_char_boundary(*cut)).unwrap_or(0);
            (example[..cut].to_owned(), true)
        }
    }
}

struct Case {
    syntax: Syntax,
    /// The call that the text means, as text.
    expected: String,
    text: String,
    has_markup: bool,
    chunks: Vec<usize>,
}

fn case(random: &mut Random) -> Case {
    let syntax = random.pick(SYNTAXES);
    let (name, keys, _) = TOOLS[random.below(3)];
    let mut has_markup = false;
    let mut arguments = Vec::new();
    // Optional arguments at the end may be absent.
    let required = if name == "delete_files" { 1 } else { keys.len() - 1 };
    let mut given: Vec<&str> = keys[..required + random.below(keys.len() - required + 1)].to_vec();
    if random.below(4) == 0 {
        given.reverse();
    }
    let marked = random.below(given.len());
    for (at, key) in given.iter().enumerate() {
        let mut value = String::new();
        for _ in 0..if at == marked { random.below(8) } else { 1 } {
            let (more, is_markup) = if at == marked {
                part(random, syntax)
            } else {
                ((random.pick(WORDS)).to_owned(), false)
            };
            value.push_str(&more);
            has_markup |= is_markup;
            value.push_str(random.pick(&["", " ", "\n"]));
        }
        arguments.push((*key, value));
    }
    let members =
        arguments.iter().map(|(key, value)| ((*key).to_owned(), Json::String(value.clone())));
    let expected = format!("{name} {}", Json::Object(members.collect()));
    let mut text = syntax.write(name, &arguments);
    if random.below(3) == 0 {
        text.push_str(random.pick(&["\n", "\nDone.", " I wrote the file."]));
    }
    let chunks = (0..random.below(6)).map(|_| random.below(text.len() + 1)).collect();
    Case { syntax, expected, text, has_markup, chunks }
}

/// Whether the text is also what a model writes for these calls, apart from white space, in one
/// syntax or several. No parser can know which of the two was meant.
fn is_written_form(calls: &[String], text: &str) -> bool {
    let without_space = |text: &str| text.split_whitespace().collect::<String>();
    let text = without_space(text);
    let mut rest = text.as_str();
    calls.iter().all(|call| {
        let (name, arguments) = call.split_once(' ').unwrap();
        let members: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(arguments).unwrap();
        let arguments: Vec<(&str, String)> = members
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default().to_owned()))
            .collect();
        let forms = SYNTAXES.iter().map(|syntax| without_space(&syntax.write(name, &arguments)));
        let end = forms.filter_map(|form| Some(rest.find(&form)? + form.len())).min();
        rest = &rest[end.unwrap_or(rest.len())..];
        end.is_some()
    })
}

/// The calls of a text, or nothing if anything shows that the text has no certain reading.
fn read(case: &Case) -> Option<Vec<String>> {
    let options = ParserOptions { format: case.syntax.format(), ..ParserOptions::default() };
    let mut parser = ToolCallParser::new(tools(), &options);
    let (mut calls, mut is_refused, mut texts) = (Vec::new(), false, String::new());
    let mut sink = |event: ParseEvent<'_>| {
        texts.push_str(event.text());
        match event {
            ParseEvent::Call { call, .. } => {
                calls.push(format!("{} {}", call.name, call.arguments));
            }
            ParseEvent::Rejected { .. } | ParseEvent::Incomplete { .. } => is_refused = true,
            ParseEvent::Text(_)
            | ParseEvent::Reasoning(_)
            | ParseEvent::Markup(_)
            | ParseEvent::CallStart { .. }
            | ParseEvent::Arguments { .. } => {}
        }
    };
    let mut cuts = case.chunks.clone();
    cuts.sort_unstable();
    let mut from = 0;
    for cut in cuts {
        parser.push_bytes(&case.text.as_bytes()[from..cut], &mut sink);
        from = cut;
    }
    parser.push_bytes(&case.text.as_bytes()[from..], &mut sink);
    parser.finish(TextEnd::Stop, &mut sink);
    assert_eq!(texts, case.text);
    (!is_refused && !calls.is_empty()).then_some(calls)
}

/// Runs cases and checks the shares of exact calls.
fn check(seed: u64, count: usize) {
    let mut random = Random(seed);
    // Exact calls and all calls, without markup and in total.
    let mut plain = (0, 0);
    let mut exact = 0;
    let mut wrong = Vec::new();
    for _ in 0..count {
        let case = case(&mut random);
        let calls = read(&case);
        let is_exact = calls.as_ref().is_some_and(|calls| *calls == [case.expected.as_str()]);
        if let Some(calls) = calls.filter(|_| !is_exact)
            && !is_written_form(&calls, &case.text)
        {
            wrong.push(format!(
                "{:?}\n{}\n  read {calls:#?}\n  not {}",
                case.syntax, case.text, case.expected
            ));
        }
        exact += usize::from(is_exact);
        plain.0 += usize::from(is_exact && !case.has_markup);
        plain.1 += usize::from(!case.has_markup);
    }
    eprintln!("{exact} of {count} exact, {} of {} without markup", plain.0, plain.1);
    assert!(
        wrong.is_empty(),
        "{} wrong, the first:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(6)].join("\n\n")
    );
    assert!(
        plain.0 * 100 >= plain.1 * 99,
        "{} of {} values without markup are exact",
        plain.0,
        plain.1
    );
    assert!(exact * 10 >= count * 9, "{exact} of {count} values are exact");
}

/// Attack: model | values contain tags and whole calls of the model's own syntax and of others | the
/// call is exact, or it is refused | No guessed call
#[test]
fn a_raw_value_comes_back_exactly_or_its_call_is_refused() {
    check(41, 2_000);
}

#[test]
#[ignore = "a million cases take 3 minutes: `cargo test --release -p innkeeper-toolcall --test it -- --ignored raw_value`"]
fn a_million_raw_values_come_back_exactly_or_their_calls_are_refused() {
    check(7, 1_000_000);
}
