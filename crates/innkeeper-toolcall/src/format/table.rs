//! Every marker of every format, and what it begins.

/// What a marker means where it is found in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The model begins to think; the texts one of which ends it, and whether a call may stand in it.
    Think { ends: &'static [&'static str], calls: bool },
    /// The end of a thought that nobody saw begin.
    StrayThinkEnd,
    /// Markup without meaning of its own.
    Frame,
    /// A list of calls begins; only calls are meant in it.
    Section { end: &'static str },
    /// One call, or several in one piece, to be read so.
    Call(Lexing),
    /// A message of Harmony begins: its header comes first.
    Header,
}

#[cfg(test)]
impl Mark {
    /// The other texts that belong to it: what ends it, or stands in the middle of it.
    pub(crate) fn others(self) -> Vec<&'static str> {
        match self {
            Self::Think { ends, .. } => ends.to_vec(),
            Self::Section { end } => vec![end],
            Self::Call(Lexing::Tagged { close }) => vec![close],
            Self::Call(Lexing::Named { separator, close }) => vec![separator, close],
            Self::Call(
                Lexing::ToolCall
                | Lexing::Function
                | Lexing::Json
                | Lexing::Mistral
                | Lexing::Invoke { .. }
                | Lexing::Xtml
                | Lexing::Gemma
                | Lexing::Pythonic
                | Lexing::Bare
                | Lexing::Fence
                | Lexing::React,
            )
            | Self::StrayThinkEnd
            | Self::Frame
            | Self::Header => Vec::new(),
        }
    }
}

impl Lexing {
    /// Whether the marker is part of what is read: a bracket.
    pub(crate) fn reads_marker(self) -> bool {
        matches!(self, Self::Bare | Self::Pythonic)
    }
}

/// How a call is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lexing {
    /// `<tool_call>`: JSON, `<function=…>` or a name with `<arg_key>`, told apart by what follows.
    ToolCall,
    /// `<function=name>` without its `<tool_call>`.
    Function,
    /// JSON with a closing marker.
    Tagged { close: &'static str },
    /// JSON that ends where its value ends, more of them after `;`.
    Json,
    /// `[TOOL_CALLS]`: a JSON list, or a name with `[ARGS]`.
    Mistral,
    /// A name, a separator, JSON, a closing marker.
    Named { separator: &'static str, close: &'static str },
    /// `<invoke name="…">` with `<parameter name="…">`, each with this after its `<` and `</`.
    Invoke { prefix: &'static str },
    /// Kimi K3's `call tool="…"` with `argument key="…"`.
    Xtml,
    /// `call:name{key:<|"|>text<|"|>}`.
    Gemma,
    /// `[f(a=1), g()]`.
    Pythonic,
    /// `{…}` in mid-text.
    Bare,
    /// Three back-ticks whose whole body is a call.
    Fence,
    /// `Action:` and `Action Input:`.
    React,
}

/// A text to look for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marker {
    /// What is looked for.
    pub(crate) text: &'static str,
    /// What it means.
    pub(crate) mark: Mark,
    /// Whether people write it in prose too, so that back-ticks and fences around it count.
    pub(crate) plain: bool,
}

const fn special(text: &'static str, mark: Mark) -> Marker {
    Marker { text, mark, plain: false }
}

const fn plain(text: &'static str, mark: Mark) -> Marker {
    Marker { text, mark, plain: true }
}

/// The format a model writes its calls in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Whatever turns up: every marker of every format below, and the generic forms.
    Detect,
    /// `{"name", "arguments"}` and `{"tool", "params"}` as bare JSON, fenced or tagged, lists of
    /// them, ReAct's `Action:`; only for names of offered tools.
    Generic,
    /// JSON in `<tool_call>`: Hermes, Qwen 2.5, Qwen 3.
    Hermes,
    /// `<function=…><parameter=…>`: Qwen3-Coder, Qwen 3.5 and later, Nemotron 3.
    QwenXml,
    /// Bare JSON or `<|python_tag|>` JSON, and pythonic lists: Llama 3 and 4, Olmo, LFM2.
    Llama,
    /// `[TOOL_CALLS]` in all its versions.
    Mistral,
    /// DeepSeek V3, R1, V3.1 (`<｜tool▁calls▁begin｜>`) and V3.2 to V4.1 (DSML).
    DeepSeek,
    /// Kimi K2 and K3.
    Kimi,
    /// GLM 4.5 and later.
    Glm,
    /// Gemma 4.
    Gemma,
    /// GPT-OSS.
    Harmony,
    /// `<invoke name="…">`: Anthropic's style in text, MiniMax.
    Invoke,
    /// JSON in the tags of Granite, Phi-4, Cohere, InternLM, Jamba and others.
    Tagged,
}

/// Names by which formats are chosen on a command line.
const NAMES: &[(&str, Format)] = &[
    ("detect", Format::Detect),
    ("generic", Format::Generic),
    ("hermes", Format::Hermes),
    ("qwen-xml", Format::QwenXml),
    ("llama", Format::Llama),
    ("mistral", Format::Mistral),
    ("deepseek", Format::DeepSeek),
    ("kimi", Format::Kimi),
    ("glm-4-", Format::Detect),
    ("glm", Format::Glm),
    ("gemma", Format::Gemma),
    ("harmony", Format::Harmony),
    ("invoke", Format::Invoke),
    ("tagged", Format::Tagged),
];

/// What a model's name contains, lower-case, most particular first.
const MODELS: &[(&str, Format)] = &[
    ("gpt-oss", Format::Harmony),
    ("deepseek", Format::DeepSeek),
    ("kimi", Format::Kimi),
    ("glm", Format::Glm),
    ("gemma-4", Format::Gemma),
    ("gemma4", Format::Gemma),
    ("qwen3-coder", Format::QwenXml),
    ("qwen3.5", Format::QwenXml),
    ("qwen3.6", Format::QwenXml),
    ("qwen3.7", Format::QwenXml),
    ("qwen3.8", Format::QwenXml),
    ("nemotron-3", Format::QwenXml),
    ("nemotron3", Format::QwenXml),
    ("nemotron", Format::Tagged),
    ("minimax-m1", Format::Tagged),
    ("qwen", Format::Hermes),
    ("qwq", Format::Hermes),
    ("hermes", Format::Hermes),
    ("magistral", Format::Mistral),
    ("ministral", Format::Mistral),
    ("devstral", Format::Mistral),
    ("codestral", Format::Mistral),
    ("mixtral", Format::Mistral),
    ("mistral", Format::Mistral),
    ("llama", Format::Llama),
    ("olmo", Format::Llama),
    ("lfm2", Format::Llama),
    ("minimax", Format::Invoke),
    ("claude", Format::Invoke),
    ("granite", Format::Tagged),
    ("phi-4", Format::Tagged),
    ("phi4", Format::Tagged),
    ("command-", Format::Tagged),
    ("internlm", Format::Tagged),
    ("jamba", Format::Tagged),
];

impl Format {
    /// The format of this name, as `innkeeper extract --format` takes it.
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, format)| *format)
    }

    /// All names that [`Format::named`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// The format a model of this name writes, `Detect` for one nobody knows. Tags, vendors and
    /// capitals make no difference: `Qwen/Qwen2.5-Coder-7B` and `qwen2.5-coder:7b` are one.
    pub fn for_model(model: &str) -> Self {
        let model = model.rsplit('/').next().unwrap_or_default();
        let model = model.to_ascii_lowercase().replace('_', "-");
        MODELS
            .iter()
            .find(|(part, _)| model.contains(part))
            .map_or(Self::Detect, |(_, format)| *format)
    }

    /// What is looked for in this format.
    pub(crate) fn markers(self) -> Vec<Marker> {
        let groups: &[&[Marker]] = match self {
            Self::Detect => &[
                HARMONY, DEEPSEEK, KIMI, GEMMA, MISTRAL, LLAMA, TOOL_CALL, INVOKE, TAGGED, THINK,
                GENERIC, STOPS,
            ],
            Self::Generic => &[TOOL_CALL, TAGGED, THINK, GENERIC, STOPS],
            Self::Hermes | Self::QwenXml | Self::Glm => &[TOOL_CALL, THINK, GENERIC, STOPS],
            Self::Llama => &[LLAMA, TOOL_CALL, THINK, GENERIC, STOPS],
            Self::Mistral => &[MISTRAL, TOOL_CALL, THINK, GENERIC, STOPS],
            Self::DeepSeek => &[DEEPSEEK, TOOL_CALL, THINK, GENERIC, STOPS],
            Self::Kimi => &[KIMI, TOOL_CALL, THINK, GENERIC, STOPS],
            Self::Gemma => &[GEMMA, TOOL_CALL, THINK, GENERIC, STOPS],
            Self::Harmony => &[HARMONY],
            Self::Invoke => &[INVOKE, TOOL_CALL, THINK, GENERIC, STOPS],
            Self::Tagged => &[TAGGED, TOOL_CALL, THINK, GENERIC, STOPS],
        };
        let mut markers = groups.concat();
        // Where the model is unknown, prose may be about any of them.
        for marker in markers.iter_mut().filter(|_| self == Self::Detect) {
            marker.plain = true;
        }
        markers
    }
}

const THINK: &[Marker] = &[
    plain("<think>", Mark::Think { ends: &["</think>"], calls: true }),
    plain("<thinking>", Mark::Think { ends: &["</thinking>"], calls: true }),
    plain("<seed:think>", Mark::Think { ends: &["</seed:think>"], calls: true }),
    plain("</think>", Mark::StrayThinkEnd),
];

const STOPS: &[Marker] = &[
    special("<|im_end|>", Mark::Frame),
    special("<|endoftext|>", Mark::Frame),
    special("<|eot_id|>", Mark::Frame),
    special("<|eom_id|>", Mark::Frame),
    special("<｜end▁of▁sentence｜>", Mark::Frame),
];

const TOOL_CALL: &[Marker] = &[
    plain("<tool_call>", Mark::Call(Lexing::ToolCall)),
    plain("<function=", Mark::Call(Lexing::Function)),
    plain("</tool_call>", Mark::Frame),
];

const LLAMA: &[Marker] = &[
    special("<|python_tag|>", Mark::Call(Lexing::Json)),
    special("<|python_start|>", Mark::Frame),
    special("<|python_end|>", Mark::Frame),
];

const MISTRAL: &[Marker] = &[
    special("[TOOL_CALLS]", Mark::Call(Lexing::Mistral)),
    special("[THINK]", Mark::Think { ends: &["[/THINK]"], calls: false }),
];

/// A call of DeepSeek V3 to V3.1.
const DEEPSEEK_CALL: Mark = Mark::Call(Lexing::Named {
    separator: "<｜tool▁sep｜>",
    close: "<｜tool▁call▁end｜>",
});

const DEEPSEEK: &[Marker] = &[
    special("<｜tool▁calls▁begin｜>", Mark::Section { end: "<｜tool▁calls▁end｜>" }),
    special("<｜tool▁call▁begin｜>", DEEPSEEK_CALL),
    special("<｜tool▁calls▁end｜>", Mark::Frame),
    special("<｜DSML｜function_calls>", Mark::Section { end: "</｜DSML｜function_calls>" }),
    special("<｜DSML｜tool_calls>", Mark::Section { end: "</｜DSML｜tool_calls>" }),
    special("<｜DSML｜ calls>", Mark::Section { end: "</｜DSML｜ calls>" }),
    special("<｜DSML｜invoke name=\"", Mark::Call(Lexing::Invoke { prefix: "｜DSML｜" })),
    special("<｜DSML｜ invoke name=\"", Mark::Call(Lexing::Invoke { prefix: "｜DSML｜ " })),
    special("</｜DSML｜function_calls>", Mark::Frame),
    special("</｜DSML｜tool_calls>", Mark::Frame),
    special("</｜DSML｜ calls>", Mark::Frame),
];

/// Kimi K3 may answer without having ended its thought.
const XTML_THINK: &[&str] = &["<|close|>think<|sep|>", "<|open|>response<|sep|>"];

const KIMI: &[Marker] = &[
    special("<|tool_calls_section_begin|>", Mark::Section { end: "<|tool_calls_section_end|>" }),
    special(
        "<|tool_call_begin|>",
        Mark::Call(Lexing::Named {
            separator: "<|tool_call_argument_begin|>",
            close: "<|tool_call_end|>",
        }),
    ),
    special("<|tool_calls_section_end|>", Mark::Frame),
    special("<|open|>think<|sep|>", Mark::Think { ends: XTML_THINK, calls: false }),
    special("<|close|>think<|sep|>", Mark::StrayThinkEnd),
    special("<|open|>tools<|sep|>", Mark::Section { end: "<|close|>tools<|sep|>" }),
    special("<|open|>call ", Mark::Call(Lexing::Xtml)),
    special("<|close|>tools<|sep|>", Mark::Frame),
    special("<|open|>response<|sep|>", Mark::Frame),
    special("<|close|>response<|sep|>", Mark::Frame),
    special("<|close|>message<|sep|>", Mark::Frame),
];

const GEMMA: &[Marker] = &[
    special("<|tool_call>", Mark::Call(Lexing::Gemma)),
    special("<tool_call|>", Mark::Frame),
    special("<|channel>thought", Mark::Think { ends: &["<channel|>"], calls: false }),
    special("<channel|>", Mark::StrayThinkEnd),
    special("<turn|>", Mark::Frame),
];

const HARMONY: &[Marker] = &[
    special("<|channel|>", Mark::Header),
    special("<|start|>", Mark::Header),
    special("<|end|>", Mark::Frame),
    special("<|call|>", Mark::Frame),
    special("<|return|>", Mark::Frame),
];

const INVOKE: &[Marker] = &[
    plain("<function_calls>", Mark::Section { end: "</function_calls>" }),
    plain("<minimax:tool_call>", Mark::Section { end: "</minimax:tool_call>" }),
    plain("<invoke name=\"", Mark::Call(Lexing::Invoke { prefix: "" })),
    plain("</function_calls>", Mark::Frame),
    plain("</minimax:tool_call>", Mark::Frame),
];

const TAGGED: &[Marker] = &[
    plain("<TOOLCALL>", Mark::Call(Lexing::Tagged { close: "</TOOLCALL>" })),
    plain("[TOOL_CALL]", Mark::Call(Lexing::Tagged { close: "[/TOOL_CALL]" })),
    plain("<tool>", Mark::Call(Lexing::Tagged { close: "</tool>" })),
    plain("<tool_calls>", Mark::Call(Lexing::Tagged { close: "</tool_calls>" })),
    plain("<function_call>", Mark::Call(Lexing::Tagged { close: "</function_call>" })),
    special("<|tool_call|>", Mark::Call(Lexing::Tagged { close: "<|/tool_call|>" })),
    special("<|START_ACTION|>", Mark::Call(Lexing::Tagged { close: "<|END_ACTION|>" })),
    special("<|action_start|><|plugin|>", Mark::Call(Lexing::Tagged { close: "<|action_end|>" })),
];

const GENERIC: &[Marker] = &[
    plain("```", Mark::Call(Lexing::Fence)),
    plain("{", Mark::Call(Lexing::Bare)),
    plain("[", Mark::Call(Lexing::Pythonic)),
    plain("Action:", Mark::Call(Lexing::React)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_known_by_any_spelling_of_its_name() {
        assert_eq!(Format::for_model("Qwen/Qwen2.5-Coder-7B-Instruct"), Format::Hermes);
        assert_eq!(Format::for_model("qwen3-coder:30b"), Format::QwenXml);
        assert_eq!(Format::for_model("openai/gpt-oss-20b"), Format::Harmony);
        assert_eq!(Format::for_model("nobody-knows-1"), Format::Detect);
        assert_eq!(Format::for_model("ollama/granite4"), Format::Tagged);
        assert_eq!(Format::for_model("gpt_oss_20b"), Format::Harmony);
    }

    #[test]
    fn every_format_has_one_name_and_is_found_by_it() {
        for (name, format) in NAMES {
            assert_eq!(Format::named(name), Some(*format));
        }
        assert_eq!(Format::named("none"), None);
    }

    #[test]
    fn no_marker_stands_for_two_things_in_one_format() {
        for (_, format) in NAMES {
            let mut texts: Vec<&str> = format.markers().iter().map(|marker| marker.text).collect();
            let all = texts.len();
            texts.sort_unstable();
            texts.dedup();
            assert_eq!(texts.len(), all, "{format:?}");
        }
    }
}
