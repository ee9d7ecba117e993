//! Metrics as text: the OpenMetrics exposition format, which Prometheus reads.

use hearth_host::service::{self, Metric, Number};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{self, DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

/// Metrics in the exposition format.
pub fn text(metrics: Vec<Metric>) -> String {
    let mut registry = Registry::with_prefix("hearth");
    registry.register_collector(Box::new(Told(metrics)));
    let mut text = String::new();
    // Writing into a string does not fail.
    let _ = encoding::text::encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Told(Vec<Metric>);

impl Collector for Told {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.iter().try_for_each(|metric| encode(metric, &mut encoder))
    }
}

fn encode(metric: &Metric, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let kind = if metric.is_counter { MetricType::Counter } else { MetricType::Gauge };
    let unit = metric.unit.map(|unit| match unit {
        service::Unit::Seconds => Unit::Seconds,
        service::Unit::Ratios => Unit::Ratios,
    });
    let mut descriptor = encoder.encode_descriptor(metric.name, metric.help, unit.as_ref(), kind)?;
    match metric.values.as_slice() {
        [(labels, number)] if labels.is_empty() => encode_number(metric, *number, descriptor),
        values => values.iter().try_for_each(|(labels, number)| {
            encode_number(metric, *number, descriptor.encode_family(labels)?)
        }),
    }
}

fn encode_number(metric: &Metric, number: Number, encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
    match (metric.is_counter, number) {
        (true, Number::Whole(count)) => ConstCounter::new(count).encode(encoder),
        (true, Number::Real(real)) => ConstCounter::new(real).encode(encoder),
        (false, Number::Whole(count)) => ConstGauge::new(count).encode(encoder),
        (false, Number::Real(real)) => ConstGauge::new(real).encode(encoder),
    }
}
