//! The Prometheus endpoint: the daemon's status as metrics, over HTTP.
//!
//! Metrics are sums over all CPUs: a label for each CPU would make thousands of series of a large
//! machine. One client is served at a time, and one that is slow is let go.

use super::control::Status;
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
        ("policy".into(), status.policy.clone()),
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
        let up = encoder.encode_descriptor(
            "uptime",
            "Time since the scheduler was loaded",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        ConstGauge::new(status.up_s).encode(up)?;
        let cpus = encoder.encode_descriptor("cpus", "CPUs that are scheduled", None, MetricType::Gauge)?;
        ConstGauge::new(status.cpus.len() as i64).encode(cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::super::control::CpuStatus;
    use super::*;

    fn status() -> Status {
        let stats = CpuStats { kept: 1, own: 2, domain: 3, foreign: 4, direct: 5, preempted: 6, idle: 7 };
        Status {
            schema: 1,
            version: "1.2.3".into(),
            pid: 1,
            policy: "fa\"ir".into(),
            only: None,
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
