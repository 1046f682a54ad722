//! JSON lines reader: cuts the input into blocks of whole lines, which are parsed elsewhere. A line over the limit is
//! skipped, not buffered.

use super::{Block, Entry, Parsed, Reader, other_formats};
use crate::error::CliError;
use plaudit::input::{self, Fields, InputError, MAX_LINE};
use std::io::Read;

/// What an entry is called.
pub(crate) const NOUN: &str = "line";
/// How much is read, and parsed by one thread, at once.
const BLOCK: usize = 256 << 10;

/// A stream of lines.
pub(crate) struct LineReader<R> {
    name: String,
    from: R,
    /// What was read and not yet given out.
    buffer: Vec<u8>,
    position: u64,
    /// How many lines have ended.
    lines: u64,
    started: bool,
    ended: bool,
    /// Inside a line that is too long, whose rest is thrown away.
    skipping: bool,
}

impl<R: Read + Send> Reader for LineReader<R> {
    fn next(&mut self) -> Result<Option<Block>, CliError> {
        self.fill(BLOCK)?;
        let mut warning = None;
        if !self.started {
            self.started = true;
            warning = self.start()?;
        }
        if self.skipping {
            self.skip()?;
        }
        let mut whole = self.whole_lines();
        if whole == 0 && !self.ended {
            // A line that does not fit the block may still be a line.
            self.fill(MAX_LINE + 2)?;
            whole = self.whole_lines();
        }
        if whole == 0 && !self.buffer.is_empty() {
            // Nothing more fits, and no line ends: it is too long. It is reported now, its end is looked for later.
            self.buffer.clear();
            self.skipping = true;
            self.lines += 1;
            return Ok(Some(Block::Lines(LineBlock {
                bytes: Vec::new(),
                lines: self.lines - 1,
                too_long: true,
                warning,
            })));
        }
        if self.buffer.is_empty() {
            return Ok(None);
        }
        let mut rest = Vec::with_capacity(BLOCK);
        rest.extend_from_slice(&self.buffer[whole..]);
        let mut bytes = std::mem::replace(&mut self.buffer, rest);
        bytes.truncate(whole);
        let lines = self.lines;
        self.lines += memchr::memchr_iter(b'\n', &bytes).count() as u64;
        self.lines += u64::from(!bytes.ends_with(b"\n"));
        Ok(Some(Block::Lines(LineBlock { bytes, lines, too_long: false, warning })))
    }

    fn progress(&self) -> (u64, u64) {
        (self.position, self.lines)
    }
}

impl<R: Read> LineReader<R> {
    pub(crate) fn new(name: String, from: R) -> Self {
        Self {
            name,
            from,
            buffer: Vec::with_capacity(BLOCK),
            position: 0,
            lines: 0,
            started: false,
            ended: false,
            skipping: false,
        }
    }

    /// Reads until the buffer holds so many bytes, or all there are.
    fn fill(&mut self, size: usize) -> Result<(), CliError> {
        let wanted = size.saturating_sub(self.buffer.len());
        if self.ended || wanted == 0 {
            return Ok(());
        }
        self.buffer.reserve_exact(wanted);
        let read = (&mut self.from).take(wanted as u64).read_to_end(&mut self.buffer);
        let read = read.map_err(|error| CliError::File(self.name.clone(), error))?;
        self.position += read as u64;
        self.ended = read < wanted;
        Ok(())
    }

    /// How many bytes of the buffer are whole lines.
    fn whole_lines(&self) -> usize {
        match memchr::memrchr(b'\n', &self.buffer) {
            _ if self.ended => self.buffer.len(),
            Some(last) => last + 1,
            None => 0,
        }
    }

    /// Looks at the first bytes of all: is this what it should be? Returns what to warn of.
    fn start(&mut self) -> Result<Option<&'static str>, CliError> {
        let marked = self.buffer.starts_with(b"\xef\xbb\xbf");
        if marked {
            self.buffer.drain(..3);
        }
        let compressed = |what: &str| format!("the input is {what}; unpack it first");
        let mut letters = self.buffer.iter().filter(|byte| !byte.is_ascii_whitespace());
        let (code, message) = match self.buffer.as_slice() {
            [0x1f, 0x8b, ..] => ("input.encoding", compressed("gzip, not text")),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => ("input.encoding", compressed("zstd, not text")),
            [b'P', b'K', 3, 4, ..] => {
                ("input.encoding", compressed("a zip archive or a spreadsheet, not text"))
            }
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
                ("input.encoding", "the input is UTF-16; UTF-8 is wanted".to_owned())
            }
            start if start.starts_with(super::parquet_reader::MAGIC) => {
                ("input.encoding", "Parquet cannot be read from a pipe; give the path of a file".to_owned())
            }
            _ if letters.next() == Some(&b'[') && letters.next() == Some(&b'{') => (
                "input.not_jsonl",
                "the input is one JSON array; one object a line is wanted, as `jq -c '.[]'` makes it"
                    .to_owned(),
            ),
            start => match other_formats::describe(&self.name, start) {
                Some(message) => ("input.not_jsonl", message),
                None => {
                    return Ok(
                        marked.then_some("the input starts with a byte order mark, which was left out")
                    );
                }
            },
        };
        Err(CliError::Input(self.name.clone(), InputError::new(code, message)))
    }

    /// Throws the rest of a line away.
    fn skip(&mut self) -> Result<(), CliError> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer) {
                self.buffer.drain(..=end);
                break;
            }
            self.buffer.clear();
            if self.ended {
                break;
            }
            self.fill(BLOCK)?;
        }
        self.skipping = false;
        self.fill(BLOCK)
    }
}

/// Whole lines that have been read and not yet parsed.
pub(crate) struct LineBlock {
    bytes: Vec<u8>,
    /// How many lines come before.
    lines: u64,
    /// Whether it stands for one line that is too long, of which nothing was kept.
    too_long: bool,
    /// What is to be said of the input.
    pub(crate) warning: Option<&'static str>,
}

impl LineBlock {
    /// An entry for each line that is not blank.
    pub(crate) fn parse(&self, fields: &Fields) -> Vec<Entry> {
        if self.too_long {
            return vec![Entry { number: self.lines + 1, rollouts: Err(input::too_long()) }];
        }
        let (mut entries, mut number, mut rest) = (Vec::new(), self.lines, self.bytes.as_slice());
        while !rest.is_empty() {
            number += 1;
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
            rest = rest.get(end + 1..).unwrap_or(&[]);
            if !line.iter().all(u8::is_ascii_whitespace) {
                let rollouts = input::read_line(line, fields).map(|all| Parsed::new(all, NOUN, number));
                entries.push(Entry { number, rollouts });
            }
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the lines that can be read and of those that cannot.
    fn read(text: impl Read + Send) -> (Vec<u64>, Vec<(u64, &'static str)>) {
        let mut reader = LineReader::new("test".to_owned(), text);
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        while let Ok(Some(Block::Lines(block))) = reader.next() {
            assert!(reader.buffer.len() <= MAX_LINE + 2);
            for entry in block.parse(&Fields::own()) {
                match entry.rollouts {
                    Ok(_) => good.push(entry.number),
                    Err(error) => bad.push((entry.number, error.code)),
                }
            }
        }
        (good, bad)
    }

    #[test]
    fn blank_lines_keep_their_numbers() {
        let text = "\n{\"response\":\"a\"}\r\n   \n{\"response\":1}\n\n{\"response\":\"b\"}";
        assert_eq!(read(text.as_bytes()), (vec![2, 6], vec![(4, "input.response")]));
        assert_eq!(read(&b""[..]), (vec![], vec![]));
    }

    #[test]
    fn lines_up_to_the_longest_are_read_wherever_blocks_end() {
        let line = |length: usize| {
            let frame = "{\"response\":\"\"}\n".len() - 1;
            format!("{{\"response\":\"{}\"}}\n", "x".repeat(length - frame))
        };
        let text = [line(100), line(MAX_LINE), line(50), line(MAX_LINE + 1), line(60), line(BLOCK)].concat();
        assert_eq!(read(text.as_bytes()), (vec![1, 2, 3, 5, 6], vec![(4, "input.line_too_long")]));
        let crlf = text.replace('\n', "\r\n");
        assert_eq!(read(crlf.as_bytes()), (vec![1, 2, 3, 5, 6], vec![(4, "input.line_too_long")]));
    }

    #[test]
    fn a_line_without_end_is_reported_once() {
        let endless = std::io::repeat(b'x').take(40 << 20).chain(&b"\n{\"response\":\"a\"}"[..]);
        assert_eq!(read(endless), (vec![2], vec![(1, "input.line_too_long")]));
        assert_eq!(read(std::io::repeat(b'x').take(40 << 20)), (vec![], vec![(1, "input.line_too_long")]));
    }
}
