//! Download of external images: the only module that opens a connection.

use std::fmt;
use std::io::Read;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, config::Config};

use crate::error::{Error, ImageErrorKind, Result};
use crate::image::destination::is_public_address;
use crate::image::quota::ImageLimits;
use crate::image::refusal;
use crate::image::resolver::ImageFetcher;
use crate::image::source::{check_url, too_large};

/// Time for one image, redirects and body included.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Part of it within which a connection has to stand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Redirects that are followed.
const MAX_REDIRECTS: u32 = 5;

/// Decides from the host of a URL and one address of it whether to connect there.
pub type DestinationFilter = Arc<dyn Fn(&str, IpAddr) -> bool + Send + Sync>;

/// Downloads images over http and https.
///
/// It connects to public addresses only ([`is_public_address`]), unless another filter is set.
/// The filter sees each address that a host name resolves to, for the URL and for every redirect
/// target, and only addresses it allows are connected to. No proxy is used.
#[derive(Clone)]
pub struct HttpImageFetcher {
    max_bytes: u64,
    timeout: Duration,
    filter: DestinationFilter,
}

impl Default for HttpImageFetcher {
    fn default() -> Self {
        Self::with_max_bytes(ImageLimits::default().max_image_bytes)
    }
}

impl fmt::Debug for HttpImageFetcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpImageFetcher")
            .field("max_bytes", &self.max_bytes)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl HttpImageFetcher {
    /// A fetcher that takes at most `max_bytes` of an image.
    #[must_use]
    pub fn with_max_bytes(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            timeout: TIMEOUT,
            filter: Arc::new(|_host, address| is_public_address(address)),
        }
    }

    /// The same fetcher with another destination filter.
    #[must_use]
    pub fn with_destination_filter(mut self, filter: DestinationFilter) -> Self {
        self.filter = filter;
        self
    }

    /// The same fetcher with another limit on the time of one image.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn agent(&self) -> Agent {
        let config = Config::builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(MAX_REDIRECTS)
            .max_redirects_will_error(true)
            .max_idle_connections(0)
            .timeout_global(Some(self.timeout))
            .timeout_connect(Some(self.timeout.min(CONNECT_TIMEOUT)))
            .user_agent(concat!("recipe-rs/", env!("CARGO_PKG_VERSION")))
            .accept("image/webp, image/png, image/jpeg, image/gif")
            .build();
        let resolver = FilteredResolver {
            resolver: DefaultResolver::default(),
            filter: self.filter.clone(),
        };
        Agent::with_parts(config, DefaultConnector::default(), resolver)
    }
}

impl ImageFetcher for HttpImageFetcher {
    fn fetch(&self, url: &str) -> Result<Vec<u8>> {
        check_url(url, &ImageLimits::default())?;
        let uri: Uri = escaped(url).parse().map_err(|_| {
            let message = "the image URL cannot be read; escape special characters in it";
            refusal(ImageErrorKind::InvalidUrl, message)
        })?;
        let host = host_of(&uri).to_owned();
        let mut response = self
            .agent()
            .get(uri)
            .call()
            .map_err(|error| failure(&host, error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(Error::Image {
                kind: ImageErrorKind::FetchStatus,
                message: format!("{host} answered the image request with status {status}"),
                is_retryable: status.is_server_error(),
            });
        }
        let body = response.body_mut();
        if body
            .content_length()
            .is_some_and(|length| length > self.max_bytes)
        {
            return Err(too_large(self.max_bytes));
        }
        let mut data = Vec::new();
        body.as_reader()
            .take(self.max_bytes.saturating_add(1))
            .read_to_end(&mut data)
            .map_err(|error| retryable(format!("the image of {host} broke off: {error}")))?;
        if data.len() as u64 > self.max_bytes {
            return Err(too_large(self.max_bytes));
        }
        Ok(data)
    }
}

/// Resolves hosts to those of their addresses that the filter allows.
struct FilteredResolver {
    resolver: DefaultResolver,
    filter: DestinationFilter,
}

impl fmt::Debug for FilteredResolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FilteredResolver")
    }
}

impl Resolver for FilteredResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> std::result::Result<ResolvedSocketAddrs, ureq::Error> {
        let host = host_of(uri);
        let mut allowed = self.empty();
        for address in &self.resolver.resolve(uri, config, timeout)? {
            if (self.filter)(host, address.ip()) {
                allowed.push(*address);
            }
        }
        if allowed.is_empty() {
            let host = host.to_owned();
            return Err(ureq::Error::Other(Box::new(DestinationRejected { host })));
        }
        Ok(allowed)
    }
}

/// No address of a host is allowed.
#[derive(Debug, thiserror::Error)]
#[error("connecting to {host} is not allowed; send the image as a data URL")]
struct DestinationRejected {
    host: String,
}

fn host_of(uri: &Uri) -> &str {
    uri.host().unwrap_or("").trim_matches(['[', ']'])
}

/// The URL with those characters percent-encoded that browsers encode too, its fragment cut off.
fn escaped(url: &str) -> String {
    let hex = |digit: u8| char::from(b"0123456789ABCDEF"[usize::from(digit)]);
    let mut result = String::with_capacity(url.len());
    for byte in url.split('#').next().unwrap_or("").trim().bytes() {
        match byte {
            0..=b' ' | 0x7f.. | b'"' | b'<' | b'>' | b'`' | b'{' | b'}' | b'|' | b'\\' | b'^' => {
                result.extend(['%', hex(byte >> 4), hex(byte & 15)]);
            }
            _ => result.push(char::from(byte)),
        }
    }
    result
}

fn failure(host: &str, error: ureq::Error) -> Error {
    match error {
        ureq::Error::Other(source) if source.is::<DestinationRejected>() => {
            refusal(ImageErrorKind::DestinationRejected, source.to_string())
        }
        error => retryable(format!("the image cannot be fetched from {host}: {error}")),
    }
}

fn retryable(message: String) -> Error {
    Error::Image {
        kind: ImageErrorKind::Fetch,
        message,
        is_retryable: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_a_uri_cannot_hold() {
        assert_eq!(escaped("http://a/b c/é?x=1#f"), "http://a/b%20c/%C3%A9?x=1");
    }

    #[test]
    fn a_server_that_never_answers_is_given_up() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", server.local_addr().unwrap());
        let fetcher = HttpImageFetcher::default()
            .with_destination_filter(Arc::new(|_, _| true))
            .with_timeout(Duration::from_millis(200));
        let error = fetcher.fetch(&url).unwrap_err();
        let kind = ImageErrorKind::Fetch;
        assert!(
            matches!(&error, Error::Image { kind: found, is_retryable: true, .. } if *found == kind),
            "{error:?}"
        );
    }

    #[test]
    fn local_addresses_are_refused_by_default() {
        for url in [
            "http://127.0.0.1:9/x",
            "http://localhost:9/x",
            "http://[::1]:9/x",
            "http://[::ffff:127.0.0.1]:9/x",
            "http://169.254.169.254/latest",
            "http://2130706433/x",
            "http://0x7f.1/x",
        ] {
            let error = HttpImageFetcher::default().fetch(url).unwrap_err();
            let Error::Image { kind, .. } = &error else {
                panic!("{error:?}")
            };
            assert_eq!(*kind, ImageErrorKind::DestinationRejected, "{url}: {error}");
        }
    }
}
