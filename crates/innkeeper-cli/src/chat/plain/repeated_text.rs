//! Leaves out what a model writes again after a question about its response: printed text can't be
//! taken back.

/// The printed text since the last call.
#[derive(Debug, Default)]
pub(super) struct RepeatedText {
    /// The text of the response in progress.
    text: String,
    /// What was printed of the response before, as long as the response in progress repeats it.
    printed: String,
}

impl RepeatedText {
    /// Starts a further response to the same request.
    pub(super) fn on_retry(&mut self) {
        let text = std::mem::take(&mut self.text);
        if self.printed.is_empty() {
            self.printed = text;
        }
    }

    /// Starts text that repeats nothing.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds text of the response, and returns what of it is to be printed.
    pub(super) fn add(&mut self, text: &str) -> String {
        self.text.push_str(text);
        if self.printed.is_empty() {
            return text.to_owned();
        }
        if self.printed.starts_with(&self.text) && self.printed.len() > self.text.len() {
            return String::new();
        }
        let printed = std::mem::take(&mut self.printed);
        match self.text.strip_prefix(&printed) {
            Some(rest) => rest.to_owned(),
            None => format!("\n{}", self.text),
        }
    }

    /// Ends the response, and returns what of it is still to be printed: it is only the start of the
    /// response before.
    pub(super) fn finish(&mut self) -> String {
        let Self { text, printed } = std::mem::take(self);
        match printed.is_empty() || text.is_empty() {
            true => String::new(),
            false => format!("\n{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_response_is_printed_once_and_another_one_whole() {
        for (first, second, expected) in [
            ("I look.\n", "I look.\nCALL", "I look.\nCALL".to_owned()),
            ("Hello.", "Hello.", "Hello.".to_owned()),
            ("Hello.", "Help.", "Hello.\nHelp.".to_owned()),
            ("Hello.", "Hell", "Hello.\nHell".to_owned()),
            ("", "Hello.", "Hello.".to_owned()),
        ] {
            let mut repeated = RepeatedText::default();
            let mut printed = repeated.add(first);
            repeated.on_retry();
            for letter in second.chars() {
                printed += &repeated.add(&letter.to_string());
            }
            printed += &repeated.finish();
            assert_eq!(printed, expected, "{first:?} {second:?}");
        }
    }
}
