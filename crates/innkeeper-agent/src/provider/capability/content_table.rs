//! Table of models and the media that they take.

use crate::content::ContentSupport;
use crate::provider::ProviderApi;

/// Media of models by name prefix; the first matching row applies. A model without a row takes text
/// only.
type ContentTable = &'static [(&'static [&'static str], ContentSupport)];

pub(super) fn look_up(api: ProviderApi, model: &str) -> ContentSupport {
    let rows = match api {
        ProviderApi::OpenAiChat => OPENAI_CHAT,
        ProviderApi::OpenAiResponses => OPENAI_RESPONSES,
        ProviderApi::Anthropic => ANTHROPIC,
        ProviderApi::GeminiGenerate | ProviderApi::GeminiInteractions => GEMINI,
        ProviderApi::Ollama => OLLAMA,
    };
    let fitting = rows.iter().find(|(names, _)| names.iter().any(|name| model.starts_with(name)));
    fitting.map(|(_, support)| *support).unwrap_or_default()
}

const TEXT: ContentSupport =
    ContentSupport { images: false, audio: false, documents: false, media_in_tool_results: false };
const IMAGES: ContentSupport = ContentSupport { images: true, ..TEXT };
const AUDIO: ContentSupport = ContentSupport { audio: true, ..TEXT };
const IMAGES_AND_DOCUMENTS: ContentSupport = ContentSupport { documents: true, ..IMAGES };
const ALL_IN_USER_MESSAGES: ContentSupport = ContentSupport { audio: true, ..IMAGES_AND_DOCUMENTS };

/// Adds that tool results may contain media.
const fn in_tool_results(support: ContentSupport) -> ContentSupport {
    ContentSupport { media_in_tool_results: true, ..support }
}

/// Models of OpenAI that take text only or that take audio instead of images.
const OPENAI_TEXT: &[&str] = &["o1-mini", "o1-preview", "o3-mini", "gpt-4o-search"];
const OPENAI_AUDIO: &[&str] = &["gpt-audio", "gpt-4o-audio", "gpt-4o-mini-audio"];
const OPENAI_VISION: &[&str] =
    &["gpt-4o", "gpt-4.1", "gpt-5", "gpt-6", "chatgpt-4o", "o1", "o3", "o4"];

/// Open models with images, by their names at Ollama and in other servers.
const OPEN_VISION: &[&str] = &[
    "bakllava",
    "gemma-3-",
    "gemma-3n",
    "gemma-4",
    "gemma3",
    "gemma4",
    "granite3.2-vision",
    "internvl",
    "llama-3.2-11b-vision",
    "llama-3.2-90b-vision",
    "llama-4",
    "llama3.2-vision",
    "llama4",
    "llava",
    "minicpm-v",
    "ministral-3",
    "mistral-medium-3",
    "mistral-small-3.1",
    "mistral-small-3.2",
    "mistral-small3.1",
    "mistral-small3.2",
    "moondream",
    "pixtral",
    "qwen2-vl",
    "qwen2.5-vl",
    "qwen2.5vl",
    "qwen3-vl",
];

/// A tool message of this API is text. Other servers implement its images, not its files.
const OPENAI_CHAT: ContentTable = &[
    (OPENAI_TEXT, TEXT),
    (OPENAI_AUDIO, AUDIO),
    (OPENAI_VISION, IMAGES_AND_DOCUMENTS),
    (&["gemma-3-1b", "gemma-3-270m"], TEXT),
    (&["claude-", "gemini-"], IMAGES),
    (OPEN_VISION, IMAGES),
];

/// This API takes no audio. Other servers implement images in user messages only.
const OPENAI_RESPONSES: ContentTable = &[
    (OPENAI_TEXT, TEXT),
    (OPENAI_AUDIO, TEXT),
    (OPENAI_VISION, in_tool_results(IMAGES_AND_DOCUMENTS)),
    (&["gemma-3-1b", "gemma-3-270m"], TEXT),
    (OPEN_VISION, IMAGES),
];

const ANTHROPIC: ContentTable =
    &[(&["claude-"], in_tool_results(IMAGES_AND_DOCUMENTS)), (OPEN_VISION, IMAGES)];

/// Models before version 3 reject media in function responses.
const GEMINI: ContentTable = &[
    (&["gemini-1", "gemini-2"], ALL_IN_USER_MESSAGES),
    (&["gemini-"], in_tool_results(ALL_IN_USER_MESSAGES)),
    (&["gemma-3-1b"], TEXT),
    (&["gemma-"], IMAGES),
];

/// The sizes of Gemma 3 that take text only, by their names at Ollama.
const OLLAMA_TEXT: &[&str] = &["gemma3:1b", "gemma3:270m", "gemma3n"];

/// Ollama's messages have images and no other media.
const OLLAMA: ContentTable = &[(OLLAMA_TEXT, TEXT), (OPEN_VISION, IMAGES)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Capabilities;

    #[test]
    fn no_row_hides_a_later_row() {
        for (api, rows) in [
            (ProviderApi::OpenAiChat, OPENAI_CHAT),
            (ProviderApi::OpenAiResponses, OPENAI_RESPONSES),
            (ProviderApi::Anthropic, ANTHROPIC),
            (ProviderApi::GeminiGenerate, GEMINI),
            (ProviderApi::GeminiInteractions, GEMINI),
            (ProviderApi::Ollama, OLLAMA),
        ] {
            for (name, support) in
                rows.iter().flat_map(|(names, support)| names.iter().map(move |it| (it, support)))
            {
                assert_eq!(look_up(api, name), *support, "{api:?} {name}");
            }
        }
    }

    #[test]
    fn a_model_takes_the_media_of_its_row() {
        let in_results = in_tool_results(IMAGES_AND_DOCUMENTS);
        for (api, model, support) in [
            (ProviderApi::OpenAiChat, "gpt-4.1-mini", IMAGES_AND_DOCUMENTS),
            (ProviderApi::OpenAiChat, "openai/GPT-4o", IMAGES_AND_DOCUMENTS),
            (ProviderApi::OpenAiChat, "gpt-4o-mini-audio-preview", AUDIO),
            (ProviderApi::OpenAiChat, "gpt-4o-search-preview", TEXT),
            (ProviderApi::OpenAiChat, "o1-mini", TEXT),
            (ProviderApi::OpenAiChat, "o1", IMAGES_AND_DOCUMENTS),
            (ProviderApi::OpenAiChat, "o3-mini", TEXT),
            (ProviderApi::OpenAiChat, "anthropic/claude-opus-5-5", IMAGES),
            (ProviderApi::OpenAiChat, "google/gemma-3-1b-it", TEXT),
            (ProviderApi::OpenAiChat, "google/gemma-3-4b-it", IMAGES),
            (ProviderApi::OpenAiChat, "a-model", TEXT),
            (ProviderApi::OpenAiResponses, "gpt-6.1-terra", in_results),
            (ProviderApi::OpenAiResponses, "gpt-4o-audio-preview", TEXT),
            (ProviderApi::OpenAiResponses, "qwen3-vl", IMAGES),
            (ProviderApi::Anthropic, "claude-opus-5-5", in_results),
            (ProviderApi::Anthropic, "qwen3-coder", TEXT),
            (ProviderApi::GeminiGenerate, "models/gemini-2.5-flash", ALL_IN_USER_MESSAGES),
            (
                ProviderApi::GeminiGenerate,
                "gemini-3.8-flash",
                in_tool_results(ALL_IN_USER_MESSAGES),
            ),
            (ProviderApi::GeminiInteractions, "gemma-3-1b-it", TEXT),
            (ProviderApi::GeminiInteractions, "gemma-3-27b-it", IMAGES),
            (ProviderApi::Ollama, "qwen3-vl:8b", IMAGES),
            (ProviderApi::Ollama, "gemma3:4b-it-qat", IMAGES),
            // Without a size, the name is the model of 4 billion parameters.
            (ProviderApi::Ollama, "gemma3", IMAGES),
            (ProviderApi::Ollama, "gemma3:latest", IMAGES),
            (ProviderApi::Ollama, "gemma3:1b", TEXT),
            (ProviderApi::Ollama, "gemma3n:e4b", TEXT),
            (ProviderApi::Ollama, "qwen3:8b", TEXT),
        ] {
            assert_eq!(Capabilities::for_model(api, model).content, support, "{api:?} {model}");
        }
    }
}
