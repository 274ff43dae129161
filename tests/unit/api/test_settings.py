"""ServerSettings: ranges, environment, and that keys stay out of logs."""

import pytest

from deepinfer.errors import ConfigError
from deepinfer_api.settings import ServerSettings


def test_environment_fills_what_is_not_given():
    environ = {
        "DEEPINFER_API_KEYS": "one, two,",
        "DEEPINFER_CORS_ORIGINS": "https://a.example",
        "DEEPINFER_MAX_BODY_BYTES": "1000",
        "DEEPINFER_KEEP_ALIVE_SECONDS": "0.5",
    }
    settings = ServerSettings.from_env(environ, max_body_bytes=2000)
    assert settings.api_keys == ("one", "two")
    assert settings.cors_origins == ("https://a.example",)
    assert settings.max_body_bytes == 2000
    assert settings.keep_alive_seconds == 0.5


def test_no_environment_is_the_defaults():
    assert ServerSettings.from_env({}) == ServerSettings()


def test_bad_variable_is_named():
    with pytest.raises(ConfigError, match="DEEPINFER_MAX_BODY_BYTES must be a number, but is 'much'"):
        ServerSettings.from_env({"DEEPINFER_MAX_BODY_BYTES": "much"})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_body_bytes", 0),
        ("max_concurrent_requests", -1),
        ("max_queued_tokens", 0),
        ("keep_alive_seconds", 0.0),
        ("send_timeout_seconds", 0.0),
        ("request_timeout_seconds", 0.0),
        ("drain_timeout_seconds", -1.0),
    ],
)
def test_values_out_of_range_are_refused_by_name(field, value):
    with pytest.raises(ConfigError, match=field):
        ServerSettings(**{field: value})


@pytest.mark.parametrize("key", ["", " a", "b ", "schlüssel"])
def test_unusable_keys_are_refused(key):
    with pytest.raises(ConfigError, match="API key"):
        ServerSettings(api_keys=(key,))


@pytest.mark.parametrize("names", [{"model_name": ""}, {"model_aliases": ("a", "")}])
def test_empty_model_names_are_refused(names):
    with pytest.raises(ConfigError, match="model name"):
        ServerSettings(**names)


def test_keys_are_not_in_the_representation():
    assert "secret" not in repr(ServerSettings(api_keys=("secret-key",)))
