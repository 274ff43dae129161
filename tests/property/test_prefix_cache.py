"""PrefixCache against a search through everything that was inserted."""

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from deepinfer.kvcache import PrefixCache, compute_root_hash

SIZE = 4
ROOT = compute_root_hash(b"m", "")
tokens_lists = st.lists(st.integers(0, 2), min_size=1, max_size=14)


def data_of(tokens):
    return array("I", tokens).tobytes()


@settings(max_examples=300)
@given(sequences=st.lists(tokens_lists, max_size=8), query=tokens_lists, removed=st.sets(st.integers(0, 20)))
def test_find_returns_the_longest_start_that_is_cached(sequences, query, removed):
    cache = PrefixCache(SIZE)
    contents = {}  # block id -> all tokens up to and including the block
    for tokens in sequences:
        parent = ROOT
        for start in range(0, len(tokens), SIZE):
            block_id = len(contents)
            block_hash, is_entered = cache.insert(block_id, parent, data_of(tokens[start : start + SIZE]))
            contents[block_id] = tuple(tokens[: start + SIZE]) if is_entered else None
            parent = block_hash
    for block_id in removed & contents.keys():
        cache.remove(block_id)
        contents[block_id] = None
    known = {content for content in contents.values() if content}

    hit = cache.find(ROOT, data_of(query), len(query))

    num_full = 0
    while (num_full + 1) * SIZE <= len(query) and tuple(query[: (num_full + 1) * SIZE]) in known:
        num_full += 1
    assert [contents[b] for b in hit.block_ids] == [tuple(query[: (i + 1) * SIZE]) for i in range(num_full)]
    rest = query[num_full * SIZE :]
    best = 0
    for content in known:
        is_sibling = len(content) > num_full * SIZE and -(-len(content) // SIZE) == num_full + 1
        if is_sibling and content[: num_full * SIZE] == tuple(query[: num_full * SIZE]):
            common = 0
            for left, right in zip(content[num_full * SIZE :], rest, strict=False):
                if left != right:
                    break
                common += 1
            best = max(best, common)
    assert hit.num_copied_tokens == best
    assert hit.num_tokens == num_full * SIZE + best
    if best:
        assert contents[hit.copy_source][: hit.num_tokens] == tuple(query[: hit.num_tokens])


@given(tokens=tokens_lists, limit=st.integers(0, 14))
def test_find_never_exceeds_the_limit(tokens, limit):
    cache = PrefixCache(SIZE)
    parent = ROOT
    for start in range(0, len(tokens), SIZE):
        parent, _ = cache.insert(start, parent, data_of(tokens[start : start + SIZE]))
    assert cache.find(ROOT, data_of(tokens), limit).num_tokens == min(limit, len(tokens))
