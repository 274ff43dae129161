"""Outputs of a required form: JSON schema, regular expression, grammar, choice. No torch."""

from deepinfer.structured.compile_pool import CompilePool
from deepinfer.structured.grammar import CompiledGrammar, GrammarCompiler
from deepinfer.structured.matcher import GrammarMatcher
from deepinfer.structured.spec import GrammarSpec
from deepinfer.structured.vocabulary import Vocabulary

__all__ = ["CompilePool", "CompiledGrammar", "GrammarCompiler", "GrammarMatcher", "GrammarSpec", "Vocabulary"]
