// gloo_loop: a plain loop on Gloo's API, as Gloo's own benchmark times it: iterations back to back after one barrier,
// each by the wall clock of this rank. The yardstick of host_collective; shares no code with it.
//   gloo_loop RANK RANKS ADDRESS FOLDER OPERATION SIZE WARMUP COUNT
// FOLDER is empty and seen by all ranks. Rank 0 prints the seconds of each iteration, one a line.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

namespace {

void once(const std::string& operation, const std::shared_ptr<::gloo::Context>& context, std::vector<float>& source,
          std::vector<float>& target) {
  const auto ranks = static_cast<std::size_t>(context->size);
  if (operation == "all_reduce") {
    ::gloo::AllreduceOptions options(context);
    options.setInput(source.data(), source.size());
    options.setOutput(target.data(), target.size());
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&::gloo::sum<float>));
    ::gloo::allreduce(options);
  } else if (operation == "all_gather") {
    ::gloo::AllgatherOptions options(context);
    options.setInput(source.data(), source.size() / ranks);
    options.setOutput(target.data(), target.size() / ranks * ranks);
    ::gloo::allgather(options);
  } else if (operation == "all_to_all") {
    ::gloo::AlltoallOptions options(context);
    options.setInput(source.data(), source.size() / ranks * ranks);
    options.setOutput(target.data(), target.size() / ranks * ranks);
    ::gloo::alltoall(options);
  } else {
    throw std::runtime_error("no such operation: " + operation);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (words.size() != 9) {
    std::cerr << "usage: gloo_loop RANK RANKS ADDRESS FOLDER OPERATION SIZE WARMUP COUNT\n";
    return 2;
  }
  try {
    auto device = ::gloo::transport::tcp::CreateDevice(words[3].c_str());
    ::gloo::rendezvous::FileStore store(words[4]);
    const auto context = std::make_shared<::gloo::rendezvous::Context>(std::stoi(words[1]), std::stoi(words[2]));
    context->connectFullMesh(store, device);
    std::vector<float> source(std::stoul(words[6]) / sizeof(float), 1), target(source.size());
    const int warmup = std::stoi(words[7]), count = std::stoi(words[8]);
    std::vector<double> times;
    ::gloo::BarrierOptions barrier(context);
    ::gloo::barrier(barrier);
    for (int i = 0; i < warmup + count; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      once(words[5], context, source, target);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
      if (i >= warmup) times.push_back(taken.count());
    }
    ::gloo::barrier(barrier);
    if (context->rank == 0) {
      for (const double time : times) std::cout << time << '\n';
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "gloo_loop: " << error.what() << '\n';
    return 1;
  }
}
