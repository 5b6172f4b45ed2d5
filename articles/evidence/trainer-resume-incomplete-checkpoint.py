"""trainer-resume-incomplete-checkpoint#1: the newest checkpoint was cut off while it was written; an older whole one goes on."""

import shutil
import sys

import accelerate
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

assert accelerate


def tiny() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    )


def trainer(model: torch.nn.Module) -> Trainer:
    settings = TrainingArguments("out", max_steps=2, save_steps=1, report_to=[], use_cpu=True)
    rows = [{"input_ids": [1, 2, 3], "labels": [1, 2, 3]}] * 4
    return Trainer(model=model, args=settings, train_dataset=rows)


def error() -> None:
    trainer(tiny()).train()
    shutil.rmtree("out/checkpoint-2")
    shutil.copytree("out/checkpoint-1", "out/checkpoint-2", ignore=shutil.ignore_patterns("trainer_state.json"))
    trainer(tiny()).train(resume_from_checkpoint=True)


def cure() -> None:
    trainer(tiny()).train()
    trainer(tiny()).train(resume_from_checkpoint="out/checkpoint-1")


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
