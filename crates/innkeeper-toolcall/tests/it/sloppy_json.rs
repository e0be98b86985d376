//! JSON with syntax errors of models that have one possible meaning.

use innkeeper_toolcall::Json;

/// A writer whose choices come from a cyclic sequence of bytes.
struct SloppyWriter<'w> {
    choices: &'w [u8],
    position: usize,
    slip_count: usize,
}

impl SloppyWriter<'_> {
    /// Chooses one of `choices` forms; all forms except the first are syntax errors.
    fn choose(&mut self, choices: u8) -> u8 {
        let whim =
            self.choices.get(self.position % self.choices.len().max(1)).copied().unwrap_or(0);
        self.position += 1;
        let choice = (whim % 16) % (choices * 3);
        let choice = if choice < choices { choice } else { 0 };
        self.slip_count += usize::from(choice > 0);
        choice
    }

    fn write_value(&mut self, json: &Json, out: &mut String) {
        if self.choose(2) == 1 {
            out.push_str("/* , \" */");
        }
        match json {
            Json::Null if self.choose(2) == 1 => out.push_str("None"),
            Json::Bool(boolean) if self.choose(2) == 1 => {
                out.push_str(if *boolean { "True" } else { "False" });
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => out.push_str(&json.to_string()),
            Json::String(text) => self.write_string(text, out),
            Json::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { ", " });
                    self.write_value(item, out);
                }
                if !items.is_empty() && self.choose(2) == 1 {
                    out.push(',');
                }
                out.push(']');
            }
            Json::Object(members) => self.write_object(members, out),
        }
    }

    fn write_object(&mut self, members: &[(String, Json)], out: &mut String) {
        out.push('{');
        for (at, (key, value)) in members.iter().enumerate() {
            let mut comma = ",\n";
            if at > 0 && self.choose(2) == 1 {
                comma = "\n";
            }
            out.push_str(if at == 0 { "" } else { comma });
            let bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase());
            if bare && comma != "\n" && self.choose(2) == 1 {
                out.push_str(key);
            } else {
                self.write_string(key, out);
            }
            out.push_str(": ");
            self.write_value(value, out);
        }
        if !members.is_empty() && self.choose(2) == 1 {
            out.push_str(", ");
        }
        out.push('}');
    }

    fn write_string(&mut self, text: &str, out: &mut String) {
        let (open, close) =
            [('"', '"'), ('\'', '\''), ('“', '”'), ('‘', '’')][usize::from(self.choose(4))];
        out.push(open);
        for character in text.chars() {
            match character {
                '"' | '\\' => out.extend(['\\', character]),
                '\'' if open == '\'' => out.push_str("\\'"),
                '\0'..='\u{1f}' if self.choose(2) == 0 => {
                    out.push_str(&format!("\\u{:04x}", u32::from(character)));
                }
                '“' | '”' | '‘' | '’' => {
                    out.push_str(&format!("\\u{:04x}", u32::from(character)));
                }
                other => out.push(other),
            }
        }
        out.push(close);
    }
}

/// Writes `json` with syntax errors chosen by `whims`. Returns the text and the number of errors.
pub(crate) fn write_sloppy(json: &Json, choices: &[u8]) -> (String, usize) {
    let mut whims = SloppyWriter { choices, position: 0, slip_count: 0 };
    let mut text = String::new();
    whims.write_value(json, &mut text);
    if text.starts_with('{') && whims.choose(2) == 1 {
        text = format!("{{{text}}}");
    }
    if whims.choose(2) == 1 {
        text = format!("```json\n{text}\n```");
    }
    (text, whims.slip_count)
}
