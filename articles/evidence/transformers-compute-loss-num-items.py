"""transformers-compute-loss-num-items#1: compute_loss gets one argument more since 4.46; it is accepted and passed on."""

import sys

import accelerate
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

assert accelerate


def tiny() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    )


def trainer(model: torch.nn.Module, kind: type = Trainer, **more: object) -> Trainer:
    settings = TrainingArguments("out", max_steps=1, report_to=[], use_cpu=True, **more)
    rows = [{"input_ids": [1, 2, 3], "labels": [1, 2, 3]}] * 4
    return kind(model=model, args=settings, train_dataset=rows, eval_dataset=rows)


class Old(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):  # type: ignore[no-untyped-def]
        return super().compute_loss(model, inputs, return_outputs)


class New(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **more):  # type: ignore[no-untyped-def]
        return super().compute_loss(model, inputs, return_outputs, **more)


def error() -> None:
    trainer(tiny(), Old).train()


def cure() -> None:
    trainer(tiny(), New).train()


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
