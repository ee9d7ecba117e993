//! What a guest said, read.

use hearth_guest::{Output, Record};

/// The records of a section that have a key.
pub fn records(output: &Output, section: &str, key: &str) -> Vec<Record> {
    let records = output.section(section).unwrap().records();
    records.into_iter().filter(|record| record.text(key).is_some()).collect()
}

/// A key's number in each record.
pub fn numbers(records: &[Record], key: &str) -> Vec<f64> {
    records.iter().map(|record| record.get(key).unwrap()).collect()
}

/// The first record of a section with a key.
pub fn first(output: &Output, section: &str, key: &str) -> Record {
    let records = records(output, section, key);
    records.into_iter().next().unwrap_or_else(|| {
        panic!("no {key}= in section {section}: {:#?}", output.section(section).unwrap().lines)
    })
}

/// The number of the first record of a section with a key.
pub fn number(output: &Output, section: &str, key: &str) -> u64 {
    first(output, section, key).get(key).unwrap()
}

/// All numbers of a key in a section, in order.
pub fn numbers_in(output: &Output, section: &str, key: &str) -> Vec<u64> {
    records(output, section, key).iter().map(|record| record.get(key).unwrap()).collect()
}

/// The lines of a section.
pub fn text(output: &Output, section: &str) -> String {
    output.section(section).unwrap_or_else(|error| panic!("{error}")).lines.join("\n")
}

/// The only line of a section.
pub fn line<'a>(output: &'a Output, section: &str) -> &'a str {
    output.section(section).unwrap().lines.first().map_or("", String::as_str)
}

/// Whether a section has this line.
pub fn has_line(output: &Output, section: &str, wanted: &str) -> bool {
    output.section(section).unwrap().lines.iter().any(|line| line == wanted)
}

/// Nothing went wrong in the guest's kernel.
pub fn assert_untroubled(output: &Output) {
    assert_eq!(output.kernel_trouble(), Vec::<&str>::new());
    assert!(output.powered_off, "the guest did not shut down");
}
