//! The links at the top of each page.

/// A link of the navigation, to the first page of a section.
pub(crate) struct Section {
    /// The name in the path, `/console/NAME`.
    pub(crate) page: &'static str,
    pub(crate) title: &'static str,
}

/// All links, in their order.
pub(crate) static SECTIONS: [Section; 6] = [
    Section { page: FIRST_PAGE, title: "Servers" },
    Section { page: "tools", title: "Tools" },
    Section { page: "calls", title: "Calls" },
    Section { page: "questions", title: "Questions" },
    Section { page: "charts", title: "Charts" },
    Section { page: "audit", title: "Audit" },
];

/// The page of `/console`.
pub(crate) const FIRST_PAGE: &str = "servers";
