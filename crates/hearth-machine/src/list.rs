//! Sets of CPUs or nodes, as the kernel writes them: lists such as `0-3,8`, and masks such as `f,00000103`.

use std::fmt::Write;

/// CPUs and nodes have numbers below this, here and in Linux; it bounds what a malformed set can cost.
pub(crate) const MAX_ID: usize = 1 << 16;

/// Bits of each word of a mask, and the hexadecimal digits that they take at most.
const WORD_BITS: usize = 32;
const WORD_DIGITS: usize = 8;

/// Reads a list, which may be empty; its numbers in order, each once. `None` if it is none, or has a number of
/// 65,536 or more.
pub fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut ranges = Vec::new();
    for range in text.split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MAX_ID {
            return None;
        }
        ranges.push(first..last + 1);
    }
    // Ranges may overlap, and repeat as often as the text is long: each number is looked at once.
    ranges.sort_unstable_by_key(|range| range.start);
    let mut list = Vec::new();
    for range in ranges {
        let next = list.last().map_or(0, |last| last + 1);
        list.extend(range.start.max(next)..range.end);
    }
    Some(list)
}

/// Reads a mask: words of 32 bits, the most significant first; the numbers of the bits that are set, in order.
/// `None` if it is none, or has a number of 65,536 or more.
pub fn parse_mask(text: &str) -> Option<Vec<usize>> {
    let mut list = Vec::new();
    for (place, digits) in text.rsplit(',').enumerate() {
        if digits.is_empty() || digits.len() > WORD_DIGITS {
            return None;
        }
        let word = u32::from_str_radix(digits, 16).ok()?;
        list.extend((0..WORD_BITS).filter(|bit| word >> bit & 1 == 1).map(|bit| place * WORD_BITS + bit));
    }
    list.last().is_none_or(|last| *last < MAX_ID).then_some(list)
}

/// Writes numbers in ascending order as a list.
pub fn show_list(list: &[usize]) -> String {
    let mut text = String::new();
    for run in list.chunk_by(|a, b| a + 1 == *b) {
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = match run {
            [one] => write!(text, "{comma}{one}"),
            [first, .., last] => write!(text, "{comma}{first}-{last}"),
            [] => Ok(()),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_are_those_of_the_kernel() {
        assert_eq!(parse_list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_list("8,2-4,0-3"), Some(vec![0, 1, 2, 3, 4, 8]));
        assert_eq!(parse_list(""), Some(vec![]));
        for none in ["3-1", "0-65536", "0-99999999999", "a", "0-3;8", "-1"] {
            assert_eq!(parse_list(none), None, "{none}");
        }
    }

    #[test]
    fn masks_are_those_of_the_kernel() {
        assert_eq!(parse_mask("f"), Some(vec![0, 1, 2, 3]));
        assert_eq!(parse_mask("00000001,80000000"), Some(vec![31, 32]));
        assert_eq!(parse_mask("0"), Some(vec![]));
        for none in ["", "g", "f,", "123456789", "0x3", "-1"] {
            assert_eq!(parse_mask(none), None, "{none}");
        }
        let words = |count| format!("1{}", ",00000000".repeat(count - 1));
        assert_eq!(parse_mask(&words(MAX_ID / WORD_BITS)), Some(vec![MAX_ID - WORD_BITS]));
        assert_eq!(parse_mask(&words(MAX_ID / WORD_BITS + 1)), None);
    }

    #[test]
    fn a_list_costs_by_its_numbers_not_by_how_often_they_are_there() {
        let all = parse_list(&"0-65535,".repeat(8192)).expect("a list");
        assert_eq!((all.len(), all.capacity() < 4 * MAX_ID), (MAX_ID, true));
    }

    proptest! {
        #[test]
        fn a_shown_list_reads_back(ids in prop::collection::btree_set(0_usize..300, 0..40)) {
            let ids: Vec<usize> = ids.into_iter().collect();
            prop_assert_eq!(parse_list(&show_list(&ids)), Some(ids));
        }

        #[test]
        fn a_list_is_the_union_of_its_ranges(ranges in prop::collection::vec((0_usize..200, 0_usize..50), 1..20)) {
            let text: Vec<String> = ranges.iter().map(|(first, more)| format!("{first}-{}", first + more)).collect();
            let union: std::collections::BTreeSet<usize> =
                ranges.iter().flat_map(|(first, more)| *first..=first + more).collect();
            prop_assert_eq!(parse_list(&text.join(",")), Some(union.into_iter().collect()));
        }
    }
}
