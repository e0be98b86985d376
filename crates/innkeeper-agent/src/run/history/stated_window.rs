//! Reads the size of the context window from a provider's error.

/// What precedes the size, as vLLM, llama.cpp, SGLang, LM Studio, OpenAI, Anthropic and Gemini write it.
const PHRASES: [&str; 6] =
    ["context length", "context size", "context window", "n_ctx", "tokens allowed", "tokens >"];

/// Maximum number of bytes between a phrase and its number.
const MAX_GAP_BYTES: usize = 16;

/// No model has a smaller window; smaller numbers mean something else.
const MIN_WINDOW_TOKENS: u32 = 256;

/// Returns the number of tokens of the window that the message states.
pub(in crate::run) fn stated_window(message: &str) -> Option<u32> {
    let lower = message.to_ascii_lowercase();
    PHRASES.iter().find_map(|phrase| {
        lower.match_indices(phrase).find_map(|(at, _)| first_number(&lower[at + phrase.len()..]))
    })
}

fn first_number(text: &str) -> Option<u32> {
    let start = text.find(|character: char| character.is_ascii_digit())?;
    let digits = text[start..]
        .chars()
        .take_while(|character| character.is_ascii_digit() || *character == ',')
        .filter(char::is_ascii_digit);
    let number = digits.collect::<String>().parse().ok()?;
    (start <= MAX_GAP_BYTES && number >= MIN_WINDOW_TOKENS).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_read_from_every_server_s_error() {
        for (message, window) in [
            (
                "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
                Some(8192),
            ),
            (
                "request (12000 tokens) exceeds the available context size (4096 tokens), try increasing it",
                Some(4096),
            ),
            (
                "The input (9000 tokens) is longer than the model's context length (8,192 tokens).",
                Some(8192),
            ),
            (
                "the model is loaded with context length of only 4096 tokens, which is not enough",
                Some(4096),
            ),
            ("prompt is too long: 210000 tokens > 200000 maximum", Some(200_000)),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
            ),
            ("context length exceeded: shorten the 9000 tokens of the prompt", None),
            ("the context window is full", None),
            ("context size 5", None),
            ("context length 99999999999999999999", None),
        ] {
            assert_eq!(stated_window(message), window, "{message}");
        }
    }
}
