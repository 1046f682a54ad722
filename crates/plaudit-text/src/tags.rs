//! Tag index of a text: one pass finds all tags; rules look them up by name.

/// One `<name>` or `</name>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// The offset of `<`.
    pub start: usize,
    /// The offset after `>`.
    pub end: usize,
    /// Whether it is a closing tag.
    pub closes: bool,
}

impl Tag {
    /// The name, as it stands in the text that the tag was found in.
    pub fn name<'t>(&self, text: &'t str) -> &'t str {
        &text[self.start + 1 + usize::from(self.closes)..self.end - 1]
    }
}

/// All tags of a text, in order.
#[derive(Debug)]
pub struct Tags(Vec<Tag>);

/// The longest name that is looked for. A bound makes the scan linear on texts such as `<<<<`.
const MAX_NAME_LENGTH: usize = 64;

/// Whether a name is one that the scan finds: letters, digits, `_` and `-`.
pub fn is_tag_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_LENGTH && name.bytes().all(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

impl Tags {
    /// Finds the tags: `<` or `</`, a name without spaces or attributes, `>`.
    pub fn find(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut tags = Vec::new();
        for start in memchr::memchr_iter(b'<', bytes) {
            let closes = bytes.get(start + 1) == Some(&b'/');
            let name = start + 1 + usize::from(closes);
            let window = &bytes[name..bytes.len().min(name + MAX_NAME_LENGTH + 1)];
            let length = window.iter().position(|byte| !is_name_byte(*byte)).unwrap_or(0);
            if length > 0 && window[length] == b'>' {
                tags.push(Tag { start, end: name + length + 1, closes });
            }
        }
        Self(tags)
    }

    /// All tags of one name.
    pub fn named<'t>(&'t self, text: &'t str, name: &'t str) -> impl Iterator<Item = Tag> + 't {
        self.0.iter().copied().filter(move |tag| tag.name(text) == name)
    }

    /// The tags of one name, paired as a shortest match does: an opening tag with the next closing one.
    pub fn pairs<'t>(&'t self, text: &'t str, name: &'t str) -> impl Iterator<Item = (Tag, Tag)> + 't {
        let mut open = None;
        self.named(text, name).filter_map(move |tag| match open {
            Some(from) if tag.closes => {
                open = None;
                Some((from, tag))
            }
            None if !tag.closes => {
                open = Some(tag);
                None
            }
            _ => None,
        })
    }

    /// What stands between the pairs of one name.
    pub fn bodies<'t>(&'t self, text: &'t str, name: &'t str) -> impl Iterator<Item = &'t str> + 't {
        self.pairs(text, name).map(move |(open, close)| &text[open.end..close.start])
    }

    /// How often the tags of one name stand, and where.
    pub fn census(&self, text: &str, name: &str) -> Census {
        self.named(text, name).collect()
    }

    /// All tags.
    pub fn as_slice(&self) -> &[Tag] {
        &self.0
    }
}

/// How often the tags of one name stand in a text, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Census {
    /// The number of opening tags.
    pub opens: usize,
    /// The number of closing tags.
    pub closes: usize,
    /// The first opening tag.
    pub first_open: Option<Tag>,
    /// The last closing tag.
    pub last_close: Option<Tag>,
}

impl FromIterator<Tag> for Census {
    /// Counts tags of one name, in order.
    fn from_iter<I: IntoIterator<Item = Tag>>(tags: I) -> Self {
        let mut census = Self { opens: 0, closes: 0, first_open: None, last_close: None };
        for tag in tags {
            if tag.closes {
                census.closes += 1;
                census.last_close = Some(tag);
            } else {
                census.opens += 1;
                census.first_open = census.first_open.or(Some(tag));
            }
        }
        census
    }
}

impl Census {
    /// Whether some opening tag has a closing one after it.
    pub fn has_pair(&self) -> bool {
        matches!((self.first_open, self.last_close), (Some(open), Some(close)) if open.start < close.start)
    }

    /// The only pair, where each of its tags stands exactly once.
    pub fn only_pair(&self) -> Option<(Tag, Tag)> {
        match (self.first_open, self.last_close) {
            (Some(open), Some(close)) if self.opens == 1 && self.closes == 1 && open.start < close.start => {
                Some((open, close))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(text: &str) -> Vec<&str> {
        let tags = Tags::find(text);
        let found: Vec<(usize, usize)> =
            tags.pairs(text, "think").map(|(open, close)| (open.end, close.start)).collect();
        found.into_iter().map(|(from, to)| &text[from..to]).collect()
    }

    #[test]
    fn pairs_are_shortest_matches() {
        assert_eq!(bodies("<think>a<think>b</think>c</think><think>d</think>"), ["a<think>b", "d"]);
        assert_eq!(bodies("</think><think>open"), Vec::<&str>::new());
        assert_eq!(bodies("<<think>x</think>"), ["x"]);
        assert_eq!(bodies("<think >x</think>"), Vec::<&str>::new());
    }

    #[test]
    fn a_name_at_the_end_of_the_text_is_not_a_tag() {
        assert!(Tags::find("a <think").as_slice().is_empty());
        assert!(Tags::find("<").as_slice().is_empty());
        assert!(Tags::find("</").as_slice().is_empty());
        assert!(Tags::find(&format!("<{}>", "a".repeat(65))).as_slice().is_empty());
    }

    #[test]
    fn a_census_knows_the_only_pair() {
        let census = |text: &str| Tags::find(text).census(text, "think");
        assert!(census("</think><think>a</think>").has_pair());
        assert!(census("</think><think>a</think>").only_pair().is_none());
        assert!(!census("</think><think>").has_pair());
        let (open, close) = census("<think>a</think>").only_pair().expect("a pair");
        assert_eq!((open.end, close.start), (7, 8));
    }
}
