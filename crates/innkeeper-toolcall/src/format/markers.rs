//! The markers of every call format, as data.

use super::table::{GemmaTokens, LexerKind, Marker, MarkerKind};

const fn special_marker(text: &'static str, kind: MarkerKind) -> Marker {
    Marker { text, kind, in_prose: false }
}

const fn prose_marker(text: &'static str, kind: MarkerKind) -> Marker {
    Marker { text, kind, in_prose: true }
}

pub(super) const REASONING: &[Marker] = &[
    prose_marker(
        "<think>",
        MarkerKind::ReasoningStart { end_texts: &["</think>"], allows_calls: true },
    ),
    prose_marker(
        "<thinking>",
        MarkerKind::ReasoningStart { end_texts: &["</thinking>"], allows_calls: true },
    ),
    prose_marker(
        "<seed:think>",
        MarkerKind::ReasoningStart { end_texts: &["</seed:think>"], allows_calls: true },
    ),
    prose_marker(
        "<mm:think>",
        MarkerKind::ReasoningStart { end_texts: &["</mm:think>"], allows_calls: true },
    ),
    prose_marker(
        "<longcat_think>",
        MarkerKind::ReasoningStart { end_texts: &["</longcat_think>"], allows_calls: true },
    ),
    prose_marker("</think>", MarkerKind::StrayReasoningEnd),
    prose_marker("</mm:think>", MarkerKind::StrayReasoningEnd),
    prose_marker("</seed:think>", MarkerKind::StrayReasoningEnd),
    prose_marker("</longcat_think>", MarkerKind::StrayReasoningEnd),
];

/// Tokens that end a turn or start another, of many families. People who write about models write
/// them as well, so they count only outside of code and quotations.
pub(super) const STOP_TOKENS: &[Marker] = &[
    prose_marker("<|im_end|>", MarkerKind::EndToken),
    prose_marker("<|im_start|>", MarkerKind::Markup),
    prose_marker("<|endoftext|>", MarkerKind::EndToken),
    prose_marker("<|end_of_text|>", MarkerKind::EndToken),
    prose_marker("<|eot_id|>", MarkerKind::EndToken),
    prose_marker("<|eom_id|>", MarkerKind::EndToken),
    prose_marker("<|eot|>", MarkerKind::EndToken),
    prose_marker("<|eom|>", MarkerKind::EndToken),
    prose_marker("<|EOT|>", MarkerKind::EndToken),
    prose_marker("<|eos|>", MarkerKind::EndToken),
    prose_marker("<|end_of_sentence|>", MarkerKind::EndToken),
    prose_marker("<|END_OF_TURN_TOKEN|>", MarkerKind::EndToken),
    prose_marker("<|end_of_turn|>", MarkerKind::EndToken),
    prose_marker("<|assistant_end|>", MarkerKind::EndToken),
    prose_marker("<|role_end|>", MarkerKind::EndToken),
    prose_marker("<|hy_eos|>", MarkerKind::EndToken),
    prose_marker("<seed:eos>", MarkerKind::EndToken),
    prose_marker("[|endofturn|]", MarkerKind::EndToken),
    prose_marker("<｜end▁of▁sentence｜>", MarkerKind::EndToken),
];

/// Tokens that name the next speaker, where a model went on past the end of its turn.
pub(super) const ROLE_TOKENS: &[Marker] = &[
    prose_marker("<|user|>", MarkerKind::Markup),
    prose_marker("<|assistant|>", MarkerKind::Markup),
    prose_marker("<|system|>", MarkerKind::Markup),
    prose_marker("<|observation|>", MarkerKind::Markup),
    prose_marker("<|begin_of_box|>", MarkerKind::Markup),
    prose_marker("<|end_of_box|>", MarkerKind::Markup),
];

/// The end token of Phi. Harmony has the same text.
pub(super) const PHI: &[Marker] = &[prose_marker("<|end|>", MarkerKind::EndToken)];

/// The end token of Mistral, Jamba and GigaChat, which is a tag in HTML.
pub(super) const SENTENCE_END: &[Marker] = &[prose_marker("</s>", MarkerKind::EndToken)];

pub(super) const TOOL_CALL: &[Marker] = &[
    prose_marker("<tool_call>", MarkerKind::Call(LexerKind::ToolCall)),
    prose_marker("<function=", MarkerKind::Call(LexerKind::Function)),
    prose_marker("<function name=", MarkerKind::Call(LexerKind::NamedFunction)),
    prose_marker("<parameter=", MarkerKind::Call(LexerKind::MisnamedFunction)),
    prose_marker("<seed:tool_call>", MarkerKind::CallSection { end_text: "</seed:tool_call>" }),
    prose_marker("</seed:tool_call>", MarkerKind::Markup),
    prose_marker("</tool_call>", MarkerKind::Markup),
    special_marker("</parameter>", MarkerKind::CallCloser),
    special_marker("</function>", MarkerKind::CallCloser),
    special_marker("</arg_value>", MarkerKind::CallCloser),
    special_marker("</param>", MarkerKind::CallCloser),
];

pub(super) const LLAMA: &[Marker] = &[
    special_marker("<|python_tag|>", MarkerKind::Call(LexerKind::SeparatedJson)),
    special_marker("<|python_start|>", MarkerKind::Markup),
    special_marker("<|python_end|>", MarkerKind::Markup),
    special_marker("<|tool_call_start|>", MarkerKind::Markup),
    special_marker("<|tool_call_end|>", MarkerKind::Markup),
];

pub(super) const MISTRAL: &[Marker] = &[
    special_marker("[TOOL_CALLS]", MarkerKind::Call(LexerKind::Mistral)),
    special_marker(
        "[THINK]",
        MarkerKind::ReasoningStart { end_texts: &["[/THINK]"], allows_calls: false },
    ),
];

/// The call syntax of DeepSeek V3 to V3.1.
const DEEPSEEK_CALL: MarkerKind = MarkerKind::Call(LexerKind::NameFirst {
    separators: &["<｜tool▁sep｜>"],
    close: "<｜tool▁call▁end｜>",
});

/// The tokens of DeepSeek in ASCII, as models write them that don't have the tokens.
pub(super) const DEEPSEEK_ASCII: &[Marker] = &[
    special_marker(
        "<|tool▁calls▁begin|>",
        MarkerKind::CallSection { end_text: "<|tool▁calls▁end|>" },
    ),
    special_marker(
        "<|tool▁call▁begin|>",
        MarkerKind::Call(LexerKind::NameFirst {
            separators: &["<|tool▁sep|>"],
            close: "<|tool▁call▁end|>",
        }),
    ),
    special_marker("<|tool▁calls▁end|>", MarkerKind::Markup),
    special_marker(
        "<|tool_calls_begin|>",
        MarkerKind::CallSection { end_text: "<|tool_calls_end|>" },
    ),
    special_marker("<|tool_calls_end|>", MarkerKind::Markup),
    special_marker(
        "<|DSML|function_calls>",
        MarkerKind::CallSection { end_text: "</|DSML|function_calls>" },
    ),
    special_marker(
        "<|DSML|tool_calls>",
        MarkerKind::CallSection { end_text: "</|DSML|tool_calls>" },
    ),
    special_marker("<|DSML|invoke name=", MarkerKind::Call(LexerKind::Invoke { prefix: "|DSML|" })),
    special_marker("</|DSML|function_calls>", MarkerKind::Markup),
    special_marker("</|DSML|tool_calls>", MarkerKind::Markup),
    special_marker("</|DSML|parameter>", MarkerKind::CallCloser),
    special_marker("</|DSML|invoke>", MarkerKind::CallCloser),
];

/// The call of DeepSeek with `_` in place of `▁`, in [`SECTIONS`].
pub(super) const DEEPSEEK_UNDERSCORE: &[Marker] = &[special_marker(
    "<｜tool_call_begin｜>",
    MarkerKind::Call(LexerKind::NameFirst {
        separators: &["<｜tool_sep｜>"],
        close: "<｜tool_call_end｜>",
    }),
)];

/// The sections of Step, and of DeepSeek with `_` in place of `▁`.
pub(super) const SECTIONS: &[Marker] = &[
    special_marker(
        "<｜tool_calls_begin｜>",
        MarkerKind::CallSection { end_text: "<｜tool_calls_end｜>" },
    ),
    special_marker("<｜tool_calls_end｜>", MarkerKind::Markup),
    special_marker("<｜tool_call_end｜>", MarkerKind::Markup),
];

/// The call syntax of Kimi K2, and of DeepSeek in ASCII.
pub(super) const TOOL_CALL_BEGIN: &[Marker] = &[special_marker(
    "<|tool_call_begin|>",
    MarkerKind::Call(LexerKind::NameFirst {
        separators: &["<|tool_call_argument_begin|>", "<|tool_sep|>"],
        close: "<|tool_call_end|>",
    }),
)];

pub(super) const DEEPSEEK: &[Marker] = &[
    special_marker(
        "<｜tool▁calls▁begin｜>",
        MarkerKind::CallSection { end_text: "<｜tool▁calls▁end｜>" },
    ),
    special_marker("<｜tool▁call▁begin｜>", DEEPSEEK_CALL),
    special_marker("<｜tool▁calls▁end｜>", MarkerKind::Markup),
    special_marker(
        "<｜DSML｜function_calls>",
        MarkerKind::CallSection { end_text: "</｜DSML｜function_calls>" },
    ),
    special_marker(
        "<｜DSML｜tool_calls>",
        MarkerKind::CallSection { end_text: "</｜DSML｜tool_calls>" },
    ),
    special_marker("<｜DSML｜ calls>", MarkerKind::CallSection { end_text: "</｜DSML｜ calls>" }),
    special_marker(
        "<｜DSML｜invoke name=",
        MarkerKind::Call(LexerKind::Invoke { prefix: "｜DSML｜" }),
    ),
    special_marker(
        "<｜DSML｜ invoke name=",
        MarkerKind::Call(LexerKind::Invoke { prefix: "｜DSML｜ " }),
    ),
    special_marker(
        "<｜｜DSML｜｜function_calls>",
        MarkerKind::CallSection { end_text: "</｜｜DSML｜｜function_calls>" },
    ),
    special_marker(
        "<｜｜DSML｜｜tool_calls>",
        MarkerKind::CallSection { end_text: "</｜｜DSML｜｜tool_calls>" },
    ),
    special_marker(
        "<｜｜DSML｜｜invoke name=",
        MarkerKind::Call(LexerKind::Invoke { prefix: "｜｜DSML｜｜" }),
    ),
    special_marker("</｜｜DSML｜｜function_calls>", MarkerKind::Markup),
    special_marker("</｜｜DSML｜｜tool_calls>", MarkerKind::Markup),
    special_marker("<｜User｜>", MarkerKind::Markup),
    special_marker("<｜Assistant｜>", MarkerKind::Markup),
    special_marker("</｜DSML｜function_calls>", MarkerKind::Markup),
    special_marker("</｜DSML｜tool_calls>", MarkerKind::Markup),
    special_marker("</｜DSML｜ calls>", MarkerKind::Markup),
    special_marker("</｜DSML｜parameter>", MarkerKind::CallCloser),
    special_marker("</｜DSML｜invoke>", MarkerKind::CallCloser),
    special_marker("</｜DSML｜ parameter>", MarkerKind::CallCloser),
    special_marker("</｜DSML｜ invoke>", MarkerKind::CallCloser),
    special_marker("</｜｜DSML｜｜parameter>", MarkerKind::CallCloser),
    special_marker("</｜｜DSML｜｜invoke>", MarkerKind::CallCloser),
];

/// Kimi K3 may start its response without an end of its reasoning.
const XTML_REASONING_ENDS: &[&str] = &["<|close|>think<|sep|>", "<|open|>response<|sep|>"];

pub(super) const KIMI: &[Marker] = &[
    special_marker(
        "<|tool_calls_section_begin|>",
        MarkerKind::CallSection { end_text: "<|tool_calls_section_end|>" },
    ),
    special_marker("<|tool_calls_section_end|>", MarkerKind::Markup),
    special_marker(
        "<|tool_call_section_begin|>",
        MarkerKind::CallSection { end_text: "<|tool_call_section_end|>" },
    ),
    special_marker("<|tool_call_section_end|>", MarkerKind::Markup),
    special_marker(
        "<|open|>think<|sep|>",
        MarkerKind::ReasoningStart { end_texts: XTML_REASONING_ENDS, allows_calls: false },
    ),
    special_marker("<|close|>think<|sep|>", MarkerKind::StrayReasoningEnd),
    special_marker(
        "<|open|>tools<|sep|>",
        MarkerKind::CallSection { end_text: "<|close|>tools<|sep|>" },
    ),
    special_marker("<|open|>call ", MarkerKind::Call(LexerKind::Xtml)),
    special_marker("<|close|>tools<|sep|>", MarkerKind::Markup),
    special_marker("<|open|>response<|sep|>", MarkerKind::Markup),
    special_marker("<|close|>response<|sep|>", MarkerKind::Markup),
    special_marker("<|close|>message<|sep|>", MarkerKind::Markup),
    special_marker("<|im_user|>", MarkerKind::Markup),
    special_marker("<|im_assistant|>", MarkerKind::Markup),
    special_marker("<|im_middle|>", MarkerKind::Markup),
    special_marker("[EOT]", MarkerKind::EndToken),
    special_marker("[EOS]", MarkerKind::EndToken),
    special_marker("<|close|>argument<|sep|>", MarkerKind::CallCloser),
    special_marker("<|close|>call<|sep|>", MarkerKind::CallCloser),
];

const GEMMA_4: GemmaTokens =
    GemmaTokens { call_start: "<|tool_call>", quote: "<|\"|>", close: "<tool_call|>" };

const FUNCTION_GEMMA: GemmaTokens = GemmaTokens {
    call_start: "<start_function_call>",
    quote: "<escape>",
    close: "<end_function_call>",
};

pub(super) const GEMMA: &[Marker] = &[
    special_marker(GEMMA_4.call_start, MarkerKind::Call(LexerKind::Gemma(GEMMA_4))),
    special_marker(GEMMA_4.close, MarkerKind::Markup),
    special_marker(FUNCTION_GEMMA.call_start, MarkerKind::Call(LexerKind::Gemma(FUNCTION_GEMMA))),
    special_marker(FUNCTION_GEMMA.close, MarkerKind::Markup),
    special_marker(
        "<|channel>thought",
        MarkerKind::ReasoningStart { end_texts: &["<channel|>"], allows_calls: false },
    ),
    special_marker("<channel|>", MarkerKind::StrayReasoningEnd),
    special_marker("<turn|>", MarkerKind::Markup),
    prose_marker("```tool_code", MarkerKind::Call(LexerKind::ToolCode)),
    special_marker("<start_of_turn>", MarkerKind::Markup),
    special_marker("<end_of_turn>", MarkerKind::Markup),
    special_marker("<eos>", MarkerKind::EndToken),
    special_marker("<|\"|>", MarkerKind::CallCloser),
    special_marker("<escape>", MarkerKind::CallCloser),
];

pub(super) const HARMONY: &[Marker] = &[
    special_marker("<|channel|>", MarkerKind::HarmonyHeader),
    special_marker("<|start|>", MarkerKind::HarmonyHeader),
    special_marker("<|end|>", MarkerKind::Markup),
    special_marker("<|call|>", MarkerKind::Markup),
    special_marker("<|return|>", MarkerKind::Markup),
];

/// The call syntax of Step.
const STEP_CALL: MarkerKind = MarkerKind::Call(LexerKind::Invoke { prefix: "steptml:" });

pub(super) const STEP: &[Marker] = &[
    special_marker(
        "<steptml:toolcall>",
        MarkerKind::CallSection { end_text: "</steptml:toolcall>" },
    ),
    special_marker("<steptml:invoke name=", STEP_CALL),
    // Longer than the same token of DeepSeek.
    special_marker("<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=", STEP_CALL),
    special_marker("</steptml:toolcall>", MarkerKind::Markup),
    special_marker("</steptml:parameter>", MarkerKind::CallCloser),
    special_marker("</steptml:invoke>", MarkerKind::CallCloser),
];

/// The markers of MiniMax M3 without their first `]`, which the parser reads with the marker. So
/// prose needs no search for `]`.
pub(super) const MINIMAX: &[Marker] = &[
    special_marker(
        "<]minimax[>[<tool_call>",
        MarkerKind::CallSection { end_text: "<]minimax[>[</tool_call>" },
    ),
    special_marker("<]minimax[>[<invoke name=", MarkerKind::Call(LexerKind::MiniMax)),
    special_marker("<]minimax[>[</tool_call>", MarkerKind::Markup),
    special_marker("<]minimax[>[</invoke>", MarkerKind::CallCloser),
    special_marker("<]minimax[>[", MarkerKind::Markup),
];

/// Also written by MiniMax.
pub(super) const TOOL_CALLS: &[Marker] = &[
    prose_marker(
        "<tool_calls>",
        MarkerKind::Call(LexerKind::TaggedJson { close: "</tool_calls>" }),
    ),
    prose_marker("</tool_calls>", MarkerKind::Markup),
];

pub(super) const INVOKE: &[Marker] = &[
    prose_marker("<function_calls>", MarkerKind::CallSection { end_text: "</function_calls>" }),
    prose_marker(
        "<minimax:tool_call>",
        MarkerKind::CallSection { end_text: "</minimax:tool_call>" },
    ),
    prose_marker("<invoke name=", MarkerKind::Call(LexerKind::Invoke { prefix: "" })),
    prose_marker("</function_calls>", MarkerKind::Markup),
    prose_marker("</minimax:tool_call>", MarkerKind::Markup),
    special_marker("</invoke>", MarkerKind::CallCloser),
    special_marker("[e~[", MarkerKind::Markup),
];

pub(super) const TAGGED: &[Marker] = &[
    prose_marker("<TOOLCALL>", MarkerKind::Call(LexerKind::TaggedJson { close: "</TOOLCALL>" })),
    prose_marker("[TOOL_CALL]", MarkerKind::Call(LexerKind::TaggedJson { close: "[/TOOL_CALL]" })),
    prose_marker("<tool>", MarkerKind::Call(LexerKind::TaggedJson { close: "</tool>" })),
    prose_marker(
        "<longcat_tool_call>",
        MarkerKind::Call(LexerKind::TaggedJson { close: "</longcat_tool_call>" }),
    ),
    prose_marker(
        "<function_call>",
        MarkerKind::Call(LexerKind::TaggedJson { close: "</function_call>" }),
    ),
    special_marker(
        "<|tool_call|>",
        MarkerKind::Call(LexerKind::TaggedJson { close: "<|/tool_call|>" }),
    ),
    special_marker(
        "<|START_ACTION|>",
        MarkerKind::Call(LexerKind::TaggedJson { close: "<|END_ACTION|>" }),
    ),
    special_marker(
        "<|action_start|><|plugin|>",
        MarkerKind::Call(LexerKind::TaggedJson { close: "<|action_end|>" }),
    ),
    special_marker(
        "<|tools_prefix|>",
        MarkerKind::Call(LexerKind::KeyedJson { close: "<|tools_suffix|>" }),
    ),
    special_marker("<|tools_suffix|>", MarkerKind::Markup),
    special_marker("<|inner_prefix|>", INNER_REASONING),
    special_marker("<|START_THINKING|>", COHERE_REASONING),
    special_marker("<|END_THINKING|>", MarkerKind::StrayReasoningEnd),
    special_marker("<|START_RESPONSE|>", MarkerKind::Markup),
    special_marker("<|END_RESPONSE|>", MarkerKind::Markup),
    special_marker("<|START_TEXT|>", MarkerKind::Markup),
    special_marker("<|END_TEXT|>", MarkerKind::Markup),
    special_marker("<|END_ACTION|>", MarkerKind::Markup),
    prose_marker("</longcat_s>", MarkerKind::EndToken),
    prose_marker("<SPECIAL_12>", MarkerKind::EndToken),
];

/// GigaChat: JSON after the head of a message, or tags. The text `function call` before the
/// separator is read with the marker.
pub(super) const GIGACHAT: &[Marker] = &[
    prose_marker("<|role_sep|>", MarkerKind::Call(LexerKind::SeparatedJson)),
    special_marker("<|function_call|>", MarkerKind::Call(LexerKind::SeparatedJson)),
    special_marker("<|message_sep|>", MarkerKind::Markup),
    special_marker(
        "<｜GCML｜tool_calls>",
        MarkerKind::CallSection { end_text: "</｜GCML｜tool_calls>" },
    ),
    special_marker(
        "<｜GCML｜invoke name=",
        MarkerKind::Call(LexerKind::Invoke { prefix: "｜GCML｜" }),
    ),
    special_marker("</｜GCML｜tool_calls>", MarkerKind::Markup),
    special_marker("</｜GCML｜parameter>", MarkerKind::CallCloser),
    special_marker("</｜GCML｜invoke>", MarkerKind::CallCloser),
];

/// Hunyuan 3, whose tokens are those of GLM and a separator, with a suffix.
pub(super) const HUNYUAN: &[Marker] = &[
    special_marker(
        "<tool_calls:opensource>",
        MarkerKind::CallSection { end_text: "</tool_calls:opensource>" },
    ),
    special_marker("<tool_call:opensource>", MarkerKind::Call(LexerKind::Hunyuan)),
    special_marker("</tool_calls:opensource>", MarkerKind::Markup),
    special_marker("</arg_value:opensource>", MarkerKind::CallCloser),
    special_marker(
        "<think:opensource>",
        MarkerKind::ReasoningStart { end_texts: &["</think:opensource>"], allows_calls: true },
    ),
    special_marker("</think:opensource>", MarkerKind::StrayReasoningEnd),
];

/// The section of Hunyuan 3 without the suffix.
pub(super) const HUNYUAN_SECTION: &[Marker] = &[
    prose_marker("<tool_calls>", MarkerKind::CallSection { end_text: "</tool_calls>" }),
    prose_marker("</tool_calls>", MarkerKind::Markup),
];

const INNER_REASONING: MarkerKind =
    MarkerKind::ReasoningStart { end_texts: &["<|inner_suffix|>"], allows_calls: false };

const COHERE_REASONING: MarkerKind =
    MarkerKind::ReasoningStart { end_texts: &["<|END_THINKING|>"], allows_calls: false };

pub(super) const GENERIC: &[Marker] = &[
    prose_marker("```", MarkerKind::Call(LexerKind::Fence)),
    prose_marker("{", MarkerKind::Call(LexerKind::BareJson)),
    prose_marker("[", MarkerKind::Call(LexerKind::Pythonic)),
    prose_marker("Action:", MarkerKind::Call(LexerKind::React)),
];
