#!/usr/bin/env python3
"""The steps of decode_step's record through PyTorch: the same model, batches and contexts on the same GPU; and the ratios.

Usage: decode_yardstick.py RECORD. Each step is one CUDA graph; keys and values are contiguous, pages are not read here, which favours
PyTorch. A model that is not listed in train_yardstick.py is refused.
"""
import json
import statistics
import sys

from train_yardstick import MODELS

WARM, STEPS = 5, 30
EPSILON = 1e-5


def read(path):
    """Parameters, and the median latency of every (batch, context) of a record."""
    parameters, latencies = None, {}
    with open(path, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if "start" in line:
                parameters = line["start"]["parameters"]
            one = line.get("measurement", {})
            if one.get("metric") == "latency":
                latencies[one["at"]["batch"], one["at"]["context"]] = statistics.median(one["samples"])
    if parameters is None:
        raise ValueError(f"{path}: no start of a record")
    if parameters["engine"] != "cuda":
        raise ValueError(f"{path}: engine is {parameters['engine']}; the yardstick has cuda only")
    if parameters["model"] not in MODELS:
        raise ValueError(f"{path}: model {parameters['model']} is not one of {', '.join(MODELS)}")
    return parameters, latencies


class Weights:
    """BF16 matrices of every layer, and the head."""

    def __init__(self, torch, parameters):
        layers, self.hidden, self.ffn, self.heads, self.kv_heads, self.width, vocab = MODELS[parameters["model"]]
        self.layers = parameters["layers_run"] or layers

        def drawn(rows, columns):
            return (torch.randn(rows, columns, device="cuda") * columns**-0.5).bfloat16()

        q, kv = self.heads * self.width, self.kv_heads * self.width
        shapes = ((q + 2 * kv, self.hidden), (self.hidden, q), (2 * self.ffn, self.hidden), (self.hidden, self.ffn))
        self.matrices = [[drawn(*shape) for shape in shapes] for _ in range(self.layers)]
        self.head = drawn(vocab, self.hidden)
        self.one = torch.ones(self.hidden, device="cuda").bfloat16()


def step_of(torch, weights, batch, context):
    """One token of every sequence as a function."""
    functional = torch.nn.functional
    shape = (batch, weights.kv_heads, context, weights.width)
    caches = [[torch.randn(shape, device="cuda").bfloat16() for _ in range(2)] for _ in range(weights.layers)]
    first = torch.randn(batch, weights.hidden, device="cuda").bfloat16()
    q, kv = weights.heads * weights.width, weights.kv_heads * weights.width

    def norm(x):
        return functional.rms_norm(x, (weights.hidden,), weights.one, EPSILON)

    def step():
        x = first
        for (qkv, out, both, down), (keys, values) in zip(weights.matrices, caches):
            query, key, value = functional.linear(norm(x), qkv).split((q, kv, kv), 1)
            keys[:, :, context - 1] = key.view(batch, weights.kv_heads, weights.width)
            values[:, :, context - 1] = value.view(batch, weights.kv_heads, weights.width)
            query = query.view(batch, weights.heads, 1, weights.width)
            attended = functional.scaled_dot_product_attention(query, keys, values, enable_gqa=True)
            x = x + functional.linear(attended.reshape(batch, q), out)
            gate, up = functional.linear(norm(x), both).chunk(2, 1)
            x = x + functional.linear(functional.silu(gate) * up, down)
        return functional.linear(norm(x), weights.head)

    return step


def median_s(torch, step):
    """Of one step as a CUDA graph, by events of the device."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(WARM):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    times = []
    for _ in range(WARM + STEPS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1000)
    return statistics.median(times[WARM:])


def main(path):
    parameters, latencies = read(path)
    import torch

    with torch.no_grad():
        weights = Weights(torch, parameters)
        for (batch, context), latency in latencies.items():
            value = median_s(torch, step_of(torch, weights, batch, context))
            at = {"batch": batch, "context": context, "torch": torch.__version__}
            print(json.dumps({"yardstick": "decode.step", "value": value, **at}), flush=True)
            print(json.dumps({"yardstick": "decode.ratio", "value": value / latency, **at}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        main(sys.argv[1])
    except Exception as error:  # a machine without PyTorch, or without memory for it
        print(json.dumps({"yardstick": "decode", "error": str(error)}), flush=True)
        sys.exit(1)
