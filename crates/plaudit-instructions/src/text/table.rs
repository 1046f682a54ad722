//! Binary tables that `data/make.py` writes, read where they lie: nothing is decoded or copied.

/// One part of a file: a count, the length of each part, then the parts.
pub(super) fn section(data: &'static [u8], number: usize) -> &'static [u8] {
    let count = u32_at(data, 0) as usize;
    let length = |part: usize| u32_at(data, 4 + 4 * part) as usize;
    let start = 4 + 4 * count + (0..number).map(length).sum::<usize>();
    &data[start..start + length(number)]
}

/// The four bytes at this place, the lowest first.
#[inline]
pub(super) fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}

/// The three bytes at this place, the lowest first.
#[inline]
pub(super) fn u24_at(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([data[at], data[at + 1], data[at + 2], 0])
}

/// The two bytes at this place, the lowest first.
#[inline]
pub(super) fn u16_at(data: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([data[at], data[at + 1]])
}

/// A name that is filled up with zeros.
pub(super) fn name_at(data: &'static [u8], at: usize, width: usize) -> &'static str {
    let field = &data[at..at + width];
    let end = field.iter().position(|&byte| byte == 0).map_or(width, |end| end);
    std::str::from_utf8(&field[..end]).map_or("", |name| name)
}

/// Values by key, sorted by key.
pub(super) struct StringTable {
    offsets: &'static [u8],
    records: &'static [u8],
}

impl StringTable {
    pub(super) fn new(data: &'static [u8]) -> Self {
        Self { offsets: section(data, 0), records: section(data, 1) }
    }

    /// The number of records.
    pub(super) fn len(&self) -> usize {
        self.offsets.len() / 4 - 1
    }

    fn record(&self, number: usize) -> (&'static [u8], &'static [u8]) {
        let start = u32_at(self.offsets, 4 * number) as usize;
        let end = u32_at(self.offsets, 4 * number + 4) as usize;
        let record = &self.records[start..end];
        record[1..].split_at(usize::from(record[0]))
    }

    /// The value of the key `group` + `key`, where all keys of the table start with a group of the same length.
    pub(super) fn get(&self, group: &[u8], key: &[u8]) -> Option<&'static [u8]> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            let (found, value) = self.record(middle);
            let (found_group, found_key) = found.split_at(group.len().min(found.len()));
            match found_group.cmp(group).then_with(|| found_key.cmp(key)) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(value),
            }
        }
        None
    }
}
