//! Model families with their trained call forms.

use crate::sanitize::quote_for_prompt;

/// A family of models that write calls as text in the same form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ModelFamily {
    /// Any model: `{"tool": …, "params": …}`.
    #[default]
    Generic,
    /// Llama 3.1 and later versions of Llama 3: `{"name": …, "parameters": …}`.
    Llama31,
    /// Mistral: `[TOOL_CALLS][{"name": …, "arguments": …}]`.
    Mistral,
    /// Qwen2.5-Coder, in the Hermes form: `{"name": …, "arguments": …}` in `<tool_call>` tags.
    Qwen25Coder,
}

/// Parts of model names, without hyphens and underscores, with their families.
const MODEL_NAMES: &[(&str, ModelFamily)] = &[
    ("qwen2.5coder", ModelFamily::Qwen25Coder),
    ("llama3.1", ModelFamily::Llama31),
    ("llama3.2", ModelFamily::Llama31),
    ("llama3.3", ModelFamily::Llama31),
    ("mistral", ModelFamily::Mistral),
    ("mixtral", ModelFamily::Mistral),
    ("codestral", ModelFamily::Mistral),
];

impl ModelFamily {
    /// Every family.
    pub const ALL: [Self; 4] = [Self::Generic, Self::Llama31, Self::Mistral, Self::Qwen25Coder];

    /// Returns the family of a model by name. The case, a vendor prefix (`Qwen/…`) and a tag
    /// (`:7b`) are ignored. Returns [`ModelFamily::Generic`] for an unknown name.
    pub fn for_model(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        let name = name.split(':').next().unwrap_or(name);
        let plain: String =
            name.to_lowercase().chars().filter(|character| !"-_ ".contains(*character)).collect();
        let known = MODEL_NAMES.iter().find(|(part, _)| plain.contains(part));
        known.map_or(Self::Generic, |(_, family)| *family)
    }

    /// Returns the name of the family, which is also the name of its template.
    pub fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Llama31 => "llama3.1",
            Self::Mistral => "mistral",
            Self::Qwen25Coder => "qwen2.5-coder",
        }
    }

    /// Returns the keys of the tool name and of the arguments in a call.
    pub fn call_keys(self) -> (&'static str, &'static str) {
        match self {
            Self::Generic => ("tool", "params"),
            Self::Llama31 => ("name", "parameters"),
            Self::Mistral | Self::Qwen25Coder => ("name", "arguments"),
        }
    }

    /// Returns the text at the start of every call.
    pub fn trigger(self) -> &'static str {
        match self {
            Self::Generic => "{\"tool\": ",
            Self::Llama31 => "{\"name\": ",
            Self::Mistral => "[TOOL_CALLS]",
            Self::Qwen25Coder => "<tool_call>",
        }
    }

    /// Returns the start of a call of `tool`, from the trigger up to the arguments.
    pub fn call_start(self, tool: &str) -> String {
        let name = quote_for_prompt(tool);
        let (name_key, arguments) = self.call_keys();
        let opener = match self {
            Self::Generic | Self::Llama31 => "",
            Self::Mistral => "[TOOL_CALLS][",
            Self::Qwen25Coder => "<tool_call>\n",
        };
        format!("{opener}{{\"{name_key}\": {name}, \"{arguments}\": ")
    }

    /// Returns the text after the arguments of a call.
    pub fn call_end(self) -> &'static str {
        match self {
            Self::Generic | Self::Llama31 => "}",
            Self::Mistral => "}]",
            Self::Qwen25Coder => "}\n</tool_call>",
        }
    }

    /// Returns an example call for a model, with `name` as the name and `{...}` as the arguments.
    pub fn call_template(self) -> String {
        format!("{}{{...}}{}", self.call_start("name"), self.call_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: P26
    #[test]
    fn the_family_is_chosen_by_the_models_name_in_any_case_and_with_any_tag() {
        for (model, family) in [
            ("mistral", ModelFamily::Mistral),
            ("mistral:7b-instruct", ModelFamily::Mistral),
            ("mistralai/Mistral-Nemo-Instruct-2407", ModelFamily::Mistral),
            ("qwen2.5-coder:7b", ModelFamily::Qwen25Coder),
            ("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", ModelFamily::Qwen25Coder),
            ("LLAMA3.1:8B", ModelFamily::Llama31),
            ("meta-llama/Llama-3.1-8B-Instruct", ModelFamily::Llama31),
            ("hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M", ModelFamily::Llama31),
            ("qwen2.5:7b", ModelFamily::Generic),
            ("llama3:18b", ModelFamily::Generic),
            ("llama-3-18b", ModelFamily::Generic),
            ("phi3:mistral", ModelFamily::Generic),
            ("ollama", ModelFamily::Generic),
            ("", ModelFamily::Generic),
        ] {
            assert_eq!(ModelFamily::for_model(model), family, "{model}");
        }
    }

    #[test]
    fn a_call_starts_with_its_trigger_and_the_template_shows_both_ends() {
        for family in ModelFamily::ALL {
            assert!(family.call_start("a").starts_with(family.trigger()), "{family:?}");
        }
        assert_eq!(ModelFamily::Generic.call_template(), r#"{"tool": "name", "params": {...}}"#);
        assert_eq!(
            ModelFamily::Llama31.call_template(),
            r#"{"name": "name", "parameters": {...}}"#
        );
        assert_eq!(
            ModelFamily::Mistral.call_template(),
            r#"[TOOL_CALLS][{"name": "name", "arguments": {...}}]"#
        );
        assert_eq!(
            ModelFamily::Qwen25Coder.call_template(),
            "<tool_call>\n{\"name\": \"name\", \"arguments\": {...}}\n</tool_call>"
        );
    }
}
