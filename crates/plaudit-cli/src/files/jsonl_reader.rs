//! JSON lines reader: reads blocks of whole lines and parses their lines in parallel. A line over the limit is skipped, not
//! buffered.

use super::{Entry, Parsed, Reader, other_formats};
use crate::console::Console;
use crate::error::CliError;
use plaudit::exec::Pool;
use plaudit::input::{self, Fields, InputError, LONGEST_LINE};
use std::io::{ErrorKind, Read};

/// What an entry is called.
pub(crate) const NOUN: &str = "line";
/// How much is read at once.
const BLOCK: usize = 1 << 20;
/// How much one thread parses at once.
const CHUNK: usize = 32 << 10;

/// A stream of lines.
pub(crate) struct Lines<R> {
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

impl<R: Read> Reader for Lines<R> {
    fn next(
        &mut self,
        pool: &Pool,
        fields: &Fields,
        console: &Console,
    ) -> Result<Option<Vec<Entry>>, CliError> {
        self.fill(BLOCK)?;
        if !self.started {
            self.started = true;
            self.start(console)?;
        }
        if self.skipping {
            self.skip()?;
        }
        let mut whole = self.whole_lines();
        if whole == 0 && !self.ended {
            // A line that does not fit the block may still be a line.
            self.fill(LONGEST_LINE + 2)?;
            whole = self.whole_lines();
        }
        if whole == 0 && !self.buffer.is_empty() {
            // Nothing more fits, and no line ends: it is too long. It is reported now, its end is looked for later.
            self.buffer.clear();
            self.skipping = true;
            self.lines += 1;
            return Ok(Some(vec![Entry { number: self.lines, rollouts: Err(input::too_long()) }]));
        }
        if self.buffer.is_empty() {
            return Ok(None);
        }
        let entries = self.parse(whole, pool, fields);
        self.buffer.drain(..whole);
        self.buffer.shrink_to(BLOCK);
        Ok(Some(entries))
    }

    fn progress(&self) -> (u64, u64) {
        (self.position, self.lines)
    }
}

impl<R: Read> Lines<R> {
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
        let mut filled = self.buffer.len();
        if self.ended || filled >= size {
            return Ok(());
        }
        self.buffer.resize(size, 0);
        while filled < size && !self.ended {
            match self.from.read(&mut self.buffer[filled..]) {
                Ok(0) => self.ended = true,
                Ok(count) => {
                    filled += count;
                    self.position += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(CliError::File(self.name.clone(), error)),
            }
        }
        self.buffer.truncate(filled);
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

    /// Looks at the first bytes of all: is this what it should be?
    fn start(&mut self, console: &Console) -> Result<(), CliError> {
        if self.buffer.starts_with(b"\xef\xbb\xbf") {
            console.warning("the input starts with a byte order mark, which was left out");
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
                None => return Ok(()),
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

    /// Parses the lines of the first `whole` bytes.
    fn parse(&mut self, whole: usize, pool: &Pool, fields: &Fields) -> Vec<Entry> {
        let mut chunks: Vec<Vec<(u64, &[u8])>> = vec![Vec::new()];
        let (mut start, mut size) = (0, 0);
        while start < whole {
            let rest = &self.buffer[start..whole];
            let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = rest[..length].strip_suffix(b"\r").unwrap_or(&rest[..length]);
            start += length + 1;
            self.lines += 1;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if size >= CHUNK {
                chunks.push(Vec::new());
                size = 0;
            }
            size += line.len();
            if let Some(chunk) = chunks.last_mut() {
                chunk.push((self.lines, line));
            }
        }
        let read = |(number, line): &(u64, &[u8])| {
            let rollouts = input::read_line(line, fields);
            Entry { number: *number, rollouts: rollouts.map(|all| Parsed::new(all, NOUN, *number)) }
        };
        let parsed = pool.map(&chunks, |chunk| chunk.iter().map(read).collect::<Vec<Entry>>());
        parsed.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the lines that can be read and of those that cannot.
    fn read(text: impl Read) -> (Vec<u64>, Vec<(u64, &'static str)>) {
        let mut reader = Lines::new("test".to_owned(), text);
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        while let Ok(Some(entries)) = reader.next(&Pool::new(Some(1)), &Fields::own(), &Console::errors()) {
            assert!(reader.buffer.len() <= LONGEST_LINE + 2);
            for entry in entries {
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
        let text =
            [line(100), line(LONGEST_LINE), line(50), line(LONGEST_LINE + 1), line(60), line(BLOCK)].concat();
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
