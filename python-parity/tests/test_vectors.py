"""The golden vectors: those of Java are right, those of the reference are the committed ones."""

from pathlib import Path

import pytest
import torch

from deepep_reference import cases, generate
from deepep_reference.safetensors_file import read, to_bytes

GOLDEN = Path(__file__).parent.parent / "golden"
JAVA = sorted((GOLDEN / "java").glob("*.safetensors"))
PYTORCH = sorted((GOLDEN / "pytorch").glob("*.safetensors"))
NAMES = [path.stem for path in JAVA]


def test_index_names_the_files():
    for files in (JAVA, PYTORCH):
        assert files
        index = (files[0].parent / generate.INDEX).read_text().split()
        assert index == [path.name for path in files]


def test_generating_again_gives_the_same_bytes(tmp_path):
    generate.generate(tmp_path)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    committed = {path.name: path.read_bytes() for path in (GOLDEN / "pytorch").iterdir()}
    assert written.keys() == committed.keys()
    changed = [name for name in written if written[name] != committed[name]]
    assert changed == [], "run python3 -m deepep_reference.generate"


def test_vectors_are_small():
    assert sum(path.stat().st_size for path in GOLDEN.rglob("*.*")) < 1_000_000


@pytest.mark.parametrize("path", JAVA, ids=NAMES)
def test_java_gets_what_the_reference_gets(path):
    case, outcomes = cases.from_content(read(path))
    expected = cases.run(case)
    assert [cases.differences(e, o.outputs) for e, o in zip(expected, outcomes)] == [
        [] for _ in expected
    ]


@pytest.mark.parametrize("path", JAVA, ids=NAMES)
def test_java_sends_something(path):
    case, outcomes = cases.from_content(read(path))
    assert sum(outcome.outputs["recv_x"].shape[0] for outcome in outcomes) >= 10


@pytest.mark.parametrize("path", JAVA + PYTORCH, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_both_write_files_alike(path):
    assert to_bytes(read(path)) == path.read_bytes()


def test_every_output_is_compared():
    """A single wrong element anywhere is found, and said to be where it is."""
    for path in JAVA + PYTORCH:
        case, outcomes = cases.from_content(read(path))
        expected = cases.run(case)
        for name, tensor in outcomes[0].outputs.items():
            if tensor.numel() == 0:
                continue
            changed = tensor.clone().flatten()
            changed[-1] = ~changed[-1] if tensor.dtype == torch.bool else changed[-1] + 7
            outputs = dict(outcomes[0].outputs)
            outputs[name] = changed.view(tensor.shape)
            found = cases.differences(expected[0], outputs)
            assert len(found) == 1 and found[0].startswith(name + ": 1 of"), (path, name, found)


def test_missing_outputs_and_shapes_are_found():
    case, outcomes = cases.from_content(read(PYTORCH[0]))
    outputs = dict(outcomes[0].outputs)
    combined = outputs.pop("combined_x")
    assert "outputs are" in cases.differences(outcomes[0], outputs)[0]
    outputs["combined_x"] = combined[:-1]
    assert cases.differences(outcomes[0], outputs)[0].startswith("combined_x: is torch.bfloat16")
