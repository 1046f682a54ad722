"""Scores a data set in a process of its own, so that a test can end it: drive.py ADDRESS DATA OUT RECIPE.JSON"""

from __future__ import annotations

import json
import sys

import ray
from plaudit.ray import score_dataset

if __name__ == "__main__":
    address, data, out, recipe = sys.argv[1:]
    ray.init(address=address, logging_level="error", log_to_driver=False)
    with open(recipe) as file:
        score_dataset(ray.data.read_parquet(data), json.load(file), out=out, actors=2, shards=16)
