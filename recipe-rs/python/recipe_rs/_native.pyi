"""The compiled part of `recipe_rs`."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, final

from typing_extensions import disjoint_base

__all__ = [
    "IMAGE_SPECIAL_TOKEN_ID",
    "SYSTEM_PLACEHOLDER",
    "AssistantMessage",
    "BytesImageSource",
    "CalcResizeError",
    "ChatCompletionChunk",
    "ChatCompletionChunkGenerator",
    "ChatCompletionRequest",
    "ChatCompletionResponse",
    "ChatTemplateEncoding",
    "Conversation",
    "ConversationRequest",
    "ConversionError",
    "ConversionOptions",
    "DataUrlImageSource",
    "DeepseekV4Encoding",
    "DeepseekV41Encoding",
    "GrowingPrompt",
    "ImageError",
    "ImageInfo",
    "ImageQuota",
    "ImageResolver",
    "ImageSource",
    "InferenceChunk",
    "InferenceFinishReason",
    "InferenceOptions",
    "LatestReminderMessage",
    "Message",
    "MessagesChunkGenerator",
    "MessagesRequest",
    "MessagesResponse",
    "MessagesStreamEvent",
    "ModelVersion",
    "MultiModalData",
    "OpenCvImagePreprocessor",
    "OutputConstraint",
    "ParsingOptions",
    "PreprocessOptions",
    "PromptUsage",
    "ReasoningContentBehavior",
    "RecipeError",
    "RenderError",
    "RenderedPrompt",
    "ReqwestImageFetcher",
    "ResponsesChunkGenerator",
    "ResponsesEcho",
    "ResponsesRequest",
    "ResponsesResponse",
    "ResponsesStreamEvent",
    "SpecialToken",
    "SpecialTokens",
    "StreamDiagnostics",
    "StreamError",
    "StreamProcessor",
    "SystemMessage",
    "TextDelta",
    "TextStream",
    "ThinkingInitialStage",
    "Tokenizer",
    "TokenizerError",
    "ToolCall",
    "ToolDefinition",
    "ToolMessage",
    "UrlImageSource",
    "UserMessage",
    "WebSearchBehavior",
    "__version__",
]

__version__: str

class RecipeError(Exception):
    """Base of the codec's errors."""

class TokenizerError(RecipeError, ValueError):
    """A vocabulary file or an encode call is at fault; `offset` is where in the input, in bytes."""

    offset: int | None

class RenderError(RecipeError, ValueError):
    """A conversation cannot be rendered; `message_index` is which message is at fault."""

    message_index: int | None

class StreamError(RecipeError, RuntimeError):
    """An output stream was used after its end, or its input is inconsistent."""

    state: str | None

class ConversionError(RecipeError, ValueError):
    """A request body is invalid or asks for something unsupported; `param` is the path of the field."""

    status_code: int | None
    body: str | None
    anthropic_body: str | None
    param: str | None
    code: str | None
    message: str | None

@final
class Tokenizer:
    """Text to token ids and back."""

    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> Tokenizer:
        """Read a Hugging Face `tokenizer.json`; raises TokenizerError when it is none or not supported."""

    @staticmethod
    def from_str(json: str) -> Tokenizer:
        """Build a tokenizer from the text of a Hugging Face `tokenizer.json`."""

    @staticmethod
    def from_gguf_vocabulary(
        *,
        model: str,
        pre: str,
        tokens: Sequence[str],
        merges: Sequence[str],
        scores: Sequence[float] | None,
        token_types: Sequence[int],
        add_space_prefix: bool = False,
    ) -> Tokenizer:
        """Build a tokenizer from the `tokenizer.ggml.*` keys of a GGUF file."""

    @staticmethod
    def from_pretrained(identifier: str, revision: str | None = None, token: str | None = None) -> Tokenizer:
        """Read the `tokenizer.json` of a model repository, through the package huggingface_hub and its cache."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`; spellings of added tokens are those tokens."""

    def encode_plain(self, text: str, *, num_threads: int | None = None) -> bytes:
        """Return the ids of `text` as native u32; spellings of added tokens are plain text."""

    def encode_ranges(
        self, text: str, special_ranges: Sequence[tuple[int, int]], *, num_threads: int | None = None
    ) -> bytes:
        """Return the ids of `text` as native u32; exactly `special_ranges`, in code points, are added tokens."""

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """Return the text of `ids`; bytes that are no UTF-8 become U+FFFD."""

    def token_bytes(self, id: int) -> bytes:
        """Return the bytes that `id` contributes to a decoded text."""

    def token_to_id(self, token: str) -> int | None:
        """Return the id of the token that the vocabulary file spells `token`."""

    def id_to_token(self, id: int) -> str | None:
        """Return the spelling of `id` in the vocabulary file."""

    @property
    def vocab_size(self) -> int:
        """Number of ids: one more than the largest."""

    @property
    def special_token_ids(self) -> frozenset[int]:
        """Ids of the added tokens that `skip_special_tokens` leaves out."""

    @property
    def added_tokens(self) -> dict[str, int]:
        """Ids of the added tokens by their spelling."""

@final
class GrowingPrompt:
    """A prompt that text is appended to; only its tail is encoded again."""

    def __new__(cls, tokenizer: Tokenizer) -> GrowingPrompt: ...
    def append(self, text: str, special_ranges: Sequence[tuple[int, int]] = ...) -> int:
        """Append text, with added tokens at `special_ranges` (code points); return how many ids stayed."""

    def token_ids(self) -> bytes:
        """Return the ids of the text so far as native u32."""

    def __len__(self) -> int: ...

@final
class TextDelta:
    """What a push added to the text."""

    @property
    def text(self) -> str:
        """Text that is certain now: whole characters, nothing that may belong to a stop string."""

    @property
    def stop(self) -> str | None:
        """The stop string that ended the text."""

    @property
    def num_tokens(self) -> int:
        """Tokens taken so far; after a stop, up to and including the token that completed it."""

    @property
    def num_released_tokens(self) -> int:
        """Tokens whose text has been returned completely so far."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class TextStream:
    """Incremental decoder of one request, up to a stop string."""

    def __new__(
        cls,
        tokenizer: Tokenizer,
        *,
        stop: Sequence[str] = ...,
        skip_special_tokens: bool = True,
        include_stop_str_in_output: bool = False,
    ) -> TextStream: ...
    def push(self, token_ids: Sequence[int]) -> TextDelta:
        """Add token ids; those behind the one that completes a stop string are not looked at."""

    def finish(self) -> TextDelta:
        """End the text and return what was held back."""

@final
class ChatTemplateEncoding:
    """The prompt encoding of a model that brings its own chat template."""

    def __new__(
        cls, template: str, tokenizer: Tokenizer, *, bos_token: str = "", eos_token: str = ""
    ) -> ChatTemplateEncoding: ...
    def render(
        self,
        messages_json: str,
        *,
        tools_json: str | None = None,
        kwargs_json: str | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
    ) -> RenderedPrompt:
        """Render a conversation; messages, tools and further variables of the template are JSON texts."""

    def encode(self, rendered: RenderedPrompt) -> bytes:
        """Return the ids of a rendered prompt as native u32."""

@final
class RenderedPrompt:
    """A prompt, the places of its special tokens, and its images."""

    @property
    def prompt(self) -> str:
        """The text."""

    @property
    def special_ranges(self) -> list[tuple[int, int]]:
        """Ranges of `prompt`, in code points, that are special tokens; everything else is plain text."""

    @property
    def image_sources(self) -> list[Any]:
        """The images in the order of their placeholders."""

@final
class PromptUsage:
    """Token counts of the prompt, from the backend."""

    def __new__(cls, *, prompt_tokens: int = 0, prompt_cache_hit_tokens: int = 0) -> PromptUsage: ...
    @property
    def prompt_tokens(self) -> int: ...
    @property
    def prompt_cache_hit_tokens(self) -> int: ...

@final
class InferenceFinishReason:
    """Why the backend stopped."""

    Stop: InferenceFinishReason
    Length: InferenceFinishReason
    ContentFilter: InferenceFinishReason

@final
class InferenceChunk:
    """One update from the backend."""

    @staticmethod
    def ready(*, prompt_usage: PromptUsage | None = None, system_fingerprint: str | None = None) -> InferenceChunk:
        """The prompt was accepted."""

    @staticmethod
    def text(content: str, token_count: int = 0) -> InferenceChunk:
        """More output as text that stands for `token_count` tokens."""

    @staticmethod
    def tokens(
        token_ids: Sequence[int], logprobs: Sequence[tuple[float, Sequence[tuple[int, float]]]] | None = None
    ) -> InferenceChunk:
        """More output as ids; `logprobs` has one `(logprob, [(id, logprob), ...])` pair per id."""

    @staticmethod
    def finish(finish_reason: InferenceFinishReason) -> InferenceChunk:
        """The output is complete."""

    @property
    def kind(self) -> str: ...
    @property
    def content(self) -> str | None: ...
    @property
    def token_ids(self) -> list[int] | None: ...
    @property
    def token_count(self) -> int | None: ...
    @property
    def finish_reason(self) -> InferenceFinishReason | None: ...
    @property
    def prompt_usage(self) -> PromptUsage | None: ...
    @property
    def system_fingerprint(self) -> str | None: ...

@final
class ThinkingInitialStage:
    """Where parsing begins in thinking mode."""

    ReasoningStart: ThinkingInitialStage
    ReasoningContinuation: ThinkingInitialStage
    ContentContinuation: ThinkingInitialStage

    def starts_in_reasoning(self) -> bool:
        """Return whether parsing begins in reasoning."""

@final
class ParsingOptions:
    """Settings of one output stream.

    `output_format` is dsml, none, think, hermes, llama3 or mistral; `tool_parameters` names the parameters of each
    tool, which decides whether a wrapped object is unwrapped; without `compat`, text leaves as soon as it is certain
    and the fields of the protocols follow the rules instead of the official codec.
    """

    def __new__(
        cls,
        *,
        parse_tool_calls: bool = True,
        starts_in_tool_calls: bool = False,
        parse_json_output: bool = False,
        thinking_initial_stage: ThinkingInitialStage | None = None,
        stop_sequences: Sequence[str] | None = None,
        special_tokens: SpecialTokens | None = None,
        output_format: str = "dsml",
        tool_parameters: dict[str, list[str]] | None = None,
        compat: bool = True,
    ) -> ParsingOptions: ...
    parse_tool_calls: bool
    starts_in_tool_calls: bool
    parse_json_output: bool
    thinking_initial_stage: ThinkingInitialStage | None
    output_format: str
    tool_parameters: dict[str, list[str]]
    compat: bool
    @property
    def stop_sequences(self) -> list[str]: ...
    @stop_sequences.setter
    def stop_sequences(self, value: Sequence[str]) -> None: ...
    @property
    def special_tokens(self) -> SpecialTokens: ...
    @special_tokens.setter
    def special_tokens(self, value: SpecialTokens) -> None: ...

@final
class StreamDiagnostics:
    """What became of the bytes and tokens of a stream.

    Every byte that came in is visible, markup, or dropped.
    """

    @property
    def num_input_bytes(self) -> int: ...
    @property
    def num_visible_bytes(self) -> int: ...
    @property
    def num_markup_bytes(self) -> int: ...
    @property
    def num_dropped_bytes(self) -> int: ...
    @property
    def num_dropped_control_tokens(self) -> int: ...
    @property
    def num_repairs(self) -> int: ...

@final
class StreamProcessor:
    """Reads the output of one request and emits the chunks of a protocol."""

    def __new__(
        cls,
        generator: ChatCompletionChunkGenerator | ResponsesChunkGenerator | MessagesChunkGenerator,
        options: ParsingOptions,
        tokenizer: Tokenizer | None = None,
    ) -> StreamProcessor:
        """Consume the generator; the tokenizer decodes chunks of token ids."""

    @property
    def finished(self) -> bool:
        """Whether processing completed normally and the processor was not closed."""

    @property
    def diagnostics(self) -> StreamDiagnostics:
        """What became of the bytes and tokens so far."""

    def push(
        self, chunk: InferenceChunk
    ) -> list[ChatCompletionChunk] | list[ResponsesStreamEvent] | list[MessagesStreamEvent]:
        """Process one chunk.

        Raises `StreamError`, a `RuntimeError`, after the end or `close`, for ids without a tokenizer, and when the
        number of log probabilities differs from that of the ids.
        """

    def finish(self) -> list[ChatCompletionChunk] | list[ResponsesStreamEvent] | list[MessagesStreamEvent]:
        """Close the input and return what is left; after the end, nothing."""

    def close(self) -> None:
        """Give up the stream."""

@final
class ChatCompletionChunkGenerator:
    """Makes Chat Completions chunks; a stream processor consumes it.

    `usage` says where usage is reported: finish, finish_with_nulls, separate or none.
    """

    def __new__(
        cls,
        id: str,
        model: str,
        thinking_initial_stage: ThinkingInitialStage | None = None,
        *,
        usage: str = "finish",
        choice_index: int = 0,
        created: int | None = None,
        call_id_seed: int | None = None,
    ) -> ChatCompletionChunkGenerator: ...
    def with_call_id_seed(self, seed: int) -> ChatCompletionChunkGenerator:
        """Consume this generator and make one whose call ids depend on the seed only."""

    def with_choice_index(self, index: int) -> ChatCompletionChunkGenerator:
        """Consume this generator and make one for the choice of this index."""

    def with_usage(self, usage: str) -> ChatCompletionChunkGenerator:
        """Consume this generator and make one that reports usage elsewhere."""

@final
class ResponsesChunkGenerator:
    """Makes Responses events; a stream processor consumes it.

    `custom_tools` names the tools whose calls carry raw input; `compat` keeps `phase` and finished arguments as the
    official codec has them.
    """

    def __new__(
        cls,
        id: str,
        model: str,
        thinking_mode: bool = False,
        *,
        custom_tools: set[str] | None = None,
        has_tool_search: bool = False,
        compat: bool = True,
        created: int | None = None,
        call_id_seed: int | None = None,
    ) -> ResponsesChunkGenerator: ...
    def with_namespace_tool_map(self, namespace_tool_map: dict[str, tuple[str, str]]) -> ResponsesChunkGenerator:
        """Consume this generator and make one that splits namespace tool names."""

    def with_echo(self, echo: ResponsesEcho) -> ResponsesChunkGenerator:
        """Consume this generator and make one whose responses report the request settings."""

    def with_call_id_seed(self, seed: int) -> ResponsesChunkGenerator:
        """Consume this generator and make one whose call ids depend on the seed only."""

    def with_compat(self, compat: bool) -> ResponsesChunkGenerator:
        """Consume this generator and make one with or without the official quirks."""

@final
class ResponsesEcho:
    """Request settings that Responses objects report; a server sets those that it decides itself."""

    def __new__(cls) -> ResponsesEcho:
        """The settings of a request that set none."""

    instructions: str | None
    max_output_tokens: int | None
    temperature: float
    top_p: float
    top_logprobs: int
    user: str | None
    reasoning: Any
    text: Any
    tool_choice: Any
    tools: Any
    store: bool
    background: bool
    parallel_tool_calls: bool
    previous_response_id: str | None
    metadata: dict[str, Any]

@final
class MessagesChunkGenerator:
    """Makes Messages events; a stream processor consumes it."""

    def __new__(
        cls, id: str, model: str, thinking_mode: bool, *, call_id_seed: int | None = None
    ) -> MessagesChunkGenerator: ...
    def with_signature(self, signature: str) -> MessagesChunkGenerator:
        """Consume this generator and make one with this signature at the end of thinking blocks."""

    def with_call_id_seed(self, seed: int) -> MessagesChunkGenerator:
        """Consume this generator and make one whose call ids depend on the seed only."""

@final
class ChatCompletionChunk:
    """One chunk of a Chat Completions stream; accumulation consumes it."""

    def to_json(self) -> str:
        """Return the JSON text of this chunk."""

@final
class ResponsesStreamEvent:
    """One event of a Responses stream; accumulation consumes it."""

    def to_json(self) -> str:
        """Return the JSON text of this chunk."""

@final
class MessagesStreamEvent:
    """One event of a Messages stream; accumulation consumes it."""

    def to_json(self) -> str:
        """Return the JSON text of this chunk."""

@final
class ChatCompletionResponse:
    """A Chat Completions response, built from its chunks."""

    def __new__(
        cls, id: str, model: str, created: int, prompt_tokens: int, prompt_cache_hit_tokens: int
    ) -> ChatCompletionResponse: ...
    def accumulate(self, chunk: ChatCompletionChunk) -> None:
        """Consume the chunk and add it to the response."""

    def to_json(self) -> str:
        """Return the JSON text of the response so far."""

    @staticmethod
    def sse_event_name(chunk: ChatCompletionChunk) -> str | None:
        """Return the SSE event name of a chunk, or None for unnamed data."""

    @staticmethod
    def sse_done_data() -> str | None:
        """Return the data of the last SSE message, or None if there is none."""

@final
class ResponsesResponse:
    """A Responses response, built from its events."""

    def __new__(
        cls, id: str, model: str, created: int, prompt_tokens: int, prompt_cache_hit_tokens: int
    ) -> ResponsesResponse: ...
    def accumulate(self, chunk: ResponsesStreamEvent) -> None:
        """Consume the chunk and add it to the response."""

    def to_json(self) -> str:
        """Return the JSON text of the response so far."""

    @staticmethod
    def sse_event_name(chunk: ResponsesStreamEvent) -> str | None:
        """Return the SSE event name of a chunk, or None for unnamed data."""

    @staticmethod
    def sse_done_data() -> str | None:
        """Return the data of the last SSE message, or None if there is none."""

@final
class MessagesResponse:
    """A Messages response, built from its events."""

    def __new__(
        cls, id: str, model: str, created: int, prompt_tokens: int, prompt_cache_hit_tokens: int
    ) -> MessagesResponse: ...
    def accumulate(self, chunk: MessagesStreamEvent) -> None:
        """Consume the chunk and add it to the response."""

    def to_json(self) -> str:
        """Return the JSON text of the response so far."""

    @staticmethod
    def sse_event_name(chunk: MessagesStreamEvent) -> str | None:
        """Return the SSE event name of a chunk, or None for unnamed data."""

    @staticmethod
    def sse_done_data() -> str | None:
        """Return the data of the last SSE message, or None if there is none."""

IMAGE_SPECIAL_TOKEN_ID: int
SYSTEM_PLACEHOLDER: str

@final
class SpecialToken:
    """A kind of special token."""

    Bos: SpecialToken
    Eos: SpecialToken
    ThinkingStart: SpecialToken
    ThinkingEnd: SpecialToken
    System: SpecialToken
    User: SpecialToken
    Assistant: SpecialToken
    LatestReminder: SpecialToken
    Dsml: SpecialToken
    Image: SpecialToken
    Ref: SpecialToken
    RefEnd: SpecialToken
    Box: SpecialToken
    BoxEnd: SpecialToken
    Point: SpecialToken
    PointEnd: SpecialToken
    Polygon: SpecialToken
    PolygonEnd: SpecialToken

    def default_str(self) -> str:
        """Return the spelling of this token in DeepSeek's vocabularies."""

@final
class SpecialTokens:
    """The spelling of each special token."""

    def __new__(
        cls,
        *,
        bos: str | None = None,
        eos: str | None = None,
        thinking_start: str | None = None,
        thinking_end: str | None = None,
        system: str | None = None,
        user: str | None = None,
        assistant: str | None = None,
        latest_reminder: str | None = None,
        dsml: str | None = None,
        image: str | None = None,
        ref: str | None = None,
        ref_end: str | None = None,
        box: str | None = None,
        box_end: str | None = None,
        point: str | None = None,
        point_end: str | None = None,
        polygon: str | None = None,
        polygon_end: str | None = None,
    ) -> SpecialTokens: ...
    def token(self, token: SpecialToken) -> str:
        """Return the spelling of `token`."""

class ImageError(RecipeError, ValueError):
    """An image cannot be fetched, decoded or accepted; `kind` says why, `is_retryable` whether later may do."""

    kind: str | None
    is_retryable: bool | None

class CalcResizeError(RecipeError, ValueError):
    """Fitting the size of an image does not settle."""

@disjoint_base
class ImageSource:
    """One image of a conversation, not yet fetched or decoded."""

    @property
    def kind(self) -> Literal["data_url", "url", "bytes"]:
        """Where the bytes are."""

    @property
    def detail(self) -> Literal["low", "high", "original", "auto"]:
        """How large the image may be kept."""

    @property
    def data_url(self) -> str | None:
        """The data URL, if the source is one."""

    @property
    def url(self) -> str | None:
        """The external URL, if the source is one."""

    @property
    def data(self) -> bytes | None:
        """The encoded file, if the source is one."""

    @property
    def path(self) -> str:
        """Place of the image in the request, for error messages; empty if it came from none."""

@final
class DataUrlImageSource(ImageSource):
    """An image in a `data:` URL, base64 or percent-encoded."""

    def __new__(
        cls, data_url: str, detail: Literal["low", "high", "original", "auto"] = "high", *, path: str = ...
    ) -> DataUrlImageSource: ...

@final
class UrlImageSource(ImageSource):
    """An image at an external URL."""

    def __new__(
        cls, url: str, detail: Literal["low", "high", "original", "auto"] = "high", *, path: str = ...
    ) -> UrlImageSource: ...

@final
class BytesImageSource(ImageSource):
    """An image as the bytes of its file."""

    def __new__(
        cls, data: bytes, detail: Literal["low", "high", "original", "auto"] = "high", *, path: str = ...
    ) -> BytesImageSource: ...

@final
class ImageInfo:
    """A preprocessed image."""

    def __new__(cls, data: bytes, width: int, height: int) -> ImageInfo: ...
    @property
    def data(self) -> bytes:
        """The encoded file; lossless WEBP where the preprocessor made it."""

    @property
    def width(self) -> int:
        """Width in pixels."""

    @property
    def height(self) -> int:
        """Height in pixels."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class MultiModalData:
    """Images in the order of their placeholders in a prompt."""

    def __new__(cls, images: Sequence[ImageInfo] | None = None) -> MultiModalData: ...
    @property
    def images(self) -> list[ImageInfo]:
        """The images."""

    def is_empty(self) -> bool:
        """Return whether there are no images."""

    def image_token_adjustment(self) -> int:
        """Return how many positions the images take beyond one per placeholder; raises CalcResizeError."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class ImageQuota:
    """What the images of one request have taken so far; one quota serves all calls of the request."""

    def __new__(cls) -> ImageQuota: ...
    def image_count(self) -> int:
        """Return the number of images taken so far."""

    def byte_size(self) -> int:
        """Return the bytes of the encoded images taken so far."""

@final
class PreprocessOptions:
    """How one image is preprocessed; sides are in pixels."""

    def __new__(
        cls,
        detail: Literal["low", "high", "original", "auto"],
        max_dimension_px: int,
        low_detail_max_dimension_px: int,
    ) -> PreprocessOptions: ...
    @property
    def detail(self) -> Literal["low", "high", "original", "auto"]:
        """How large the image may be kept."""

    @property
    def max_dimension_px(self) -> int:
        """Longest side that an image file may have."""

    @property
    def low_detail_max_dimension_px(self) -> int:
        """Longest side that is kept with detail `low`."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class ReqwestImageFetcher:
    """Downloads images over http and https, from public addresses only unless another filter is set.

    An image takes at most 30 seconds and 5 redirects, and no proxy is used. The name is the official one; the
    client is ureq.
    """

    def __new__(cls) -> ReqwestImageFetcher: ...
    @staticmethod
    def with_max_bytes(max_bytes: int) -> ReqwestImageFetcher:
        """Return a fetcher that takes at most `max_bytes` of an image."""

    def with_destination_filter(self, destination_filter: Callable[[str, str], bool]) -> ReqwestImageFetcher:
        """Return a fetcher that connects where `destination_filter(host, address)` is True, and nowhere else.

        The filter is asked for each address that a host resolves to, for the URL and for every redirect target. It
        takes the place of the rule that only public addresses are connected to.
        """

    def fetch(self, url: str) -> bytes:
        """Return the body of `url`; raises ImageError."""

@final
class OpenCvImagePreprocessor:
    """Decodes images, resizes them to the model's grid and stores them as lossless WEBP.

    The name is the official one; nothing of OpenCV is in it.
    """

    def __new__(cls) -> OpenCvImagePreprocessor: ...
    def preprocess(self, data: bytes, options: PreprocessOptions) -> ImageInfo:
        """Return the image that the model gets for the bytes of an image file; raises ImageError."""

@final
class ImageResolver:
    """Reads and preprocesses the images of a request, within limits."""

    def __new__(cls, fetcher: ReqwestImageFetcher, preprocessor: OpenCvImagePreprocessor) -> ImageResolver: ...
    def resolve(self, sources: Sequence[ImageSource], quota: ImageQuota) -> MultiModalData:
        """Return the images of `sources` and add them to `quota`; a failed call adds nothing. Raises ImageError."""

@final
class ToolCall:
    """A call of an earlier assistant message."""

    def __new__(cls, id: str, name: str, arguments: str) -> ToolCall: ...
    @property
    def id(self) -> str:
        """What the result refers to."""

    @property
    def name(self) -> str:
        """Name of the tool."""

    @property
    def arguments(self) -> str:
        """Text of a JSON object; other text is rendered as it is."""

@final
class ToolDefinition:
    """A tool that the model may call."""

    def __new__(
        cls,
        name: str,
        description: str | None = None,
        parameters: Any = None,
        strict: bool | None = None,
        defer_loading: bool = False,
    ) -> ToolDefinition: ...
    @property
    def name(self) -> str:
        """Name of the tool."""

    @property
    def description(self) -> str | None:
        """What the tool does."""

    @property
    def parameters(self) -> Any:
        """JSON Schema of the arguments, as it is printed into prompts."""

    @property
    def strict(self) -> bool | None:
        """Whether arguments have to follow the schema; passed through."""

    @property
    def defer_loading(self) -> bool:
        """Whether the tool stays out of the list in the prompt until a search brings it."""

@disjoint_base
class Message:
    """One message; properties that its role lacks are None, False or empty."""

    @property
    def role(self) -> Literal["system", "user", "assistant", "tool", "latest_reminder"]:
        """Who speaks."""

    @property
    def content(self) -> str:
        """The text, with one placeholder for each image."""

    @property
    def reasoning_content(self) -> str | None:
        """What an assistant thought."""

    @property
    def tool_calls(self) -> list[ToolCall] | None:
        """Calls of an assistant."""

    @property
    def tool_call_id(self) -> str | None:
        """The call that a tool message answers."""

    @property
    def image_sources(self) -> list[ImageSource]:
        """The images in the order of their placeholders."""

    @property
    def prefix(self) -> bool:
        """Whether generation continues this assistant message."""

@final
class SystemMessage(Message):
    """Instructions, and tools that become available with them."""

    def __new__(
        cls,
        content: str,
        image_sources: Sequence[ImageSource] | None = None,
        tools: Sequence[ToolDefinition] | None = None,
        *,
        image_token: str | None = None,
    ) -> SystemMessage:
        """The first occurrences of `image_token` in the content, one per image, are the placeholders."""

    @property
    def tools(self) -> list[ToolDefinition] | None:
        """Tools that this message brings."""

@final
class UserMessage(Message):
    """What a user says."""

    def __new__(
        cls, content: str, image_sources: Sequence[ImageSource] | None = None, *, image_token: str | None = None
    ) -> UserMessage:
        """The first occurrences of `image_token` in the content, one per image, are the placeholders."""

@final
class AssistantMessage(Message):
    """What the model said before."""

    def __new__(
        cls,
        content: str,
        reasoning_content: str | None = None,
        tool_calls: Sequence[ToolCall] | None = None,
        prefix: bool = False,
    ) -> AssistantMessage: ...

@final
class ToolMessage(Message):
    """The result of a call."""

    def __new__(
        cls,
        content: str,
        tool_call_id: str | None = None,
        image_sources: Sequence[ImageSource] | None = None,
        *,
        image_token: str | None = None,
    ) -> ToolMessage:
        """The first occurrences of `image_token` in the content, one per image, are the placeholders."""

@final
class LatestReminderMessage(Message):
    """Instructions that hold until the next reminder."""

    def __new__(cls, content: str) -> LatestReminderMessage: ...

@final
class Conversation:
    """Messages and what else shapes the prompt."""

    def __new__(
        cls,
        messages: Sequence[Message] | None = None,
        *,
        thinking_mode: bool = True,
        tools: Sequence[ToolDefinition] | None = None,
        tool_choice: str = "auto",
        reasoning_effort: str | int | None = None,
        response_format: str = "text",
        response_schema: Any | None = None,
        response_regex: str | None = None,
    ) -> Conversation:
        """`tool_choice` is auto, none or required; `reasoning_effort` low, high, xhigh, max or a level from 1 to 100;
        `response_format` text or json_object; a schema or a regular expression takes its place."""

    @property
    def messages(self) -> list[Message]:
        """The messages in order."""

    @property
    def thinking_mode(self) -> bool:
        """Whether the model thinks before it answers."""

    @property
    def tools(self) -> list[ToolDefinition]:
        """Tools of the whole conversation."""

    @property
    def tool_choice(self) -> Literal["auto", "none", "required"]:
        """Whether the model may, must not or must call."""

    @property
    def reasoning_effort(self) -> str | int | None:
        """How much the model thinks, by name or as a level from 1 to 100."""

    @property
    def response_format(self) -> Literal["text", "json_object", "json_schema", "regex"]:
        """What the answer has to look like."""

    @property
    def response_schema(self) -> Any | None:
        """The schema of the answer, if there is one."""

    @property
    def response_regex(self) -> str | None:
        """The regular expression of the answer, if there is one."""

@final
class DeepseekV4Encoding:
    """The prompt encoding of DeepSeek V4."""

    def __new__(cls) -> DeepseekV4Encoding: ...
    def with_tokenizer(self, tokenizer: Tokenizer) -> DeepseekV4Encoding:
        """Return an encoding that turns prompts into ids with `tokenizer`."""

    def with_special_tokens(self, special_tokens: SpecialTokens) -> DeepseekV4Encoding:
        """Return an encoding that renders with other spellings of the special tokens."""

    def with_compat(self, compat: bool) -> DeepseekV4Encoding:
        """Return an encoding that follows the official codec also where that is at fault, or not."""

    def render_conversation(self, conversation: Conversation) -> RenderedPrompt:
        """Render a conversation into prompt text."""

    def encode(self, conversation: Conversation) -> list[int]:
        """Render and encode; raises RuntimeError without a tokenizer or when a special token is not in it."""

    def encode_rendered(self, rendered: RenderedPrompt) -> bytes:
        """Return the ids of a rendered prompt as native u32."""

@final
class DeepseekV41Encoding:
    """The prompt encoding of DeepSeek V4.1."""

    def __new__(cls) -> DeepseekV41Encoding: ...
    def with_tokenizer(self, tokenizer: Tokenizer) -> DeepseekV41Encoding:
        """Return an encoding that turns prompts into ids with `tokenizer`."""

    def with_special_tokens(self, special_tokens: SpecialTokens) -> DeepseekV41Encoding:
        """Return an encoding that renders with other spellings of the special tokens."""

    def with_compat(self, compat: bool) -> DeepseekV41Encoding:
        """Return an encoding that follows the official codec also where that is at fault, or not."""

    def render_conversation(self, conversation: Conversation) -> RenderedPrompt:
        """Render a conversation into prompt text."""

    def encode(self, conversation: Conversation) -> list[int]:
        """Render and encode; raises RuntimeError without a tokenizer or when a special token is not in it."""

    def encode_rendered(self, rendered: RenderedPrompt) -> bytes:
        """Return the ids of a rendered prompt as native u32."""

@final
class ModelVersion:
    """The model family that a request is for; it selects the prompt encoding."""

    DeepseekV4Pro: ModelVersion
    DeepseekV41Flash: ModelVersion
    Generic: ModelVersion

    def __int__(self) -> int: ...

@final
class WebSearchBehavior:
    """What to do with web search tools, choices and blocks."""

    Drop: WebSearchBehavior
    Reject: WebSearchBehavior

    def __int__(self) -> int: ...

@final
class ReasoningContentBehavior:
    """What to do when assistant history lacks its reasoning in thinking mode."""

    FillEmpty: ReasoningContentBehavior
    Reject: ReasoningContentBehavior

    def __int__(self) -> int: ...

@final
class ConversionOptions:
    """Options of conversion; each `with_*` method returns new options."""

    def __new__(
        cls,
        *,
        default_thinking_mode: bool = True,
        reasoning_content_behavior: ReasoningContentBehavior = ...,
        responses_web_search: WebSearchBehavior = ...,
        messages_web_search: WebSearchBehavior = ...,
        thinking_max_tokens_upper_bound: int = 393216,
        non_thinking_max_tokens_upper_bound: int = 393216,
    ) -> ConversionOptions: ...
    @property
    def default_thinking_mode(self) -> bool:
        """Whether requests that do not speak of thinking think."""

    @property
    def model_versions_by_name(self) -> dict[str, ModelVersion]:
        """Accepted model names."""

    @property
    def thinking_max_tokens_upper_bound(self) -> int:
        """Most output tokens that a thinking request may ask for."""

    @property
    def non_thinking_max_tokens_upper_bound(self) -> int:
        """Most output tokens that another request may ask for."""

    @property
    def reasoning_content_behavior(self) -> ReasoningContentBehavior:
        """What to do when reasoning is missing."""

    @property
    def responses_web_search(self) -> WebSearchBehavior:
        """What to do with web search in Responses."""

    @property
    def messages_web_search(self) -> WebSearchBehavior:
        """What to do with web search in Messages."""

    @property
    def special_tokens(self) -> SpecialTokens:
        """Spelling of the special tokens."""

    @property
    def compat(self) -> bool:
        """Whether conversion follows the official codec also where that is at fault."""

    def with_default_thinking_mode(self, default_thinking_mode: bool) -> ConversionOptions:
        """Return options with this default for requests that do not speak of thinking."""

    def with_reasoning_content_behavior(
        self, reasoning_content_behavior: ReasoningContentBehavior
    ) -> ConversionOptions:
        """Return options that treat missing reasoning this way."""

    def with_responses_web_search(self, responses_web_search: WebSearchBehavior) -> ConversionOptions:
        """Return options that treat web search in Responses this way."""

    def with_messages_web_search(self, messages_web_search: WebSearchBehavior) -> ConversionOptions:
        """Return options that treat web search in Messages this way."""

    def with_special_tokens(self, special_tokens: SpecialTokens) -> ConversionOptions:
        """Return options with other spellings of the special tokens."""

    def with_model_alias(self, model: str, model_version: ModelVersion) -> ConversionOptions:
        """Return options that accept `model` as a name of `model_version`."""

    def with_model_versions_by_name(self, model_versions_by_name: dict[str, ModelVersion]) -> ConversionOptions:
        """Return options whose accepted names are exactly those of the mapping."""

    def with_generic_model(
        self,
        model: str,
        *,
        temperature: float | None = None,
        top_p: float | None = None,
        supports_thinking: bool = False,
        supports_images: bool = False,
        output_format: str = "none",
    ) -> ConversionOptions:
        """Return options that accept `model` as a name of a model with its own chat template."""

    def with_thinking_max_tokens_upper_bound(self, thinking_max_tokens_upper_bound: int) -> ConversionOptions:
        """Return options with this bound of output tokens in thinking mode."""

    def with_non_thinking_max_tokens_upper_bound(self, non_thinking_max_tokens_upper_bound: int) -> ConversionOptions:
        """Return options with this bound of output tokens outside thinking mode."""

    def with_apply_patch_description(self, apply_patch_description: str) -> ConversionOptions:
        """Return options with another description of the tool `apply_patch`."""

    def with_compat(self, compat: bool) -> ConversionOptions:
        """Return options that follow the official codec also where that is at fault, or not."""

@final
class OutputConstraint:
    """What a backend may enforce on the output by constrained decoding."""

    @property
    def kind(self) -> Literal["json", "regex", "tool_call", "tool_call_required"]:
        """What `schema` is."""

    @property
    def schema(self) -> str:
        """A schema (empty for any JSON), a regular expression, or a compact JSON list of function tools."""

@final
class InferenceOptions:
    """What the backend samples with; None where the request says nothing."""

    @property
    def max_tokens(self) -> int | None:
        """Most output tokens."""

    @property
    def temperature(self) -> float | None:
        """Resolved temperature."""

    @property
    def top_p(self) -> float | None:
        """Resolved nucleus probability."""

    @property
    def logprobs(self) -> bool:
        """Whether the log probability of each token is wanted."""

    @property
    def top_logprobs(self) -> int | None:
        """Alternatives per token, from 0 to 20."""

    @property
    def seed(self) -> int | None:
        """Seed below 2**63."""

    @property
    def output_constraint(self) -> OutputConstraint | None:
        """Constraint on the calls, or on the answer if there are no tools."""

@final
class ConversationRequest:
    """A converted request."""

    def __new__(cls, conversation: Conversation, model_version: ModelVersion) -> ConversationRequest: ...
    @property
    def conversation(self) -> Conversation:
        """What is rendered."""

    @property
    def inference_options(self) -> InferenceOptions:
        """What the backend samples with."""

    @property
    def parsing_options(self) -> ParsingOptions:
        """How the output is read."""

    @property
    def model_version(self) -> ModelVersion:
        """The model family of the requested name."""

    @property
    def stream(self) -> bool:
        """Whether the answer is streamed."""

    @property
    def response_constraint(self) -> OutputConstraint | None:
        """Constraint on an answer beside the one on calls; without compat only."""

    @property
    def extra_sampling(self) -> dict[str, Any]:
        """Sampling fields outside the official protocols, as given."""

    @property
    def chat_template_kwargs(self) -> dict[str, Any]:
        """Named values for the model's own chat template."""

    @property
    def n(self) -> int:
        """Number of answers."""

    @property
    def reports_usage(self) -> bool:
        """Whether a Chat stream was asked to report its usage."""

    @property
    def ignored_fields(self) -> list[str]:
        """Fields of the request that had no effect."""

    def resolve_max_tokens(self, prompt_tokens: int, context_limit: int) -> int:
        """Return how many tokens to generate after a prompt of `prompt_tokens`.

        What the request asks for is kept, else it is 8192 without thinking, 131072 with the highest effort, 65536
        otherwise, within the context. Raises ConversionError if the prompt with the requested tokens exceeds it.
        """

@final
class ChatCompletionRequest:
    """A Chat Completions request; conversion uses it up, also where it fails."""

    def __new__(cls, body: bytes | str | dict[str, Any], *, max_bytes: int | None = None) -> ChatCompletionRequest:
        """Read a body; raises ConversionError that names the field, or for more than `max_bytes`."""

    @property
    def model(self) -> str:
        """The requested model name."""

    def convert(self, options: ConversionOptions) -> ConversationRequest:
        """Convert the request; raises ConversionError that names the field."""

    @staticmethod
    def chunk_generator(request: ConversationRequest, id: str, model: str) -> ChatCompletionChunkGenerator:
        """Return a generator of the chunks of one response."""

@final
class ResponsesRequest:
    """A Responses request; conversion uses it up, also where it fails."""

    def __new__(cls, body: bytes | str | dict[str, Any], *, max_bytes: int | None = None) -> ResponsesRequest:
        """Read a body; raises ConversionError that names the field, or for more than `max_bytes`."""

    @property
    def model(self) -> str:
        """The requested model name."""

    def namespace_tool_map(self, options: ConversionOptions) -> dict[str, tuple[str, str]]:
        """Return the function names of tools in namespaces, each with namespace and own name."""

    def echo(self) -> ResponsesEcho:
        """Return the settings that responses repeat, as the request gave them."""

    def convert(self, options: ConversionOptions) -> ConversationRequest:
        """Convert the request; raises ConversionError that names the field."""

    @staticmethod
    def chunk_generator(request: ConversationRequest, id: str, model: str) -> ResponsesChunkGenerator:
        """Return a generator of the events of one response."""

@final
class MessagesRequest:
    """A Messages request; conversion uses it up, also where it fails."""

    def __new__(cls, body: bytes | str | dict[str, Any], *, max_bytes: int | None = None) -> MessagesRequest:
        """Read a body; raises ConversionError that names the field, or for more than `max_bytes`."""

    @property
    def model(self) -> str:
        """The requested model name."""

    def convert(self, options: ConversionOptions) -> ConversationRequest:
        """Convert the request; raises ConversionError that names the field."""

    @staticmethod
    def chunk_generator(request: ConversationRequest, id: str, model: str) -> MessagesChunkGenerator:
        """Return a generator of the events of one response."""
