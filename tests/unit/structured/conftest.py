import pytest

from deepinfer.structured import GrammarCompiler, Vocabulary

EOS = 256
THINK_END = 257
WORDS = [b'{"', b'":', b'"}', b"true", b"false", b"null", b"yes", b"no", b"  ", b"\n\n", b"123"]


class ByteVocabulary(Vocabulary):
    """256 bytes, two special tokens, a few longer tokens, and ids of the model that are no tokens at all."""

    def __init__(self):
        super().__init__(
            tokens=[*(bytes([value]) for value in range(256)), b"<eos>", b"</think>", *WORDS],
            special_token_ids=[EOS, THINK_END],
            eos_token_ids=[EOS],
            encode=lambda text: list(text.encode()),
            size=300,
        )

    def decode(self, token_ids):
        return b"".join(self.tokens[token_id] for token_id in token_ids if token_id not in (EOS, THINK_END)).decode()


@pytest.fixture(scope="session")
def vocabulary():
    return ByteVocabulary()


@pytest.fixture(scope="session")
def compiler(vocabulary):
    return GrammarCompiler(lambda: vocabulary)
