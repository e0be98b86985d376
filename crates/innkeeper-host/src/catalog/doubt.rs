//! What a person should look at before a model uses it: hidden text, and names like those of others.
//!
//! Nothing is kept out for it: either can be innocent, and who knows better pins what was looked at.

use std::sync::Arc;

use innkeeper_protocol::view::Tool;

use crate::name;
use crate::server::offer::Offered;
use crate::text::{Alike, hidden, hides};

/// Doubts that are told of one server; who reads so many needs no more.
pub(crate) const DOUBTS: usize = 32;

const HIDES: &str = "has hidden characters";

/// One thing that looks as if it were made to deceive. Its texts come from a server: escape them
/// for a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Doubt {
    /// The server.
    pub server: Arc<str>,
    /// The tool, by the server's own name for it.
    pub tool: Option<Box<str>>,
    /// The prompt by the server's own name for it, or the resource or template by its URI. With
    /// neither it is in the server's instructions.
    pub item: Option<Box<str>>,
    /// What about it: `has hidden characters`, or whose name it looks like.
    pub reason: String,
}

/// What is hidden in the tools and instructions of one server.
pub(crate) fn of_text(
    server: &Arc<str>,
    tools: &[Offered<Tool>],
    instructions: Option<&str>,
) -> Vec<Doubt> {
    let doubt = |tool| Doubt { server: server.clone(), tool, item: None, reason: HIDES.to_owned() };
    let instructions = instructions.filter(|text| !hidden(text).is_empty()).map(|_| doubt(None));
    let tools = tools.iter().filter(|tool| hides(&tool.raw));
    let tools = tools.map(|tool| doubt(Some(tool.view.name.as_str().into())));
    instructions.into_iter().chain(tools).take(DOUBTS).collect()
}

/// Which names look like those of servers before them.
pub(crate) fn of_names<'t>(
    servers: impl Iterator<Item = (&'t Arc<str>, impl Iterator<Item = &'t str> + Clone)>,
) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let mut names = Alike::default();
    let servers: Vec<_> = servers.collect();
    if servers.len() < 2 {
        return doubts;
    }
    for (index, (server, tools)) in servers.into_iter().enumerate() {
        let like = |tool: &'t str| {
            let (other, its) = names.find(server, tool)?;
            let reason = format!("its name looks like `{}`", name::public(other, its));
            Some(Doubt { server: server.clone(), tool: Some(tool.into()), item: None, reason })
        };
        if index > 0 {
            doubts.extend(tools.clone().filter_map(like).take(DOUBTS));
        }
        tools.for_each(|tool| names.add(server, tool));
    }
    doubts
}
