//! Families of models: in which form each writes a call, as it was trained to.

use crate::safe::quoted;

/// A family of models without tools of their own, by the form of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Family {
    /// Any model: `{"tool": …, "params": …}`.
    #[default]
    Generic,
    /// Llama 3.1 and its successors of the third generation: `{"name": …, "parameters": …}`.
    Llama31,
    /// Mistral: `[TOOL_CALLS][{"name": …, "arguments": …}]`.
    Mistral,
    /// Qwen2.5-Coder, in the form of Hermes: `{"name": …, "arguments": …}` in `<tool_call>` tags.
    Qwen25Coder,
}

/// What a model's name holds, without hyphens and underscores, and the family it is of.
const NAMES: &[(&str, Family)] = &[
    ("qwen2.5coder", Family::Qwen25Coder),
    ("llama3.1", Family::Llama31),
    ("llama3.2", Family::Llama31),
    ("llama3.3", Family::Llama31),
    ("mistral", Family::Mistral),
    ("mixtral", Family::Mistral),
    ("codestral", Family::Mistral),
];

impl Family {
    /// Every family.
    pub const ALL: [Self; 4] = [Self::Generic, Self::Llama31, Self::Mistral, Self::Qwen25Coder];

    /// The family of a model, by its name: in any case, with or without the place it is from in
    /// front (`Qwen/…`), with or without a tag (`:7b`). [`Family::Generic`] if none is known.
    pub fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        let name = name.split(':').next().unwrap_or(name);
        let plain: String = name.to_lowercase().chars().filter(|it| !"-_ ".contains(*it)).collect();
        let known = NAMES.iter().find(|(part, _)| plain.contains(part));
        known.map_or(Self::Generic, |(_, family)| *family)
    }

    /// Its name, which is that of its template.
    pub fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Llama31 => "llama3.1",
            Self::Mistral => "mistral",
            Self::Qwen25Coder => "qwen2.5-coder",
        }
    }

    /// What the name and the arguments are called in its calls.
    pub fn keys(self) -> (&'static str, &'static str) {
        match self {
            Self::Generic => ("tool", "params"),
            Self::Llama31 => ("name", "parameters"),
            Self::Mistral | Self::Qwen25Coder => ("name", "arguments"),
        }
    }

    /// With what a call begins, so that text with it in it is one.
    pub fn trigger(self) -> &'static str {
        match self {
            Self::Generic => "{\"tool\": ",
            Self::Llama31 => "{\"name\": ",
            Self::Mistral => "[TOOL_CALLS]",
            Self::Qwen25Coder => "<tool_call>",
        }
    }

    /// A call of the tool, up to its arguments; begins with the trigger.
    pub fn begin(self, tool: &str) -> String {
        let name = quoted(tool);
        let (called, arguments) = self.keys();
        let opener = match self {
            Self::Generic | Self::Llama31 => "",
            Self::Mistral => "[TOOL_CALLS][",
            Self::Qwen25Coder => "<tool_call>\n",
        };
        format!("{opener}{{\"{called}\": {name}, \"{arguments}\": ")
    }

    /// What ends a call behind its arguments.
    pub fn end(self) -> &'static str {
        match self {
            Self::Generic | Self::Llama31 => "}",
            Self::Mistral => "}]",
            Self::Qwen25Coder => "}\n</tool_call>",
        }
    }

    /// The form of a call, to be shown to a model: with `name` for the name and `{...}` for the
    /// arguments.
    pub fn form(self) -> String {
        format!("{}{{...}}{}", self.begin("name"), self.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: P26
    #[test]
    fn the_family_is_chosen_by_the_models_name_in_any_case_and_with_any_tag() {
        for (model, family) in [
            ("mistral", Family::Mistral),
            ("mistral:7b-instruct", Family::Mistral),
            ("mistralai/Mistral-Nemo-Instruct-2407", Family::Mistral),
            ("qwen2.5-coder:7b", Family::Qwen25Coder),
            ("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", Family::Qwen25Coder),
            ("LLAMA3.1:8B", Family::Llama31),
            ("meta-llama/Llama-3.1-8B-Instruct", Family::Llama31),
            ("hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M", Family::Llama31),
            ("qwen2.5:7b", Family::Generic),
            ("llama3:18b", Family::Generic),
            ("llama-3-18b", Family::Generic),
            ("phi3:mistral", Family::Generic),
            ("ollama", Family::Generic),
            ("", Family::Generic),
        ] {
            assert_eq!(Family::of(model), family, "{model}");
        }
    }

    #[test]
    fn a_call_begins_with_its_trigger_and_shows_its_form() {
        for family in Family::ALL {
            assert!(family.begin("a").starts_with(family.trigger()), "{family:?}");
        }
        assert_eq!(Family::Generic.form(), r#"{"tool": "name", "params": {...}}"#);
        assert_eq!(Family::Llama31.form(), r#"{"name": "name", "parameters": {...}}"#);
        assert_eq!(Family::Mistral.form(), r#"[TOOL_CALLS][{"name": "name", "arguments": {...}}]"#);
        assert_eq!(
            Family::Qwen25Coder.form(),
            "<tool_call>\n{\"name\": \"name\", \"arguments\": {...}}\n</tool_call>"
        );
    }
}
