"""onnxruntime-invalid-dimensions#1: the model has a fixed batch of one; exported with a free one it takes four."""

import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper


def model(ir_version: int = 8, batch: int | None = None) -> onnx.ModelProto:
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch or "n", 2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", tensors[:1], tensors[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=ir_version)


def run(made: onnx.ModelProto) -> None:
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    session.run(None, {"x": np.zeros((4, 2), np.float32)})


def error() -> None:
    run(model(batch=1))


def cure() -> None:
    run(model())


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
