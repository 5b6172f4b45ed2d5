"""onnxruntime-cuda-provider-fallback#1: the build for the CPU has no CUDA provider and falls back; whoever asks first is not surprised."""

import sys

import onnx
import onnxruntime
from onnx import TensorProto, helper


def session(providers: list[str]) -> onnxruntime.InferenceSession:
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", tensors[:1], tensors[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, "model.onnx")
    return onnxruntime.InferenceSession("model.onnx", providers=providers)


def error() -> None:
    session(["CUDAExecutionProvider", "CPUExecutionProvider"])


def cure() -> None:
    wanted = [
        one for one in ("CUDAExecutionProvider", "CPUExecutionProvider") if one in onnxruntime.get_available_providers()
    ]
    assert session(wanted).get_providers() == wanted


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
