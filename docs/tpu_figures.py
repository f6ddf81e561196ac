#!/usr/bin/env python3
"""Writes figures of the accelerators that JAX sees, as assay.tpu/1, for `assay import tpu`: FORMATS has its fields.

Each figure is the median over samples of wall time. Before the samples, each operation is compiled and run once. A
matrix product counts 2 m n k operations; an all_reduce counts the bytes of one device (algbw, as nccl-tests counts); a
copy counts the bytes read and written. Nothing is checked for right results.
"""
import argparse
import json
import statistics
import sys
import time

import jax
import jax.numpy as jnp


def median_time(run, samples):
    """Seconds of one call of `run`, which returns an array that is waited for."""
    run().block_until_ready()
    times = []
    for _ in range(samples):
        begin = time.perf_counter()
        run().block_until_ready()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def matmul(side, samples, device):
    """A product of two square matrices of bf16 on one device."""
    keys = jax.random.split(jax.random.PRNGKey(1), 2)
    a, b = (jax.device_put(jax.random.normal(key, (side, side), jnp.bfloat16), device) for key in keys)
    product = jax.jit(lambda x, y: x @ y)
    seconds = median_time(lambda: product(a, b), samples)
    at = {"operation": "matmul", "type": "bf16", "m": side, "n": side, "k": side, "device": device.id}
    return figure("throughput", "FLOP/s", 2 * side**3 / seconds, samples, at)


def copy(size, samples, device):
    """A copy within the memory of one device, written as a sum so that it is not left out."""
    source = jax.device_put(jnp.ones(size // 4, jnp.float32), device)
    added = jax.jit(lambda x: x + 1)
    seconds = median_time(lambda: added(source), samples)
    at = {"operation": "copy", "type": "fp32", "size": size, "device": device.id}
    return figure("bandwidth", "B/s", 2 * size / seconds, samples, at)


def all_reduce(size, samples):
    """A sum over all devices of this process, of `size` bytes in each."""
    count = jax.local_device_count()
    parts = jnp.ones((count, size // 2), jnp.bfloat16)
    summed = jax.pmap(lambda x: jax.lax.psum(x, "all"), axis_name="all")
    parts = jax.pmap(lambda x: x)(parts)  # placed once, not in each call
    seconds = median_time(lambda: summed(parts), samples)
    at = {"operation": "all_reduce", "type": "bf16", "size": size, "ranks": count}
    return figure("algbw", "B/s", size / seconds, samples, at)


def figure(metric, unit, value, samples, at):
    return {"metric": metric, "unit": unit, "statistic": "median", "samples": samples, "value": value, "at": at}


def main():
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--side", type=int, default=8192, help="rows and columns of the matrices [8192]")
    given.add_argument("--size", type=int, default=256 << 20, help="bytes of a copy and of an all_reduce [256 MiB]")
    given.add_argument("--samples", type=int, default=20, help="[20]")
    given = given.parse_args()
    if given.side < 1 or given.size < 4 or given.samples < 1:
        sys.exit("--side, --size and --samples must be positive, and --size at least 4")
    devices = jax.local_devices()
    figures = [matmul(given.side, given.samples, device) for device in devices]
    figures += [copy(given.size, given.samples, device) for device in devices]
    if len(devices) > 1:
        figures.append(all_reduce(given.size, given.samples))
    facts = {"device_kind": devices[0].device_kind, "platform": devices[0].platform, "devices": len(devices)}
    facts["hosts"] = jax.process_count()
    print(json.dumps({"schema": "assay.tpu/1", "jax": jax.__version__, "facts": facts, "figures": figures}, indent=1))


if __name__ == "__main__":
    main()
