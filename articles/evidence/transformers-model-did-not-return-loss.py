"""transformers-model-did-not-return-loss#1: a model without a head has no loss to return; the model for the task has."""

import sys

import accelerate
import torch
from transformers import LlamaConfig, LlamaForCausalLM, LlamaModel, Trainer, TrainingArguments

assert accelerate


def tiny() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    )


def trainer(model: torch.nn.Module, kind: type = Trainer, **more: object) -> Trainer:
    settings = TrainingArguments("out", max_steps=1, report_to=[], use_cpu=True, **more)
    rows = [{"input_ids": [1, 2, 3], "labels": [1, 2, 3]}] * 4
    return kind(model=model, args=settings, train_dataset=rows, eval_dataset=rows)


def error() -> None:
    trainer(LlamaModel(tiny().config)).train()


def cure() -> None:
    trainer(tiny()).train()


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
