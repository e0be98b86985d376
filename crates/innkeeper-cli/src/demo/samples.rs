//! The sample files of the demo.

use std::fs;
use std::io;
use std::path::Path;

const FILES: [(&str, &str); 3] = [
    ("house-rules.md", "# House rules\n\nThe gate closes at midnight. Horses are fed at dawn.\n"),
    (
        "cellar.md",
        "# Cellar\n\nTwelve casks of cider stand on the left, nine of elderberry wine on the right.\n\
         The elderberry wine must be turned every Thursday.\n\n\
         Whoever takes the last candle writes it down.\n",
    ),
    ("guests.txt", "Two travellers came on Monday.\nA cartographer stays until Friday.\n"),
];

/// Creates the directory and writes the sample files.
pub(super) fn write(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    FILES.iter().try_for_each(|(name, text)| fs::write(dir.join(name), text))
}
