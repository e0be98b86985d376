//! Types and sizes of media that each API takes.

use crate::content::{Media, MediaKind};
use crate::provider::ProviderApi;

/// The types and sizes of media that an API takes. Sizes count the Base64 text, which the request
/// contains.
#[derive(Debug)]
pub(super) struct MediaRules {
    pub(super) image_types: &'static [&'static str],
    pub(super) audio_types: &'static [&'static str],
    pub(super) document_types: &'static [&'static str],
    pub(super) max_image_bytes: usize,
    pub(super) max_audio_bytes: usize,
    pub(super) max_document_bytes: usize,
    /// Maximum number of bytes of all media in one request, with room for the text.
    pub(super) max_request_bytes: usize,
    /// Whether a failed tool result may contain media, if a successful result may.
    pub(super) media_in_failed_results: bool,
}

const MIB: usize = 1 << 20;

/// OpenAI's limits: 20 MB per image, 50 MB of files per request.
const OPENAI: MediaRules = MediaRules {
    image_types: &["image/png", "image/jpeg", "image/webp", "image/gif"],
    audio_types: &["audio/wav", "audio/mp3"],
    document_types: &["application/pdf"],
    max_image_bytes: 20 * MIB,
    max_audio_bytes: 20 * MIB,
    max_document_bytes: 48 * MIB,
    max_request_bytes: 48 * MIB,
    media_in_failed_results: true,
};

/// Anthropic's limits: 5 MiB of Base64 per image, 32 MB per request.
const ANTHROPIC: MediaRules = MediaRules {
    image_types: &["image/png", "image/jpeg", "image/webp", "image/gif"],
    audio_types: &[],
    document_types: &["application/pdf"],
    max_image_bytes: 5 * MIB,
    max_audio_bytes: 0,
    max_document_bytes: 24 * MIB,
    max_request_bytes: 24 * MIB,
    media_in_failed_results: false,
};

/// Gemini's limit for inline data: 20 MB per request, for every model.
const GEMINI: MediaRules = MediaRules {
    image_types: &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"],
    audio_types: &["audio/wav", "audio/mp3", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"],
    document_types: &["application/pdf"],
    max_image_bytes: 16 * MIB,
    max_audio_bytes: 16 * MIB,
    max_document_bytes: 16 * MIB,
    max_request_bytes: 16 * MIB,
    media_in_failed_results: true,
};

/// Ollama states no limit; a conversation has one.
const OLLAMA: MediaRules = MediaRules {
    image_types: &["image/png", "image/jpeg", "image/webp"],
    audio_types: &[],
    document_types: &[],
    max_image_bytes: crate::conversation::MAX_BYTES,
    max_audio_bytes: 0,
    max_document_bytes: 0,
    max_request_bytes: crate::conversation::MAX_BYTES,
    media_in_failed_results: true,
};

impl MediaRules {
    pub(super) fn for_api(api: ProviderApi) -> &'static Self {
        match api {
            ProviderApi::OpenAiChat | ProviderApi::OpenAiResponses => &OPENAI,
            ProviderApi::Anthropic => &ANTHROPIC,
            ProviderApi::GeminiGenerate | ProviderApi::GeminiInteractions => &GEMINI,
            ProviderApi::Ollama => &OLLAMA,
        }
    }

    /// Returns the type of the media in the spelling of the APIs, or the reason why the API rejects
    /// the media. An API rejects the whole request because of one such medium.
    pub(super) fn check(&self, media: Media<'_>) -> Result<&'static str, String> {
        let (types, max_bytes) = match media.kind {
            MediaKind::Image => (self.image_types, self.max_image_bytes),
            MediaKind::Audio => (self.audio_types, self.max_audio_bytes),
            MediaKind::Document => (self.document_types, self.max_document_bytes),
        };
        // The data decide: APIs reject images whose type differs from the declared type.
        let mime_type = match (media.kind, detected_image_type(media.data)) {
            (MediaKind::Image, Some(detected)) => detected.to_owned(),
            (MediaKind::Image | MediaKind::Audio | MediaKind::Document, _) => {
                normalized_type(media.mime_type.unwrap_or_default())
            }
        };
        let Some(mime_type) = types.iter().find(|known| **known == mime_type) else {
            return Err(match types {
                [] => format!("the provider takes no {}", media.kind.name()),
                types => format!("the provider takes {}", types.join(", ")),
            });
        };
        if media.data.len() > max_bytes {
            return Err(format!("the limit of the provider is {max_bytes} bytes of Base64"));
        }
        if !is_base64(media.data) {
            return Err("the data are not Base64".to_owned());
        }
        Ok(mime_type)
    }
}

/// Returns a MIME type without parameters, in the spelling of the APIs.
fn normalized_type(mime_type: &str) -> String {
    let bare = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match bare.as_str() {
        "image/jpg" => "image/jpeg".to_owned(),
        "audio/mpeg" => "audio/mp3".to_owned(),
        "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "audio/wav".to_owned(),
        _ => bare,
    }
}

/// Returns the type of an image by the first bytes of its data.
fn detected_image_type(base64: &str) -> Option<&'static str> {
    // The signatures in Base64.
    const WEBP_AT: std::ops::Range<usize> = 12..16;
    if base64.starts_with("iVBORw0KGgo") {
        Some("image/png")
    } else if base64.starts_with("/9j/") {
        Some("image/jpeg")
    } else if base64.starts_with("R0lGOD") {
        Some("image/gif")
    } else if base64.starts_with("UklGR") && base64.get(WEBP_AT) == Some("RUJQ") {
        Some("image/webp")
    } else {
        None
    }
}

/// Whether a text is padded standard Base64 of at least one byte.
fn is_base64(text: &str) -> bool {
    let bare = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    !bare.is_empty()
        && text.len().is_multiple_of(4)
        && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

#[cfg(test)]
mod tests;
