//! Contents of results for people: text, tables, links, and blobs as files.

mod blob_file;
mod piece;
mod structured;

pub(crate) use blob_file::BlobDirectory;
pub(crate) use piece::ContentPiece;
pub(crate) use structured::{StructuredText, repeats_structured};

use std::io;

use crate::exit::{CliError, CliExitCode};
use crate::output::{Output, Style, escape_inline};
use piece::Blob;

pub(crate) struct ContentPrinter<'a> {
    output: &'a mut Output,
    directory: &'a BlobDirectory,
    /// Whether a blob could not be saved.
    has_lost_blob: bool,
}

impl<'a> ContentPrinter<'a> {
    pub(crate) fn new(output: &'a mut Output, directory: &'a BlobDirectory) -> Self {
        Self { output, directory, has_lost_blob: false }
    }

    /// Prints a piece for people. Text of a server is exact on a pipe and escaped on a terminal.
    pub(crate) fn print(&mut self, piece: &ContentPiece) -> io::Result<()> {
        match piece {
            ContentPiece::Text(text) => self.output.print_untrusted(text),
            ContentPiece::ResourceText { uri, text } => {
                self.print_heading(uri)?;
                self.output.print_untrusted(text)
            }
            ContentPiece::Blob(blob) => {
                let line = self.save(blob)?;
                line.map_or(Ok(()), |line| self.output.print_data(&line))
            }
            ContentPiece::Link { uri, label } => {
                let label = self.output.paint(Style::Dim, &escape_inline(label));
                self.output.print_data(&format!("{}  {label}", escape_inline(uri)))
            }
            ContentPiece::Other(json) => self.output.print_indented(json),
        }
    }

    /// Prints the address of the following content.
    pub(crate) fn print_heading(&mut self, uri: &str) -> io::Result<()> {
        let heading = self.output.paint(Style::Strong, &escape_inline(uri));
        self.output.print_data(&format!("{heading}:"))
    }

    /// Prints the text of all pieces exactly, or the bytes of the only blob. A terminal gets
    /// escaped text and no bytes. Other blobs are saved; stderr gets the names of their files.
    pub(crate) fn print_raw(&mut self, pieces: &[ContentPiece]) -> io::Result<()> {
        if let [ContentPiece::Blob(Blob { data: Some(bytes), .. })] = pieces
            && !self.output.is_terminal()
            && !self.directory.is_chosen()
        {
            return self.output.print_bytes(bytes);
        }
        let mut texts = Vec::new();
        for piece in pieces {
            match piece {
                ContentPiece::Text(text) | ContentPiece::ResourceText { text, .. } => {
                    texts.push(text.as_str());
                }
                ContentPiece::Link { uri, .. } => texts.push(uri),
                ContentPiece::Other(json) => texts.push(json),
                ContentPiece::Blob(blob) => self.save_aside(blob)?,
            }
        }
        let text = texts.join("\n");
        if self.output.is_terminal() {
            return self.output.print_untrusted(&text);
        }
        self.output.print_bytes(text.as_bytes())
    }

    /// Saves a blob and prints the name of its file to stderr.
    pub(crate) fn save_aside(&mut self, blob: &Blob) -> io::Result<()> {
        match self.save(blob)? {
            Some(line) => self.output.labelled_status(Style::Note, "saved", &line),
            None => Ok(()),
        }
    }

    /// Saves a blob; returns a line with its type, its size and the name of its file. A failure is
    /// reported on stderr.
    fn save(&mut self, blob: &Blob) -> io::Result<Option<String>> {
        let description = escape_inline(&blob.describe()).into_owned();
        let Some(bytes) = &blob.data else {
            self.has_lost_blob = true;
            let text = format!("{description}: the data is not valid base64");
            self.output.labelled_status(Style::Error, "error", &text)?;
            return Ok(None);
        };
        match self.directory.save(bytes, blob.mime_type.as_deref()) {
            Ok(path) => {
                let path = path.display().to_string();
                Ok(Some(format!("{description}: {}", escape_inline(&path))))
            }
            Err(error) => {
                self.has_lost_blob = true;
                let text = format!("cannot save {description} in {}: {error}", self.directory);
                self.output.labelled_status(Style::Error, "error", &text)?;
                Ok(None)
            }
        }
    }

    /// Returns an error if a blob could not be saved; stderr already has the reason.
    pub(crate) fn finish(self) -> Result<(), CliError> {
        if self.has_lost_blob {
            return Err(CliError::without_message(CliExitCode::Failed));
        }
        Ok(())
    }
}
