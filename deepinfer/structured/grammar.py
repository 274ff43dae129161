"""Compiled grammars, by the llguidance library. Knows bytes and ids, no logits, no requests."""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from deepinfer.errors import ConfigError, GrammarError
from deepinfer.structured.json_schema import KIND as JSON_SCHEMA
from deepinfer.structured.json_schema import iterate_subschemas, read_json_schema
from deepinfer.structured.matcher import GrammarMatcher
from deepinfer.structured.regex_size import MAX_EXPANSION, compute_expansion
from deepinfer.structured.spec import GrammarSpec
from deepinfer.structured.termination import check_termination
from deepinfer.structured.vocabulary import Vocabulary

if TYPE_CHECKING:
    import llguidance

_MAX_CACHED_GRAMMARS: Final = 256
_MAX_CACHED_CHARACTERS: Final = 4_194_304
# Between JSON tokens; without a bound a model may write blanks for ever.
_JSON_WHITESPACE: Final = r"[\x20\x0A\x0D\x09]{0,16}"
_ANY_OBJECT: Final = '{"type": "object"}'
_UNIMPLEMENTED: Final = re.compile(r'Unimplemented keys: \["([^"]+)"')


class CompiledGrammar:
    """A grammar over one vocabulary; any number of requests use it."""

    __slots__ = ("_eos_token_ids", "_prototype", "spec")

    def __init__(self, spec: GrammarSpec, prototype: llguidance.LLMatcher, eos_token_ids: Sequence[int]) -> None:
        self.spec = spec
        self._eos_token_ids = frozenset(eos_token_ids)
        self._prototype = prototype

    def make_matcher(self) -> GrammarMatcher:
        """A matcher at the start of the grammar."""
        return GrammarMatcher(
            self._prototype.deep_copy(),
            self._eos_token_ids,
            start_after_token_ids=self.spec.start_after_token_ids,
            opening_token_id=self.spec.opening_token_id,
        )


class GrammarCompiler:
    """Compiles specifications; keeps the ones used last. Any thread may call it, best none that runs an event loop."""

    def __init__(self, make_vocabulary: Callable[[], Vocabulary]) -> None:
        """`make_vocabulary` is called once, with the first grammar."""
        self._make_vocabulary = make_vocabulary
        self._tokenizer: llguidance.LLTokenizer | None = None
        self._vocabulary: Vocabulary | None = None
        self._grammars: OrderedDict[GrammarSpec, CompiledGrammar] = OrderedDict()
        self._num_characters = 0
        self._lock = threading.Lock()
        self._load_lock = threading.Lock()

    def find(self, spec: GrammarSpec) -> CompiledGrammar | None:
        """What an equal specification gave, if it is still kept. Never waits long."""
        with self._lock:
            grammar = self._grammars.get(spec)
            if grammar is not None:
                self._grammars.move_to_end(spec)
            return grammar

    def compile(self, spec: GrammarSpec) -> CompiledGrammar:
        """Compile a specification, or return what an equal one gave.

        The first mask is computed here too, as it builds most of the automaton: no step of the engine waits for it.

        Raises:
            GrammarError: it is malformed or uses something that is not covered; the message names it.
            ConfigError: the llguidance package is not installed.
        """
        grammar = self.find(spec)
        if grammar is not None:
            return grammar
        source = _translate(spec)
        tokenizer, vocabulary = self._load()
        import llguidance

        limits = llguidance.LLParserLimits(verbose_errors=False)
        prototype = llguidance.LLMatcher(tokenizer, source, log_level=0, limits=limits)
        if prototype.is_error():
            raise _explain(spec, prototype.get_error())
        first = prototype.deep_copy()
        first.compute_bitmask()
        if first.is_error():
            raise GrammarError(spec.kind, "allows no output at all")
        grammar = CompiledGrammar(spec, prototype, vocabulary.eos_token_ids)
        with self._lock:
            if spec not in self._grammars:
                self._grammars[spec] = grammar
                self._num_characters += spec.num_characters
            while len(self._grammars) > _MAX_CACHED_GRAMMARS or self._num_characters > _MAX_CACHED_CHARACTERS:
                oldest, _ = self._grammars.popitem(last=False)
                self._num_characters -= oldest.num_characters
        return grammar

    def _load(self) -> tuple[llguidance.LLTokenizer, Vocabulary]:
        with self._load_lock:
            if self._tokenizer is None or self._vocabulary is None:
                try:
                    import llguidance
                except ImportError as error:
                    raise ConfigError("structured output needs the llguidance package; install it") from error
                self._vocabulary = vocabulary = self._make_vocabulary()
                if not vocabulary.eos_token_ids:
                    raise ConfigError(
                        "structured output needs a model with an end-of-sequence token; this one names none"
                    )
                # The library keeps the interpreter lock meanwhile: in two parts, so that others run in between.
                plain = llguidance.LLTokenizer(
                    llguidance.TokenizerWrapper(vocabulary),
                    n_vocab=vocabulary.size,
                    eos_token=list(vocabulary.eos_token_ids),
                    slices=[],
                )
                self._tokenizer = plain.with_slices(llguidance.LLTokenizer.general_slices())
            return self._tokenizer, self._vocabulary


def _translate(spec: GrammarSpec) -> str:
    """The grammar in the library's own form."""
    import llguidance

    if spec.kind in (JSON_SCHEMA, "json_object"):
        schema = read_json_schema(spec.source or _ANY_OBJECT)
        check_termination(schema)
        for _, subschema in iterate_subschemas(schema):
            subschema.pop("uniqueItems", None)  # false, as `read_json_schema` has seen; the library knows no such word
        return llguidance.LLMatcher.grammar_from_json_schema(
            json.dumps(schema), overrides={"whitespace_pattern": _JSON_WHITESPACE, "lenient": False}
        )
    if spec.kind == "choice":
        return llguidance.LLMatcher.grammar_from_regex("|".join(re.escape(choice) for choice in spec.choices))
    if compute_expansion(spec.source) > MAX_EXPANSION:
        raise GrammarError(spec.kind, f"repeats more than {MAX_EXPANSION:,} times; use smaller counts")
    if spec.kind == "regex":
        return llguidance.LLMatcher.grammar_from_regex(spec.source)
    if "::=" not in spec.source:
        return llguidance.LLMatcher.grammar_from_lark(spec.source)
    from llguidance.gbnf_to_lark import gbnf_to_lark

    try:
        return llguidance.LLMatcher.grammar_from_lark(gbnf_to_lark(spec.source))
    except Exception as error:  # the translator raises plain Exception
        raise GrammarError("grammar", f"cannot be used: {error}") from error


def _explain(spec: GrammarSpec, message: str) -> GrammarError:
    """The library's refusal, with the place in a schema where that can be found."""
    message = message.strip()
    if spec.kind == JSON_SCHEMA:
        keyword = _UNIMPLEMENTED.search(message)
        unknown_format = message.removeprefix("Unknown format: ") if message.startswith("Unknown format: ") else None
        for path, subschema in iterate_subschemas(json.loads(spec.source)):
            if keyword is not None and keyword[1] in subschema:
                return GrammarError(
                    JSON_SCHEMA, "is not supported: no grammar here expresses that keyword", f"{path}.{keyword[1]}"
                )
            if unknown_format is not None and subschema.get("format") == unknown_format:
                return GrammarError(
                    JSON_SCHEMA, f"is {unknown_format!r}, which is not a format known here", f"{path}.format"
                )
            if "oneOf" in subschema and message.startswith("oneOf constraints are not supported"):
                return GrammarError(
                    JSON_SCHEMA, "is supported only where its options exclude each other; use anyOf", f"{path}.oneOf"
                )
    reason = next((line[len("error: ") :] for line in message.splitlines() if line.startswith("error: ")), None)
    return GrammarError(spec.kind, f"cannot be used: {reason or message.splitlines()[0]}")
