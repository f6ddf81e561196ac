// graph: work of a stream recorded once, and launched as one. No CUDA header is needed to include this.
#pragma once

#include <functional>
#include <memory>

#include "probes/cuda/device.h"

struct CUgraphExec_st;  // the target of cudaGraphExec_t

namespace assay::cuda {

struct DestroyGraph {
  void operator()(CUgraphExec_st* graph) const noexcept;
};
/// Work recorded once; get() is a cudaGraphExec_t. It belongs to the device that was current when it was recorded, and
/// what it reads and writes must live as long.
using Graph = std::unique_ptr<CUgraphExec_st, DestroyGraph>;

/// Records what `enqueue` puts into `stream`, makes it executable and puts it on the device. Nothing of it runs yet.
/// `enqueue` must not allocate, wait, or use another stream. An exception of `enqueue` is passed on, and leaves
/// `stream` usable. Throws std::runtime_error with the call that failed.
Graph capture(const Stream& stream, const std::function<void()>& enqueue);

/// Enqueues `graph` in `stream` and returns; wait(stream) has the deadline. A graph runs once at a time: launches
/// behind each other wait. Throws std::runtime_error with the call that failed.
void launch(const Graph& graph, const Stream& stream);

}  // namespace assay::cuda
