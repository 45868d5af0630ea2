"""Reads and writes safetensors files, the format of https://github.com/huggingface/safetensors.

Written here because the library is not always at hand and the format is this: eight bytes with the
length of a JSON header, the header, the tensors one after the other. A file has the same bytes
whenever its content is the same: names are sorted.

``torch.uint8`` stands for E4M3 codes and is stored as F8_E4M3.
"""

import json
from pathlib import Path
from typing import Dict, NamedTuple

import numpy
import torch

_NAMES = {
    torch.bfloat16: "BF16",
    torch.uint8: "F8_E4M3",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.int64: "I64",
    torch.bool: "BOOL",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_ALIGNMENT = 8


class Content(NamedTuple):
    tensors: Dict[str, torch.Tensor]
    metadata: Dict[str, str]


def to_bytes(content: Content) -> bytes:
    header = {"__metadata__": dict(sorted(content.metadata.items()))}
    data = b""
    for name, tensor in sorted(content.tensors.items()):
        raw = _raw(tensor)
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text + data


def _raw(tensor: torch.Tensor) -> bytes:
    flat = tensor.contiguous().flatten()
    if flat.dtype == torch.bfloat16:  # numpy has none
        flat = flat.view(torch.int16)
    return flat.numpy().tobytes()


def read(path) -> Content:
    data = Path(path).read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        first, last = (begin + offset for offset in entry["data_offsets"])
        dtype = _DTYPES[entry["dtype"]]
        stored = torch.int16 if dtype == torch.bfloat16 else dtype
        raw = numpy.frombuffer(data[first:last], dtype=numpy.dtype(str(stored).split(".")[1]))
        tensor = torch.from_numpy(raw.copy()).view(entry["shape"])
        tensors[name] = tensor.view(dtype) if stored != dtype else tensor
    return Content(tensors, metadata)


def write(path, content: Content) -> None:
    Path(path).write_bytes(to_bytes(content))
