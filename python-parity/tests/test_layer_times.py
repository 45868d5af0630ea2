"""The layer in PyTorch that the Java side's is compared with: right, and recorded, on CPUs."""

import json

import layer_times
import pytest

PARTS = [part + "Micros" for part in (*layer_times.PARTS, "layer")]


def arguments(tmp_path, *more):
    return [
        *"--device cpu --hidden 64 --intermediate 32 --experts 6 --topk 3 --tokens 1 5".split(),
        "--json",
        str(tmp_path / "layer.json"),
        *more,
    ]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_records_every_number_of_tokens(tmp_path, ranks):
    layer_times.main(arguments(tmp_path, "--ranks", str(ranks)))  # compares a token of each rank itself
    records = json.loads((tmp_path / "layer.json").read_text())
    assert [record["tokens"] for record in records] == [1, 5]
    for record in records:
        assert record["ranks"] == ranks and record["hidden"] == 64 and record["topk"] == 3
        assert all(record[part] > 0 for part in PARTS)


def test_a_wrong_sum_is_found(tmp_path, monkeypatch):
    # Processes are forked from this one, so they have the wrong part too.
    monkeypatch.setattr(layer_times.multiprocessing, "spawn", fork)
    monkeypatch.setattr(layer_times.Layer, "experts", lambda layer, rows, counts: rows * 0.01)
    with pytest.raises(layer_times.multiprocessing.ProcessRaisedException, match="the first token differs"):
        layer_times.main(arguments(tmp_path, "--ranks", "2"))
    assert not (tmp_path / "layer.json").exists()


def fork(run, given, nprocs):
    layer_times.multiprocessing.start_processes(run, given, nprocs=nprocs, start_method="fork")


@pytest.mark.parametrize(
    "given, complaint",
    [
        (["--ranks", "4"], "--experts 6 is not a multiple of the 4 ranks"),
        (["--topk", "7"], "--topk 7 is not in"),
        (["--tokens", "0"], "--tokens 0 is not at least 1"),
    ],
)
def test_refuses(tmp_path, capsys, given, complaint):
    with pytest.raises(SystemExit):
        layer_times.main(arguments(tmp_path, *given))
    assert complaint in capsys.readouterr().err
