//! JSON written the way models write it, with slips that have one meaning only.

use innkeeper_toolcall::Json;

/// What is decided at each turn, over and over.
struct Whims<'w> {
    whims: &'w [u8],
    at: usize,
    slips: usize,
}

impl Whims<'_> {
    /// One of so many; all but the first are slips.
    fn slip(&mut self, ways: u8) -> u8 {
        let whim = self.whims.get(self.at % self.whims.len().max(1)).copied().unwrap_or(0);
        self.at += 1;
        let way = (whim % 16) % (ways * 3);
        let way = if way < ways { way } else { 0 };
        self.slips += usize::from(way > 0);
        way
    }

    fn value(&mut self, json: &Json, out: &mut String) {
        if self.slip(2) == 1 {
            out.push_str("/* , \" */");
        }
        match json {
            Json::Null if self.slip(2) == 1 => out.push_str("None"),
            Json::Bool(it) if self.slip(2) == 1 => out.push_str(if *it { "True" } else { "False" }),
            Json::Null | Json::Bool(_) | Json::Number(_) => out.push_str(&json.to_string()),
            Json::String(text) => self.string(text, out),
            Json::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { ", " });
                    self.value(item, out);
                }
                if !items.is_empty() && self.slip(2) == 1 {
                    out.push(',');
                }
                out.push(']');
            }
            Json::Object(members) => self.object(members, out),
        }
    }

    fn object(&mut self, members: &[(String, Json)], out: &mut String) {
        out.push('{');
        for (at, (key, value)) in members.iter().enumerate() {
            let mut comma = ",\n";
            if at > 0 && self.slip(2) == 1 {
                comma = "\n";
            }
            out.push_str(if at == 0 { "" } else { comma });
            let bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase());
            if bare && comma != "\n" && self.slip(2) == 1 {
                out.push_str(key);
            } else {
                self.string(key, out);
            }
            out.push_str(": ");
            self.value(value, out);
        }
        if !members.is_empty() && self.slip(2) == 1 {
            out.push_str(", ");
        }
        out.push('}');
    }

    fn string(&mut self, text: &str, out: &mut String) {
        let (open, close) =
            [('"', '"'), ('\'', '\''), ('“', '”'), ('‘', '’')][usize::from(self.slip(4))];
        out.push(open);
        for character in text.chars() {
            match character {
                '"' | '\\' => out.extend(['\\', character]),
                '\'' if open == '\'' => out.push_str("\\'"),
                '\0'..='\u{1f}' if self.slip(2) == 0 => {
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

/// The text of `json` with slips as `whims` have it, and how many there are.
pub(crate) fn sloppy(json: &Json, whims: &[u8]) -> (String, usize) {
    let mut whims = Whims { whims, at: 0, slips: 0 };
    let mut text = String::new();
    whims.value(json, &mut text);
    if text.starts_with('{') && whims.slip(2) == 1 {
        text = format!("{{{text}}}");
    }
    if whims.slip(2) == 1 {
        text = format!("```json\n{text}\n```");
    }
    (text, whims.slips)
}
