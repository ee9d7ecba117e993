//! Lists of CPUs or nodes, as the kernel writes them: `0-3,8`.

use std::fmt::Write;

/// Linux numbers fewer CPUs and nodes than this; it bounds what a malformed range can cost.
pub(crate) const MAX_ID: usize = 1 << 16;

/// Reads a list, which may be empty; its numbers in order, each once. `None` if it is none.
pub fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut list = Vec::new();
    for range in text.split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MAX_ID {
            return None;
        }
        list.extend(first..=last);
    }
    list.sort_unstable();
    list.dedup();
    Some(list)
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
        assert_eq!(parse_list(""), Some(vec![]));
        assert_eq!(parse_list("3-1"), None);
        assert_eq!(parse_list("0-99999999999"), None);
        assert_eq!(parse_list("a"), None);
    }

    proptest! {
        #[test]
        fn a_shown_list_reads_back(ids in prop::collection::btree_set(0_usize..300, 0..40)) {
            let ids: Vec<usize> = ids.into_iter().collect();
            prop_assert_eq!(parse_list(&show_list(&ids)), Some(ids));
        }
    }
}
