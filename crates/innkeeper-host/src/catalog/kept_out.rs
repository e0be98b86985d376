//! Prompts, resources and templates whose definitions the guard refuses: not offered, and known.

use innkeeper_protocol::view::{Prompt, Resource, ResourceTemplate};

use crate::config::GuardMode;
use crate::guard::{self, Of, Told};
use crate::server::offer::{Offer, Offered};

/// What the guard has found in a definition; without an item in the instructions.
pub(crate) type Suspicion = (Option<(Of, Box<str>)>, Told);

/// One that is kept out, with the reason.
type Out<V> = (Offered<V>, String);

/// Those of one server. With other settings they may be offered again.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptOut {
    prompts: Vec<Out<Prompt>>,
    resources: Vec<Out<Resource>>,
    templates: Vec<Out<ResourceTemplate>>,
}

impl KeptOut {
    /// Takes out of an offer what the guard refuses, and adds all that it has found.
    pub(super) fn of(offer: &mut Offer, mode: GuardMode, found: &mut Vec<Suspicion>) -> Self {
        let list = &mut offer.resource_templates;
        Self {
            prompts: sift(&mut offer.prompts, Of::Prompt, mode, |it| &it.name, found),
            resources: sift(&mut offer.resources, Of::Resource, mode, |it| &it.uri, found),
            templates: sift(list, Of::Template, mode, |it| &it.uri_template, found),
        }
    }

    /// Adds them to an offer.
    pub(super) fn put_back(&self, offer: &mut Offer) {
        fn add<V: Clone>(to: &mut Vec<Offered<V>>, out: &[Out<V>]) {
            to.extend(out.iter().map(|(item, _)| item.clone()));
        }
        add(&mut offer.prompts, &self.prompts);
        add(&mut offer.resources, &self.resources);
        add(&mut offer.resource_templates, &self.templates);
    }

    /// Why a prompt is refused, if it is.
    pub(super) fn prompt(&self, name: &str) -> Option<&str> {
        let out = self.prompts.iter().find(|(prompt, _)| prompt.view.name == name);
        out.map(|(_, reason)| reason.as_str())
    }

    /// Why a resource is refused, if it is.
    pub(super) fn resource(&self, uri: &str) -> Option<&str> {
        let out = self.resources.iter().find(|(resource, _)| resource.view.uri == uri);
        out.map(|(_, reason)| reason.as_str())
    }

    /// Why a template is refused that has this URI, or is spelled so.
    pub(super) fn template(&self, uri: &str) -> Option<&str> {
        let is_it = |it: &ResourceTemplate| it.uri_template == uri || it.matches(uri);
        let out = self.templates.iter().find(|(template, _)| is_it(&template.view));
        out.map(|(_, reason)| reason.as_str())
    }
}

/// Looks at the definitions of a list and takes out of it those that are refused.
fn sift<V>(
    list: &mut Vec<Offered<V>>,
    of: Of,
    mode: GuardMode,
    name: impl Fn(&V) -> &String,
    found: &mut Vec<Suspicion>,
) -> Vec<Out<V>> {
    if mode == GuardMode::Off {
        return Vec::new();
    }
    let mut out = Vec::new();
    let mut kept = Vec::with_capacity(list.len());
    for item in list.drain(..) {
        let Some(told) = guard::definition(of, &item.raw, mode) else {
            kept.push(item);
            continue;
        };
        let (refused, reason) = (told.refused, reason(&told));
        found.push((Some((of, name(&item.view).as_str().into())), told));
        if refused {
            out.push((item, reason));
        } else {
            kept.push(item);
        }
    }
    *list = kept;
    out
}

/// Why the guard refuses a definition, and how it is let be.
pub(super) fn reason(told: &Told) -> String {
    let first = told.findings.first().map(ToString::to_string).unwrap_or_default();
    format!("{first}; `guard.definitions` as `flag` offers it")
}
