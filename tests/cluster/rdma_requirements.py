"""rdma_requirements: requirements on the RDMA probes, with parameters for two emulated machines."""

FAST = {
    "window": 0.1,
    "min_samples": 10,
    "max_samples": 20,
    "time_limit": 2.0,
    "warmup_limit": 0.5,
    "stall_limit": 30.0,
    "ack_timeout": 1.0,
}


def bandwidth(name, metric, size, **parameters):
    return requirement(
        name,
        "verbs_bandwidth",
        metric,
        size,
        {"at_least": 1e5, "unit": "B/s"},
        {"sizes": str(size), **FAST, **parameters},
    )


def latency(name, metric, size, **parameters):
    return requirement(
        name,
        "verbs_latency",
        metric,
        size,
        {"at_most": 1.0, "unit": "s"},
        {
            "sizes": str(size),
            "messages": 100,
            "batches": 10,
            "warmup": 20,
            "stall_limit": 30.0,
            "ack_timeout": 1.0,
            **parameters,
        },
    )


def requirement(name, probe, metric, size, limit, parameters, **more):
    return {
        "id": name,
        "title": name,
        "probe": probe,
        "parameters": parameters,
        "metric": metric,
        "at": {"size": size},
        "scope": "pair",
        "limit": limit,
        "conditions": [
            {"name": "path", "equals": "fabric"},
            {"name": "transport", "equals": "RoCE v2"},
            {"name": "link_errors", "at_most": 0},
        ],
        "source": {"document": "the test", "status": "sourced"},
        **more,
    }


def clean(name, probe, size, parameters):
    """No wrong byte: judged by a single sample, which a maximum allows."""
    return requirement(
        name, probe, "mismatches", size, {"at_most": 0, "unit": "1"}, parameters, statistic="max", repeat={"n": 1}
    )
