"""Helpers of the tests of loading."""

import torch

from tests.models.configs import MASK

IDS = torch.tensor([[5, 17, 200, MASK, 9, MASK, 33]])
MEGABYTE = 2**20


def one_line(caught):
    message = str(caught.value)
    assert "\n" not in message
    return message


def logits(model):
    with torch.no_grad():
        return model.module.logits(model.module(IDS)).float()
