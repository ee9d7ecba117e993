//! Quantities as people write them in TOML: `"64 KiB"`, `"33 MHz"`, `"30 ms"`, `"64 MB/s"`.
//!
//! Each is a whole number of its base unit. Reading needs the unit, so that a forgotten one is an
//! error and not a factor of a thousand; writing picks the largest unit that divides the number,
//! so that what is written reads back as the same number.

use std::fmt;

use parse_size::{ByteSuffix, Config};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

use crate::located::with_mend;

/// A kind of quantity: its name, how it is read, and how it is written.
trait Quantity: Sized {
    /// What a reader should write, with an example.
    const EXPECTED: &'static str;
    /// Reads `text`; on failure says what is wrong with it.
    fn read(text: &str) -> Result<Self, String>;
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $unit:literal, $expected:literal, $read:path, $steps:path) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(
            #[doc = $unit]
            pub u64,
        );

        impl Quantity for $name {
            const EXPECTED: &'static str = $expected;
            fn read(text: &str) -> Result<Self, String> {
                $read(text).map($name)
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::read(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_largest(out, self.0, $steps)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str(Text(std::marker::PhantomData))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
    };
}

quantity!(
    /// A size in memory.
    Bytes, "Bytes.", "a size with its unit, such as \"64 KiB\"", read_bytes, BYTE_STEPS
);
quantity!(
    /// A clock.
    Hertz, "Hertz.", "a frequency with its unit, such as \"33 MHz\"", read_hertz, HERTZ_STEPS
);
quantity!(
    /// A length of time.
    Nanoseconds, "Nanoseconds.", "a time with its unit, such as \"30 ms\"", read_time, TIME_STEPS
);
quantity!(
    /// A bandwidth.
    BytesPerSecond, "Bytes a second.", "a rate with its unit, such as \"64 MB/s\"", read_rate, RATE_STEPS
);

const BYTE_STEPS: &[(u64, &str)] = &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];
const HERTZ_STEPS: &[(u64, &str)] = &[(1_000_000_000, "GHz"), (1_000_000, "MHz"), (1_000, "kHz"), (1, "Hz")];
const TIME_STEPS: &[(u64, &str)] = &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
const RATE_STEPS: &[(u64, &str)] =
    &[(1_000_000_000, "GB/s"), (1_000_000, "MB/s"), (1_000, "kB/s"), (1, "B/s")];

fn write_largest(out: &mut fmt::Formatter<'_>, value: u64, steps: &[(u64, &str)]) -> fmt::Result {
    let fits = |step: &&(u64, &str)| value >= step.0 && value.is_multiple_of(step.0);
    let (size, unit) = steps.iter().find(fits).or(steps.last()).copied().unwrap_or((1, ""));
    write!(out, "{} {unit}", value / size)
}

fn read_bytes(text: &str) -> Result<u64, String> {
    with_byte_unit(text).map_err(|why| format!("`{text}` is not a size: {why}"))
}

/// Without the list of units up to years that the crate's own message ends with.
fn brief(error: &humantime::DurationError) -> String {
    match error {
        humantime::DurationError::UnknownUnit { unit, .. } if unit.is_empty() => {
            "its unit is missing".to_owned()
        }
        humantime::DurationError::UnknownUnit { unit, .. } => format!("there is no unit `{unit}`"),
        other => other.to_string(),
    }
}

fn with_byte_unit(text: &str) -> Result<u64, String> {
    if !text.trim_end().ends_with(['b', 'B']) {
        return Err("its unit is missing".to_owned());
    }
    let config = Config::new().with_byte_suffix(ByteSuffix::Require);
    config.parse_size(text).map_err(|error| error.to_string())
}

fn read_hertz(text: &str) -> Result<u64, String> {
    let fault = |why: &dyn fmt::Display| format!("`{text}` is not a frequency: {why}");
    let trimmed = text.trim().to_ascii_lowercase();
    let number = trimmed.strip_suffix("hz").ok_or_else(|| fault(&"its unit is missing"))?;
    if number.contains('i') {
        return Err(fault(&"a frequency has decimal units"));
    }
    Config::new().with_byte_suffix(ByteSuffix::Deny).parse_size(number).map_err(|error| fault(&error))
}

fn read_time(text: &str) -> Result<u64, String> {
    let fault = |why: &dyn fmt::Display| format!("`{text}` is not a time: {why}");
    let time = humantime::parse_duration(text.trim()).map_err(|error| fault(&brief(&error)))?;
    u64::try_from(time.as_nanos()).map_err(|_| fault(&"it is too long"))
}

fn read_rate(text: &str) -> Result<u64, String> {
    let size = text.trim_end().strip_suffix("/s").ok_or_else(|| "it does not end in `/s`".to_owned());
    size.and_then(with_byte_unit).map_err(|why| format!("`{text}` is not a rate: {why}"))
}

/// Visits a string and reads a `T` from it.
struct Text<T>(std::marker::PhantomData<T>);

impl<T: Quantity> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let mend = format!("write {}", T::EXPECTED);
        T::read(text).map_err(|what| E::custom(with_mend(&what, &mend)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn units_are_the_customary_ones() {
        assert_eq!(read_bytes("64 KiB"), Ok(65_536));
        assert_eq!(read_bytes("64KB"), Ok(64_000));
        assert_eq!(read_hertz("33 MHz"), Ok(33_000_000));
        assert_eq!(read_hertz("2.5 GHz"), Ok(2_500_000_000));
        assert_eq!(read_time("30 ms"), Ok(30_000_000));
        assert_eq!(read_time("50us"), Ok(50_000));
        assert_eq!(read_rate("64 MB/s"), Ok(64_000_000));
        assert_eq!(read_rate("4.3 GB/s"), Ok(4_300_000_000));
    }

    #[test]
    fn a_number_without_its_unit_is_refused() {
        for (error, text) in [
            (read_bytes("64").unwrap_err(), "`64` is not a size: its unit is missing"),
            (read_hertz("64").unwrap_err(), "`64` is not a frequency: its unit is missing"),
            (read_time("64").unwrap_err(), "`64` is not a time: its unit is missing"),
            (read_rate("64/s").unwrap_err(), "`64/s` is not a rate: its unit is missing"),
        ] {
            assert_eq!(error, text);
        }
    }

    #[test]
    fn a_number_beyond_64_bits_is_refused() {
        assert!(read_bytes("100000000 EiB").is_err());
        assert!(read_hertz("100000000000 EHz").is_err());
        assert!(read_time("1000000 years").is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value in any::<u64>(), shift in 0_u32..64) {
            let value = value >> shift;
            prop_assert_eq!(read_bytes(&Bytes(value).to_string()), Ok(value));
            prop_assert_eq!(read_hertz(&Hertz(value).to_string()), Ok(value));
            prop_assert_eq!(read_time(&Nanoseconds(value).to_string()), Ok(value));
            prop_assert_eq!(read_rate(&BytesPerSecond(value).to_string()), Ok(value));
        }
    }
}
