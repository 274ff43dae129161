from array import array

from deepinfer.kvcache import compute_block_hash, compute_root_hash

DATA = array("I", range(16)).tobytes()


def test_equal_content_has_an_equal_name():
    root = compute_root_hash(b"model", "salt")
    assert compute_block_hash(root, DATA) == compute_block_hash(compute_root_hash(b"model", "salt"), DATA)


def test_model_salt_parent_and_tokens_each_change_the_name():
    root = compute_root_hash(b"model", "salt")
    other = array("I", [1, *range(1, 16)]).tobytes()
    names = {
        compute_block_hash(root, DATA),
        compute_block_hash(compute_root_hash(b"model2", "salt"), DATA),
        compute_block_hash(compute_root_hash(b"model", ""), DATA),
        compute_block_hash(compute_block_hash(root, DATA), DATA),
        compute_block_hash(root, other),
    }
    assert len(names) == 5


def test_bytes_cannot_move_between_model_and_salt():
    assert compute_root_hash(b"ab", "c") != compute_root_hash(b"a", "bc")


def test_salt_may_hold_any_python_string():
    assert compute_root_hash(b"", "\udc80") != compute_root_hash(b"", "")
