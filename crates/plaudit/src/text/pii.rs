//! PII detection: emails, phone numbers, ID cards, credit cards and IP addresses, in one linear pass.

use plaudit_text::{find_byte, space_len};

/// How much personal data of each kind a text holds.
///
/// Data of one kind does not overlap; that of two kinds may. `privacy_leakage` describes the forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PiiCounts {
    /// E-mail addresses.
    pub email: u64,
    /// Phone numbers of ten digits, with or without the country code 1.
    pub phone: u64,
    /// Numbers of Chinese identity cards.
    pub id_card: u64,
    /// Numbers of payment cards, of 16 digits.
    pub credit_card: u64,
    /// Public IP addresses, version 4.
    pub ip_address: u64,
}

impl PiiCounts {
    /// Counts what a text holds.
    pub fn count(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut found = Self { email: emails(bytes), phone: 0, id_card: 0, credit_card: 0, ip_address: 0 };
        numbers(bytes, &mut found);
        found
    }
}

/// Whether a byte belongs to a word. Bytes above ASCII do not, so that Chinese text is no part of a number or name.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a word goes on at `at`.
fn word_at(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(|byte| is_word(*byte))
}

/// The number of e-mail addresses. Names and domains end at an `@`, so every byte is looked at twice at most.
fn emails(bytes: &[u8]) -> u64 {
    let is_name = |byte: u8| is_word(byte) || matches!(byte, b'.' | b'%' | b'+' | b'-');
    let mut count = 0;
    let mut free = 0;
    for at in memchr::memchr_iter(b'@', bytes) {
        // The name begins at its first word character, wherever in what could be a name that stands.
        let named =
            bytes[free..at].iter().rev().take_while(|byte| is_name(**byte)).any(|byte| is_word(*byte));
        if !named {
            continue;
        }
        if let Some(end) = domain(bytes, at + 1) {
            count += 1;
            free = end;
        }
    }
    count
}

/// The offset after the domain that begins at `start`: up to the last part that can end one.
fn domain(bytes: &[u8], start: usize) -> Option<usize> {
    let mut last = None;
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        if *byte == b'.' && at > start {
            let letters = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
            at += 1 + letters;
            if letters >= 2 && !word_at(bytes, at) {
                last = Some(at);
            }
        } else if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-') {
            at += 1;
        } else {
            break;
        }
    }
    last
}

/// Looks at every run of digits once and tries each kind at its start, which takes a bounded number of steps.
fn numbers(bytes: &[u8], found: &mut PiiCounts) {
    // Where the last leak of each kind ended: those of one kind do not overlap.
    let (mut phone_end, mut card_end, mut address_end) = (0, 0, 0);
    let mut at = 0;
    while let Some(start) = find_byte(bytes, at, |byte| byte.is_ascii_digit()) {
        let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        at = start + length;
        let inside = start > 0 && is_word(bytes[start - 1]);
        if start >= phone_end
            && let Some(end) = phone_around(bytes, start, phone_end, inside)
        {
            found.phone += 1;
            phone_end = end;
        }
        if inside {
            continue;
        }
        found.id_card += u64::from(is_id_card(bytes, start, length));
        if start >= card_end
            && let Some(end) = card(bytes, start)
        {
            found.credit_card += 1;
            card_end = end;
        }
        if start >= address_end
            && let Some(end) = address(bytes, start)
        {
            found.ip_address += u64::from(!is_private(&bytes[start..end]));
            address_end = end;
        }
    }
}

/// A phone number whose first digit is at `start`. Directly after a word only a parenthesis or a plus can begin one.
fn phone_around(bytes: &[u8], start: usize, free: usize, inside: bool) -> Option<usize> {
    let marked =
        start > free && start >= 2 && matches!(bytes[start - 1], b'(' | b'+') && is_word(bytes[start - 2]);
    if marked && let Some(end) = phone(bytes, start - 1) {
        return Some(end);
    }
    if inside { None } else { phone(bytes, start) }
}

fn phone(bytes: &[u8], start: usize) -> Option<usize> {
    let one = skip(bytes, start, b'+');
    if bytes.get(one) == Some(&b'1')
        && let Some(end) = local_phone(bytes, skip_separator(bytes, one + 1, b"-."))
    {
        return Some(end);
    }
    local_phone(bytes, start)
}

fn local_phone(bytes: &[u8], start: usize) -> Option<usize> {
    let area = digits::<3>(bytes, skip(bytes, start, b'('))?;
    let office = digits::<3>(bytes, skip_separator(bytes, skip(bytes, area, b')'), b"-."))?;
    let end = digits::<4>(bytes, skip_separator(bytes, office, b"-."))?;
    (!word_at(bytes, end)).then_some(end)
}

fn card(bytes: &[u8], start: usize) -> Option<usize> {
    let mut end = digits::<4>(bytes, start)?;
    for _ in 0..3 {
        end = digits::<4>(bytes, skip_separator(bytes, end, b"-"))?;
    }
    (!word_at(bytes, end)).then_some(end)
}

/// Region, date of birth, serial number and check digit.
fn is_id_card(bytes: &[u8], start: usize, length: usize) -> bool {
    if !(17..=18).contains(&length) || (length == 17 && !matches!(bytes.get(start + 17), Some(b'X' | b'x'))) {
        return false;
    }
    let Some(card) = bytes.get(start..start + 18) else {
        return false;
    };
    let two = |at: usize| (card[at] - b'0') * 10 + (card[at + 1] - b'0');
    !word_at(bytes, start + 18)
        && card[0] != b'0'
        && (18..=20).contains(&two(6))
        && (1..=12).contains(&two(10))
        && (1..=31).contains(&two(12))
}

fn address(bytes: &[u8], start: usize) -> Option<usize> {
    let mut end = octet(bytes, start)?;
    for _ in 0..3 {
        if bytes.get(end) != Some(&b'.') {
            return None;
        }
        end = octet(bytes, end + 1)?;
    }
    (!word_at(bytes, end)).then_some(end)
}

/// The offset after a number from 0 to 255 of at most three digits.
fn octet(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = bytes.get(start..)?;
    let length = rest.iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
    let value = rest[..length].iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
    ((1..=3).contains(&length) && value <= 255).then_some(start + length)
}

/// Whether an address is of a private network or of the machine itself, and so tells nothing of a person.
fn is_private(address: &[u8]) -> bool {
    if let Some(rest) = address.strip_prefix(b"172.") {
        return matches!(
            rest,
            [b'1', b'6'..=b'9', b'.', ..] | [b'2', b'0'..=b'9', b'.', ..] | [b'3', b'0' | b'1', b'.', ..]
        );
    }
    address.starts_with(b"127.") || address.starts_with(b"10.") || address.starts_with(b"192.168.")
}

/// The offset after exactly `N` digits, more of which may follow.
fn digits<const N: usize>(bytes: &[u8], start: usize) -> Option<usize> {
    let run = bytes.get(start..start + N)?;
    run.iter().all(u8::is_ascii_digit).then_some(start + N)
}

fn skip(bytes: &[u8], at: usize, byte: u8) -> usize {
    at + usize::from(bytes.get(at) == Some(&byte))
}

/// The offset after one separator: one of `marks` or one character of white space.
fn skip_separator(bytes: &[u8], at: usize, marks: &[u8]) -> usize {
    match bytes.get(at) {
        Some(byte) if marks.contains(byte) => at + 1,
        Some(_) => at + space_len(&bytes[at..]),
        None => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> [u64; 5] {
        let PiiCounts { email, phone, id_card, credit_card, ip_address } = PiiCounts::count(text);
        [email, phone, id_card, credit_card, ip_address]
    }

    #[test]
    fn text_of_another_script_hides_nothing() {
        assert_eq!(found("我的邮箱是test@example.com谢谢"), [1, 0, 0, 0, 0]);
        assert_eq!(found("电话13812345678。身份证11010519491231002X号"), [0, 1, 1, 0, 0]);
        assert_eq!(found("卡号4111111111111111，地址8.8.8.8是"), [0, 0, 0, 1, 1]);
    }

    #[test]
    fn addresses_have_ranges_and_private_networks() {
        assert_eq!(found("999.1.1.1 1.2.3.256 8.8.8.8"), [0, 0, 0, 0, 1]);
        assert_eq!(found("172.15.0.1 172.16.0.1 172.31.0.1 172.32.0.1 172.3.0.1"), [0, 0, 0, 0, 3]);
        assert_eq!(found("1.1.1.1.1.1.1.1.1"), [0, 0, 0, 0, 2]);
    }

    #[test]
    fn names_and_domains_end_where_they_must() {
        assert_eq!(found("a@b.com@c.com a@b.com.x@y.org")[0], 3);
        assert_eq!(found("a@b.c a@.com ...@b.com @b.com a@b.co1 a@b.co_ a@b.c|d")[0], 0);
        assert_eq!(found("+a@b.com a@b..com x_@b-c.d.ef.g")[0], 3);
    }

    #[test]
    fn phones_begin_at_a_word_a_plus_or_a_parenthesis() {
        assert_eq!(found("tel(212) 555-0187")[1], 1);
        assert_eq!(found("x+1 415.555.2671 1(212)555-0187")[1], 2);
        assert_eq!(found("x5551234567 55512345678 555-1234")[1], 0);
        assert_eq!(found("5551234567(212)5550187")[1], 2);
    }
}
