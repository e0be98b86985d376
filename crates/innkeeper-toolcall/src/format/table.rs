//! The call formats, with the markers and the models of each.

use super::markers::{
    DEEPSEEK, DEEPSEEK_ASCII, DEEPSEEK_UNDERSCORE, GEMMA, GENERIC, GIGACHAT, HARMONY, HUNYUAN,
    HUNYUAN_SECTION, INVOKE, KIMI, LLAMA, MINIMAX, MISTRAL, PHI, REASONING, ROLE_TOKENS, SECTIONS,
    SENTENCE_END, STEP, STOP_TOKENS, TAGGED, TOOL_CALL, TOOL_CALL_BEGIN, TOOL_CALLS,
};

/// The meaning of a marker in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkerKind {
    /// The start of reasoning. `end_texts` are the possible ends; `allows_calls` is whether the
    /// reasoning may contain calls.
    ReasoningStart { end_texts: &'static [&'static str], allows_calls: bool },
    /// The end of reasoning whose start is not in the text.
    StrayReasoningEnd,
    /// Markup without effect on the parser.
    Markup,
    /// Markup at the end of the text; elsewhere part of the text.
    EndToken,
    /// The end of a raw value or of its call. Has a meaning only after a call of that syntax, which
    /// then ended too early.
    CallCloser,
    /// The start of a call section, which contains only calls.
    CallSection { end_text: &'static str },
    /// The start of one or more calls, with the lexer for them.
    Call(LexerKind),
    /// The start of a Harmony message, which begins with a header.
    HarmonyHeader,
}

#[cfg(test)]
impl MarkerKind {
    /// Returns the other texts of this marker: end texts and separators.
    pub(crate) fn related_texts(self) -> Vec<&'static str> {
        match self {
            Self::ReasoningStart { end_texts, .. } => end_texts.to_vec(),
            Self::CallSection { end_text } => vec![end_text],
            Self::Call(LexerKind::TaggedJson { close } | LexerKind::KeyedJson { close }) => {
                vec![close]
            }
            Self::Call(LexerKind::Gemma(tokens)) => vec![tokens.quote, tokens.close],
            Self::Call(LexerKind::NameFirst { separators, close }) => {
                separators.iter().copied().chain([close]).collect()
            }
            Self::Call(
                LexerKind::ToolCall
                | LexerKind::Function
                | LexerKind::MisnamedFunction
                | LexerKind::NamedFunction
                | LexerKind::MiniMax
                | LexerKind::Hunyuan
                | LexerKind::SeparatedJson
                | LexerKind::Mistral
                | LexerKind::Invoke { .. }
                | LexerKind::Xtml
                | LexerKind::Pythonic
                | LexerKind::BareJson
                | LexerKind::Fence
                | LexerKind::ToolCode
                | LexerKind::React,
            )
            | Self::StrayReasoningEnd
            | Self::Markup
            | Self::EndToken
            | Self::CallCloser
            | Self::HarmonyHeader => Vec::new(),
        }
    }
}

impl LexerKind {
    /// Whether the marker, such as a bracket, is part of the lexer's input.
    pub(crate) fn includes_marker(self) -> bool {
        matches!(self, Self::BareJson | Self::Pythonic)
    }
}

/// The syntax of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LexerKind {
    /// `<tool_call>`: JSON, `<function=…>` or a name with `<arg_key>`. The next characters decide.
    ToolCall,
    /// `<function=name>` without its `<tool_call>`; with JSON in Llama 3.1.
    Function,
    /// `<parameter=name>` in place of `<function=name>`, only for the name of an offered tool.
    MisnamedFunction,
    /// `<function name="…">` with `<param name="…">` (MiniCPM).
    NamedFunction,
    /// JSON with a closing marker.
    TaggedJson { close: &'static str },
    /// `{"name": {…}}`, one or a list, with a closing marker (Apertus).
    KeyedJson { close: &'static str },
    /// JSON that ends with its value; further calls follow after `;`.
    SeparatedJson,
    /// `[TOOL_CALLS]`: a JSON list, or a name with `[ARGS]`.
    Mistral,
    /// A name, a separator, JSON and a closing marker.
    NameFirst { separators: &'static [&'static str], close: &'static str },
    /// `<invoke name="…">` with `<parameter name="…">`, in any quotes. Each tag has `prefix` after its `<` or
    /// `</`.
    Invoke { prefix: &'static str },
    /// `<invoke name="…">` with a tag per argument that has its name (MiniMax M3).
    MiniMax,
    /// GLM's call with a separator and a suffix in each tag (Hunyuan 3).
    Hunyuan,
    /// `call tool="…"` with `argument key="…"` (Kimi K3).
    Xtml,
    /// `call:name{key:<|"|>text<|"|>}`, with these tokens.
    Gemma(GemmaTokens),
    /// `[f(a=1), g()]`.
    Pythonic,
    /// `{…}` within text.
    BareJson,
    /// A fenced block whose entire body is a call.
    Fence,
    /// A fenced block `tool_code` with calls in Python syntax (Gemma 3).
    ToolCode,
    /// `Action:` and `Action Input:`.
    React,
}

/// The tokens of one version of Gemma's syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GemmaTokens {
    pub(crate) call_start: &'static str,
    /// The start and the end of a string.
    pub(crate) quote: &'static str,
    /// The end of a call. The inference server may remove it as a stop token.
    pub(crate) close: &'static str,
}

/// A text with a meaning in a call format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marker {
    pub(crate) text: &'static str,
    pub(crate) kind: MarkerKind,
    /// Whether the marker also occurs in prose, so that it has no effect in back-ticks, fenced
    /// blocks or quotations.
    pub(crate) in_prose: bool,
}

/// The format in which a model writes its calls.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Automatic detection: the markers of all formats below, and the generic forms.
    #[default]
    Detect,
    /// `{"name", "arguments"}` and `{"tool", "params"}` as bare, fenced or tagged JSON, lists of
    /// these objects, and ReAct's `Action:`; only for names of offered tools.
    Generic,
    /// JSON in `<tool_call>`: Hermes, Qwen 2.5, Qwen 3.
    Hermes,
    /// `<function=…><parameter=…>`: Qwen3-Coder, Qwen 3.5 and later, Nemotron 3.
    QwenXml,
    /// Bare JSON or `<|python_tag|>` JSON, and pythonic lists: Llama 3 and 4, Olmo, LFM2.
    Llama,
    /// All versions of `[TOOL_CALLS]`.
    Mistral,
    /// DeepSeek V3, R1, V3.1 (`<｜tool▁calls▁begin｜>`) and V3.2 to V4.1 (DSML).
    DeepSeek,
    /// Kimi K2 and K3.
    Kimi,
    /// GLM 4.5 and later, Hunyuan 3.
    Glm,
    /// Gemma 3 and 4, FunctionGemma.
    Gemma,
    /// GPT-OSS.
    Harmony,
    /// `<invoke name="…">`: Anthropic's text style, MiniMax, Step.
    Invoke,
    /// JSON in the tags of Granite, Phi-4, Cohere, InternLM, Jamba and other models.
    Tagged,
}

impl Format {
    pub(crate) const COUNT: usize = Self::Tagged as usize + 1;
}

/// Format names for the command line.
const FORMAT_NAMES: &[(&str, Format)] = &[
    ("detect", Format::Detect),
    ("generic", Format::Generic),
    ("hermes", Format::Hermes),
    ("qwen-xml", Format::QwenXml),
    ("llama", Format::Llama),
    ("mistral", Format::Mistral),
    ("deepseek", Format::DeepSeek),
    ("kimi", Format::Kimi),
    ("glm", Format::Glm),
    ("gemma", Format::Gemma),
    ("harmony", Format::Harmony),
    ("invoke", Format::Invoke),
    ("tagged", Format::Tagged),
];

/// Lower-case parts of model names with their formats, most specific first.
const MODEL_FORMATS: &[(&str, Format)] = &[
    ("gpt-oss", Format::Harmony),
    ("deepseek", Format::DeepSeek),
    ("kimi", Format::Kimi),
    // GLM-4 before 4.5 writes the name, a newline and JSON, without a marker: no format has this
    // syntax.
    ("glm-4-9b", Format::Detect),
    ("glm-4-32b", Format::Detect),
    ("glm4-9b", Format::Detect),
    ("glm4:9b", Format::Detect),
    ("glm", Format::Glm),
    ("hy3", Format::Glm),
    ("gemma", Format::Gemma),
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
    ("step3", Format::Invoke),
    ("step-3", Format::Invoke),
    ("step-deepresearch", Format::Invoke),
    ("claude", Format::Invoke),
    ("granite", Format::Tagged),
    ("phi-4", Format::Tagged),
    ("phi4", Format::Tagged),
    ("command-", Format::Tagged),
    ("internlm", Format::Tagged),
    ("jamba", Format::Tagged),
    ("apertus", Format::Tagged),
    ("longcat", Format::Tagged),
    ("gigachat", Format::Tagged),
    ("hunyuan", Format::Tagged),
    ("ernie", Format::Hermes),
    ("seed-oss", Format::QwenXml),
    ("minicpm5", Format::QwenXml),
];

impl Format {
    /// Returns the format with this name, as in `innkeeper extract --format`.
    pub fn from_name(name: &str) -> Option<Self> {
        FORMAT_NAMES
            .iter()
            .find(|(format_name, _)| format_name.eq_ignore_ascii_case(name))
            .map(|(_, format)| *format)
    }

    /// Returns all names that [`Format::from_name`] accepts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FORMAT_NAMES.iter().map(|(name, _)| *name)
    }

    /// Returns the format of a model, or `Detect` for an unknown model. Tags, vendors and case are
    /// ignored: `Qwen/Qwen2.5-Coder-7B` and `qwen2.5-coder:7b` give the same format.
    pub fn for_model(model: &str) -> Self {
        let model = model.rsplit('/').next().unwrap_or_default();
        let model = model.to_ascii_lowercase().replace('_', "-");
        MODEL_FORMATS
            .iter()
            .find(|(pattern, _)| model.contains(pattern))
            .map_or(Self::Detect, |(_, format)| *format)
    }

    /// Returns texts that belong to a marker although the search for markers starts after them:
    /// the text, and the start of the marker.
    pub(crate) fn lead_ins(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Detect => {
                &[("]", "<]minimax[>["), ("functools", "["), ("function call", "<|role_sep|>")]
            }
            Self::Invoke => &[("]", "<]minimax[>[")],
            Self::Generic => &[("functools", "[")],
            Self::Tagged => &[("functools", "["), ("function call", "<|role_sep|>")],
            Self::Hermes
            | Self::QwenXml
            | Self::Llama
            | Self::Mistral
            | Self::DeepSeek
            | Self::Kimi
            | Self::Glm
            | Self::Gemma
            | Self::Harmony => &[],
        }
    }

    pub(crate) fn markers(self) -> Vec<Marker> {
        let groups: &[&[Marker]] = match self {
            Self::Detect => &[
                HARMONY,
                DEEPSEEK,
                DEEPSEEK_ASCII,
                DEEPSEEK_UNDERSCORE,
                SECTIONS,
                KIMI,
                TOOL_CALL_BEGIN,
                GEMMA,
                MISTRAL,
                LLAMA,
                TOOL_CALL,
                INVOKE,
                MINIMAX,
                STEP,
                TOOL_CALLS,
                TAGGED,
                GIGACHAT,
                HUNYUAN,
                SENTENCE_END,
                REASONING,
                GENERIC,
                ROLE_TOKENS,
                STOP_TOKENS,
            ],
            Self::Generic => &[TOOL_CALL, TOOL_CALLS, TAGGED, REASONING, GENERIC, STOP_TOKENS],
            Self::Hermes | Self::QwenXml => &[TOOL_CALL, REASONING, GENERIC, STOP_TOKENS],
            Self::Glm => {
                &[TOOL_CALL, HUNYUAN, HUNYUAN_SECTION, REASONING, GENERIC, ROLE_TOKENS, STOP_TOKENS]
            }
            Self::Llama => &[LLAMA, TOOL_CALL, REASONING, GENERIC, STOP_TOKENS],
            Self::Mistral => &[MISTRAL, SENTENCE_END, TOOL_CALL, REASONING, GENERIC, STOP_TOKENS],
            Self::DeepSeek => &[
                DEEPSEEK,
                DEEPSEEK_ASCII,
                DEEPSEEK_UNDERSCORE,
                TOOL_CALL_BEGIN,
                SECTIONS,
                TOOL_CALL,
                REASONING,
                GENERIC,
                STOP_TOKENS,
            ],
            Self::Kimi => &[KIMI, TOOL_CALL_BEGIN, TOOL_CALL, REASONING, GENERIC, STOP_TOKENS],
            Self::Gemma => &[GEMMA, TOOL_CALL, REASONING, GENERIC, STOP_TOKENS],
            Self::Harmony => &[HARMONY],
            Self::Invoke => &[
                INVOKE,
                MINIMAX,
                STEP,
                SECTIONS,
                TOOL_CALLS,
                TOOL_CALL,
                REASONING,
                GENERIC,
                STOP_TOKENS,
            ],
            Self::Tagged => &[
                TAGGED,
                GIGACHAT,
                SENTENCE_END,
                TOOL_CALLS,
                PHI,
                TOOL_CALL,
                REASONING,
                GENERIC,
                ROLE_TOKENS,
                STOP_TOKENS,
            ],
        };
        let mut markers = groups.concat();
        // If the model is unknown, its prose may mention any marker.
        for marker in markers.iter_mut().filter(|_| self == Self::Detect) {
            marker.in_prose = marker.kind != MarkerKind::CallCloser;
        }
        markers
    }
}

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
    fn only_glm_4_5_and_later_write_the_tags_of_glm() {
        for model in
            ["THUDM/glm-4-9b-chat", "zai-org/GLM-4-9B-0414", "GLM-4-32B-0414", "glm4:9b-chat-q4_0"]
        {
            assert_eq!(Format::for_model(model), Format::Detect, "{model}");
        }
        for model in ["zai-org/GLM-4.5-Air-FP8", "z-ai/glm-4.6", "glm-4-5", "glm-5", "glm4.7:9b"] {
            assert_eq!(Format::for_model(model), Format::Glm, "{model}");
        }
    }

    #[test]
    fn every_format_has_one_name_and_is_found_by_it() {
        let mut formats = std::collections::HashSet::new();
        for (name, format) in FORMAT_NAMES {
            assert_eq!(Format::from_name(name), Some(*format));
            assert!(formats.insert(*format), "`{name}` is a second name of {format:?}");
        }
        assert_eq!(Format::from_name("none"), None);
    }

    #[test]
    fn no_marker_has_two_meanings_in_one_format() {
        for (_, format) in FORMAT_NAMES {
            let mut texts: Vec<&str> = format.markers().iter().map(|marker| marker.text).collect();
            let all = texts.len();
            texts.sort_unstable();
            texts.dedup();
            assert_eq!(texts.len(), all, "{format:?}");
        }
    }
}
