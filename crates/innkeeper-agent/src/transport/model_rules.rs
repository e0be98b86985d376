//! Chooses a model for a task by rules.

use super::ModelSelector;
use crate::content::Content;

/// A rule that selects a model for the prompts that meet its condition.
#[derive(Clone, Debug)]
pub struct ModelRule {
    /// The condition.
    pub condition: PromptCondition,
    /// The model for prompts that meet the condition.
    pub model: ModelSelector,
}

/// A condition on a prompt. A prompt meets the condition if it meets all parts that are set; a
/// condition without parts is met by every prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptCondition {
    /// The prompt contains one of these words, in any case. A word ends where no letter and no digit
    /// follows.
    pub any_word: Vec<String>,
    /// The prompt has at least this number of characters.
    pub min_chars: Option<usize>,
    /// The prompt contains an image, audio or a document.
    pub has_media: bool,
}

impl PromptCondition {
    fn is_met(&self, prompt: &Content, text: &str) -> bool {
        let mut words = text.split(|character: char| !character.is_alphanumeric());
        (self.any_word.is_empty()
            || words.any(|word| self.any_word.iter().any(|wanted| wanted.to_lowercase() == word)))
            && self.min_chars.is_none_or(|chars| text.chars().count() >= chars)
            && (!self.has_media || prompt.has_media())
    }
}

/// Returns the model of the first rule whose condition the prompt meets; `None` without such a rule.
pub fn choose_model<'r>(rules: &'r [ModelRule], prompt: &Content) -> Option<&'r ModelSelector> {
    let text = prompt.to_text().to_lowercase();
    let mut met = rules.iter().filter(|rule| rule.condition.is_met(prompt, &text));
    met.next().map(|rule| &rule.model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{ContentBlock, MediaContent};

    /// Proves: G-b2
    #[test]
    fn the_first_rule_whose_condition_a_prompt_meets_selects_the_model() {
        let rule = |condition, provider: &str| {
            let model = ModelSelector { provider: provider.to_owned(), ..ModelSelector::default() };
            ModelRule { condition, model }
        };
        let words = |words: &[&str]| PromptCondition {
            any_word: words.iter().map(|word| (*word).to_owned()).collect(),
            ..PromptCondition::default()
        };
        let rules = [
            rule(PromptCondition { has_media: true, ..PromptCondition::default() }, "gemini"),
            rule(words(&["SQL", "größe"]), "openai"),
            rule(PromptCondition { min_chars: Some(10), ..words(&["write"]) }, "anthropic"),
            rule(PromptCondition { min_chars: Some(20), ..PromptCondition::default() }, "ollama"),
        ];
        let chosen = |prompt: Content| {
            choose_model(&rules, &prompt).map(|selector| selector.provider.clone())
        };
        for (prompt, provider) in [
            ("Run this sql.", Some("openai")),
            ("Die GRÖSSE und Größe", Some("openai")),
            ("mysqld", None),
            ("write", None),
            ("Write a lot", Some("anthropic")),
            ("Rewritten text, a lot of it", Some("ollama")),
            ("", None),
        ] {
            assert_eq!(chosen(prompt.into()).as_deref(), provider, "{prompt}");
        }
        let image = ContentBlock::Image(MediaContent { mime_type: None, data: "aGk=".into() });
        let prompt = Content::from(vec!["sql".into(), image]);
        assert_eq!(chosen(prompt).as_deref(), Some("gemini"));
        let always = [rule(PromptCondition::default(), "ollama")];
        assert!(choose_model(&always, &"any".into()).is_some());
        assert!(choose_model(&[], &"any".into()).is_none());
    }
}
