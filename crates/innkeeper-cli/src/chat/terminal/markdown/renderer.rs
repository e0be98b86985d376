//! Draws a complete Markdown text.

mod block_lines;
mod table;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::super::theme::{Role, Theme};
use block_lines::BlockLines;
use table::Table;

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
    theme: Theme,
    blocks: BlockLines,
    /// The inline text of the current paragraph.
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    /// The next number of each open list; `None` for a list without numbers.
    lists: Vec<Option<u64>>,
    is_code_block: bool,
    link: Option<(String, String)>,
    table: Option<Table>,
}

impl Renderer {
    fn new(width: usize, theme: Theme) -> Self {
        Self {
            theme,
            blocks: BlockLines { width, ..BlockLines::default() },
            spans: Vec::new(),
            styles: vec![theme.style(Role::Text)],
            lists: Vec::new(),
            is_code_block: false,
            link: None,
            table: None,
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
                let dashes = "─".repeat(self.blocks.width.min(40));
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
                self.blocks.needs_blank = false;
                self.blocks.prefixes.push(Span::styled("│ ", self.theme.style(Role::Dim)));
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
                self.blocks.needs_blank = false;
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
                self.blocks.prefixes.pop();
                self.blocks.needs_blank = true;
            }
            TagEnd::CodeBlock => {
                self.is_code_block = false;
                self.blocks.needs_blank = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.blocks.needs_blank = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.end_paragraph();
                self.blocks.flush_marker();
                self.blocks.prefixes.pop();
                self.blocks.needs_blank = false;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let width = self.blocks.width_behind_prefixes();
                    for line in table.render(width, self.theme) {
                        self.blocks.push_line(&line.spans);
                    }
                }
                self.blocks.needs_blank = true;
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
        self.blocks.marker = Some(Span::styled(marker, self.theme.style(Role::Dim)));
        self.blocks.prefixes.push(Span::raw(indent));
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
            self.blocks.push_code(Span::styled(line.to_owned(), style));
        }
    }

    /// Ends the paragraph before a block, with a blank line between two blocks.
    fn start_block(&mut self) {
        self.end_paragraph();
        self.blocks.separate();
    }

    fn end_block(&mut self) {
        self.end_paragraph();
        self.blocks.needs_blank = true;
    }

    fn end_paragraph(&mut self) {
        if !self.spans.is_empty() {
            let spans = std::mem::take(&mut self.spans);
            self.blocks.push_line(&spans);
        }
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.end_paragraph();
        self.blocks.lines
    }
}
