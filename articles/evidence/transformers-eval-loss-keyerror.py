"""transformers-eval-loss-keyerror#1: the best model is chosen by a metric that the evaluation does not report."""

import sys

import accelerate
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

assert accelerate
SETTINGS = {
    "load_best_model_at_end": True,
    "eval_strategy": "steps",
    "eval_steps": 1,
    "save_steps": 1,
}


def tiny() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    )


def trainer(model: torch.nn.Module, kind: type = Trainer, **more: object) -> Trainer:
    settings = TrainingArguments("out", max_steps=1, report_to=[], use_cpu=True, **more)
    rows = [{"input_ids": [1, 2, 3], "labels": [1, 2, 3]}] * 4
    return kind(model=model, args=settings, train_dataset=rows, eval_dataset=rows)


def error() -> None:
    trainer(tiny(), **SETTINGS, metric_for_best_model="eval_accuracy").train()


def cure() -> None:
    trainer(tiny(), **SETTINGS, metric_for_best_model="eval_loss").train()


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
