// graph: cudaStreamBeginCapture to cudaGraphLaunch.
#include "probes/cuda/graph.h"

#include <cuda_runtime_api.h>

namespace assay::cuda {

// A deleter reports nothing: the work before it was checked.
void DestroyGraph::operator()(CUgraphExec_st* graph) const noexcept { (void)cudaGraphExecDestroy(graph); }

Graph capture(const Stream& stream, const std::function<void()>& enqueue) {
  check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal),
        "recording a graph (cudaStreamBeginCapture)");
  cudaGraph_t recorded = nullptr;
  try {
    enqueue();
  } catch (...) {
    (void)cudaStreamEndCapture(stream.get(), &recorded);  // the first failure is the one to report
    if (recorded != nullptr) (void)cudaGraphDestroy(recorded);
    (void)cudaGetLastError();  // that the capture was spoilt is told by the exception
    throw;
  }
  check(cudaStreamEndCapture(stream.get(), &recorded), "recording a graph (cudaStreamEndCapture)");
  cudaGraphExec_t graph = nullptr;
  const cudaError_t state = cudaGraphInstantiate(&graph, recorded, 0);
  (void)cudaGraphDestroy(recorded);  // the executable graph does not need it any more
  check(state, "making a graph executable (cudaGraphInstantiate)");
  Graph result(graph);
  check(cudaGraphUpload(graph, stream.get()), "uploading a graph (cudaGraphUpload)");
  return result;
}

void launch(const Graph& graph, const Stream& stream) {
  check(cudaGraphLaunch(graph.get(), stream.get()), "launching a graph (cudaGraphLaunch)");
}

}  // namespace assay::cuda
