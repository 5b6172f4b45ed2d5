"""onnx-protobuf-parsing-failed#1: a pointer of git-lfs lies where the model should be; the model itself is read."""

import sys
from pathlib import Path

import onnx
import onnxruntime
from onnx import TensorProto, helper


def model(ir_version: int = 8, batch: int | None = None) -> onnx.ModelProto:
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch or "n", 2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", tensors[:1], tensors[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=ir_version)


def error() -> None:
    Path("model.onnx").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])


def cure() -> None:
    onnx.save(model(), "model.onnx")
    onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
