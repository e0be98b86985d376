//! A runner that offers a search in place of the tools of another runner.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use innkeeper_toolcall::search_tools::{DescribeArguments, SearchArguments};
use innkeeper_toolcall::{Tool, ToolIndex, Tools};
use serde_json::value::RawValue;

use super::search::{Search, SearchToolNames};
use super::{MIN_SEARCHED_TOOLS, ToolSearchSettings, results};
use crate::conversation::estimate_tokens;
use crate::safety::ToolBlocklist;
use crate::tools::{
    AvailableTool, RefreshFuture, ToolCallFuture, ToolCallOptions, ToolError, ToolOutput,
    ToolRunner, UnavailableTool,
};

/// A runner that offers a search in place of the tools of another runner, if their definitions are
/// large.
///
/// The offered tools are the two tools of the search, then the pinned tools and the tools that were
/// described or called, in the order in which each was first offered: a list that only grows at its
/// end helps the prompt caches of providers. A tool that the other runner no longer lists is no longer
/// offered. If the tool comes back, only a pinned tool is offered again at once.
///
/// Once the search is offered, the search stays, even if the definitions become small.
pub struct SearchableTools {
    inner: Arc<dyn ToolRunner>,
    settings: ToolSearchSettings,
    blocklist: ToolBlocklist,
    context_tokens: usize,
    /// Maximum number of offered tools.
    max_tools: Option<usize>,
    state: Mutex<SearchState>,
}

impl fmt::Debug for SearchableTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchableTools").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The tools of the other runner, and those that are offered beside the search.
#[derive(Default)]
struct SearchState {
    /// The last list of the other runner.
    listed: Vec<AvailableTool>,
    /// The names of pinned, described and called tools of the list.
    offered_names: Vec<String>,
    /// `None` while all tools are offered.
    search: Option<Arc<Search>>,
}

impl SearchState {
    /// Offers a tool of the list beside the search.
    fn add_offered(&mut self, name: &str) {
        let is_listed = self.listed.iter().any(|listed| listed.tool.name == name);
        if is_listed && !self.offered_names.iter().any(|offered| offered == name) {
            self.offered_names.push(name.to_owned());
        }
    }

    /// Returns the tools that the model gets: at most `max_tools`, the pinned ones first.
    fn offered_tools(&self, pinned: &[String], max_tools: Option<usize>) -> Vec<AvailableTool> {
        let Some(search) = &self.search else { return self.listed.clone() };
        let own_tools = search.names.tools();
        let mut surplus = max_tools.map_or(0, |max_tools| {
            (own_tools.len() + self.offered_names.len()).saturating_sub(max_tools)
        });
        let offered = self
            .offered_names
            .iter()
            .filter(|name| {
                let is_dropped = surplus > 0 && !pinned.contains(name);
                surplus -= usize::from(is_dropped);
                !is_dropped
            })
            .filter_map(|name| self.listed.iter().find(|listed| listed.tool.name == *name))
            .cloned();
        own_tools.into_iter().chain(offered).collect()
    }
}

impl SearchableTools {
    /// Creates a runner over the tools of another runner. `context_tokens` is the size of the model's
    /// context window. The search neither finds nor describes a blocked tool.
    pub fn new(
        inner: Arc<dyn ToolRunner>,
        settings: ToolSearchSettings,
        blocklist: ToolBlocklist,
        context_tokens: usize,
    ) -> Self {
        Self {
            inner,
            settings,
            blocklist,
            context_tokens,
            max_tools: None,
            state: Mutex::default(),
        }
    }

    /// Sets the maximum number of offered tools. With more tools, the model gets the search; of the
    /// tools that are offered beside the search, the newest stay. Default: no limit.
    #[must_use]
    pub fn with_max_tools(self, max_tools: Option<usize>) -> Self {
        Self { max_tools, ..self }
    }

    fn lock(&self) -> MutexGuard<'_, SearchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the list of the other runner. A changed list gets a new index.
    fn refresh(&self) -> MutexGuard<'_, SearchState> {
        let listed = self.inner.list_tools();
        let mut state = self.lock();
        if state.listed != listed {
            self.replace_list(&mut state, listed);
        }
        state
    }

    fn replace_list(&self, state: &mut SearchState, listed: Vec<AvailableTool>) {
        let tools = listed.iter().map(|listed| &listed.tool);
        let searched = listed.iter().filter(|listed| {
            listed.refusal.is_none() && !self.blocklist.is_blocked(&listed.tool.name)
        });
        let searched: Tools = searched.map(|listed| listed.tool.clone()).collect();
        if state.search.is_some() || self.needs_search(&searched) {
            let before = state.search.as_deref().map(|search| &search.names);
            let names = SearchToolNames::new(&tools.map(|tool| tool.name.as_str()), before);
            let index = ToolIndex::new(&searched);
            state.search = Some(Arc::new(Search { names, searched, index }));
        }
        state.offered_names.retain(|name| listed.iter().any(|listed| listed.tool.name == *name));
        state.listed = listed;
        self.settings.pinned_tools.iter().for_each(|name| state.add_offered(name));
    }

    fn needs_search(&self, tools: &Tools) -> bool {
        let Some(share) = self.settings.max_listing_share else { return false };
        let tokens: usize = tools.iter().map(estimate_definition_tokens).sum();
        let is_large = tokens as f64 > share * self.context_tokens as f64;
        let is_too_long = self.max_tools.is_some_and(|max_tools| tools.len() > max_tools);
        share <= 0.0 || is_too_long || is_large && tools.len() >= MIN_SEARCHED_TOOLS
    }

    /// Runs a tool of the search; `None` if the name is not the name of such a tool.
    fn call_search(
        &self,
        search: &Search,
        name: &str,
        arguments: &RawValue,
    ) -> Option<serde_json::Result<ToolOutput>> {
        if name == search.names.search {
            Some(run_search(search, arguments))
        } else if name == search.names.describe {
            Some(self.describe(search, arguments))
        } else {
            None
        }
    }

    fn describe(&self, search: &Search, arguments: &RawValue) -> serde_json::Result<ToolOutput> {
        let arguments = DescribeArguments::parse(arguments.get())?;
        let names = arguments.names();
        let mut state = self.lock();
        for name in names.iter().filter(|name| search.searched.get(name).is_some()) {
            state.add_offered(name);
        }
        results::described_tools(search, &names)
    }
}

fn run_search(search: &Search, arguments: &RawValue) -> serde_json::Result<ToolOutput> {
    let arguments = SearchArguments::parse(arguments.get())?;
    results::found_tools(search, &search.index.search(&arguments.query, arguments.limit()))
}

fn estimate_definition_tokens(tool: &Tool) -> usize {
    let schema = tool.input_schema.to_string();
    [&tool.name, &tool.description, &schema].map(|text| estimate_tokens(text)).iter().sum()
}

impl ToolRunner for SearchableTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        self.refresh().offered_tools(&self.settings.pinned_tools, self.max_tools)
    }

    fn unavailable_tools(&self) -> Vec<UnavailableTool> {
        self.inner.unavailable_tools()
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        options: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let search = self.lock().search.clone();
        let found = search.and_then(|search| self.call_search(&search, name, &arguments));
        if let Some(result) = found {
            return Box::pin(std::future::ready(result.map_err(|source| ToolError::Runner {
                tool: name.to_owned(),
                source: source.into(),
            })));
        }
        // If the search begins later, the model still gets the tools that it uses.
        self.lock().add_offered(name);
        self.inner.call_tool(name, arguments, options)
    }

    fn finish_refresh(&self) -> RefreshFuture<'_> {
        self.inner.finish_refresh()
    }
}
