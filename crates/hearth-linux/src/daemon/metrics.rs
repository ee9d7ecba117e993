//! The Prometheus endpoint: metrics over HTTP.
//!
//! A client that is slow is let go, and makes nobody wait meanwhile.

use crate::Error;
use crate::door::{Caller, Door, Limits};
use crate::exposition;
use hearth_host::service::Metric;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

const LIMITS: Limits =
    Limits { request: Duration::from_millis(500), answer: Duration::from_millis(500), each_user: 16 };
/// A request is as long as this at most.
const REQUEST_BYTES: usize = 8192;
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Everybody is one user: who comes from where cannot be told for certain.
const CALLER: Caller = Caller { user: 0, process: 0, request_bytes: REQUEST_BYTES };

pub(super) struct Metrics {
    pub(super) door: Door<TcpListener>,
}

impl Metrics {
    pub(super) fn listen(address: SocketAddr) -> Result<Self, Error> {
        let door = TcpListener::bind(address).and_then(|listener| Door::new(listener, LIMITS));
        Ok(Self { door: door.map_err(|source| Error::Listen { address, source })? })
    }

    /// Hears and answers the clients that are there, without waiting for any.
    pub(super) fn answer(&mut self, metrics: impl Fn() -> Vec<Metric>) {
        self.door.open(|_| Some(CALLER));
        self.door.turn(
            |request| request.windows(4).any(|end| end == b"\r\n\r\n"),
            |_, request| respond(request, &metrics).into_bytes(),
        );
    }
}

fn respond(request: &[u8], metrics: impl Fn() -> Vec<Metric>) -> String {
    let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (code, kind, body) = match (words.next(), words.next()) {
        (Some("GET"), Some(target)) => match target.split('?').next() {
            Some("/metrics") => ("200 OK", CONTENT_TYPE, exposition::text(metrics())),
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

#[cfg(test)]
mod tests {
    use super::*;
    use hearth_host::service::Number;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Instant;

    fn metrics() -> Vec<Metric> {
        let labels = vec![("version", "1.2.3".to_owned()), ("policy", "fa\"ir".to_owned())];
        vec![
            Metric { values: vec![(labels, Number::Whole(1))], ..Metric::gauge("build_info", "Always 1", 1) },
            Metric::counters("dispatches", "Looks", "source", [("own_queue", 4), ("none", 14)]),
            Metric::counter("preemptions", "Tasks", 12),
            Metric::gauge("cpus", "CPUs", 2),
            Metric::seconds("moving", "Time", 0.0),
            Metric::ratio("local", "Share", 0.5),
        ]
    }

    fn get(request: &str) -> String {
        respond(request.as_bytes(), metrics)
    }

    #[test]
    fn metrics_are_in_the_exposition_format() {
        let text = get("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        for line in [
            "HTTP/1.1 200 OK",
            "hearth_build_info{version=\"1.2.3\",policy=\"fa\\\"ir\"} 1",
            "# TYPE hearth_dispatches counter",
            "hearth_dispatches_total{source=\"own_queue\"} 4",
            "hearth_dispatches_total{source=\"none\"} 14",
            "hearth_preemptions_total 12",
            "hearth_cpus 2",
            "# UNIT hearth_moving_seconds seconds",
            "hearth_moving_seconds_total 0.0",
            "hearth_local_ratios 0.5",
            "# EOF",
        ] {
            assert!(text.lines().any(|other| other.trim_end() == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn what_is_no_request_for_metrics_is_refused() {
        assert!(get("GET / HTTP/1.1\r\n\r\n").contains("404 Not Found"));
        assert!(get("POST /metrics HTTP/1.1\r\n\r\n").contains("405"));
        assert!(get("").contains("405"));
        assert!(get("GET /metrics?x=1 HTTP/1.0\r\n\r\n").contains("200 OK"));
        assert!(respond(&[0xff; 100], metrics).contains("405"));
    }

    #[test]
    fn a_client_gets_metrics_and_a_silent_one_does_not_hold_the_daemon() {
        let mut endpoint = Metrics::listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = endpoint.door.listener.local_addr().unwrap();
        let _silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        client.set_nonblocking(true).unwrap();
        let (mut text, begin) = (Vec::new(), Instant::now());
        // What did not come yet would block.
        while client.read_to_end(&mut text).is_err() && begin.elapsed() < Duration::from_secs(10) {
            endpoint.answer(metrics);
        }
        assert!(text.ends_with(b"# EOF\n"), "{}", String::from_utf8_lossy(&text));
        assert!(matches!(Metrics::listen(address), Err(Error::Listen { .. })));
    }
}
