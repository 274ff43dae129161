"""Compiled grammars, by the llguidance library. Knows bytes and ids, no logits, no requests."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from deepinfer.errors import ConfigError, RequestError
from deepinfer.structured.matcher import GrammarMatcher
from deepinfer.structured.spec import GrammarSpec
from deepinfer.structured.vocabulary import Vocabulary

if TYPE_CHECKING:
    import llguidance

_MAX_CACHED_GRAMMARS = 256
# Between JSON tokens; without a bound a model may write blanks for ever.
_JSON_WHITESPACE = r"[\x20\x0A\x0D\x09]{0,16}"
_ANY_OBJECT = '{"type": "object"}'


class CompiledGrammar:
    """A grammar over one vocabulary; any number of requests use it."""

    __slots__ = ("_eos_token_ids", "_prototype", "spec")

    def __init__(self, spec: GrammarSpec, prototype: llguidance.LLMatcher, eos_token_ids: Sequence[int]) -> None:
        self.spec = spec
        self._eos_token_ids = frozenset(eos_token_ids)
        self._prototype = prototype

    def make_matcher(self) -> GrammarMatcher:
        """A matcher at the start of the grammar."""
        return GrammarMatcher(self._prototype.deep_copy(), self.spec.start_after_token_ids, self._eos_token_ids)


class GrammarCompiler:
    """Compiles specifications; keeps the ones used last. Any thread may call it, best none that runs an event loop."""

    def __init__(self, make_vocabulary: Callable[[], Vocabulary]) -> None:
        """`make_vocabulary` is called once, with the first grammar."""
        self._make_vocabulary = make_vocabulary
        self._tokenizer: llguidance.LLTokenizer | None = None
        self._vocabulary: Vocabulary | None = None
        self._grammars: OrderedDict[GrammarSpec, CompiledGrammar] = OrderedDict()
        self._lock = threading.Lock()

    def compile(self, spec: GrammarSpec) -> CompiledGrammar:
        """Compile a specification, or return what an equal one gave.

        Raises:
            RequestError: it is malformed or uses something that is not covered; the message names it.
            ConfigError: the llguidance package is not installed.
        """
        with self._lock:
            grammar = self._grammars.get(spec)
            if grammar is not None:
                self._grammars.move_to_end(spec)
                return grammar
            tokenizer, vocabulary = self._load()
        import llguidance

        prototype = llguidance.LLMatcher(tokenizer, _translate(spec), log_level=0)
        if prototype.is_error():
            raise RequestError(f"{spec.kind} cannot be used: {prototype.get_error().strip()}", param=spec.kind)
        grammar = CompiledGrammar(spec, prototype, vocabulary.eos_token_ids)
        with self._lock:
            self._grammars[spec] = grammar
            if len(self._grammars) > _MAX_CACHED_GRAMMARS:
                self._grammars.popitem(last=False)
        return grammar

    def _load(self) -> tuple[llguidance.LLTokenizer, Vocabulary]:
        if self._tokenizer is None or self._vocabulary is None:
            try:
                import llguidance
            except ImportError as error:
                raise ConfigError("structured output needs the llguidance package; install it") from error
            self._vocabulary = vocabulary = self._make_vocabulary()
            if not vocabulary.eos_token_ids:
                raise ConfigError("structured output needs a model with an end-of-sequence token; this one names none")
            self._tokenizer = llguidance.LLTokenizer(
                llguidance.TokenizerWrapper(vocabulary),
                n_vocab=vocabulary.size,
                eos_token=list(vocabulary.eos_token_ids),
            )
        return self._tokenizer, self._vocabulary


def _translate(spec: GrammarSpec) -> str:
    """The grammar in the library's own form."""
    import llguidance

    if spec.kind in ("json_schema", "json_object"):
        try:
            return llguidance.LLMatcher.grammar_from_json_schema(
                spec.source or _ANY_OBJECT, overrides={"whitespace_pattern": _JSON_WHITESPACE, "lenient": False}
            )
        except ValueError as error:
            raise RequestError(f"{spec.kind} is not a JSON object: {error}", param=spec.kind) from error
    if spec.kind == "choice":
        return llguidance.LLMatcher.grammar_from_regex("|".join(re.escape(choice) for choice in spec.choices))
    if spec.kind == "regex":
        return llguidance.LLMatcher.grammar_from_regex(spec.source)
    if "::=" not in spec.source:
        return llguidance.LLMatcher.grammar_from_lark(spec.source)
    from llguidance.gbnf_to_lark import gbnf_to_lark

    try:
        return llguidance.LLMatcher.grammar_from_lark(gbnf_to_lark(spec.source))
    except Exception as error:  # the translator raises plain Exception
        raise RequestError(f"grammar cannot be used: {error}", param="grammar") from error
