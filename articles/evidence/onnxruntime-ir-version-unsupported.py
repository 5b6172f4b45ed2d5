"""onnxruntime-ir-version-unsupported#1: the model is written in a newer form than the runtime reads; with an older IR version it loads."""

import sys

import onnx
import onnxruntime
from onnx import TensorProto, helper


def model(ir_version: int = 8, batch: int | None = None) -> onnx.ModelProto:
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch or "n", 2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", tensors[:1], tensors[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=ir_version)


def error() -> None:
    onnx.save(model(ir_version=99), "model.onnx")
    onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])


def cure() -> None:
    onnx.save(model(ir_version=8), "model.onnx")
    onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
