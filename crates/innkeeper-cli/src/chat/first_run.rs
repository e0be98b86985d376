//! Offers servers and a model to a person who has configured neither, by one key each.

use std::io;

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

use crate::cli::ModelSelectionArgs;
use crate::model::{InferenceServer, ModelSource};
use crate::output::{Output, Style, escape_inline};

/// Maximum number of models with a key of their own: the digits.
const MAX_OFFERED_MODELS: usize = 9;

/// What a person chooses by a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The demo's servers.
    DemoServers,
    /// A model that is ready.
    Model(ModelSource),
    /// The local model, which is installed first.
    InstallLocalModel,
    /// Leave the program.
    Leave,
}

/// One choice with its key and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MenuItem {
    key: char,
    text: String,
    choice: Choice,
}

fn item(key: char, text: impl Into<String>, choice: Choice) -> MenuItem {
    MenuItem { key, text: text.into(), choice }
}

/// Returns the choices of a person without a configuration file.
pub(crate) fn server_menu() -> Vec<MenuItem> {
    vec![
        item(
            'd',
            "use the demo servers: they read sample files, search them, and keep notes",
            Choice::DemoServers,
        ),
        item(
            'q',
            "leave; `innkeeper add NAME -- COMMAND` adds a server of your own",
            Choice::Leave,
        ),
    ]
}

/// Returns the choices of a person without a model.
pub(crate) fn model_menu(available: &[ModelSource], can_run_local_model: bool) -> Vec<MenuItem> {
    let mut items = Vec::new();
    for (source, key) in available.iter().take(MAX_OFFERED_MODELS).zip('1'..='9') {
        let name = match source {
            ModelSource::ApiKey { provider, .. } => (*provider).to_owned(),
            ModelSource::LocalServer { model, server, .. } => {
                model.clone().unwrap_or_else(|| server.to_string())
            }
            ModelSource::Installed => "the small model of this machine".to_owned(),
        };
        items.push(item(key, format!("{name}: {source}"), Choice::Model(source.clone())));
    }
    if can_run_local_model && !available.contains(&ModelSource::Installed) {
        let text = "install a small model and use it here (161 MB, no key; it makes simple calls, \
                    and its text is often wrong)";
        items.push(item('l', text, Choice::InstallLocalModel));
    }
    items.push(item('q', "leave; `--provider NAME` selects a model", Choice::Leave));
    items
}

/// Returns the arguments that select a model.
pub(crate) fn selection_of(source: &ModelSource) -> ModelSelectionArgs {
    match source {
        ModelSource::ApiKey { provider, .. } => provider_selection(provider),
        ModelSource::LocalServer { server: InferenceServer::Ollama, model, .. } => {
            ModelSelectionArgs { name: model.clone(), ..provider_selection("ollama") }
        }
        ModelSource::LocalServer {
            server: InferenceServer::LlamaCpp | InferenceServer::LmStudio,
            port,
            model,
        } => ModelSelectionArgs {
            name: model.clone(),
            base_url: Some(format!("http://127.0.0.1:{port}/v1")),
            ..provider_selection("openai-compatible")
        },
        ModelSource::Installed => provider_selection("local"),
    }
}

fn provider_selection(provider: &str) -> ModelSelectionArgs {
    ModelSelectionArgs { provider: Some(provider.to_owned()), ..ModelSelectionArgs::default() }
}

/// Shows a menu, and waits for the key of a choice. Ctrl-C and Esc leave.
pub(crate) fn choose(output: &mut Output, title: &str, menu: &[MenuItem]) -> io::Result<Choice> {
    output.status(title)?;
    for item in menu {
        let text = escape_inline(&item.text).into_owned();
        output.labelled_status(Style::Strong, &format!("  {}", item.key), &text)?;
    }
    enable_raw_mode()?;
    let choice = read_choice(menu);
    disable_raw_mode()?;
    choice
}

fn read_choice(menu: &[MenuItem]) -> io::Result<Choice> {
    loop {
        let Event::Key(key) = read()? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        match key.code {
            KeyCode::Esc => return Ok(Choice::Leave),
            KeyCode::Char('c' | 'd') if key.modifiers == KeyModifiers::CONTROL => {
                return Ok(Choice::Leave);
            }
            KeyCode::Char(typed) => {
                if let Some(item) = menu.iter().find(|item| item.key == typed) {
                    return Ok(item.choice.clone());
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(menu: &[MenuItem]) -> String {
        menu.iter().map(|item| item.key).collect()
    }

    #[test]
    fn each_usable_model_has_a_key_and_the_small_model_can_be_installed() {
        let key = ModelSource::ApiKey { provider: "anthropic", variable: "ANTHROPIC_API_KEY" };
        let ollama = ModelSource::LocalServer {
            server: InferenceServer::Ollama,
            port: 11434,
            model: Some("qwen3".to_owned()),
        };
        assert_eq!(keys(&model_menu(&[key.clone(), ollama.clone()], true)), "12lq");
        assert_eq!(keys(&model_menu(&[key, ModelSource::Installed], true)), "12q");
        assert_eq!(keys(&model_menu(&[], false)), "q");
        let selection = selection_of(&ollama);
        assert_eq!(selection.provider.as_deref(), Some("ollama"));
        assert_eq!(selection.name.as_deref(), Some("qwen3"));
    }

    #[test]
    fn a_server_of_this_machine_is_selected_by_its_address() {
        let source =
            ModelSource::LocalServer { server: InferenceServer::LlamaCpp, port: 8080, model: None };
        let selection = selection_of(&source);
        assert_eq!(selection.provider.as_deref(), Some("openai-compatible"));
        assert_eq!(selection.base_url.as_deref(), Some("http://127.0.0.1:8080/v1"));
        assert_eq!(selection_of(&ModelSource::Installed).provider.as_deref(), Some("local"));
    }
}
