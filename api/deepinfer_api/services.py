"""What the routes share: settings, metrics, limits, and the model once it is loaded."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from deepinfer_api.admission import Admission, Uploads
from deepinfer_api.backends.base import BackendLoad, GenerationBackend
from deepinfer_api.codec import Codec
from deepinfer_api.errors import ApiError, unavailable
from deepinfer_api.logs import ActivityLog
from deepinfer_api.schemas.validation import show
from deepinfer_api.settings import ServerSettings
from deepinfer_api.streaming import RunningAnswers
from deepinfer_api.telemetry import PrometheusExposition, ServerMetrics


class ServerState(enum.StrEnum):
    """Where the server is in its life."""

    LOADING = "loading"
    READY = "ready"
    DRAINING = "draining"


@dataclass(slots=True, eq=False)
class Model:
    """A loaded model: its backend, its codec, and the id it is served under."""

    backend: GenerationBackend
    codec: Codec
    name: str


@dataclass(slots=True, eq=False)
class Services:
    """One server's shared objects.

    Attributes:
        settings: its options.
        created: seconds since 1970 at start, shown as the model's creation time.
        state: loading until `attach`, draining once `drain` was called.
    """

    settings: ServerSettings
    created: int
    metrics: ServerMetrics = field(default_factory=ServerMetrics)
    state: ServerState = ServerState.LOADING
    uploads: Uploads = field(default_factory=Uploads)
    admission: Admission = field(init=False)
    running: RunningAnswers = field(init=False)
    exposition: PrometheusExposition = field(init=False)
    _model: Model | None = None

    def __post_init__(self) -> None:
        """Build what depends on the settings."""
        self.admission = Admission(self.settings, self.metrics)
        self.running = RunningAnswers(self.settings, ActivityLog(self.metrics, self.load).tick)
        self.exposition = PrometheusExposition(self.metrics)

    def attach(self, backend: GenerationBackend, codec: Codec, *, default_name: str = "model") -> None:
        """The model is loaded: serve it, under `default_name` unless the settings name it."""
        self._model = Model(backend, codec, self.settings.model_name or default_name)
        backend.add_step_listener(self.metrics.on_step)
        self.exposition.attach(backend, self._model.name)
        if self.state is ServerState.LOADING:
            self.state = ServerState.READY

    def drain(self) -> None:
        """Take no new work; what runs goes on."""
        self.state = ServerState.DRAINING
        self.uploads.end()

    @property
    def is_dead(self) -> bool:
        """Whether the backend has failed for good."""
        return self._model is not None and self._model.backend.is_dead

    @property
    def is_stuck(self) -> bool:
        """Whether a step of the backend takes so long that something must hang."""
        if self._model is None:
            return False
        return self._model.backend.current_step_seconds > self.settings.step_timeout_seconds

    def load(self) -> BackendLoad:
        """How many requests run and wait in the engine; nothing while it loads."""
        return self._model.backend.load() if self._model is not None else BackendLoad(0, 0)

    def loaded_model(self) -> Model:
        """The model, whatever the state.

        Raises:
            ApiError: 503 while it loads.
        """
        if self._model is None:
            raise unavailable("the model is still loading", "loading")
        return self._model

    def ready_model(self) -> Model:
        """The model, for new work.

        Raises:
            ApiError: 503 while loading, draining, or after a failure of the engine.
        """
        if self.state is ServerState.DRAINING:
            raise unavailable("the server is shutting down and takes no new requests", "draining", 5)
        model = self.loaded_model()
        if model.backend.is_dead:
            raise unavailable("the engine has stopped after an internal error; restart the server", "engine_dead", 30)
        return model

    def check_model_name(self, name: str | None) -> None:
        """Accept the served name, an alias, or none.

        Raises:
            ApiError: 404 that lists the names.
        """
        names = (self.loaded_model().name, *self.settings.model_aliases)
        if name is not None and name not in names:
            raise ApiError(
                404,
                f"the model {show(name)} is not served here; this server has {', '.join(names)}",
                param="model",
                code="model_not_found",
            )
