//! The search over one list of tools, with the definitions of its own two tools.

use innkeeper_toolcall::search_tools::{
    DESCRIBE_TOOLS, SEARCH_TOOLS, describe_schema, search_schema,
};
use innkeeper_toolcall::{Tool, ToolIndex, Tools};

use crate::tools::{AvailableTool, ToolAnnotations};

/// The search over one list of tools.
pub(super) struct Search {
    pub(super) names: SearchToolNames,
    /// The tools that a search may find.
    pub(super) searched: Tools,
    pub(super) index: ToolIndex,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SearchToolNames {
    pub(super) search: String,
    pub(super) describe: String,
}

impl SearchToolNames {
    /// Chooses names that no tool has. The names of the last list stay if they are free, because
    /// other names invalidate the prompt caches of providers.
    pub(super) fn new<'n>(
        taken: &(impl Iterator<Item = &'n str> + Clone),
        before: Option<&Self>,
    ) -> Self {
        let choose = |base: &str, before: Option<&String>| {
            let numbered = (2_usize..).map(|number| format!("{base}_{number}"));
            let mut candidates =
                before.cloned().into_iter().chain([base.to_owned()]).chain(numbered);
            candidates
                .find(|name| taken.clone().all(|taken| !are_alike(taken, name)))
                .unwrap_or_default()
        };
        Self {
            search: choose(SEARCH_TOOLS, before.map(|names| &names.search)),
            describe: choose(DESCRIBE_TOOLS, before.map(|names| &names.describe)),
        }
    }

    pub(super) fn tools(&self) -> [AvailableTool; 2] {
        [self.search_tool(), self.describe_tool()].map(|tool| {
            let annotations = ToolAnnotations {
                read_only: true,
                idempotent: true,
                destructive: false,
                open_world: false,
            };
            AvailableTool::new(tool, annotations)
        })
    }

    fn search_tool(&self) -> Tool {
        let Self { search, describe } = self;
        let description = format!(
            "Finds tools for a task. Most tools are not in the list of tools: search before you say \
             that something is not possible. Returns names with short descriptions, the best match \
             first. Then call `{describe}` with the names of the tools that you need."
        );
        Tool::new(search, description, search_schema())
    }

    fn describe_tool(&self) -> Tool {
        let Self { search, describe } = self;
        let description = format!(
            "Returns the definitions of tools that `{search}` found. From your next response on, you \
             can call the described tools by their names."
        );
        Tool::new(describe, description, describe_schema())
    }
}

/// Returns whether a call with one name may be resolved to the other: case and separators do not
/// matter for a call.
fn are_alike(one: &str, other: &str) -> bool {
    letters(one).eq(letters(other))
}

fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase)
}
