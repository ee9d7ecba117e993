//! The Prometheus endpoint: the daemon's status as metrics, over HTTP.
//!
//! Metrics are sums over all CPUs: a label for each CPU would make thousands of series of a large
//! machine. One client is served at a time, and one that is slow is let go.

use super::control::Status;
use crate::pages::{PagesStatus, Reason};
use crate::{CpuStats, Error};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

const CLIENT_TIMEOUT: Duration = Duration::from_millis(500);
/// A request is as long as this at most.
const REQUEST_BYTES: usize = 8192;
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) struct Metrics(TcpListener);

impl Metrics {
    pub(super) fn listen(address: SocketAddr) -> Result<Self, Error> {
        let listener = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        listener.map(Self).map_err(|source| Error::Listen { address, source })
    }

    /// Answers one client that has come.
    pub(super) fn answer(&self, status: impl Fn() -> Status) {
        if let Ok((client, _)) = self.0.accept() {
            // A client that goes away or does not read is its own loss.
            let _ = answer(client, status);
        }
    }
}

impl AsFd for Metrics {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn answer(mut client: TcpStream, status: impl Fn() -> Status) -> std::io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_read_timeout(Some(CLIENT_TIMEOUT))?;
    client.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while request.len() < REQUEST_BYTES && !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match client.read(&mut part)? {
            0 => break,
            count => request.extend_from_slice(&part[..count]),
        }
    }
    client.write_all(respond(&request, status).as_bytes())
}

fn respond(request: &[u8], status: impl Fn() -> Status) -> String {
    let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (code, kind, body) = match (words.next(), words.next()) {
        (Some("GET"), Some(target)) => match target.split('?').next() {
            Some("/metrics") => ("200 OK", CONTENT_TYPE, text_of(status())),
            _ => ("404 Not Found", "text/plain", "metrics are at /metrics\n".into()),
        },
        (Some("HEAD"), Some(_)) => ("200 OK", CONTENT_TYPE, String::new()),
        _ => ("405 Method Not Allowed", "text/plain", "only GET\n".into()),
    };
    format!(
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// The status in the exposition format.
fn text_of(status: Status) -> String {
    let mut registry = Registry::with_prefix("hearth");
    let info = Family::<Vec<(String, String)>, Gauge>::default();
    info.get_or_create(&vec![
        ("version".into(), status.version.clone()),
        ("policy".into(), status.policy.clone().unwrap_or_else(|| "none".into())),
    ])
    .set(1);
    registry.register("build_info", "Always 1: the version, and the policy in force", info);
    registry.register_collector(Box::new(Counts(status)));
    let mut text = String::new();
    // Writing into a string does not fail.
    let _ = text::encode(&mut text, &registry);
    text
}

struct Counts(Status);

impl fmt::Debug for Counts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Counts")
    }
}

impl Collector for Counts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let status = &self.0;
        let sum = |field: fn(&CpuStats) -> u64| status.cpus.iter().map(|cpu| field(&cpu.stats)).sum::<u64>();
        let mut dispatches = encoder.encode_descriptor(
            "dispatches",
            "Looks of a CPU for its next task, by where that came from",
            None,
            MetricType::Counter,
        )?;
        for (source, count) in [
            ("kept", sum(|cpu| cpu.kept)),
            ("own_queue", sum(|cpu| cpu.own)),
            ("cache_domain", sum(|cpu| cpu.domain)),
            ("other_domain", sum(|cpu| cpu.foreign)),
            ("none", sum(|cpu| cpu.idle)),
        ] {
            ConstCounter::new(count).encode(dispatches.encode_family(&[("source", source)])?)?;
        }
        for (name, help, count) in [
            ("idle_placements", "Tasks that woke up and were placed on an idle CPU", sum(|cpu| cpu.direct)),
            ("preemptions", "Tasks that woke up and preempted another", sum(|cpu| cpu.preempted)),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(count).encode(metric)?;
        }
        if let Some(pages) = &status.pages {
            encode_pages(pages, &mut encoder)?;
        }
        let up = encoder.encode_descriptor(
            "uptime",
            "Time since Hearth began, or loaded the scheduler again",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        ConstGauge::new(status.up_s).encode(up)?;
        let cpus = encoder.encode_descriptor("cpus", "CPUs that are scheduled", None, MetricType::Gauge)?;
        ConstGauge::new(status.cpus.len() as i64).encode(cpus)
    }
}

/// Pages that follow their processes.
fn encode_pages(pages: &PagesStatus, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let counter = MetricType::Counter;
    for (name, help, count) in [
        ("pages_moved", "Base pages that were moved to where their process runs", pages.tally.moved_pages),
        ("pages_moved_bytes", "Their bytes", pages.tally.moved_bytes),
        ("pages_freezes", "How often a page was frozen", pages.freezes),
    ] {
        ConstCounter::new(count).encode(encoder.encode_descriptor(name, help, None, counter)?)?;
    }
    for (name, help, time) in [
        ("pages_moving", "Time that moving took within the kernel", pages.moving_s),
        ("pages_cpu", "CPU time of the thread that follows processes, moving included", pages.cpu_s),
    ] {
        let metric = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), counter)?;
        ConstCounter::new(time).encode(metric)?;
    }
    let mut failed =
        encoder.encode_descriptor("pages_failed", "Base pages that could not be moved", None, counter)?;
    for reason in Reason::ALL {
        let count = pages.tally.failed_pages.get(&reason).copied().unwrap_or(0);
        ConstCounter::new(count).encode(failed.encode_family(&[("reason", reason.label())])?)?;
    }
    let mut stayed = encoder.encode_descriptor(
        "pages_stayed",
        "How often a page in use elsewhere stayed",
        None,
        counter,
    )?;
    for (reason, count) in
        [("frozen", pages.stayed_frozen), ("cost", pages.stayed_cost), ("quota", pages.stayed_quota)]
    {
        ConstCounter::new(count).encode(stayed.encode_family(&[("reason", reason)])?)?;
    }
    for (name, help, count) in [
        ("pages_frozen", "Base pages that may not move for now", pages.frozen_pages),
        ("pages_processes", "Processes that ran of late", pages.processes),
        ("pages_sampled_processes", "Processes whose accesses are sampled", pages.sampled),
    ] {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(count.min(i64::MAX as u64) as i64).encode(metric)?;
    }
    if let Some(share) = pages.local_share {
        let help = "Of the memory that may be moved, the part on the node where its process runs";
        let metric =
            encoder.encode_descriptor("pages_local", help, Some(&Unit::Ratios), MetricType::Gauge)?;
        ConstGauge::new(share).encode(metric)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::control::CpuStatus;
    use super::*;

    fn status() -> Status {
        let stats =
            CpuStats { kept: 1, own: 2, domain: 3, foreign: 4, direct: 5, preempted: 6, idle: 7, pad: 0 };
        Status {
            schema: 1,
            version: "1.2.3".into(),
            pid: 1,
            policy: Some("fa\"ir".into()),
            only: None,
            pages: None,
            up_s: 1.5,
            cpus: vec![CpuStatus { cpu: 0, stats }, CpuStatus { cpu: 4, stats }],
        }
    }

    fn get(request: &str) -> String {
        respond(request.as_bytes(), status)
    }

    #[test]
    fn metrics_are_sums_in_the_exposition_format() {
        let text = get("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        for line in [
            "HTTP/1.1 200 OK\r",
            "hearth_build_info{version=\"1.2.3\",policy=\"fa\\\"ir\"} 1",
            "# TYPE hearth_dispatches counter",
            "hearth_dispatches_total{source=\"own_queue\"} 4",
            "hearth_dispatches_total{source=\"none\"} 14",
            "hearth_idle_placements_total 10",
            "hearth_preemptions_total 12",
            "# UNIT hearth_uptime_seconds seconds",
            "hearth_uptime_seconds 1.5",
            "hearth_cpus 2",
            "# EOF",
        ] {
            assert!(
                text.lines().any(|other| other == line || other.trim_end() == line.trim_end()),
                "{line} in\n{text}"
            );
        }
    }

    #[test]
    fn pages_that_follow_their_processes_are_counted() {
        let mut pages = PagesStatus::of_none();
        pages.tally.moved_pages = 3;
        pages.tally.failed_pages.insert(Reason::NoMemory, 4);
        (pages.stayed_quota, pages.frozen_pages, pages.local_share) = (5, 6, Some(0.5));
        let text = text_of(Status { pages: Some(pages), policy: None, ..status() });
        for line in [
            "hearth_build_info{version=\"1.2.3\",policy=\"none\"} 1",
            "hearth_pages_moved_total 3",
            "hearth_pages_failed_total{reason=\"no_memory\"} 4",
            "hearth_pages_failed_total{reason=\"busy\"} 0",
            "hearth_pages_stayed_total{reason=\"quota\"} 5",
            "hearth_pages_frozen 6",
            "hearth_pages_local_ratios 0.5",
            "hearth_pages_moving_seconds_total 0.0",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
        }
        assert!(!text_of(status()).contains("pages_moved"));
    }

    #[test]
    fn what_is_no_request_for_metrics_is_refused() {
        assert!(get("GET / HTTP/1.1\r\n\r\n").contains("404 Not Found"));
        assert!(get("POST /metrics HTTP/1.1\r\n\r\n").contains("405"));
        assert!(get("").contains("405"));
        assert!(get("GET /metrics?x=1 HTTP/1.0\r\n\r\n").contains("200 OK"));
        assert!(respond(&[0xff; 100], status).contains("405"));
    }

    #[test]
    fn a_client_gets_metrics_and_a_silent_one_does_not_hold_the_daemon() {
        let metrics = Metrics::listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = metrics.0.local_addr().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        metrics.answer(status);
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("# EOF\n"), "{text}");

        let _silent = TcpStream::connect(address).unwrap();
        metrics.answer(status);
        assert!(matches!(Metrics::listen(address), Err(Error::Listen { .. })));
    }
}
