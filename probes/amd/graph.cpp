// graph: probes/cuda/graph.h by the HIP runtime.
#include "probes/cuda/graph.h"

#include "probes/amd/hip.h"

namespace assay::cuda {

using amd::hip;

// A deleter reports nothing: the work before it was checked.
void DestroyGraph::operator()(CUgraphExec_st* graph) const noexcept { (void)hip().destroy_ready(graph); }

Graph capture(const Stream& stream, const std::function<void()>& enqueue) {
  check(hip().begin_capture(stream.get(), amd::hip_api::kCaptureOfThread), "recording a graph (hipStreamBeginCapture)");
  amd::hip_api::Graph recorded = nullptr;
  try {
    enqueue();
  } catch (...) {
    (void)hip().end_capture(stream.get(), &recorded);  // the first failure is the one to report
    if (recorded != nullptr) (void)hip().destroy_graph(recorded);
    (void)hip().last_error();  // of the spoilt capture; the exception has its cause
    throw;
  }
  check(hip().end_capture(stream.get(), &recorded), "recording a graph (hipStreamEndCapture)");
  amd::hip_api::ReadyGraph graph = nullptr;
  const int state = hip().make_ready(&graph, recorded, nullptr, nullptr, 0);
  (void)hip().destroy_graph(recorded);  // the executable graph does not need it any more
  check(state, "making a graph executable (hipGraphInstantiate)");
  return Graph(graph);
}

void launch(const Graph& graph, const Stream& stream) {
  check(hip().launch_graph(graph.get(), stream.get()), "launching a graph (hipGraphLaunch)");
}

}  // namespace assay::cuda
