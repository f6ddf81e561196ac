#!/usr/bin/env python3
"""The training step of cuda_train_step's record through PyTorch: the same model, layers, tokens and types on the same GPU; and the ratio.

Usage: train_yardstick.py RECORD [--compile]. Parameters are those of the record; a model that is not listed here is refused.
"""
import json
import statistics
import sys
import time

# layers, hidden, ffn, heads, kv_heads, head_dim, vocab: workloads/train/graph/model_card.h
MODELS = {
    "llama3-8b": (32, 4096, 14336, 32, 8, 128, 128256),
    "tiny-dense": (2, 256, 704, 4, 2, 64, 1024),
}
WARM_S, LEAST_S, LEAST = 10.0, 3.0, 10  # under the power limit the rate still falls after the first second
LIMIT_S = 40.0


def read(path):
    """Parameters, conditions and medians of a record."""
    parameters, found, status = None, {}, None
    with open(path, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if "start" in line:
                parameters = line["start"]["parameters"]
            if "condition" in line:
                found[line["condition"]["name"]] = line["condition"]["value"]
            if "measurement" in line:
                found[line["measurement"]["metric"]] = statistics.median(line["measurement"]["samples"])
            status = line.get("end", {}).get("status", status)
    if parameters is None:
        raise ValueError(f"{path}: no start of a record")
    for name, wanted in (("type", "bf16"), ("data", "gaussian")):
        if parameters[name] != wanted:
            raise ValueError(f"{path}: {name} is {parameters[name]}; the yardstick has {wanted} only")
    if found.get("ranks", 1) != 1:
        raise ValueError(f"{path}: {found['ranks']} ranks; the yardstick has one GPU")
    if parameters["model"] not in MODELS:
        raise ValueError(f"{path}: model {parameters['model']} is not one of {', '.join(MODELS)}")
    return parameters, found, status


def model_of(torch, parameters):
    """The operations of step_graph: no rotation of queries, untied embedding and head. BF16 weights, as products read them."""
    nn, functional = torch.nn, torch.nn.functional
    layers, hidden, ffn, heads, kv_heads, width, vocab = MODELS[parameters["model"]]
    layers = parameters["layers_run"] or layers

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.RMSNorm(hidden, eps=1e-5), nn.RMSNorm(hidden, eps=1e-5)
            self.qkv = nn.Linear(hidden, (heads + 2 * kv_heads) * width, bias=False)
            self.out = nn.Linear(heads * width, hidden, bias=False)
            self.both = nn.Linear(hidden, 2 * ffn, bias=False)
            self.down = nn.Linear(ffn, hidden, bias=False)

        def forward(self, x):
            batch, seq, _ = x.shape
            parts = self.qkv(self.first(x)).view(batch, seq, heads + 2 * kv_heads, width).transpose(1, 2)
            q, k, v = parts.split((heads, kv_heads, kv_heads), dim=1)
            attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            x = x + self.out(attended.transpose(1, 2).reshape(batch, seq, heads * width))
            gate, up = self.both(self.second(x)).chunk(2, dim=-1)
            return x + self.down(functional.silu(gate) * up)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(vocab, hidden)
            self.layers = nn.ModuleList(Layer() for _ in range(layers))
            self.norm = nn.RMSNorm(hidden, eps=1e-5)
            self.head = nn.Linear(hidden, vocab, bias=False)

        def forward(self, tokens, targets):
            x = self.table(tokens)
            for layer in self.layers:
                x = layer(x)
            return functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())

    with torch.device("cuda"):
        model = Model().bfloat16()
    for weight in model.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.02)
    return model, vocab


def step_of(torch, parameters, compiled):
    """One whole step as a function: gradients of all micro-batches added in fp32, Adam on fp32 weights, BF16 copies."""
    model, vocab = model_of(torch, parameters)
    kept = list(model.parameters())
    model = torch.compile(model) if compiled else model
    masters = [weight.detach().float() for weight in kept]
    for master in masters:
        master.grad = torch.zeros_like(master)
    adam = torch.optim.Adam(masters, lr=1e-6, betas=(0.9, 0.95), fused=True)
    size = (parameters["micro_batch"], parameters["seq"])

    def step():
        torch._foreach_zero_([master.grad for master in masters])
        for _ in range(parameters["micro_batches"]):
            tokens = torch.randint(vocab, (size[0], size[1] + 1), device="cuda")
            (model(tokens[:, :-1], tokens[:, 1:]) / parameters["micro_batches"]).backward()
            torch._foreach_add_([master.grad for master in masters], [weight.grad for weight in kept])
            for weight in kept:
                weight.grad = None
        adam.step()
        torch._foreach_copy_([weight.data for weight in kept], masters)

    return step


def seconds_of(torch, step, begin):
    """Times of steps one after the other, after WARM_S of them."""
    times, warm = [], time.monotonic() + WARM_S
    while True:
        before = time.monotonic()
        step()
        torch.cuda.synchronize()
        now = time.monotonic()
        if before >= warm:
            times.append(now - before)
        if len(times) >= LEAST and sum(times) >= LEAST_S or (times and now - begin > LIMIT_S):
            return times


def figures(step_s, found, status):
    """What is printed: PyTorch's time, and its share of the record's: 1 is as fast, above 1 the record is faster."""
    yield {"yardstick": "train.step", "value": step_s}
    if status == "complete" and "step_time" in found:
        yield {"yardstick": "train.ratio", "value": step_s / found["step_time"]}


def main(path, compiled):
    parameters, found, status = read(path)
    import torch

    begin = time.monotonic()
    step_s = statistics.median(seconds_of(torch, step_of(torch, parameters, compiled), begin))
    for one in figures(step_s, found, status):
        print(json.dumps({**one, "torch": torch.__version__, "compiled": compiled}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--compile"]):
        sys.exit(__doc__)
    try:
        main(sys.argv[1], len(sys.argv) == 3)
    except Exception as error:  # a machine without PyTorch, or without memory for it
        print(json.dumps({"yardstick": "train", "error": str(error)}), flush=True)
        sys.exit(1)
