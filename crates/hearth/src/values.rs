//! Values of options and arguments: a wrong one is answered with what to write.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

const WRONG_PID: &str = "give the number of a process or thread, such as 4242; `ps -e` lists them";

/// A process or thread.
pub fn pid(text: &str) -> Result<i32, String> {
    text.parse().ok().filter(|pid| *pid > 0).ok_or_else(|| WRONG_PID.to_owned())
}

/// A process, which may have any number.
pub fn process(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|pid| *pid > 0).ok_or_else(|| WRONG_PID.to_owned())
}

/// A whole number above 0.
pub fn count(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "give a whole number above 0".to_owned())
}

/// A whole number.
pub fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "give a whole number, 0 or more".to_owned())
}

/// A time with its unit.
pub fn time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| "give a number with its unit, such as 500ms, 60s or 10m".to_owned())
}

/// The same, within bounds that are called `words`.
pub fn time_within(text: &str, may_be: RangeInclusive<Duration>, words: &str) -> Result<Duration, String> {
    let time = time(text)?;
    if may_be.contains(&time) { Ok(time) } else { Err(format!("give from {words}")) }
}

/// Where to listen.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let wrong = "give an address and a port up to 65535, such as 127.0.0.1:9669 or [::1]:9669";
    text.parse().map_err(|_| wrong.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_values_are_answered_with_right_ones() {
        assert_eq!(pid("4242"), Ok(4242));
        for wrong in ["notapid", "0", "-5", "99999999999", ""] {
            assert!(pid(wrong).unwrap_err().contains("such as 4242"), "{wrong}");
        }
        assert_eq!((count("3"), whole("0")), (Ok(3), Ok(0)));
        assert!(count("0").is_err() && count("x").is_err() && whole("-1").is_err());
        assert!(address("1.2.3.4:70000").unwrap_err().contains("65535"));
        assert!(address("[::1]:9669").is_ok());
        assert!(time("soon").unwrap_err().contains("60s"));
        let (ms, s) = (Duration::from_millis(10), Duration::from_secs(10));
        assert_eq!(time_within("1s", ms..=s, "10ms to 10s"), Ok(Duration::from_secs(1)));
        assert_eq!(time_within("1ms", ms..=s, "10ms to 10s").unwrap_err(), "give from 10ms to 10s");
    }
}
