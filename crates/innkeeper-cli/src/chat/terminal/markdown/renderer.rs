//! Draws a complete Markdown text.

mod table;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::theme::{Role, Theme};
use super::super::wrap::wrap_spans;
use table::Table;

/// The columns of a code block's indentation.
const CODE_INDENT: &str = "    ";

/// Maximum columns of indentation by lists and quotes: deeper levels have the same indentation.
const MAX_INDENT: usize = 16;

/// Returns the lines of a text, without blank lines at the start and at the end.
pub(super) fn render(source: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut renderer = Renderer::new(width, theme);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(source, options) {
        renderer.on_event(event);
    }
    renderer.finish()
}

struct Renderer {
    width: usize,
    theme: Theme,
    lines: Vec<Line<'static>>,
    /// The inline text of the current paragraph.
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    /// What each line starts with, one entry for each open list item or quote.
    prefixes: Vec<Span<'static>>,
    /// The marker of the item that has no line yet.
    marker: Option<Span<'static>>,
    /// The next number of each open list; `None` for a list without numbers.
    lists: Vec<Option<u64>>,
    is_code_block: bool,
    link: Option<(String, String)>,
    table: Option<Table>,
    /// Whether a blank line precedes the next block.
    needs_blank: bool,
}

impl Renderer {
    fn new(width: usize, theme: Theme) -> Self {
        Self {
            width,
            theme,
            lines: Vec::new(),
            spans: Vec::new(),
            styles: vec![theme.style(Role::Text)],
            prefixes: Vec::new(),
            marker: None,
            lists: Vec::new(),
            is_code_block: false,
            link: None,
            table: None,
            needs_blank: false,
        }
    }

    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.on_start(tag),
            Event::End(tag) => self.on_end(tag),
            Event::Text(text) if self.is_code_block => self.add_code(&text),
            Event::Text(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.add_text(&text, None);
            }
            Event::Code(text) => {
                let text = match self.theme {
                    Theme::Plain => format!("`{text}`"),
                    Theme::Dark | Theme::Light => text.to_string(),
                };
                self.add_text(&text, Some(self.theme.style(Role::Code)));
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                self.add_text(text.trim_end(), Some(self.theme.style(Role::Dim)));
            }
            Event::SoftBreak => self.add_text(" ", None),
            Event::HardBreak => self.end_paragraph(),
            Event::Rule => {
                self.start_block();
                let dashes = "─".repeat(self.width.min(40));
                self.add_text(&dashes, Some(self.theme.style(Role::Dim)));
                self.end_block();
            }
            Event::TaskListMarker(is_done) => {
                self.add_text(if is_done { "[x] " } else { "[ ] " }, None);
            }
            Event::FootnoteReference(name) => self.add_text(&format!("[{name}]"), None),
        }
    }

    fn on_start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.start_block(),
            Tag::Heading { level, .. } => {
                self.start_block();
                let heading = self.theme.style(Role::Heading);
                self.styles.push(heading);
                self.add_text(&format!("{} ", "#".repeat(level as usize)), None);
            }
            Tag::BlockQuote(_) => {
                self.start_block();
                self.needs_blank = false;
                self.prefixes.push(Span::styled("│ ", self.theme.style(Role::Dim)));
            }
            Tag::CodeBlock(_) => {
                self.start_block();
                self.is_code_block = true;
            }
            Tag::List(number) => {
                self.end_paragraph();
                if self.lists.is_empty() {
                    self.start_block();
                }
                self.needs_blank = false;
                self.lists.push(number);
            }
            Tag::Item => self.start_item(),
            Tag::Emphasis | Tag::Strong | Tag::Strikethrough => {
                let style = self.style().patch(self.theme.style(Role::Strong));
                self.styles.push(style);
            }
            Tag::Link { dest_url, .. } => {
                self.link = Some((dest_url.to_string(), String::new()));
                self.styles.push(self.theme.style(Role::Link));
            }
            Tag::Image { dest_url, .. } => {
                self.link = Some((dest_url.to_string(), String::new()));
                self.add_text("[image] ", None);
                self.styles.push(self.style());
            }
            Tag::Table(_) => {
                self.start_block();
                self.table = Some(Table::default());
            }
            Tag::TableRow | Tag::TableHead => {
                if let Some(table) = &mut self.table {
                    table.start_row();
                }
            }
            Tag::TableCell
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn on_end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.prefixes.pop();
                self.needs_blank = true;
            }
            TagEnd::CodeBlock => {
                self.is_code_block = false;
                self.needs_blank = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.needs_blank = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_paragraph();
                self.flush_marker();
                self.prefixes.pop();
                self.needs_blank = false;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let indent: usize = self.prefixes.iter().map(Span::width).sum();
                    let width = self.width.saturating_sub(indent);
                    for line in table.render(width, self.theme) {
                        self.push_line(&line.spans);
                    }
                }
                self.needs_blank = true;
            }
            TagEnd::TableCell => {
                let text = self.spans.drain(..).map(|span| span.content).collect::<String>();
                if let Some(table) = &mut self.table {
                    table.add_cell(&text);
                }
            }
            TagEnd::TableRow
            | TagEnd::TableHead
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn start_item(&mut self) {
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            Some(None) | None => "- ".to_owned(),
        };
        let indent = " ".repeat(marker.len());
        self.marker = Some(Span::styled(marker, self.theme.style(Role::Dim)));
        self.prefixes.push(Span::raw(indent));
    }

    fn end_link(&mut self) {
        self.styles.pop();
        let Some((url, text)) = self.link.take() else { return };
        if !url.is_empty() && url != text {
            self.add_text(&format!(" ({url})"), Some(self.theme.style(Role::Dim)));
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn add_text(&mut self, text: &str, style: Option<Style>) {
        if let Some((_, link_text)) = &mut self.link {
            link_text.push_str(text);
        }
        let style = style.unwrap_or_else(|| self.style());
        // A line break inside of a text, as in HTML, is a line of its own.
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 && self.table.is_none() {
                self.end_paragraph();
            }
            if !line.is_empty() {
                self.spans.push(Span::styled(line.to_owned(), style));
            }
        }
    }

    fn add_code(&mut self, text: &str) {
        let style = self.theme.style(Role::Code);
        for line in text.split_inclusive('\n') {
            let line = line.trim_end_matches(['\n', '\r']);
            self.prefixes.push(Span::raw(CODE_INDENT));
            self.push_line(&[Span::styled(line.to_owned(), style)]);
            self.prefixes.pop();
        }
    }

    /// Ends the paragraph before a block, with a blank line between two blocks.
    fn start_block(&mut self) {
        self.end_paragraph();
        if std::mem::take(&mut self.needs_blank) && !self.lines.is_empty() {
            let prefixes = if self.marker.is_none() { self.prefixes() } else { Vec::new() };
            let blank = wrap_spans(&[], self.width, &prefixes, &prefixes);
            self.lines.extend(blank);
        }
    }

    fn end_block(&mut self) {
        self.end_paragraph();
        self.needs_blank = true;
    }

    fn end_paragraph(&mut self) {
        if !self.spans.is_empty() {
            let spans = std::mem::take(&mut self.spans);
            self.push_line(&spans);
        }
    }

    /// Draws an item without text.
    fn flush_marker(&mut self) {
        if self.marker.is_some() {
            self.push_line(&[]);
        }
    }

    fn push_line(&mut self, spans: &[Span<'_>]) {
        let rest = self.prefixes();
        let mut first = rest.clone();
        if let Some(marker) = self.marker.take() {
            // The prefix of the item itself is the last one, or the one before the code block's.
            let own = first.iter().rposition(|prefix| prefix.content != CODE_INDENT);
            if let Some(own) = own.and_then(|own| first.get_mut(own)) {
                *own = marker;
            }
        }
        self.lines.extend(wrap_spans(spans, self.width, &first, &rest));
    }

    /// Returns the prefixes that fit into the maximum indentation.
    fn prefixes(&self) -> Vec<Span<'static>> {
        let max = MAX_INDENT.min(self.width / 2);
        let mut columns = 0;
        self.prefixes
            .iter()
            .take_while(|prefix| {
                columns += prefix.width();
                columns <= max
            })
            .cloned()
            .collect()
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.end_paragraph();
        self.lines
    }
}
