"""Writes the graph of the embedding model around its weights: `python packaging/minilm.py MODEL_SAFETENSORS GRAPH`.

The result is `resources/embedding/model.onnx`, 28 KB: a BERT encoder whose weights lie in `model.safetensors` beside
it, as all-MiniLM-L6-v2 was published, so that the file is used without conversion. Needs onnx, which the app does not:
run it in an environment of its own (`pip install onnx==1.23.2`).
"""

import json
import struct
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

_LAYERS, _HEADS, _HEAD_SIZE, _HIDDEN = 6, 12, 32, 384
_EPSILON = 1e-12
_OPSET, _IR = 20, 10
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_WEIGHTS_FILE = "model.safetensors"


class _Entries(Protocol):
    def add(self, *, key: str, value: str) -> object: ...


class _Dimensions(Protocol):
    def extend(self, values: Sequence[int]) -> None: ...


class _Tensor(Protocol):
    """The part of `onnx.TensorProto` that is used."""

    name: str
    data_type: int
    data_location: int

    @property
    def dims(self) -> _Dimensions: ...
    @property
    def external_data(self) -> _Entries: ...


class _Model(Protocol):
    def SerializeToString(self, *, deterministic: bool) -> bytes: ...


class _Helper(Protocol):
    """The part of `onnx.helper` that is used; what it makes is handed on as it is."""

    def make_tensor(self, name: str, kind: int, dims: Sequence[int], vals: Sequence[float]) -> object: ...
    def make_node(
        self, kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: int | float | Sequence[int]
    ) -> object: ...
    def make_tensor_value_info(self, name: str, kind: int, shape: Sequence[str | int]) -> object: ...
    def make_graph(
        self,
        nodes: Sequence[object],
        name: str,
        inputs: Sequence[object],
        outputs: Sequence[object],
        initializer: Sequence[object],
    ) -> object: ...
    def make_opsetid(self, domain: str, version: int) -> object: ...
    def make_model(self, graph: object, *, opset_imports: Sequence[object], ir_version: int) -> object: ...


_FLOAT, _INT64, _EXTERNAL = 1, 7, 1  # onnx.TensorProto


class _Weights:
    """A map of the weights in a file of safetensors: 8 bytes with the size of a JSON header, that, and the numbers."""

    def __init__(self, file: Path) -> None:
        with file.open("rb") as stream:
            (size,) = struct.unpack("<Q", stream.read(8))
            self._header = cast(dict[str, dict[str, list[int]]], json.loads(stream.read(size)))
        self._start = 8 + size

    def tensor(self, name: str) -> _Tensor:
        """Return the weight as an initialiser that is read from the file."""
        entry = self._header[name]
        begin, end = entry["data_offsets"]
        tensor = cast(Callable[[], _Tensor], import_module("onnx").TensorProto)()
        tensor.name, tensor.data_type, tensor.data_location = name, _FLOAT, _EXTERNAL
        tensor.dims.extend(entry["shape"])
        values = {"location": _WEIGHTS_FILE, "offset": str(self._start + begin), "length": str(end - begin)}
        for key, value in values.items():
            tensor.external_data.add(key=key, value=value)
        return tensor


class _Graph:
    """A graph in the making: each method adds what it names and returns the name of its output."""

    def __init__(self, weights: _Weights) -> None:
        self._helper = cast(_Helper, import_module("onnx.helper"))
        self._weights = weights
        self._nodes: list[object] = []
        self._constants: list[object] = []

    def op(self, kind: str, *inputs: str, **attributes: int | float | Sequence[int]) -> str:
        output = f"{kind}_{len(self._nodes)}"
        self._nodes.append(self._helper.make_node(kind, inputs, [output], **attributes))
        return output

    def integers(self, *values: int) -> str:
        return self._constant(_INT64, [len(values)], values)

    def number(self, value: float) -> str:
        return self._constant(_FLOAT, [], [value])

    def weight(self, name: str) -> str:
        self._constants.append(self._weights.tensor(name))
        return name

    def linear(self, x: str, name: str) -> str:
        """Multiply by the transposed weight; onnxruntime transposes it once, when it loads the graph."""
        weight = self.op("Transpose", self.weight(f"{name}.weight"), perm=(1, 0))
        return self.op("Add", self.op("MatMul", x, weight), self.weight(f"{name}.bias"))

    def normalized(self, x: str, name: str) -> str:
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=_EPSILON)

    def model(self, last: str) -> object:
        helper = self._helper
        nodes = [*self._nodes, helper.make_node("Identity", [last], ["last_hidden_state"])]
        inputs = [helper.make_tensor_value_info(name, _INT64, ["batch", "tokens"]) for name in _INPUTS]
        output = helper.make_tensor_value_info("last_hidden_state", _FLOAT, ["batch", "tokens", _HIDDEN])
        graph = helper.make_graph(nodes, "minilm", inputs, [output], self._constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)

    def _constant(self, kind: int, dims: Sequence[int], values: Sequence[float]) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(self._helper.make_tensor(name, kind, dims, values))
        return name


def _embeddings(graph: _Graph) -> str:
    tokens = graph.op("Slice", graph.op("Shape", "input_ids"), graph.integers(1), graph.integers(2))
    position_weights = graph.weight("embeddings.position_embeddings.weight")
    position = graph.op("Slice", position_weights, graph.integers(0), tokens, graph.integers(0))
    word = graph.op("Gather", graph.weight("embeddings.word_embeddings.weight"), "input_ids")
    kind = graph.op("Gather", graph.weight("embeddings.token_type_embeddings.weight"), "token_type_ids")
    return graph.normalized(graph.op("Add", graph.op("Add", word, kind), position), "embeddings.LayerNorm")


def _attention_bias(graph: _Graph) -> str:
    """0 for tokens, a large negative number for padding."""
    mask = graph.op("Unsqueeze", graph.op("Cast", "attention_mask", to=_FLOAT), graph.integers(1, 2))
    return graph.op("Mul", graph.op("Sub", graph.number(1.0), mask), graph.number(-1e9))


def _layer(graph: _Graph, x: str, bias: str, name: str) -> str:
    heads = graph.integers(0, 0, _HEADS, _HEAD_SIZE)

    def split(part: str, order: Sequence[int]) -> str:
        projected = graph.linear(x, f"{name}.attention.self.{part}")
        return graph.op("Transpose", graph.op("Reshape", projected, heads), perm=order)

    query, key, value = split("query", (0, 2, 1, 3)), split("key", (0, 2, 3, 1)), split("value", (0, 2, 1, 3))
    scores = graph.op("Mul", graph.op("MatMul", query, key), graph.number(_HEAD_SIZE**-0.5))
    weights = graph.op("Softmax", graph.op("Add", scores, bias), axis=-1)
    mixed = graph.op("Transpose", graph.op("MatMul", weights, value), perm=(0, 2, 1, 3))
    joined = graph.linear(graph.op("Reshape", mixed, graph.integers(0, 0, _HIDDEN)), f"{name}.attention.output.dense")
    x = graph.normalized(graph.op("Add", joined, x), f"{name}.attention.output.LayerNorm")
    inner = graph.op("Gelu", graph.linear(x, f"{name}.intermediate.dense"))
    return graph.normalized(graph.op("Add", graph.linear(inner, f"{name}.output.dense"), x), f"{name}.output.LayerNorm")


def build(weights: Path, target: Path) -> None:
    """Write the graph for these weights."""
    graph = _Graph(_Weights(weights))
    x, bias = _embeddings(graph), _attention_bias(graph)
    for number in range(_LAYERS):
        x = _layer(graph, x, bias, f"encoder.layer.{number}")
    model = cast(_Model, graph.model(x))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]))
