//! Where traces go: the flag, the configuration file, or the environment variables of OpenTelemetry.

use crate::config::Traces;
use crate::http::middleware::percent_decode;
use std::time::Duration;

/// Where spans are exported to, and how.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    /// The address that spans are posted to.
    pub(super) url: String,
    /// Further headers, such as a key. They come from the environment only.
    pub(super) headers: Vec<(String, String)>,
    /// What the spans are of, such as `service.name`.
    pub(super) resource: Vec<(String, String)>,
    pub(super) timeout: Duration,
    /// The share of new traces that is recorded.
    pub(super) sample: f64,
}

impl TraceSettings {
    /// What was asked for: by the flag, else by the configuration, else by the environment. None where nobody did.
    pub fn resolve(
        flag: Option<&str>,
        config: &Traces,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let of_traces = |name: &str| {
            set(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"))
                .or_else(|| set(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        let below = |base: &str| format!("{}/v1/traces", base.trim_end_matches('/'));
        let stated = flag.or(config.endpoint.as_deref()).map(below);
        let is_disabled = set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let in_environment = || {
            let whole = set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
            whole.or_else(|| set("OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| below(&base)))
        };
        let Some(url) = stated.or_else(|| (!is_disabled).then(in_environment).flatten()) else {
            return Ok(None);
        };
        if !matches!(reqwest::Url::parse(&url), Ok(parsed) if ["http", "https"].contains(&parsed.scheme())) {
            return Err("the OTLP endpoint is no http:// or https:// address".to_owned());
        }
        if let Some(protocol) = of_traces("PROTOCOL").filter(|protocol| protocol != "http/protobuf") {
            return Err(format!(
                "OTEL_EXPORTER_OTLP_PROTOCOL is {protocol:?}: traces go out as http/protobuf, mostly on port 4318"
            ));
        }
        let timeout = of_traces("TIMEOUT").and_then(|text| text.trim().parse().ok());
        let ratio = set("OTEL_TRACES_SAMPLER").filter(|name| name.ends_with("traceidratio"));
        let ratio = ratio.and_then(|_| set("OTEL_TRACES_SAMPLER_ARG")?.trim().parse().ok());
        let mut resource = pairs(&set("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_else(String::new));
        if let Some(name) = set("OTEL_SERVICE_NAME") {
            resource.retain(|(key, _)| key != "service.name");
            resource.push(("service.name".to_owned(), name));
        }
        for (key, value) in [("service.name", "plaudit"), ("service.version", env!("CARGO_PKG_VERSION"))] {
            if !resource.iter().any(|(known, _)| known == key) {
                resource.push((key.to_owned(), value.to_owned()));
            }
        }
        Ok(Some(Self {
            url,
            headers: pairs(&of_traces("HEADERS").unwrap_or_else(String::new)),
            resource,
            timeout: Duration::from_millis(timeout.unwrap_or(10_000)),
            sample: config.sample.or(ratio).unwrap_or(1.0).clamp(0.0, 1.0),
        }))
    }
}

/// The pairs of `key=value,key=value`, with values percent-encoded, as OpenTelemetry writes them.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |part: &str| {
        let (key, value) = part.split_once('=')?;
        let value = percent_decode(value.trim()).unwrap_or_else(|| value.trim().to_owned());
        Some((key.trim().to_owned(), value)).filter(|(key, _)| !key.is_empty())
    };
    text.split(',').filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(
        flag: Option<&str>,
        config: &Traces,
        variables: &[(&str, &str)],
    ) -> Result<Option<TraceSettings>, String> {
        let find = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        TraceSettings::resolve(flag, config, &find)
    }

    #[test]
    fn the_flag_goes_before_the_file_and_the_environment() {
        let url = |flag, config: &Traces, variables: &[(&str, &str)]| {
            resolve(flag, config, variables).unwrap().map(|settings| settings.url)
        };
        let file = Traces { endpoint: Some("http://file:4318/".to_owned()), sample: None };
        let base = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://env:4318")];
        let whole = [base[0], ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://env:4318/own")];
        assert_eq!(url(None, &Traces::default(), &[]), None);
        assert_eq!(url(Some("http://flag"), &file, &base).unwrap(), "http://flag/v1/traces");
        assert_eq!(url(None, &file, &base).unwrap(), "http://file:4318/v1/traces");
        assert_eq!(url(None, &Traces::default(), &base).unwrap(), "http://env:4318/v1/traces");
        assert_eq!(url(None, &Traces::default(), &whole).unwrap(), "http://env:4318/own");
        let disabled = [base[0], ("OTEL_SDK_DISABLED", "true")];
        assert_eq!(url(None, &Traces::default(), &disabled), None);
        assert_eq!(url(None, &Traces::default(), &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), None);
    }

    #[test]
    fn headers_resource_and_share_come_from_the_environment() {
        let settings = resolve(
            Some("http://flag"),
            &Traces::default(),
            &[
                ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc, x-team = rl "),
                ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=test"),
                ("OTEL_SERVICE_NAME", "rewards"),
                ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
                ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
                ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "500"),
            ],
        );
        let settings = settings.unwrap().unwrap();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(settings.headers, [pair("authorization", "Bearer abc"), pair("x-team", "rl")]);
        assert!(settings.resource.contains(&pair("service.name", "rewards")));
        assert!(settings.resource.contains(&pair("deployment.environment.name", "test")));
        assert_eq!(settings.resource.len(), 3);
        assert_eq!((settings.sample, settings.timeout), (0.25, Duration::from_millis(500)));
        let stated = Traces { endpoint: None, sample: Some(0.5) };
        let settings = resolve(Some("http://flag"), &stated, &[]).unwrap().unwrap();
        assert_eq!((settings.sample, settings.timeout), (0.5, Duration::from_secs(10)));
    }

    #[test]
    fn other_protocols_and_no_addresses_are_refused() {
        for flag in ["collector:4317", "grpc://collector:4317", "", "/v1/traces"] {
            assert!(resolve(Some(flag), &Traces::default(), &[]).is_err(), "{flag}");
        }
        let grpc = [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
        assert!(
            resolve(Some("http://flag"), &Traces::default(), &grpc).unwrap_err().contains("http/protobuf")
        );
        assert!(resolve(None, &Traces::default(), &grpc).unwrap().is_none());
    }
}
