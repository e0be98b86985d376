//! A paste that is the path of an image: terminals paste the paths of files that a person drops.

use std::path::Path;

use super::App;
use crate::chat::completion::decode_uri;
use crate::chat::slash_command::SlashCommand;

/// Maximum number of images of one paste.
const MAX_PASTED_IMAGES: usize = 8;

/// Maximum length of a paste that is read as paths.
const MAX_PASTED_BYTES: usize = 16 << 10;

/// The extensions of images that the chat attaches.
const IMAGE_EXTENSIONS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

impl App {
    /// Attaches pasted images. Returns whether the paste has only paths of images.
    pub(super) async fn attach_pasted_images(&mut self, text: &str) -> std::io::Result<bool> {
        if !self.screen.takes_attachments() {
            return Ok(false);
        }
        let Some(paths) = image_paths(text) else { return Ok(false) };
        if !paths.iter().all(|path| Path::new(path).is_file()) {
            return Ok(false);
        }
        let before = self.attachments.len();
        for path in &paths {
            self.run_command(SlashCommand::Attach, path).await?;
        }
        if self.attachments.len() == before + paths.len() {
            self.screen.set_hint(format!("attached {}; /detach removes it", paths.join(", ")));
        }
        Ok(true)
    }
}

/// Returns the paths of a paste, in quotes, with backslashes or as `file://` URIs; `None` if a word is
/// not the path of an image.
fn image_paths(text: &str) -> Option<Vec<String>> {
    let text = text.trim();
    if text.len() > MAX_PASTED_BYTES {
        return None;
    }
    let words = match is_image(text) && text.starts_with('/') && Path::new(text).is_file() {
        // A terminal may paste a path with spaces as it is.
        true => vec![text.to_owned()],
        false => shlex::split(text)?,
    };
    let paths = words.into_iter().map(|word| match word.strip_prefix("file://") {
        Some(path) => decode_uri(path.strip_prefix("localhost").unwrap_or(path)),
        None => word,
    });
    let paths: Vec<String> = paths.collect();
    let is_valid = (1..=MAX_PASTED_IMAGES).contains(&paths.len())
        && paths.iter().all(|path| path.starts_with('/') && is_image(path));
    is_valid.then_some(paths)
}

fn is_image(path: &str) -> bool {
    let extension = Path::new(path).extension().unwrap_or_default().to_string_lossy();
    IMAGE_EXTENSIONS.contains(&&*extension.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paste_is_read_as_paths_in_each_form_of_terminals() {
        let paths = |text: &str| image_paths(text).map(|paths| paths.join("|"));
        for text in [
            "/tmp/a b.png\n".replace(' ', "\\ "),
            "'/tmp/a b.png'".to_owned(),
            "\"/tmp/a b.png\" ".to_owned(),
            "file:///tmp/a%20b.png\r\n".to_owned(),
            "file://localhost/tmp/a%20b.png".to_owned(),
        ] {
            assert_eq!(paths(&text).as_deref(), Some("/tmp/a b.png"), "{text}");
        }
        assert_eq!(paths("/a.JPG '/b.webp'").as_deref(), Some("/a.JPG|/b.webp"));
        for text in ["", "a.png", "/a.txt", "/a.png is an image", "it's /a.png", "https://a/b.png"]
        {
            assert_eq!(paths(text), None, "{text}");
        }
        assert_eq!(paths(&"/a.png ".repeat(9)), None);
    }

    #[test]
    fn an_unquoted_path_with_spaces_is_one_path_if_the_file_exists() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a b.png");
        assert_eq!(image_paths(path.to_str().unwrap()), None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(image_paths(path.to_str().unwrap()).unwrap(), [path.to_str().unwrap()]);
    }
}
